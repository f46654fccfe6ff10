"""The positive controls: correct subjects, which the kit must let pass."""

from __future__ import annotations

from functools import update_wrapper
from typing import TYPE_CHECKING, Any

import numpy as np

from draftproof.conformance.broken import _steps
from draftproof.conformance.broken._batch import one_hot
from draftproof.conformance.broken._broken import Broken, as_verifier, entered
from draftproof.conformance.broken._drafters import (
    drafting,
    draw,
    min_p,
    softmax,
    top_k,
    top_p,
)
from draftproof.conformance.broken._right import emitted, verify, verify_block
from draftproof.conformance.broken._samplers import drawn_from_target, matched
from draftproof.conformance.broken._sampling import sampler_of, sampling

if TYPE_CHECKING:
    from draftproof.conformance.broken._batch import Array, Batch
    from draftproof.conformance.broken._drafters import Drafted, Rng
    from draftproof.conformance.broken._right import Verdict

RIGHT_STEPS: dict[str, Broken] = {}
RIGHT_VERIFIERS: dict[str, Broken] = {}
RIGHT_SAMPLERS: dict[str, Broken] = {}
RIGHT_DRAFTERS: dict[str, Broken] = {}


@_steps.stepping("", None, RIGHT_STEPS)
def right_step(draft: Array, target: Array, token: int) -> dict[str, Any]:
    """Return ``min(1, p / q)`` and ``max(p - q, 0)`` divided by its sum."""
    return _steps.right_step(draft, target, token)


def token_rule(batch: Batch) -> Verdict:
    """Verify by the token rule."""
    return verify(batch)


def block_rule(batch: Batch) -> Verdict:
    """Verify by the block rule."""
    return verify_block(batch)


for _decide, _rule in ((token_rule, "token"), (block_rule, "block")):
    _verifier = update_wrapper(as_verifier(_decide), _decide)
    entered(RIGHT_VERIFIERS, None, _rule)(_verifier)
    _sampler = update_wrapper(sampler_of(_verifier), _decide)
    entered(RIGHT_SAMPLERS, None, _rule)(_sampler)


@sampling(None, RIGHT_SAMPLERS)
def token_rule_with_races(batch: Batch, seed: int) -> Array:
    """Draw replacements by a race of exponential noise, each request with its own."""

    def race(weights: Array, uniforms: Array) -> Array:
        del uniforms
        noise = np.random.default_rng([seed, 1]).exponential(size=weights.shape)
        return (weights / noise).argmax(axis=-1)

    return emitted(batch, verify(batch, draw=race))


@sampling(None, RIGHT_SAMPLERS, None)
def exact_match(batch: Batch, seed: int) -> Array:
    """Draw the target's tokens, and keep drafts as long as they are equal."""
    drawn = drawn_from_target(batch, np.random.default_rng(seed))
    return emitted(batch, matched(batch, drawn))


@drafting(None, RIGHT_DRAFTERS)
def drawn_from_the_softmax(logits: Array, rng: Rng) -> Drafted:
    """Draw from the softmax of the logits, and return that."""
    probs = softmax(logits)
    return draw(probs, rng), probs


@drafting(None, RIGHT_DRAFTERS)
def drawn_by_gumbel_noise(logits: Array, rng: Rng) -> Drafted:
    """Take the largest logit after adding Gumbel noise."""
    return (logits + rng.gumbel(size=logits.shape)).argmax(axis=-1), softmax(logits)


@drafting(None, RIGHT_DRAFTERS)
def drawn_from_the_top_two(logits: Array, rng: Rng) -> Drafted:
    """Draw from the two likeliest tokens, and return their rows."""
    probs = top_k(softmax(logits))
    return draw(probs, rng), probs


@drafting(None, RIGHT_DRAFTERS)
def drawn_at_a_temperature(logits: Array, rng: Rng) -> Drafted:
    """Draw at a temperature of 0.6 from the nucleus, and return those rows."""
    probs = top_p(softmax(logits / 0.6))
    return draw(probs, rng), probs


@drafting(None, RIGHT_DRAFTERS)
def drawn_from_the_likely(logits: Array, rng: Rng) -> Drafted:
    """Draw without the unlikely tokens, and return rows without them."""
    probs = min_p(softmax(logits))
    return draw(probs, rng), probs


@drafting(None, RIGHT_DRAFTERS)
def greedy_one_hot(logits: Array, rng: Rng) -> Drafted:
    """Draft the likeliest token, and return rows that are sure of it."""
    del rng
    best = logits.argmax(axis=-1)
    return best, one_hot(best, logits.shape[-1])
