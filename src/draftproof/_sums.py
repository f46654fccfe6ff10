"""Sums of long rows in NumPy, where they are worth some care."""

from __future__ import annotations

from typing import Any

__all__ = ["numpy_block_sums", "numpy_row_totals"]

# Sums in NumPy: from which length on two stages pay, and the length of a run. One
# of 256 takes 2 % off the whole step and doubles the worst error, 64 adds 3 %.
_LONG = 4096
_RUN = 128


def numpy_row_totals(rows: Any) -> Any:
    """Return the sum of each row: in runs, and the sums of those in float64.

    For long rows this is faster than `numpy.sum`, and its error does not depend on
    the memory layout: down the columns of a transposed array `numpy.sum` adds one
    by one, which costs float32 its last three digits at V = 100,000.
    """
    size = rows.shape[-1]
    if size < _LONG and rows.flags.c_contiguous:
        return rows.sum(axis=-1, keepdims=True)
    import numpy as np

    whole = size - size % _RUN
    runs = rows[..., :whole].reshape(*rows.shape[:-1], whole // _RUN, _RUN)
    totals = np.einsum("...i->...", runs).sum(axis=-1, keepdims=True, dtype=np.float64)
    if whole < size:
        totals += rows[..., whole:].sum(axis=-1, keepdims=True, dtype=np.float64)
    return totals.astype(rows.dtype)


def numpy_block_sums(rows: Any, length: int) -> Any:
    """Return the sums of the blocks of each row, the last of which may be short."""
    import numpy as np

    *leading, size = rows.shape
    count, rest = divmod(size, length)
    sums = np.empty((*leading, count + bool(rest)), dtype=rows.dtype)
    blocks = rows[..., : size - rest].reshape(*leading, count, length)
    np.einsum("...i->...", blocks, out=sums[..., :count])
    if rest:
        sums[..., count] = rows[..., size - rest :].sum(axis=-1)
    return sums
