"""The block rule: accept up to the last success of coins for the chain as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftproof._arithmetic import positive_part
from draftproof._drafted import Decision, behind, fair, read_coins, read_drafted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from draftproof._drafted import Drafted
    from draftproof._library import Array, Library

__all__ = ["block_terms", "decide_block"]


def decide_block(
    library: Library,
    draft_probs: Array | None,
    target_probs: Array,
    draft_tokens: Array,
    uniforms: Array,
) -> Decision:
    """Accept up to the largest i with ``u_i < S_i / (S_i + (1 - c_i))``."""
    ops = library.ops
    coins = read_coins(library, uniforms, target_probs)
    drafted = read_drafted(library, draft_probs, target_probs, draft_tokens, coins.dtype)
    legal = drafted.legal & fair(library, coins)
    scale = (
        ops.ones_like(coins[..., 0]) if coins.shape[-1] else ops.ones_like(uniforms[..., 0])
    )
    alive, failed = scale > 0, scale < 0
    accepted = library.cast(failed, draft_tokens.dtype)
    terms = block_terms(library, draft_probs, target_probs, drafted)
    for i, (product, mass, whole) in enumerate(terms):
        alive = alive & ~drafted.absent[..., i]
        failed = failed | (alive & ~(legal[..., i] & library.finite(mass)))
        success = alive & ((coins[..., i] * whole < mass) | (whole == 0))
        accepted = ops.where(success, ops.full_like(accepted, i + 1), accepted)
        scale = ops.where(success, product, scale)
    accepted = ops.where(failed, ops.zeros_like(accepted), accepted)
    accepted, scale = accepted[..., None], scale[..., None]
    place, absent = behind(library, drafted, accepted)
    return Decision(accepted, place, scale, absent, ~failed[..., None])


def block_terms(
    library: Library, draft_probs: Array | None, target_probs: Array, drafted: Drafted
) -> Iterator[tuple[Array, Array, Array]]:
    """Yield ``c_i``, ``S_i`` and ``S_i + (1 - c_i)``, one place after the other."""
    length = drafted.absent.shape[-1]
    product = library.ops.ones_like(drafted.draft[..., 0]) if length else None
    for i in range(length):
        product = _next_product(library, product, drafted, i)
        mass = _mass(library, draft_probs, target_probs, drafted, product, i + 1)
        # (S + 1) - c would lose what S has below the last place of 1.
        yield product, mass, mass + (1 - product)


def _next_product(library: Library, product: Array, drafted: Drafted, place: int) -> Array:
    """Return ``min(1, c * p / q)``; its limit where q is 0, and 0 where no draft is."""
    ops = library.ops
    draft, scaled = drafted.draft[..., place], product * drafted.target[..., place]
    one = ops.ones_like(product)
    impossible = draft == 0
    ratio = ops.minimum(scaled, draft) / ops.where(impossible, one, draft)
    limit = library.cast(scaled > 0, one.dtype)
    ratio = ops.where(impossible, limit, ratio)
    return ops.where(drafted.absent[..., place], ops.zeros_like(ratio), ratio)


def _mass(
    library: Library,
    draft_probs: Array | None,
    target_probs: Array,
    drafted: Drafted,
    product: Array,
    place: int,
) -> Array:
    """Return S: the sum of ``max(c * p - q, 0)`` over the rows at a place.

    Behind the last draft the draft row is zero and the sum is c, without a look at p.
    """
    ops = library.ops
    if place == drafted.absent.shape[-1]:
        return product
    if draft_probs is None:
        scaled = product * drafted.target[..., place]
        mass = product - ops.minimum(scaled, ops.ones_like(scaled))
    else:
        target = library.widen(target_probs[..., place, :])
        draft = library.widen(draft_probs[..., place, :])
        scale = library.cast(product, target.dtype)[..., None]
        weights = positive_part(library, target, draft, scale)
        mass = library.cast(library.row_totals(weights)[..., 0], product.dtype)
    return ops.where(drafted.absent[..., place], product, mass)
