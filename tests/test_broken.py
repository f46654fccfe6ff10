"""Every property can fail: wrong steps are rejected, and by more than the examples."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from backends import Backend
from broken import BROKEN
from draftproof import speculative_decode_step
from properties import PROPERTIES, Case, the_worked_examples
from strategies import KINDS, make_rows

SIZES = (1, 2, 3, 8, 600)
DTYPES = ("float64", "float32", "float16")


@functools.cache
def cases() -> tuple[Case, ...]:
    """Make one case of each kind, size and dtype."""
    random = np.random.default_rng(0)
    made = []
    for size in SIZES:
        for kind in KINDS:
            for dtype in DTYPES:
                rows = make_rows(kind, size, dtype, random)
                if rows.draftable:
                    token = rows.draftable[random.integers(len(rows.draftable))]
                    made.append(Case(Backend.NUMPY, rows, token))
    return tuple(made)


def fails(holds, step) -> bool:
    """Whether a property rejects a step on one of the cases."""
    with np.errstate(all="ignore"):
        for case in cases():
            try:
                holds(step, case)
            except (AssertionError, ValueError):
                return True
    return False


def fails_the_examples(step) -> bool:
    """Whether the worked examples alone would have caught it."""
    try:
        with np.errstate(all="ignore"):
            for dtype in DTYPES:
                the_worked_examples(step, dtype)
    except (AssertionError, ValueError):
        return True
    return False


def test_the_right_step_passes():
    """The package's own step passes on the very cases that catch the wrong ones."""
    assert not any(fails(holds, speculative_decode_step) for holds in PROPERTIES)
    assert not fails_the_examples(speculative_decode_step)


@pytest.mark.parametrize("name", BROKEN)
def test_a_wrong_step_is_rejected(name, matrix):
    """Each wrong step is rejected by the property that its fault is about."""
    step, caught_by = BROKEN[name]
    caught = {holds.__name__ for holds in PROPERTIES if fails(holds, step)}
    matrix[name] = (*(p.__name__ in caught for p in PROPERTIES), fails_the_examples(step))
    assert caught_by in caught


def test_every_property_rejects_something(matrix):
    """No property is there for show: each rejects a wrong step."""
    if set(matrix) != set(BROKEN):
        pytest.skip("needs the whole matrix: run the module")
    for i, holds in enumerate(PROPERTIES):
        assert any(row[i] for row in matrix.values()), holds.__name__
