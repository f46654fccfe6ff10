"""Pairs of rows: the same numbers as stored floats and as exact fractions."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from backends import NUMPY_DTYPES
from budgets import ARITHMETIC, SMALLEST_NORMAL
from draftproof import exact

MANTISSA = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


@dataclass(frozen=True, repr=False)
class Rows:
    """A draft row and a target row, as Python floats that the dtype stores exactly."""

    draft: tuple[float, ...]
    target: tuple[float, ...]
    dtype: str

    def __repr__(self) -> str:
        """Show rows that a reader can copy, if they are short enough to be read."""
        if self.size > 16:
            return f"<two rows of {self.size} {self.dtype}>"
        return f"Rows({self.draft}, {self.target}, {self.dtype!r})"

    @property
    def size(self) -> int:
        """V, the size of the vocabulary."""
        return len(self.draft)

    @property
    def draftable(self) -> tuple[int, ...]:
        """The tokens that can be drawn from the draft row."""
        return tuple(t for t, prob in enumerate(self.draft) if prob > 0)

    def exact_accept_prob(self, token: int) -> Fraction:
        """Return the exact acceptance probability of a token."""
        ratio = Fraction(self.target[token]) / Fraction(self.draft[token])
        return min(Fraction(1), ratio)

    def exact_residual(self) -> np.ndarray:
        """Return the exact residual, each entry rounded once to a double."""
        return _residual(self)


@functools.lru_cache(maxsize=4096)
def _residual(rows: Rows) -> np.ndarray:
    token = rows.draftable[0] if rows.draftable else None
    if token is None:
        # A draft row of zeros: nothing can be drafted, the residual is the target.
        rows = Rows((1.0, *rows.draft), (0.0, *rows.target), rows.dtype)
        return _residual(rows)[1:]
    step = exact.speculative_decode_step(rows.draft, rows.target, token)
    return np.asarray([float(weight) for weight in step["residual"]])


def stored(draft, target, dtype: str) -> Rows:
    """Round two rows to the dtype and keep what it stores."""
    rounded = (
        tuple(
            np.asarray(row, np.float64).astype(NUMPY_DTYPES[dtype]).astype(float).tolist()
        )
        for row in (draft, target)
    )
    return Rows(*rounded, dtype)


def flushed(rows: Rows) -> Rows:
    """Return the rows as arithmetic without subnormal numbers sees them."""
    tiny = SMALLEST_NORMAL[ARITHMETIC[rows.dtype]]
    draft, target = (
        np.where(np.asarray(row) < tiny, 0.0, row) for row in (rows.draft, rows.target)
    )
    # A difference below the smallest normal number is 0: as if the two were equal.
    target = np.where(np.abs(target - draft) < tiny, draft, target)
    return Rows(tuple(draft.tolist()), tuple(target.tolist()), rows.dtype)
