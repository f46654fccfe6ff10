"""How far from the exact value a result may be: the numeric contract, in one place."""

from __future__ import annotations

import numpy as np

EPSILON = {
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
    "float32": 2.0**-23,
    "float64": 2.0**-52,
}
SMALLEST_NORMAL = {
    "float16": 2.0**-14,
    "bfloat16": 2.0**-126,
    "float32": 2.0**-126,
    "float64": 2.0**-1022,
}
ARITHMETIC = {
    "float16": "float32",
    "bfloat16": "float32",
    "float32": "float32",
    "float64": "float64",
}

RESIDUAL_EPS = {"float16": 1.0, "bfloat16": 1.0, "float32": 16.0, "float64": 16.0}
"""Error of an entry of the residual, in units of the last place or of epsilon.

The half types are computed in float32 and rounded once: 1 unit in the last place.
In the others the sum of the row and the division contribute: 16 epsilon, relative.
"""

ACCEPT_PROB_ULP = 1.0
"""Error of `accept_residual`'s acceptance; the step's own is exact, bit for bit."""


def last_place(values: np.ndarray, dtype: str) -> np.ndarray:
    """Return the unit in the last place of positive `values` stored as `dtype`."""
    _, exponent = np.frexp(np.maximum(values, SMALLEST_NORMAL[dtype]))
    # Subtracted first: the power itself may be below the smallest double.
    return np.ldexp(EPSILON[dtype], exponent - 1)


def residual_budget(exact: np.ndarray, dtype: str) -> np.ndarray:
    """Return the allowed absolute error of each entry of a residual."""
    if dtype in ("float16", "bfloat16"):
        return last_place(exact, dtype)
    smallest = EPSILON[dtype] * SMALLEST_NORMAL[dtype]
    return RESIDUAL_EPS[dtype] * EPSILON[dtype] * exact + smallest
