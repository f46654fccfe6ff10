"""Drafters whose rows are not the law that their tokens were drawn from."""

from __future__ import annotations

from functools import update_wrapper
from typing import TYPE_CHECKING, Any

import numpy as np

from draftproof.conformance.broken._batch import one_hot
from draftproof.conformance.broken._broken import DRAFTERS, Broken, entered

if TYPE_CHECKING:
    from collections.abc import Callable

    from draftproof.conformance.broken._batch import Array
    from draftproof.conformance.broken._broken import Register, Subject

    Drafted = tuple[Array, Array]
    Rng = np.random.Generator

__all__ = ["drafting"]


def drafting(fault: str | None, catalogue: dict[str, Broken] = DRAFTERS) -> Register:
    """Return a decorator for a function of logits and a generator."""

    def register(draft: Callable[[Array, Rng], Drafted]) -> Subject:
        def drafter(logits: Any, seed: int) -> Drafted:
            rows = np.asarray(logits, np.float64)
            return draft(rows, np.random.default_rng(seed))

        return entered(catalogue, fault)(update_wrapper(drafter, draft))

    return register


def softmax(logits: Array) -> Array:
    """Return the probabilities of logits."""
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def draw(probs: Array, rng: Rng) -> Array:
    """Draw a token of each row."""
    ends = np.cumsum(probs, axis=-1)
    uniforms = rng.random((len(probs), 1)) * ends[:, -1:]
    return (ends <= uniforms).sum(axis=-1)


def top_k(probs: Array, count: int = 2) -> Array:
    """Keep so many of the largest probabilities, and divide them by their sum."""
    least = np.sort(probs, axis=-1)[:, -min(count, probs.shape[-1]), None]
    kept = np.where(probs >= least, probs, 0)
    return kept / kept.sum(axis=-1, keepdims=True)


def top_p(probs: Array, share: float = 0.8) -> Array:
    """Keep the largest probabilities up to a share, and divide them by their sum."""
    order = np.argsort(-probs, axis=-1)
    ranked = np.take_along_axis(probs, order, -1)
    before = np.cumsum(ranked, axis=-1) - ranked
    kept = np.zeros_like(probs)
    np.put_along_axis(kept, order, np.where(before < share, ranked, 0), -1)
    return kept / kept.sum(axis=-1, keepdims=True)


def min_p(probs: Array, share: float = 0.3) -> Array:
    """Keep what has a share of the largest probability, and divide by the sum."""
    kept = np.where(probs >= share * probs.max(axis=-1, keepdims=True), probs, 0)
    return kept / kept.sum(axis=-1, keepdims=True)


@drafting("argmax draw with a dense law")
def argmax_with_softmax_probs(logits: Array, rng: Rng) -> Drafted:
    """Draft the likeliest token, and say that it was drawn from the softmax (A14)."""
    del rng
    return logits.argmax(axis=-1), softmax(logits)


@drafting(None)
def argmax_half_of_the_time(logits: Array, rng: Rng) -> Drafted:
    """Draw for one half of the requests, and take the likeliest for the other (A13)."""
    probs = softmax(logits)
    drawn = rng.random(len(probs)) < 0.5  # noqa: PLR2004
    return np.where(drawn, draw(probs, rng), probs.argmax(axis=-1)), probs


@drafting("top-k filter missing from the law")
def raw_probs_of_a_top_k_draw(logits: Array, rng: Rng) -> Drafted:
    """Draw from the two likeliest tokens, and return rows of all of them (D01)."""
    probs = softmax(logits)
    return draw(top_k(probs), rng), probs


@drafting("top-p filter missing from the law")
def raw_probs_of_a_top_p_draw(logits: Array, rng: Rng) -> Drafted:
    """Draw from the nucleus, and return rows of all tokens (D01, D08)."""
    probs = softmax(logits)
    return draw(top_p(probs), rng), probs


@drafting("min-p filter missing from the law")
def raw_probs_of_a_min_p_draw(logits: Array, rng: Rng) -> Drafted:
    """Draw without the unlikely tokens, and return rows with them (D01)."""
    probs = softmax(logits)
    return draw(min_p(probs), rng), probs


@drafting("filter missing from the draw")
def filter_in_the_report_only(logits: Array, rng: Rng) -> Drafted:
    """Draw from all tokens, and return rows of the two likeliest (D08)."""
    probs = softmax(logits)
    return draw(probs, rng), top_k(probs)


@drafting(None)
def filtered_rows_not_divided(logits: Array, rng: Rng) -> Drafted:
    """Return filtered rows that were not divided by what is left (H05)."""
    probs = softmax(logits)
    kept = top_k(probs)
    return draw(kept, rng), np.where(kept > 0, probs, 0)


@drafting("temperature missing from the law")
def temperature_missing_in_the_report(logits: Array, rng: Rng) -> Drafted:
    """Draw at a temperature of 0.6, and return rows at 1 (D02, D04)."""
    return draw(softmax(logits / 0.6), rng), softmax(logits)


@drafting("temperature missing from the law")
def temperature_above_one_missing(logits: Array, rng: Rng) -> Drafted:
    """Draw at a temperature of 2, and return rows at 1 (D04)."""
    return draw(softmax(logits / 2), rng), softmax(logits)


@drafting("temperature missing from the draw")
def temperature_missing_in_the_draw(logits: Array, rng: Rng) -> Drafted:
    """Draw at a temperature of 1, and return rows at 0.6 (D02, D09)."""
    return draw(softmax(logits), rng), softmax(logits / 0.6)


@drafting("law of the request before")
def probs_of_the_row_before(logits: Array, rng: Rng) -> Drafted:
    """Return with each token the row of the request before it (G02, B09)."""
    probs = softmax(logits)
    return draw(probs, rng), np.roll(probs, 1, axis=0)


@drafting("softmax applied twice to the law")
def softmax_twice(logits: Array, rng: Rng) -> Drafted:
    """Return the softmax of probabilities (D13)."""
    probs = softmax(logits)
    return draw(probs, rng), softmax(probs)


@drafting(None)
def logarithms_returned(logits: Array, rng: Rng) -> Drafted:
    """Return logarithms of probabilities where probabilities belong (D13)."""
    probs = softmax(logits)
    return draw(probs, rng), np.log(np.maximum(probs, np.finfo(np.float64).tiny))


@drafting("same noise for every request")
def noise_shared_by_the_batch(logits: Array, rng: Rng) -> Drafted:
    """Draw the token of every request with the same uniform (E10)."""
    probs = softmax(logits)
    reached = np.cumsum(probs, axis=-1) > rng.random()
    return reached.argmax(axis=-1), probs


@drafting("seed ignored")
def seed_ignored_in_drafts(logits: Array, rng: Rng) -> Drafted:
    """Draw with the same random numbers whatever the seed (E06)."""
    del rng
    probs = softmax(logits)
    return draw(probs, np.random.default_rng(0)), probs


@drafting("temperature missing from the law")
def half_of_the_noise(logits: Array, rng: Rng) -> Drafted:
    """Add half of the Gumbel noise, which amounts to a temperature of half (D04)."""
    return (logits + rng.gumbel(size=logits.shape) / 2).argmax(axis=-1), softmax(logits)


@drafting(None)
def race_with_uniform_noise(logits: Array, rng: Rng) -> Drafted:
    """Run a race with uniform noise where it needs exponential noise (E05)."""
    probs = softmax(logits)
    return (probs / (rng.random(probs.shape) + 1e-9)).argmax(axis=-1), probs


@drafting("draw from the bare logits")
def probs_in_the_order_of_ranks(logits: Array, rng: Rng) -> Drafted:
    """Return rows sorted by probability, not by token (G11)."""
    probs = softmax(logits)
    return draw(probs, rng), -np.sort(-probs, axis=-1)


@drafting(None)
def ids_of_the_draft_vocabulary(logits: Array, rng: Rng) -> Drafted:
    """Return ids that are one off those of the rows (G11)."""
    probs = softmax(logits)
    return (draw(probs, rng) + 1) % probs.shape[-1], probs


@drafting("id outside the vocabulary")
def id_behind_the_last_token(logits: Array, rng: Rng) -> Drafted:
    """Draw an id of V where the uniform lies behind the last bin (B12, B14)."""
    probs = softmax(logits)
    ends = np.cumsum(probs.astype(np.float16), axis=-1) * (1 - 2.0**-10)
    return (ends <= rng.random((len(probs), 1))).sum(axis=-1), probs


@drafting("filter missing from the draw")
def certain_drafts_that_were_drawn(logits: Array, rng: Rng) -> Drafted:
    """Draw tokens, and return rows that are sure of the likeliest one (A15, D09)."""
    probs = softmax(logits)
    return draw(probs, rng), one_hot(probs.argmax(axis=-1), probs.shape[-1])
