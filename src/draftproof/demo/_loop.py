"""The decoding loop, one drafted token at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from draftproof import speculative_decode_step

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from draftproof.demo._models import NGram

__all__ = ["BACKENDS", "Backend", "Emitted", "Run", "decode"]


class Backend(NamedTuple):
    """How to get a NumPy row into a library."""

    module: str
    package: str
    function: str

    def converter(self) -> Callable[[NDArray[np.float32]], Any]:
        """Import the library and return its conversion; ImportError if it is missing."""
        converter: Callable[[NDArray[np.float32]], Any]
        converter = getattr(import_module(self.module), self.function)
        return converter


BACKENDS = {
    "numpy": Backend("numpy", "numpy", "asarray"),
    "torch": Backend("torch", "torch", "from_numpy"),
    "jax": Backend("jax.numpy", "jax", "asarray"),
}


class Emitted(NamedTuple):
    """One emitted token, and whether it is the drafted one."""

    token: int
    accepted: bool


@dataclass
class Run:
    """What a run emitted, and how often a draft was expected to be accepted."""

    emitted: list[Emitted] = field(default_factory=list)
    expected: list[float] = field(default_factory=list)

    @property
    def measured_rate(self) -> float:
        """Share of the drafted tokens that were accepted."""
        return sum(one.accepted for one in self.emitted) / len(self.emitted)

    @property
    def predicted_rate(self) -> float:
        """Mean of ``sum(min(p, q))`` over the rows that were met."""
        return math.fsum(self.expected) / len(self.expected)

    @property
    def standard_error(self) -> float:
        """Standard deviation of the measured rate around the predicted one."""
        variance = math.fsum(rate * (1 - rate) for rate in self.expected)
        return math.sqrt(max(variance, 0.0)) / len(self.expected)


def decode(
    draft: NGram,
    target: NGram,
    prompt: Sequence[int],
    *,
    tokens: int,
    seed: int,
    backend: str = "numpy",
) -> Run:
    """Generate `tokens` tokens after `prompt` by speculative decoding.

    Rows, uniforms and draws are made on the host in NumPy, so the same seed gives
    the same text whatever library the step runs on.

    Parameters
    ----------
    draft, target : NGram
        The model that proposes and the model that decides.
    prompt : sequence of int
        The words before the first one.
    tokens : int
        How many tokens to emit.
    seed : int
        Seed of the uniforms.
    backend : {"numpy", "torch", "jax"}
        Where the step runs.

    Returns
    -------
    Run
        The emitted tokens with the expected acceptance of each.

    Raises
    ------
    ImportError
        If the library of `backend` is not installed.
    """
    convert = BACKENDS[backend].converter()
    uniforms = np.random.default_rng(seed).random((tokens, 3))
    context, run = list(prompt), Run()
    for drafting, accepting, replacing in uniforms:
        draft_probs, target_probs = draft.law(context), target.law(context)
        token = _draw(draft_probs, drafting)
        step = speculative_decode_step(convert(draft_probs), convert(target_probs), token)
        accepted = bool(accepting < step["accept_prob"])
        if not accepted:
            token = _draw(np.asarray(step["residual"]), replacing)
        run.emitted.append(Emitted(token, accepted))
        run.expected.append(float(np.minimum(draft_probs, target_probs).sum(dtype=float)))
        context.append(token)
    return run


def _draw(weights: NDArray[np.float32], uniform: float) -> int:
    """Return the first token whose running sum exceeds that share of the total."""
    running = np.cumsum(weights, dtype=float)
    token = int(np.searchsorted(running, uniform * running[-1], side="right"))
    # Rounding may carry the share up to the total itself: then the last one it is.
    return min(token, int(np.flatnonzero(weights)[-1]))
