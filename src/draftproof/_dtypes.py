"""Dtypes by their names, the only thing that all libraries share about them."""

from __future__ import annotations

from typing import Any

__all__ = ["arithmetic_name", "dtype_name", "is_integer"]

# Stored dtype -> the dtype it is computed in. The half types are widened, so
# that they are rounded once, at the end. What is not named here is refused:
# float8 and longdouble would otherwise pass as "real floating".
_ARITHMETIC = {
    "float16": "float32",
    "bfloat16": "float32",
    "float32": "float32",
    "float64": "float64",
}
_INTEGERS = frozenset(
    ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
)

# Names of dtypes that were asked for before: NumPy takes its time to spell one.
_NAMES: dict[Any, str] = {}


def dtype_name(dtype: Any) -> str:
    """Return the bare name of a dtype of any library, such as ``"float32"``.

    A byte-swapped NumPy dtype has no bare name: it comes back as ``">f4"``.
    """
    key = (type(dtype), dtype)
    name = _NAMES.get(key)
    if name is None:
        name = _NAMES[key] = str(dtype).rpartition(".")[2]
    return name


def arithmetic_name(dtype: Any) -> str | None:
    """Return the name of the dtype to compute a stored dtype in; None if unsupported."""
    return _ARITHMETIC.get(dtype_name(dtype))


def is_integer(dtype: Any) -> bool:
    """Whether `dtype` is a signed or unsigned integer of some library; not boolean."""
    return dtype_name(dtype) in _INTEGERS
