"""Hypothesis strategies for pairs of rows.

Weights are integers, so that a row is known exactly; most rows are dyadic, which
sum to 1 exactly in every dtype. Long rows are made from a drawn seed: drawing
thousands of numbers one by one tests Hypothesis, not this package.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from backends import NUMPY_DTYPES, Backend
from budgets import SMALLEST_NORMAL
from rows import MANTISSA, Rows, stored

# JAX compiles anew for each shape, at 0.15 s each.
JAX_SIZES = (1, 2, 3, 8, 129, 4099)
SHORT = 12
LONG = 5_000

# Every kind of row that has an edge of its own.
KINDS = (
    "dyadic",
    "ties",
    "equal",
    "one-hot draft",
    "one-hot target",
    "disjoint",
    "not dyadic",
    "one ulp",
    "subnormal",
    "long tail",
)


@st.composite
def rows(draw, backend: Backend, dtype: str) -> Rows:
    """Draw a pair of rows that the dtype stores exactly."""
    size = draw(sizes(backend))
    kind = draw(st.sampled_from(KINDS))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    weights = None
    if size <= SHORT and kind in ("dyadic", "ties"):
        # Short rows are drawn entry by entry, so that they shrink to something small.
        weights = [draw(cuts(size, dtype)) for _ in range(2)]
    return make_rows(kind, size, dtype, random, weights)


def sizes(backend: Backend) -> st.SearchStrategy[int]:
    """Draw the size of the vocabulary: often short, sometimes thousands."""
    if backend.is_jax:
        return st.sampled_from(JAX_SIZES)
    return st.one_of(
        st.integers(1, SHORT), st.integers(1, SHORT), st.integers(SHORT + 1, LONG)
    )


@st.composite
def cuts(draw, size: int, dtype: str) -> list[int]:
    """Draw where to cut the interval up to ``2 ** bits``; repeats give zero weights."""
    whole = 2 ** min(MANTISSA[dtype], 24)
    return sorted(
        draw(st.lists(st.integers(0, whole), min_size=size - 1, max_size=size - 1))
    )


def make_rows(
    kind: str, size: int, dtype: str, random: np.random.Generator, weights=None
) -> Rows:
    """Make a pair of rows of one of `KINDS`."""
    draft, target = (
        _dyadic(size, dtype, random, None if weights is None else weights[i])
        for i in range(2)
    )
    if kind == "ties":
        same = random.random(size) < 0.5
        target = np.where(same, draft, target)
    elif kind == "equal":
        target = draft
    elif kind == "one-hot draft":
        draft = np.eye(size)[random.integers(size)]
    elif kind == "one-hot target":
        target = np.eye(size)[random.integers(size)]
    elif kind == "disjoint" and size > 1:
        left = np.arange(size) < random.integers(1, size)
        draft, target = _share(left, random), _share(~left, random)
    elif kind == "not dyadic":
        draft, target = random.dirichlet(np.ones(size), 2)
    elif kind == "one ulp":
        target = _one_ulp(draft, dtype, random)
    elif kind == "subnormal":
        draft, target = (_with_subnormals(row, dtype, random) for row in (draft, target))
    elif kind == "long tail":
        draft, target = (_zipf(size, random) for _ in range(2))
    return stored(draft, target, dtype)


def _dyadic(size, dtype, random, weights=None) -> np.ndarray:
    whole = 2 ** min(MANTISSA[dtype], 24)
    if weights is None:
        weights = np.sort(random.integers(0, whole + 1, size - 1))
    return np.diff([0, *weights, whole]) / whole


def _share(support, random) -> np.ndarray:
    weights = np.where(support, random.random(support.size) + 0.01, 0)
    return weights / weights.sum()


def _one_ulp(draft, dtype, random) -> np.ndarray:
    """Move a few entries by a single unit in the last place."""
    row = np.asarray(draft).astype(NUMPY_DTYPES[dtype])
    moved = random.random(row.size) < 0.3
    up = np.nextafter(row, np.asarray(2, row.dtype)).astype(float)
    return np.where(moved, up, row.astype(float))


def _with_subnormals(row, dtype, random) -> np.ndarray:
    """Replace zeros, and a few other entries, by subnormal numbers."""
    chosen = (row == 0) | (random.random(row.size) < 0.2)
    return np.where(chosen, SMALLEST_NORMAL[dtype] * random.random(row.size), row)


def _zipf(size, random) -> np.ndarray:
    weights = 1.0 / (1 + random.permutation(size)) ** random.uniform(1, 3)
    return weights / weights.sum()
