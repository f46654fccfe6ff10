"""The backends themselves: all required ones run, and a missing one says why."""

from __future__ import annotations

import numpy as np
import pytest

from backends import EVERY, OPTIONAL, VALUED, Backend
from budgets import SMALLEST_NORMAL


@pytest.mark.parametrize("backend", OPTIONAL, ids=lambda backend: backend.name.lower())
def test_an_optional_backend_is_tested_where_it_answers(backend):
    """One element on the GPU decides; without one the whole backend is skipped here."""
    reason = backend.missing()
    if reason is not None:
        pytest.skip(reason)
    assert backend in VALUED


def test_every_required_backend_is_tested():
    """A required library that is missing would have stopped the collection."""
    required = {backend for backend in Backend if backend.value.required}
    assert required - {Backend.TORCH_META} <= set(VALUED)
    assert {backend for backend, _ in EVERY} == set(VALUED)


def test_values_survive_the_way_in_and_out(backend):
    """What a test puts into an array is what it reads from it, subnormals included."""
    for dtype in backend.dtypes:
        values = [0.0, 1.0, 0.375, SMALLEST_NORMAL[dtype], SMALLEST_NORMAL[dtype] / 4]
        array = backend.array(values, dtype)
        assert array.dtype == backend.dtype(dtype)
        assert backend.host(array).tolist() == values


def test_the_modes_are_what_they_say():
    """Read-only arrays refuse writing; x64 widens JAX; strict JAX refuses to promote."""
    with pytest.raises(ValueError, match="read-only"):
        Backend.NUMPY_READONLY.array([1.0], "float64")[0] = 0
    for backend, width in ((Backend.JAX, np.float32), (Backend.JAX_X64, np.float64)):
        with backend.context():
            xp = backend.xp
            assert xp.asarray(1.0).dtype == width
            with pytest.raises(Exception, match="promotion"):
                xp.ones(2, xp.float16) + xp.ones(2, xp.float32)
            with pytest.raises(ValueError, match="rank"):
                xp.ones((2, 2)) + xp.ones(2)
