"""What the arrays of one library can do: cast, gather, sum, be read, be compiled for.

Where libraries differ, they differ here; what each of them is, `_namespace` finds out.
Importing this module imports no array library.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

__all__ = ["Array", "Library", "NoValuesError", "dtype_name"]

Array: TypeAlias = Any
"""An array of any supported library; the array API standard has no base class."""

# Stored dtype -> the dtype it is computed in. The half types are widened, so
# that they are rounded once, at the end. What is not named here is refused:
# float8 and longdouble would otherwise pass as "real floating".
_ARITHMETIC = {
    "float16": "float32",
    "bfloat16": "float32",
    "float32": "float32",
    "float64": "float64",
}
# Sums in NumPy: from which length on two stages pay, and the length of a run. One
# of 256 takes 2 % off the whole step and doubles the worst error, 64 adds 3 %.
_LONG = 4096
_RUN = 128


class Library:
    """One array library, seen through its array API namespace.

    Parameters
    ----------
    xp
        The array API namespace.
    name
        ``"numpy"``, ``"torch"``, ``"jax"``, ``"cupy"``, or the module name of
        another library that follows the standard.
    traced
        Whether the arrays are tracers, which have shapes but no values.
    """

    __slots__ = ("_arithmetic", "compiles", "maximum", "name", "quiet", "traced", "xp")

    def __init__(self, xp: Any, name: str, *, traced: bool) -> None:
        self.xp = xp
        self.name = name
        self.traced = traced
        self._arithmetic: dict[Any, Any] = {}
        self.compiles = name == "jax" and not traced
        # PyTorch's own: the namespace's promotes dtypes first, which are equal here.
        self.maximum = (sys.modules["torch"] if name == "torch" else xp).maximum
        self.quiet: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext
        """Context for arithmetic: what is infinite or NaN is dealt with, not warned of."""
        if name in ("numpy", "array_api_strict"):
            import numpy as np

            self.quiet = functools.partial(np.errstate, all="ignore")

    def arithmetic_dtype(self, dtype: Any) -> Any | None:
        """Return the dtype to compute `dtype` in, or None if it is not supported."""
        found = self._arithmetic.get(dtype)
        if found is None:
            wide = _ARITHMETIC.get(dtype_name(dtype))
            found = None if wide is None else getattr(self.xp, wide)
            self._arithmetic[dtype] = found
        return found

    def widen(self, array: Array) -> Array:
        """Cast to the dtype of the arithmetic; no copy where it is that already."""
        return self.cast(array, self.arithmetic_dtype(array.dtype))

    def cast(self, array: Array, dtype: Any) -> Array:
        """Cast explicitly; no copy and no dispatch where the dtype is right already."""
        return array if array.dtype == dtype else self.xp.astype(array, dtype)

    def widest(self, array: Array) -> Array:
        """Cast to float64 where the library has it on that device."""
        device = array.device if self.name == "torch" else None
        info = self.xp.__array_namespace_info__()
        dtypes = info.dtypes(device=device, kind="real floating")
        return self.cast(array, dtypes.get("float64", array.dtype))

    def row_totals(self, rows: Array) -> Array:
        """Return the sum of each row, shape ``(..., 1)``."""
        if self.name == "numpy":
            return _numpy_row_totals(self.xp, rows)
        if self.name == "torch":
            return rows.sum(-1, keepdim=True)  # half the overhead of the namespace's
        return self.xp.sum(rows, axis=-1, keepdims=True)

    def gather(self, rows: Array, tokens: Array) -> Array:
        """Return the entry of each row at its token, shape ``(..., 1)``.

        Every token must be a valid index: out of range, the libraries clamp,
        wrap, raise or give NaN.
        """
        index = tokens[..., None]
        if self.name == "torch":
            # take_along_dim compiles anew for every batch size; gather needs int64.
            return self.xp.gather(rows, -1, self.cast(index, self.xp.int64))
        return self.xp.take_along_axis(rows, index, axis=-1)

    def facts(self, *ones: Array) -> Any:
        """Put arrays of one element together, so that `read` takes one transfer."""
        if self.name == "numpy" or (self.name == "torch" and ones[0].is_cpu):
            return ones  # in host memory: stacking would cost more than reading
        return self.xp.stack([self.xp.reshape(one, ()) for one in ones])

    def read(self, facts: Any) -> list[float]:
        """Return what `facts` put together as Python floats, exactly."""
        if self.name == "array_api_strict":
            return [float(facts[i]) for i in range(facts.shape[0])]
        if self.name == "jax":
            (facts,) = self.on_host(facts)
        try:
            if isinstance(facts, tuple):
                return [one.item() for one in facts]
            values: list[float] = facts.tolist()
        except RuntimeError as error:
            raise _clearer(error) from error
        return values

    def on_host(self, *arrays: Array | None) -> list[Array | None]:
        """Return JAX arrays as NumPy arrays, None as None."""
        import numpy as np  # which jax needs itself

        return [None if array is None else np.asarray(array) for array in arrays]

    def read_index(self, scalar: Array) -> int:
        """Return a 0-d integer array as a Python int: one host transfer."""
        if self.traced:
            raise NoValuesError
        try:
            return int(scalar)
        except RuntimeError as error:
            raise _clearer(error) from error

    def run(self, core: Callable[..., Any], *arrays: Array) -> Any:
        """Call ``core(library, *arrays)``, compiled and cached for eager JAX.

        JAX pays per operation, up to twenty times more than for one compiled call.
        """
        if self.compiles:
            return _compiled(core, self)(*arrays)
        return core(self, *arrays)


def _numpy_row_totals(np: Any, rows: Array) -> Array:
    """Return the sum of each row: in runs, and the sums of those in float64.

    For long rows this is faster than `numpy.sum`, and its error does not depend on
    the memory layout: down the columns of a transposed array `numpy.sum` adds one
    by one, which costs float32 its last three digits at V = 100,000.
    """
    size = rows.shape[-1]
    if size < _LONG and rows.flags.c_contiguous:
        return rows.sum(axis=-1, keepdims=True)
    whole = size - size % _RUN
    runs = rows[..., :whole].reshape(*rows.shape[:-1], whole // _RUN, _RUN)
    totals = np.einsum("...i->...", runs).sum(axis=-1, keepdims=True, dtype=np.float64)
    if whole < size:
        totals += rows[..., whole:].sum(axis=-1, keepdims=True, dtype=np.float64)
    return totals.astype(rows.dtype)


class NoValuesError(Exception):
    """An array stands for values it does not hold: a tracer, meta, inside vmap."""


def _clearer(error: RuntimeError) -> Exception:
    """Return `NoValuesError` for what PyTorch says of such arrays, else the error."""
    said = str(error)
    abstract = any(word in said for word in ("meta tensor", "vmap", "storage"))
    return NoValuesError() if abstract else error


@functools.cache
def _compiled(core: Callable[..., Any], library: Library) -> Callable[..., Any]:
    """Return the compiled core: one per core, and within it one per shape and dtype."""
    import jax

    compiled: Callable[..., Any] = jax.jit(functools.partial(core, library))
    return compiled


def dtype_name(dtype: Any) -> str:
    """Return the bare name of a dtype of any library, such as ``"float32"``.

    A byte-swapped NumPy dtype has no bare name: it comes back as ``">f4"``.
    """
    return str(dtype).rpartition(".")[2]
