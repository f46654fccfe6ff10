"""Verifiers with a wrong test of acceptance: what stands here is what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from draftproof.conformance.broken._batch import at
from draftproof.conformance.broken._broken import accepting, counting
from draftproof.conformance.broken._right import (
    coins_below_ratio,
    ratios,
    until_last_success,
)

if TYPE_CHECKING:
    from draftproof.conformance.broken._batch import Array, Batch

__all__: list[str] = []


@accepting(None)
def inclusive_test(batch: Batch) -> Array:
    """Accept at ``u * q == p`` too: a forbidden token, when the coin is 0 (A01)."""
    return batch.coins * batch.q <= batch.p


@accepting("everything accepted")
def everything_accepted(batch: Batch) -> Array:
    """Accept every draft, as if the random numbers were missing (A02)."""
    return np.ones_like(batch.coins, bool)


@accepting(None)
def coin_hard_wired_to_zero(batch: Batch) -> Array:
    """Compare 0 instead of a coin: accepts whatever the target does not forbid (A02)."""
    return 0 * batch.q < batch.p


@accepting(None)
def undefined_ratio_accepted(batch: Batch) -> Array:
    """Reject iff ``u >= p / q``, which 0 / 0 is not (A10)."""
    return ~(batch.coins >= batch.p / batch.q)


@accepting("accepted without a coin")
def likelier_drafts_only(batch: Batch) -> Array:
    """Accept iff ``p >= q``, without a coin (A07)."""
    return batch.p >= batch.q


@accepting("ratio of the target's maximum")
def ratio_of_the_maximum(batch: Batch) -> Array:
    """Take the largest target probability for the drafted token's (A06)."""
    return batch.coins * batch.q < batch.target[:, :-1].max(axis=-1)


@accepting("accepted with the target's probability")
def dense_draft_taken_for_one_hot(batch: Batch) -> Array:
    """Accept with p instead of p / q, as if the draft had been certain (A13, A14)."""
    return batch.coins < batch.p


@accepting("lenient acceptance")
def lenient_acceptance(batch: Batch) -> Array:
    """Accept twice as often, where that is possible (H10)."""
    return batch.coins * batch.q < 2 * batch.p


@accepting("ratio squared")
def tested_twice(batch: Batch) -> Array:
    """Accept with the square of the ratio, as two tests do one after the other (A04)."""
    return batch.coins < np.minimum(ratios(batch), 1) ** 2


@accepting("coin the other way round")
def coin_the_other_way_round(batch: Batch) -> Array:
    """Accept iff the coin lies above the ratio (A10)."""
    return batch.coins >= np.minimum(ratios(batch), 1)


@accepting("ratio the other way round")
def ratio_the_other_way_round(batch: Batch) -> Array:
    """Accept with q / p (D13)."""
    return batch.coins * batch.p < batch.q


@accepting("first draft not verified")
def first_draft_committed(batch: Batch) -> Array:
    """Accept the first draft whatever the target says (C11)."""
    good = coins_below_ratio(batch)
    good[:, :1] = True
    return good


@accepting("last draft not verified")
def last_draft_committed(batch: Batch) -> Array:
    """Accept the last draft without a test (C01, C11)."""
    good = coins_below_ratio(batch)
    good[:, -1:] = True
    return good


@accepting("target rows off by one")
def target_rows_off_by_one(batch: Batch) -> Array:
    """Compare each draft with the target row of the next place (C11, H08)."""
    p = at(batch.target[:, 1:], batch.tokens)
    return batch.coins * batch.q < p


@accepting(None)
def draft_rows_of_the_neighbour(batch: Batch) -> Array:
    """Read the draft row of the request before in the batch (G02)."""
    q = at(np.roll(batch.draft, 1, axis=0), batch.tokens)
    return batch.coins * q < batch.p


@accepting(None)
def softmax_of_target_probs(batch: Batch) -> Array:
    """Take target probabilities for logits, and their softmax (D13)."""
    weights = np.exp(batch.target[:, :-1])
    p = at(weights / weights.sum(axis=-1, keepdims=True), batch.tokens)
    return batch.coins * batch.q < p


@accepting(None)
def typical_acceptance(batch: Batch) -> Array:
    """Accept what is likely for the target's entropy, with no coin and no q (H10)."""
    p = batch.target[:, :-1]
    entropy = -(p * np.log(np.where(p > 0, p, 1))).sum(axis=-1)
    return batch.p > np.minimum(0.3, 0.5 * np.exp(-entropy))


@accepting(None)
def epsilon_in_the_denominator(batch: Batch) -> Array:
    """Add a small number to q, against zero, and divide (A10)."""
    return batch.coins < batch.p / (batch.q + 1e-3)


@accepting(None)
def ratio_in_half_precision(batch: Batch) -> Array:
    """Compare in eight bits of mantissa, as bfloat16 has (B13, E03)."""
    mantissa, exponent = np.frexp(np.minimum(ratios(batch), 1))
    return batch.coins < np.ldexp(np.round(mantissa * 2**8), exponent - 8)


@accepting(None)
def products_of_coins(batch: Batch) -> Array:
    """Compare running products of ratios with running products of coins (H01)."""
    chance = np.cumprod(np.minimum(ratios(batch), 1), axis=1)
    return np.cumprod(batch.coins, axis=1) < chance


@counting("all successes counted")
def all_successes_counted(good: Array) -> Array:
    """Count every success, also those behind a failure (A03, A04)."""
    return good.sum(axis=1)


@counting("later success after a failure")
def later_success_after_a_failure(good: Array) -> Array:
    """Count up to the last success, with the coins of the token rule (A03, C03)."""
    return until_last_success(good)


@counting("accepted without a coin")
def shortest_of_the_batch(good: Array) -> Array:
    """Accept of all requests of a batch as many as of the shortest (E06)."""
    lengths = np.cumprod(good, axis=1, dtype=np.int64).sum(axis=1)
    return np.full_like(lengths, lengths.min(initial=good.shape[1]))
