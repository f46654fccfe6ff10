"""Draws from unnormalised weights, by inverting their running sum in two levels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from draftproof._chain_checks import check_uniforms
from draftproof._checks import check_floating, check_vocabulary
from draftproof._namespace import common_library

if TYPE_CHECKING:
    from draftproof._library import Array, Library

__all__ = ["draw", "draw_row", "draw_tokens"]

# A constant: a length computed from V would make a new graph of every V. Longer blocks
# sum less precisely, shorter ones lengthen the running sum over the blocks.
BLOCK = 512


def draw(weights: Any, uniforms: Any) -> Any:
    r"""Return a token from each row of weights, chosen by a uniform number.

    The inverse of the cumulative distribution function,

    .. math::

        \text{token} = \min \Bigl\{ v : \sum_{w \le v} \text{weight}_w
        > u \sum_w \text{weight}_w \Bigr\},

    so that the same numbers give the same tokens on every library, but for those
    that fall within rounding of a boundary. The weights need not sum to 1.

    Parameters
    ----------
    weights : array, shape (..., V)
        Non-negative weights; float16, bfloat16, float32 or float64.
    uniforms : array, shape (...)
        Uniform numbers in [0, 1), float32 or float64, of the same library.

    Returns
    -------
    array, shape (...)
        Indices in the default integer dtype of the library. A token of weight zero is
        never drawn, whatever the rounding. ``-1`` where there is nothing to draw: if
        the weights sum to zero or hold NaN or infinity, or the uniform number is NaN or
        outside [0, 1). Test ``>= 0`` before using it as an index: ``-1`` wraps.

    Raises
    ------
    TypeError
        If the arrays are not of one library, or a dtype is not supported.
    ValueError
        If shapes or devices do not fit together.

    Notes
    -----
    Sums of blocks of 512 weights are taken in the dtype of the arithmetic; running sums
    are float64 where the library has it. A float32 uniform takes 2**24 values only: at
    V = 262,144 that grid alone puts the law off by about 3e-3 in total variation. Use
    float64 uniforms for large vocabularies.

    Examples
    --------
    >>> import numpy as np
    >>> from draftproof import draw
    >>> draw(np.asarray([0.0, 1.0, 3.0]), np.asarray(0.2))
    array(1)
    >>> draw(np.asarray([[0.0, 1.0, 3.0], [0.0, 0.0, 0.0]]), np.asarray([0.25, 0.5]))
    array([ 2, -1])
    """
    library = common_library(weights=weights, uniforms=uniforms)
    check_floating(library, "weights", weights)
    check_vocabulary("weights", weights.shape)
    check_uniforms(library, uniforms, weights.shape[:-1], "weights", weights)
    with library.quiet():
        return library.run(_draw, weights, uniforms)


def _draw(library: Library, weights: Array, uniforms: Array) -> Array:
    return draw_tokens(library, library.widen(weights), uniforms)


def draw_tokens(
    library: Library,
    weights: Array,
    uniforms: Array,
    fallback: Array | None = None,
    unused: Array | None = None,
) -> Array:
    """Draw from rows in the dtype of the arithmetic; see `draw`.

    Where a row sums to zero, or is marked as `unused`, shape ``(...)``, whatever it
    holds, the draw is from the same row of `fallback`. Whole rows are never merged:
    their block sums are, and the one block that is looked into.
    """
    ops = library.ops
    long = weights.shape[-1] > BLOCK
    sums = library.block_sums(weights, BLOCK) if long else weights
    if fallback is not None:
        empty = ops.sum(sums, axis=-1, keepdims=True) == 0
        if unused is not None:
            empty = empty | unused[..., None]
        instead = library.block_sums(fallback, BLOCK) if long else fallback
        sums = ops.where(empty, instead, sums)
    running = library.running_sum(sums)
    total = running[..., -1:]
    coins = library.cast(uniforms, running.dtype)[..., None]
    level = coins * total
    token = _locate(library, running, level, sums)
    if long:
        level = level - library.take(library.with_zero(running), token)
        first = BLOCK * token
        index = first + library.numbers(weights[..., :BLOCK])
        inside = index < weights.shape[-1]
        index = ops.where(inside, index, 0)
        entries = library.take(weights, index)
        if fallback is not None:
            entries = ops.where(empty, library.take(fallback, index), entries)
        entries = ops.where(inside, entries, 0.0)
        token = first + _locate(library, library.running_sum(entries), level, entries)
    # Comparisons with NaN are false: what is not finite ends here as well.
    good = (total > 0) & (total < ops.inf) & (coins >= 0) & (coins < 1)
    return ops.where(good, token, -1)[..., 0]


def draw_row(library: Library, weights: Array, coin: float, fallback: Array) -> int:
    """Draw from one row of NumPy, as `draw_tokens` does, without copying a block."""
    sums = library.block_sums(weights, BLOCK)
    running = library.running_sum(sums)
    total = float(running[-1])
    if total == 0 and weights is not fallback:
        return draw_row(library, fallback, coin, fallback)
    if not (0 < total < math.inf and 0 <= coin < 1):
        return -1
    level = coin * total
    block = _locate_in_row(running, level, sums)
    before = float(running[block - 1]) if block else 0.0
    entries = weights[BLOCK * block : BLOCK * (block + 1)]
    within = _locate_in_row(library.running_sum(entries), level - before, entries)
    return BLOCK * block + within


def _locate(library: Library, running: Array, level: Array, weights: Array) -> Array:
    """Return the first entry of positive weight above the level, else the last positive.

    Not a count of entries below the level: a parallel running sum may decrease, and
    rise at an entry of weight zero.
    """
    ops = library.ops
    numbers = library.numbers(running)
    above = ops.where(running > level, 2 * running.shape[-1] - numbers, numbers)
    # Entries above the level rank before all others, and the earlier ones first.
    rank = ops.where(weights > 0, above, -1)
    return ops.argmax(rank, axis=-1, keepdims=True)


def _locate_in_row(running: Array, level: float, weights: Array) -> int:
    above = (running > level) & (weights > 0)
    found = int(above.argmax())
    return found if above[found] else int(weights.nonzero()[0][-1])
