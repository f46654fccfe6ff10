"""Verifiers that are wrong by the block rule: its parts mixed with other rules'."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from draftproof.conformance.broken._batch import row
from draftproof.conformance.broken._broken import accepting, counting, verifying, weighing
from draftproof.conformance.broken._right import (
    ratios,
    residual,
    scaled,
    scaled_residual,
    scales,
    thresholds,
    until_first_failure,
    verify_block,
)

if TYPE_CHECKING:
    from draftproof.conformance.broken._batch import Array, Batch
    from draftproof.conformance.broken._right import Verdict

__all__: list[str] = []


@counting("block coins, first failure stops", "block")
def block_stops_at_the_first_failure(good: Array) -> Array:
    """Stop at the first failure, though a later success counts in a block (H01)."""
    return until_first_failure(good)


@weighing("block coins, token residual", "block")
def block_with_the_token_residual(batch: Batch, accepted: Array) -> Array:
    """Draw from ``max(p - q, 0)`` without the scale of the block (H01)."""
    return residual(batch, accepted)


@weighing("block coins, replacement from the target", "block")
def block_with_a_replacement_from_the_target(batch: Batch, accepted: Array) -> Array:
    """Draw the replacement of a block from p itself (B02, H01)."""
    return row(batch.target, accepted)


@verifying("uncapped products", "block")
def block_of_uncapped_products(batch: Batch) -> Verdict:
    """Multiplie ratios without a cap of 1 after each (H01)."""
    products = scaled(ratios(batch), cap=np.inf)
    return verify_block(
        batch,
        accept=lambda batch: batch.coins < thresholds(batch, products),
        weigh=lambda batch, n: scaled_residual(batch, n, products),
    )


@accepting("uncapped product at the last draft", "block")
def block_uncapped_at_the_last_draft(batch: Batch) -> Array:
    """Compare the last coin with the product of ratios that nobody capped (H01)."""
    limits = thresholds(batch, scales(batch))
    limits[:, -1] = scaled(ratios(batch), cap=np.inf)[:, -1]
    return batch.coins < limits


@accepting(None, "block")
def block_of_the_running_scales(batch: Batch) -> Array:
    """Compare every coin with the scale c, which is right for the last one (H01)."""
    return batch.coins < scales(batch)


@accepting(None, "block")
def block_reads_the_row_of_the_draft(batch: Batch) -> Array:
    """Sum the residual of each draft's own row, not of the row behind it (H01)."""
    scale = scales(batch)
    excess = scale[:, :-1, None] * batch.target[:, :-2] - batch.draft[:, :-1]
    mass = np.maximum(excess, 0).sum(axis=-1)
    whole = mass + 1 - scale[:, :-1]
    inner = np.divide(mass, whole, out=np.ones_like(mass), where=whole != 0)
    return batch.coins < np.concatenate([inner, scale[:, -1:]], axis=1)


@verifying(None, "block")
def block_of_one_coin(batch: Batch) -> Verdict:
    """Test a whole block with its first coin (H01, E01)."""
    uniforms = batch.uniforms.copy()
    uniforms[:, 1:-1] = uniforms[:, :1]
    return verify_block(batch._replace(uniforms=uniforms))
