"""One way to compare arrays: library, dtype, shape, device, and only then values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from backends import Backend


def assert_like(
    actual: Any, expected: Any, *, dtype: Any = None, shape: Any = None
) -> None:
    """Assert that an array is of the library, dtype, shape and device of another."""
    __tracebackhide__ = True
    assert type(actual) is type(expected), f"{type(actual)} is not {type(expected)}"
    dtype = expected.dtype if dtype is None else dtype
    assert actual.dtype == dtype, f"dtype {actual.dtype}, needed {dtype}"
    shape = expected.shape if shape is None else shape
    assert tuple(actual.shape) == tuple(shape), f"shape {actual.shape}, needed {shape}"
    device = getattr(expected, "device", None)
    assert getattr(actual, "device", None) == device, f"device {actual.device}"


def assert_values(
    backend: Backend, actual: Any, expected: Any, *, within: Any = 0.0
) -> None:
    """Assert values entry by entry; `within` is the allowed absolute error."""
    __tracebackhide__ = True
    values, expected = backend.host(actual), np.asarray(expected, dtype=np.float64)
    within = np.broadcast_to(within, expected.shape)
    bad = ~(np.abs(values - expected) <= within)
    if bad.any():
        where = tuple(np.argwhere(bad)[0])
        msg = (
            f"entry {tuple(map(int, where))} is {values[where]!r}, needed "
            f"{expected[where]!r} within {within[where]:.3g}; {int(bad.sum())} of "
            f"{bad.size} entries are off"
        )
        raise AssertionError(msg)


def bits(backend: Backend, array: Any) -> list[bytes]:
    """Return the values bit by bit, so that signed zeros and NaN compare too."""
    return [value.tobytes() for value in backend.host(array).ravel()]
