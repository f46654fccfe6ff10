"""Numbers as the vectors write them: a rational, and the same as a hexadecimal float."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "BELOW_ONE",
    "BELOW_ONE_DOUBLE",
    "FORMATS",
    "Row",
    "Rows",
    "Value",
    "brackets",
    "dtypes_of",
    "fractions",
    "nearest",
    "rational",
    "written",
]

Value: TypeAlias = Fraction | str
"""A rational, or ``"nan"``, ``"inf"``, ``"-inf"``, ``"-0"``."""
Row: TypeAlias = tuple[Value, ...]
Rows: TypeAlias = tuple[Row, ...]


class Format(NamedTuple):
    """A binary floating format: its digits, and the exponent of its smallest number."""

    digits: int
    lowest: int


FORMATS = {
    "float16": Format(11, -24),
    "bfloat16": Format(8, -133),
    "float32": Format(24, -149),
    "float64": Format(53, -1074),
}
BELOW_ONE = 1 - Fraction(1, 2**24)
BELOW_ONE_DOUBLE = 1 - Fraction(1, 2**53)


def fractions(*numbers: str | int | Fraction) -> tuple[Fraction, ...]:
    """Return a row of rationals."""
    return tuple(Fraction(number) for number in numbers)


def brackets(weights: Sequence[Fraction]) -> list[tuple[Fraction, Fraction]]:
    """Return the shares of the sum before and with each weight."""
    total = sum(weights, Fraction(0))
    running = accumulate((w / total for w in weights), initial=Fraction(0))
    return list(pairwise(running))


def rational(value: Value) -> Fraction:
    """Return the number that a finite value is."""
    return Fraction(0) if value == "-0" else Fraction(value)


def nearest(number: Fraction, dtype: str) -> Fraction:
    """Return the nearest number of a format, of two equally near the even one."""
    if not number:
        return number
    digits, lowest = FORMATS[dtype]
    exponent = number.numerator.bit_length() - number.denominator.bit_length()
    if Fraction(2) ** exponent > number:
        exponent -= 1
    unit = Fraction(2) ** max(exponent + 1 - digits, lowest)
    return round(number / unit) * unit


def dtypes_of(*rows: Sequence[Value]) -> list[str]:
    """Return the formats that store every number of some rows exactly."""
    numbers = {v for row in rows for v in row if isinstance(v, Fraction)}
    return [d for d in FORMATS if all(nearest(n, d) == n for n in numbers)]


def written(numbers: Any) -> dict[str, Any]:
    """Return a value, or nested sequences of them, in both notations."""
    return {"exact": _each(_exact, numbers), "hex": _each(_hex, numbers)}


def _each(write: Any, numbers: Any) -> Any:
    if isinstance(numbers, Fraction | str):
        return write(numbers)
    return [_each(write, number) for number in numbers]


def _exact(value: Value) -> str:
    return "0" if value == "-0" else str(value)


def _hex(value: Value) -> str:
    if isinstance(value, str):
        return "-0x0p+0" if value == "-0" else value
    # A residual need not be a double: this is the nearest one.
    mantissa, exponent = float(value).hex().split("p")
    return f"{mantissa.rstrip('0').rstrip('.')}p{exponent}"
