"""The arithmetic that every verification rule is made of.

Functions of arrays in the dtype of the computation, in the order of the
formulas, without checks: all arrays are of the one `library`, the vocabulary is
the last axis, and the shapes are as stated. Everything traces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from draftproof._library import Array, Library

__all__ = ["acceptance", "normalised", "overlap", "positive_part"]


def positive_part(
    library: Library,
    target: Array,
    draft: Array,
    scale: Array | None = None,
    *,
    into_target: bool = False,
) -> Array:
    """Return ``max(scale * target - draft, 0)``, a new array of their shape.

    Without `scale` it is the unnormalised residual of one token; block rules
    pass the running product of ratios, of shape ``(..., 1)``. In PyTorch it can be
    put `into_target`.
    """
    scaled = target if scale is None else scale * target
    if library.name == "jax":
        # XLA fuses a maximum into the sum of a row, and loses NaN there from V = 4,096
        # on (seen on the CPU); a comparison does not. An infinite draft gives NaN.
        return library.ops.where(scaled <= draft, draft - draft, scaled - draft)
    # max(p, q) - q has the value of max(p - q, 0) and gives +0.0 where p <= q; it also
    # shows an infinite q, as NaN, and needs no scalar operand and no second temporary:
    # the subtraction goes into the fresh maximum where arrays can be written to.
    if into_target and library.name == "torch":
        part = scaled.clamp_(min=draft)
    else:
        part = library.ops.maximum(scaled, draft)
    part -= draft
    return part


def overlap(library: Library, target: Array, draft: Array) -> Array:
    """Return ``min(target, draft)``, NaN where either is."""
    ops = library.ops
    if library.name == "jax":  # see positive_part
        other = ops.where(draft <= target, draft, target + draft)
        return ops.where(target < draft, target, other)
    return ops.minimum(target, draft)


def normalised(library: Library, weights: Array, totals: Array) -> Array:
    """Return ``weights / totals``, and zeros where the total of a row is zero.

    The weights are used up. A NaN or infinite total leaves NaN in its row: nothing
    legal comes out of it.
    """
    ops = library.ops
    # Weights are non-negative, so where they sum to zero they are zeros: divided by
    # one they stay what is wanted, and the gradient is finite there too.
    weights /= ops.where(totals == 0, ops.ones_like(totals), totals)
    return weights


def acceptance(library: Library, draft_entries: Array, target_entries: Array) -> Array:
    """Return ``min(1, target / draft)`` of the entries at drafted tokens.

    Where the draft entry is zero it is the limit: 1 where the target is positive,
    else 0. Where either entry is NaN or infinite it is NaN, which no coin is below.
    """
    ops = library.ops
    one = ops.ones_like(draft_entries)
    impossible = draft_entries == 0
    # min(p, q) / q cannot overflow where q is tiny, unlike min(1, p / q). The
    # divisor is replaced before dividing, for the sake of the gradient.
    divisor = ops.where(impossible, one, draft_entries)
    ratio = ops.minimum(target_entries, draft_entries) / divisor
    limit = library.cast(target_entries > 0, one.dtype)
    accepted = ops.where(impossible, limit, ratio)
    finite = ops.isfinite(draft_entries) & ops.isfinite(target_entries)
    return ops.where(finite, accepted, ops.nan * one)
