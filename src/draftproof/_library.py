"""What the arrays of one library can do: cast, gather, sum, be read, be compiled for.

Where libraries differ, they differ here; what each of them is, `_namespace` finds out.
Importing this module imports no array library.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from typing import TYPE_CHECKING, Any, TypeAlias

from draftproof._dtypes import arithmetic_name
from draftproof._sums import numpy_block_sums, numpy_row_totals

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

__all__ = ["Array", "Library", "NoValuesError"]

Array: TypeAlias = Any
"""An array of any supported library; the array API standard has no base class."""


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

    __slots__ = ("_arithmetic", "compiles", "name", "ops", "quiet", "traced", "xp")

    def __init__(self, xp: Any, name: str, *, traced: bool) -> None:
        self.xp = xp
        self.name = name
        self.traced = traced
        self._arithmetic: dict[Any, Any] = {}
        self.compiles = name == "jax" and not traced
        # What the arithmetic calls. The own functions of PyTorch and NumPy know the
        # standard's keywords too, and skip a promotion of dtypes that are equal here.
        self.ops = sys.modules[name] if name in ("torch", "numpy") else xp
        self.quiet: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext
        """Context for arithmetic: what is infinite or NaN is dealt with, not warned of."""
        if name in ("numpy", "array_api_strict"):
            import numpy as np

            self.quiet = functools.partial(np.errstate, all="ignore")

    def arithmetic_dtype(self, dtype: Any) -> Any | None:
        """Return the dtype to compute `dtype` in, or None if it is not supported."""
        found = self._arithmetic.get(dtype)
        if found is None:
            wide = arithmetic_name(dtype)
            found = None if wide is None else getattr(self.xp, wide)
            self._arithmetic[dtype] = found
        return found

    def widen(self, array: Array) -> Array:
        """Cast to the dtype of the arithmetic; no copy where it is that already."""
        return self.cast(array, self.arithmetic_dtype(array.dtype))

    def cast(self, array: Array, dtype: Any) -> Array:
        """Cast explicitly; no copy and no dispatch where the dtype is right already."""
        if array.dtype == dtype:
            return array
        return array.to(dtype) if self.name == "torch" else self.xp.astype(array, dtype)

    def widest(self, array: Array) -> Array:
        """Cast to float64 where the library has it on that device."""
        return self.cast(array, self._widest_dtype(array))

    def _widest_dtype(self, array: Array) -> Any:
        if self.name == "jax":
            from jax.dtypes import canonicalize_dtype

            return canonicalize_dtype("float64")  # float32 without x64
        if self.name == "torch" and array.device.type == "mps":
            return array.dtype
        return getattr(self.xp, "float64", array.dtype)

    def row_totals(self, rows: Array) -> Array:
        """Return the sum of each row, shape ``(..., 1)``."""
        if self.name == "numpy":
            return numpy_row_totals(rows)
        if self.name == "torch":
            return rows.sum(-1, keepdim=True)  # half the overhead of the namespace's
        return self.xp.sum(rows, axis=-1, keepdims=True)

    def block_sums(self, rows: Array, length: int) -> Array:
        """Return the sums of the blocks of each row, shape ``(..., ceil(V / length))``."""
        if self.name == "numpy":
            return numpy_block_sums(rows, length)
        *leading, size = rows.shape
        count, rest = divmod(size, length)
        whole, tail = self.split(rows, size - rest) if rest else (rows, None)
        sums = self.ops.reshape(whole, (*leading, count, length))
        sums = self.ops.sum(sums, axis=-1)
        if tail is None:
            return sums
        return self.ops.concat([sums, self.row_totals(tail)], axis=-1)

    def split(self, rows: Array, size: int) -> tuple[Array, Array]:
        """Return the first so many entries of each row, and the others."""
        if self.name == "torch":
            whole, tail = rows.split((size, rows.shape[-1] - size), -1)
            return whole, tail
        return rows[..., :size], rows[..., size:]

    def running_sum(self, rows: Array) -> Array:
        """Return the running sum along each row, in float64 where there is one."""
        if self.name == "numpy":
            # Casting first is several times faster than casting on the way.
            return rows.astype("float64").cumsum(axis=-1)
        if self.name == "torch":  # the namespace's makes Dynamo warn
            return rows.cumsum(-1, dtype=self._widest_dtype(rows))
        return self.xp.cumulative_sum(self.widest(rows), axis=-1)

    def numbers(self, rows: Array, size: int) -> Array:
        """Return 0, 1, ..., size - 1 along a last axis, of as many axes as `rows`."""
        if self.name == "torch":
            return self.ops.arange(size, device=rows.device)  # broadcasts as it is
        return self.ops.reshape(self.ops.arange(size), (1,) * (rows.ndim - 1) + (size,))

    def sum_before(self, running: Array, rows: Array, index: Array) -> Array:
        """Return the running sum of `rows` before the entries at the indices."""
        if self.name == "torch" and running.dtype == self.ops.float64:
            return self.take(running - rows, index)  # off by a rounding of float64
        zero = self.ops.zeros_like(running[..., :1])
        return self.take(self.ops.concat([zero, running], axis=-1), index)

    def only(self, flags: Array, array: Array) -> Array:
        """Return the entries of a finite array where the flags are true, else 0."""
        if self.name == "torch":
            return array * flags
        return self.ops.where(flags, array, self.ops.zeros_like(array))

    def leading(self, flags: Array) -> Array:
        """Return how many flags are true before the first false, shape ``(..., 1)``."""
        if self.name == "torch":
            # Not the form below: with a changing batch size, PyTorch 2.13 compiles a
            # concatenation of booleans for the CPU into code that does not build.
            length = flags.shape[-1]
            if not length:
                return flags.sum(-1, keepdim=True)
            numbers = self.numbers(flags, length)
            return self.ops.add(numbers, flags, alpha=length).amin(-1, keepdim=True)
        end = self.ops.full((*flags.shape[:-1], 1), fill_value=True, dtype=self.ops.bool)
        stops = self.cast(self.ops.concat([~flags, end], axis=-1), self.ops.int8)
        return self.ops.argmax(stops, axis=-1, keepdims=True)

    def finite(self, array: Array) -> Array:
        """Whether each entry is neither NaN nor infinite."""
        if self.name == "torch":
            return array - array == 0  # two operations where isfinite takes four
        return self.xp.isfinite(array)

    def take(self, rows: Array, index: Array) -> Array:
        """Return the entries of each row at the indices, which must be valid.

        Out of range, the libraries clamp, wrap, raise or give NaN.
        """
        if self.name == "torch":
            # take_along_dim compiles anew for every batch size; gather needs int64.
            return rows.gather(-1, self.cast(index, self.ops.int64))
        return self.xp.take_along_axis(rows, index, axis=-1)

    def take_rows(self, rows: Array, index: Array) -> Array:
        """Return whole rows of a matrix: in PyTorch six times cheaper than `take`."""
        if self.name == "torch":
            return rows.index_select(0, index)
        return self.xp.take(rows, index, axis=0)

    def gather(self, rows: Array, tokens: Array) -> Array:
        """Return the entry of each row at its token, shape ``(..., 1)``."""
        return self.take(rows, tokens[..., None])

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
