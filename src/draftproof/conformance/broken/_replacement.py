"""Verifiers that draw the next token from wrong weights, or draw it wrongly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from draftproof.conformance.broken._batch import one_hot, row
from draftproof.conformance.broken._broken import drawing, verifying, weighing
from draftproof.conformance.broken._right import draft_row, residual, verify

if TYPE_CHECKING:
    from draftproof.conformance.broken._batch import Array, Batch
    from draftproof.conformance.broken._right import Verdict

__all__: list[str] = []


def after_rejection(batch: Batch, accepted: Array, weights: Array) -> Array:
    """Return weights where a draft was rejected, and the bonus row elsewhere."""
    bonus = batch.all_accepted(accepted)[:, None]
    return np.where(bonus, row(batch.target, accepted), weights)


@weighing("replacement from the target")
def replacement_from_the_target(batch: Batch, accepted: Array) -> Array:
    """Draw the replacement from p itself (B02)."""
    return row(batch.target, accepted)


@weighing("softmax of the residual")
def softmax_of_the_residual(batch: Batch, accepted: Array) -> Array:
    """Take the softmax of the residual where its sum should divide it (B01)."""
    return after_rejection(batch, accepted, np.exp(residual(batch, accepted)))


@weighing("point-mass residual for a dense draft")
def residual_of_a_point_mass(batch: Batch, accepted: Array) -> Array:
    """Subtract q at the drafted token only (B03)."""
    target = row(batch.target, accepted)
    drafted = one_hot(row(batch.tokens, accepted), target.shape[-1])
    return after_rejection(
        batch, accepted, np.maximum(target - drafted * draft_row(batch, accepted), 0)
    )


@weighing("residual without its sign")
def absolute_difference(batch: Batch, accepted: Array) -> Array:
    """Take the absolute value of p - q instead of its positive part (B04)."""
    target = row(batch.target, accepted)
    return after_rejection(batch, accepted, abs(target - draft_row(batch, accepted)))


@weighing("residual the other way round")
def residual_the_other_way_round(batch: Batch, accepted: Array) -> Array:
    """Draw from ``max(q - p, 0)`` (B09)."""
    excess = draft_row(batch, accepted) - row(batch.target, accepted)
    return after_rejection(batch, accepted, np.maximum(excess, 0))


@weighing("replacement by argmax")
def likeliest_of_the_residual(batch: Batch, accepted: Array) -> Array:
    """Take the largest entry of the residual instead of drawing (D09)."""
    weights = residual(batch, accepted)
    best = one_hot(weights.argmax(axis=-1), weights.shape[-1])
    return after_rejection(batch, accepted, best)


@weighing("replacement from the draft")
def replacement_from_the_draft(batch: Batch, accepted: Array) -> Array:
    """Draw the replacement from q (B09)."""
    return after_rejection(batch, accepted, draft_row(batch, accepted))


@weighing("replacement uniform over the support")
def uniform_replacement(batch: Batch, accepted: Array) -> Array:
    """Draw the replacement uniformly from what the target allows (B04)."""
    allowed = (row(batch.target, accepted) > 0).astype(float)
    return after_rejection(batch, accepted, allowed)


@weighing("masked draft taken for none")
def masked_draft_taken_for_none(batch: Batch, accepted: Array) -> Array:
    """Forget a draft that the target forbids, and draw from p (G01)."""
    masked = row(batch.p, accepted)[:, None] == 0
    target = row(batch.target, accepted)
    return np.where(masked, target, residual(batch, accepted))


@weighing(None)
def clamp_to_a_tiny_number(batch: Batch, accepted: Array) -> Array:
    """Clamp the residual to a tiny number: a uniform of 0 draws the first token (B04)."""
    return np.maximum(residual(batch, accepted), np.finfo(np.float32).tiny)


@weighing(None)
def residual_of_the_first_shard(batch: Batch, accepted: Array) -> Array:
    """Draw from the first half of the vocabulary, if that has any residual (G13)."""
    weights = residual(batch, accepted)
    shard = np.arange(weights.shape[-1]) < (weights.shape[-1] + 1) // 2
    local = np.where(shard, weights, 0)
    return np.where(local.any(axis=-1, keepdims=True), local, weights)


@weighing(None)
def last_token_cut_off(batch: Batch, accepted: Array) -> Array:
    """Cut the rows to a draft vocabulary that is one token shorter (G09)."""
    weights = residual(batch, accepted)
    weights[:, -1] = np.where(weights[:, :-1].any(axis=-1), 0, weights[:, -1])
    return weights


@weighing(None)
def residual_in_three_bits(batch: Batch, accepted: Array) -> Array:
    """Round the law of the next token to eighths, as too few bits do (B13)."""
    weights = residual(batch, accepted)
    return np.round(8 * weights / weights.sum(axis=-1, keepdims=True))


@weighing("residual of the row behind")
def residual_of_the_row_behind(batch: Batch, accepted: Array) -> Array:
    """Draw from the residual of the row behind the rejected one (B09, C11)."""
    return residual(batch, np.minimum(accepted + 1, batch.tokens.shape[1]))


@weighing("residual of the row before")
def residual_of_the_row_before(batch: Batch, accepted: Array) -> Array:
    """Draw from the residual of the last accepted draft (B09)."""
    before = residual(batch, np.maximum(accepted - 1, 0))
    return after_rejection(batch, accepted, before)


@weighing("residual of the row before")
def residual_of_the_first_row(batch: Batch, accepted: Array) -> Array:
    """Draw from the residual of the first row wherever the chain broke off (B09)."""
    first = residual(batch, np.zeros_like(accepted))
    return after_rejection(batch, accepted, first)


@weighing("bonus row off by one")
def bonus_from_the_row_before(batch: Batch, accepted: Array) -> Array:
    """Draw the bonus token from the row that verified the last draft (C02)."""
    bonus = batch.all_accepted(accepted)[:, None]
    before = row(batch.target, np.maximum(accepted - 1, 0))
    return np.where(bonus, before, residual(batch, accepted))


@weighing("bonus token from a residual")
def bonus_from_a_residual(batch: Batch, accepted: Array) -> Array:
    """Draw a replacement for the last draft though that was accepted (C02)."""
    last = np.maximum(batch.drafted.sum(axis=1) - 1, 0)
    return residual(batch, np.minimum(accepted, last))


@weighing(None)
def residual_for_a_placeholder(batch: Batch, accepted: Array) -> Array:
    """Draw from the residual of the last draft where there is a -1 (G01)."""
    here = row(batch.drafted, accepted) | (accepted == batch.tokens.shape[1])
    return residual(batch, np.where(here, accepted, np.maximum(accepted - 1, 0)))


@drawing(None)
def edge_in_the_bin_before(weights: Array, uniforms: Array) -> Array:
    """Count running sums below the uniform: at 0 that is the first token (A01, E05)."""
    ends = np.cumsum(weights, axis=-1)
    return (ends < uniforms[:, None] * ends[:, -1:]).sum(axis=-1)


@drawing(None)
def last_bin_off_the_end(weights: Array, uniforms: Array) -> Array:
    """Add in single precision: near 1 the uniform lies behind every bin (B12, B14)."""
    ends = np.cumsum(weights / weights.sum(axis=-1, keepdims=True), axis=-1, dtype="f4")
    return (ends <= uniforms[:, None].astype("f4")).sum(axis=-1)


@drawing(None)
def epsilon_in_the_divisor(weights: Array, uniforms: Array) -> Array:
    """Add a small number to the sum: what the bins lack the last token gets (B12)."""
    total = weights.sum(axis=-1, keepdims=True) + 1e-6
    reached = np.cumsum(weights / total, axis=-1) > uniforms[:, None]
    return np.where(reached.any(axis=-1), reached.argmax(axis=-1), weights.shape[-1] - 1)


@drawing(None)
def bins_not_divided(weights: Array, uniforms: Array) -> Array:
    """Compare the uniform with running sums that nobody divided by their total (B01)."""
    reached = np.cumsum(weights, axis=-1) > uniforms[:, None]
    return np.where(reached.any(axis=-1), reached.argmax(axis=-1), weights.shape[-1] - 1)


@verifying("argmax instead of sampling")
def silently_greedy(batch: Batch) -> Verdict:
    """Accept the target's likeliest token only, and emit it else (D09)."""
    best = batch.target.argmax(axis=-1)
    return verify(
        batch,
        accept=lambda batch: batch.tokens == best[:, :-1],
        weigh=lambda batch, n: one_hot(row(best, n), batch.target.shape[-1]),
    )
