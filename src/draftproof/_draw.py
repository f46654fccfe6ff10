"""Draws from unnormalised weights, by inverting their running sum in two levels."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from draftproof._chain_checks import check_uniforms
from draftproof._checks import check_floating, check_vocabulary
from draftproof._namespace import common_library

if TYPE_CHECKING:
    from collections.abc import Callable

    from draftproof._library import Array, Library

__all__ = ["BLOCK", "blocks_of", "draw", "draw_row", "draw_tokens"]

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
    coins = uniforms[..., None]
    token, drawn = draw_tokens(library, library.widen(weights), coins)
    return library.ops.where(drawn, token, -1)[..., 0]


class Blocks(NamedTuple):
    """Rows as a draw looks at them: the sums of all blocks, and one block's entries."""

    sums: Array
    entries: Callable[[Array], Array]


def blocks_of(
    library: Library, rows: Array, entries: Callable[[Array], Array] | None = None
) -> Blocks:
    """Sum the blocks of rows; of short rows, each entry is one."""
    sums = library.block_sums(rows, BLOCK) if rows.shape[-1] > BLOCK else rows
    return Blocks(sums, entries or partial(library.take, rows))


def draw_tokens(
    library: Library,
    weights: Array,
    coins: Array,
    fallback: Blocks | None = None,
    unused: Array | None = None,
) -> tuple[Array, Array]:
    """Draw from rows in the dtype of the arithmetic, one coin each: shape ``(..., 1)``.

    Return the tokens, and whether there was something to draw. See `draw`. Where a row
    sums to zero, or is marked as `unused`, shape ``(..., 1)``, whatever it holds, the
    draw is from the same row of `fallback`. Whole rows are never merged: their block
    sums are, and the one block that is looked into.
    """
    ops = library.ops
    sums, entries_at = blocks_of(library, weights)
    if fallback is not None:
        empty = ops.sum(sums, axis=-1, keepdims=True) == 0
        if unused is not None:
            empty = empty | unused
        sums = ops.where(empty, fallback.sums, sums)
    running = library.running_sum(sums)
    total = running[..., -1:]
    coins = library.cast(coins, running.dtype)
    level = coins * total
    numbers = library.numbers(sums, sums.shape[-1])
    token = _locate(library, running, level, sums, numbers)
    if weights.shape[-1] > BLOCK:
        level = level - library.sum_before(running, sums, token)
        # Beyond the end the last entry stands again, and to draw it is to draw that one.
        last = weights.shape[-1] - 1
        numbers = library.numbers(weights, BLOCK)
        index = ops.clip(BLOCK * token + numbers, 0, last)
        entries = entries_at(index)
        if fallback is not None:
            entries = ops.where(empty, fallback.entries(index), entries)
        running = library.running_sum(entries)
        within = _locate(library, running, level, entries, numbers)
        token = library.take(index, within)
    # The total less itself is 0, or NaN where the total is not finite.
    return token, (total > 0) & (ops.floor(coins) == total - total)


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


def _locate(
    library: Library, running: Array, level: Array, weights: Array, numbers: Array
) -> Array:
    """Return the first entry of positive weight above the level, else the last positive.

    Not a count of entries below the level: a parallel running sum may decrease, and
    rise at an entry of weight zero.
    """
    ops = library.ops
    # Entries above the level rank before all others, and the earlier ones first. That
    # entry 0 ranks with those of weight zero does no harm: the first of equals is taken.
    rank = ops.where(running > level, 2 * running.shape[-1] - numbers, numbers)
    return ops.argmax(library.only(weights > 0, rank), axis=-1, keepdims=True)


def _locate_in_row(running: Array, level: float, weights: Array) -> int:
    above = (running > level) & (weights > 0)
    found = int(above.argmax())
    return found if above[found] else int(weights.nonzero()[0][-1])
