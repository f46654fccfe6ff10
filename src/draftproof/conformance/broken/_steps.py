"""Wrong steps: one token of one request, and the law of what replaces it."""

from __future__ import annotations

from functools import update_wrapper
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from draftproof.conformance.broken._broken import STEPS, Broken, entered

if TYPE_CHECKING:
    from collections.abc import Callable

    from draftproof.conformance.broken._batch import Array
    from draftproof.conformance.broken._broken import Register, Subject

    Step: TypeAlias = dict[str, Any]

__all__ = ["right_step", "stepping"]


def ratio(draft: Array, target: Array, token: int) -> float:
    """Return ``min(1, p / q)``."""
    return min(1.0, float(target[token]) / float(draft[token]))


def divided(part: Array) -> Array:
    """Return non-negative numbers divided by their sum, or zeros as they are."""
    total = part.sum(dtype=np.float64)
    return part / total if total > 0 else part


def leftover(draft: Array, target: Array) -> Array:
    """Return ``max(p - q, 0)`` divided by its sum."""
    return divided(np.maximum(target - draft, 0))


def right_step(draft: Array, target: Array, token: int) -> Step:
    """Return the acceptance probability and the residual."""
    accept_prob = ratio(draft, target, token)
    return {"accept_prob": accept_prob, "residual": leftover(draft, target)}


def stepping(part: str, fault: str | None, catalogue: dict[str, Broken]) -> Register:
    """Return a decorator for what stands in for one part of the right step."""

    def register(wrong: Callable[..., Any]) -> Subject:
        def step(draft_probs: Any, target_probs: Any, token: Any) -> Step:
            given = np.asarray(draft_probs)
            draft, target = given.astype("f8"), np.asarray(target_probs, "f8")
            if not (0 <= token < len(draft)):
                raise IndexError(token)
            if not (draft[token] > 0 and np.isfinite(draft.sum() + target.sum())):
                raise ValueError(draft, target)
            found = right_step(draft, target, int(token))
            if part:
                found[part] = wrong(draft, target, int(token))
            found["residual"] = found["residual"].astype(given.dtype)
            return found

        return entered(catalogue, fault)(update_wrapper(step, wrong))

    return register


def accept_prob(fault: str | None) -> Register:
    """Return a decorator for the acceptance probability of a step."""
    return stepping("accept_prob", fault, STEPS)


def residual(fault: str | None) -> Register:
    """Return a decorator for the residual of a step."""
    return stepping("residual", fault, STEPS)


@residual("replacement from the target")
def replacement_from_the_target(draft: Array, target: Array, token: int) -> Array:
    """Give p for the law of the replacement (B02)."""
    del draft, token
    return target


@residual("softmax of the residual")
def softmax_of_the_residual(draft: Array, target: Array, token: int) -> Array:
    """Take the softmax of the positive part (B01)."""
    del token
    return divided(np.exp(np.maximum(target - draft, 0)))


@residual("point-mass residual for a dense draft")
def residual_of_a_point_mass(draft: Array, target: Array, token: int) -> Array:
    """Subtract q at the drafted token only (B03)."""
    part = target.copy()
    part[token] = max(target[token] - draft[token], 0)
    return divided(part)


@residual("residual without its sign")
def absolute_difference(draft: Array, target: Array, token: int) -> Array:
    """Take the absolute value of p - q instead of its positive part (B04)."""
    del token
    return divided(abs(target - draft))


@residual("residual the other way round")
def residual_the_other_way_round(draft: Array, target: Array, token: int) -> Array:
    """Give ``max(q - p, 0)`` divided by its sum (B09)."""
    del token
    return leftover(target, draft)


@residual("replacement by argmax")
def likeliest_of_the_residual(draft: Array, target: Array, token: int) -> Array:
    """Give all to the largest entry of the residual (D09)."""
    del token
    law = leftover(draft, target)
    return (np.arange(len(law)) == law.argmax()) * 1.0


@residual("clamp to a tiny number")
def clamp_to_a_tiny_number(draft: Array, target: Array, token: int) -> Array:
    """Clamp to a tiny number: of equal rows a uniform law is left (B04)."""
    del token
    return divided(np.maximum(target - draft, 1e-38))


@residual("residual not normalised")
def residual_not_divided(draft: Array, target: Array, token: int) -> Array:
    """Give the positive part without dividing it by its sum (B01)."""
    del token
    return np.maximum(target - draft, 0)


@residual("epsilon in the residual's denominator")
def epsilon_in_the_divisor(draft: Array, target: Array, token: int) -> Array:
    """Add a small number to the sum, so that the law sums to less than 1 (B04)."""
    del token
    part = np.maximum(target - draft, 0)
    return part / (part.sum() + 1e-4)


@residual(None)
def residual_in_half_precision(draft: Array, target: Array, token: int) -> Array:
    """Compute in half precision whatever is given (B13)."""
    del token
    half = np.maximum(target.astype("f2") - draft.astype("f2"), np.float16(0))
    return divided(half).astype("f2")


@accept_prob("ratio of the target's maximum")
def ratio_of_the_maximum(draft: Array, target: Array, token: int) -> float:
    """Take the largest target probability for the drafted token's (A06)."""
    return min(1.0, float(target.max()) / float(draft[token]))


@accept_prob("accepted without a coin")
def all_or_nothing(draft: Array, target: Array, token: int) -> float:
    """Accept where ``p >= q``, and never else (A07)."""
    return float(target[token] >= draft[token])


@accept_prob("accepted with the target's probability")
def dense_draft_taken_for_one_hot(draft: Array, target: Array, token: int) -> float:
    """Accept with p, as if the draft had been certain (A13)."""
    del draft
    return float(target[token])


@accept_prob("ratio the other way round")
def ratio_the_other_way_round(draft: Array, target: Array, token: int) -> float:
    """Accept with q / p (D13)."""
    p, q = float(target[token]), float(draft[token])
    return min(1.0, q / p) if p > 0 else 1.0


@accept_prob("everything accepted")
def everything_accepted(draft: Array, target: Array, token: int) -> float:
    """Accept every token (A02)."""
    del draft, target, token
    return 1.0


@accept_prob("epsilon in the denominator")
def epsilon_in_the_ratio(draft: Array, target: Array, token: int) -> float:
    """Add a small number to q, against zero (A10)."""
    return min(1.0, float(target[token]) / (float(draft[token]) + 1e-4))


@accept_prob("ratio not capped at 1")
def ratio_not_capped(draft: Array, target: Array, token: int) -> float:
    """Give p / q, above 1 where the target is likelier (A07)."""
    return float(target[token]) / float(draft[token])


@accept_prob(None)
def ratio_in_half_precision(draft: Array, target: Array, token: int) -> float:
    """Round the ratio to half precision (B13)."""
    return float(np.float16(ratio(draft, target, token)))
