"""Correct verifiers in plain NumPy, as an engine's author writes them.

The wrong ones differ from these in one place each: what the coins are compared with
(``accept``), how successes become a number (``count``), what the next token is drawn
from (``weigh``), and how (``draw``). Nothing of the rest of the package is used here,
so that a mistake there cannot hide itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from draftproof.conformance.broken._batch import row

if TYPE_CHECKING:
    from collections.abc import Callable

    from draftproof.conformance.broken._batch import Array, Batch

    Verdict: TypeAlias = tuple[Array, Array]
    Accept: TypeAlias = Callable[[Batch], Array]
    Count: TypeAlias = Callable[[Array], Array]
    Weigh: TypeAlias = Callable[[Batch, Array], Array]
    Draw: TypeAlias = Callable[[Array, Array], Array]

__all__ = ["verify", "verify_block"]


def coins_below_ratio(batch: Batch) -> Array:
    """Accept a draft iff ``u * q < p``."""
    return batch.coins * batch.q < batch.p


def until_first_failure(good: Array) -> Array:
    """Count the successes before the first failure."""
    return np.cumprod(good, axis=1, dtype=np.int64).sum(axis=1)


def until_last_success(good: Array) -> Array:
    """Count the places up to the last success."""
    places = np.arange(1, good.shape[1] + 1)
    return (good * places).max(axis=1, initial=0)


def residual(batch: Batch, accepted: Array) -> Array:
    """Return ``max(p - q, 0)`` after so many tokens; after all of them p."""
    target = row(batch.target, accepted)
    return np.where(
        batch.all_accepted(accepted)[:, None],
        target,
        np.maximum(target - draft_row(batch, accepted), 0),
    )


def draft_row(batch: Batch, accepted: Array) -> Array:
    """Return the draft row after so many tokens, of whatever there are."""
    if batch.draft.shape[1] == 0:
        return np.zeros_like(batch.target[:, 0])
    return row(batch.draft, accepted)


def inverse_cdf(weights: Array, uniforms: Array) -> Array:
    """Return the first token whose running sum exceeds the uniform's share of it."""
    ends = np.cumsum(weights, axis=-1)
    reached = (ends > uniforms[:, None] * ends[:, -1:]) & (weights > 0)
    last = weights.shape[-1] - 1 - np.argmax(weights[:, ::-1] > 0, axis=-1)
    return np.where(reached.any(axis=-1), reached.argmax(axis=-1), last)


def verify(
    batch: Batch,
    *,
    accept: Accept = coins_below_ratio,
    count: Count = until_first_failure,
    weigh: Weigh = residual,
    draw: Draw = inverse_cdf,
) -> Verdict:
    """Verify by the token rule."""
    good = accept(batch) & batch.drafted & batch.sound
    accepted = count(good)
    token = next_token(batch, accepted, weigh, draw)
    if good.shape[1]:
        broken_off = ~batch.all_accepted(accepted) & ~row(batch.sound, accepted)
        token = np.where(broken_off, -1, token)
    return accepted, token.astype(batch.tokens.dtype)


def next_token(batch: Batch, accepted: Array, weigh: Weigh, draw: Draw) -> Array:
    """Draw the next token; -1 where there is no law to draw from."""
    weights: Array = weigh(batch, accepted)
    empty = weights.sum(axis=-1, keepdims=True) == 0
    weights = np.where(empty, row(batch.target, accepted), weights)
    uniforms = batch.uniforms[:, -1]
    total = weights.sum(axis=-1)
    lawful = np.isfinite(total) & (total > 0) & (uniforms >= 0) & (uniforms < 1)
    return np.where(lawful, draw(weights, uniforms), -1)


def ratios(batch: Batch) -> Array:
    """Return ``p / q`` at each draft, 0 where there is none."""
    p, q = batch.p, batch.q
    infinite = np.where(p > 0, np.inf, 0)
    ratio = np.divide(p, q, out=infinite, where=q != 0)
    return np.where(batch.drafted, ratio, 0)


def scales(batch: Batch) -> Array:
    """Return ``c_i = min(1, c_{i-1} * p / q)`` after each draft."""
    return scaled(ratios(batch), cap=1)


def scaled(ratio: Array, cap: float) -> Array:
    """Return the running products of ratios, each capped before the next."""
    product, products = np.ones(len(ratio)), []
    for factor in ratio.T:
        part = np.multiply(product, factor, out=np.zeros_like(product), where=product > 0)
        product = np.minimum(part, cap)
        products.append(product)
    return np.array(products).reshape(ratio.shape[::-1]).T


def thresholds(batch: Batch, scale: Array) -> Array:
    """Return ``h_i = S_i / (S_i + 1 - c_i)``, of the last draft ``c_K``."""
    excess = scale[:, :-1, None] * batch.target[:, 1:-1] - batch.draft[:, 1:]
    mass: Array = np.maximum(excess, 0).sum(axis=-1)
    whole = mass + np.maximum(1 - scale[:, :-1], 0)
    inner = np.divide(mass, whole, out=np.ones_like(mass), where=whole != 0)
    return np.concatenate([inner, scale[:, -1:]], axis=1)


def coins_below_thresholds(batch: Batch) -> Array:
    """Accept up to a draft if ``u < h``."""
    return batch.coins < thresholds(batch, scales(batch))


def scale_after(scale: Array, accepted: Array) -> Array:
    """Return the scale after so many tokens, 1 after none, (B, 1)."""
    after = np.concatenate([np.ones((len(scale), 1)), scale], axis=1)
    return row(after, accepted)[:, None]


def block_residual(batch: Batch, accepted: Array) -> Array:
    """Return ``max(c * p - q, 0)`` after so many tokens; after all of them p."""
    return scaled_residual(batch, accepted, scales(batch))


def scaled_residual(batch: Batch, accepted: Array, scale: Array) -> Array:
    """Return ``max(c * p - q, 0)`` for scales c after each draft."""
    target = row(batch.target, accepted) * scale_after(scale, accepted)
    return np.where(
        batch.all_accepted(accepted)[:, None],
        row(batch.target, accepted),
        np.maximum(target - draft_row(batch, accepted), 0),
    )


def verify_block(
    batch: Batch,
    *,
    accept: Accept = coins_below_thresholds,
    count: Count = until_last_success,
    weigh: Weigh = block_residual,
    draw: Draw = inverse_cdf,
) -> Verdict:
    """Verify by the block rule."""
    real = np.cumprod(batch.drafted, axis=1, dtype=bool)  # nothing counts behind a gap
    accepted = count(accept(batch) & real)
    token = next_token(batch, accepted, weigh, draw)
    read = np.isfinite(batch.draft).all(axis=-1) & np.isfinite(batch.target[:, 1:]).all(-1)
    lawful = (~real | (batch.sound & read)).all(axis=1)
    token = np.where(lawful, token, -1)
    return np.where(lawful, accepted, 0), token.astype(batch.tokens.dtype)


def emitted(batch: Batch, verdict: Verdict) -> Array:
    """Return the accepted drafts and the next token, then -1, (B, K + 1)."""
    accepted, token = verdict
    places = np.arange(batch.tokens.shape[1] + 1)
    padded = np.pad(batch.tokens, ((0, 0), (0, 1)), constant_values=-1)
    kept = np.where(places < accepted[:, None], padded, -1)
    return np.where(places == accepted[:, None], token[:, None], kept)


def uniforms_for(seed: int, tokens: Any) -> Array:
    """Return the K coins and the last uniform of every request."""
    requests, drafts = np.shape(tokens)
    return np.random.default_rng(seed).random((requests, drafts + 1))
