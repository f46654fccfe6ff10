"""The array libraries the tests run on: one declaration, from which all else follows.

It marks the tests, decides what may be skipped, and makes the support table of the
README (`support.py`).
"""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass
from enum import Enum
from typing import Any

import ml_dtypes
import numpy as np

NUMPY_DTYPES = {
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
}


@dataclass(frozen=True)
class Declaration:
    """What a backend is and promises."""

    label: str
    dtypes: tuple[str, ...]
    traces: str
    required: bool = True
    has_values: bool = True
    flushes_subnormals: bool = False
    remark: str = ""


class Backend(Enum):
    """An array library in one of the ways it is used."""

    NUMPY = Declaration(
        "NumPy",
        ("float16", "bfloat16", "float32", "float64"),
        "-",
        remark="bfloat16 through ml_dtypes",
    )
    NUMPY_READONLY = Declaration(
        "NumPy, read-only arrays", ("float16", "float32", "float64"), "-"
    )
    STRICT = Declaration("array-api-strict", ("float32", "float64"), "-")
    TORCH = Declaration(
        "PyTorch, CPU",
        ("float16", "bfloat16", "float32", "float64"),
        "torch.compile, torch.vmap, autograd",
    )
    TORCH_META = Declaration(
        "PyTorch, meta device",
        ("float16", "bfloat16", "float32", "float64"),
        "shapes only",
        has_values=False,
    )
    TORCH_CUDA = Declaration(
        "PyTorch, CUDA",
        ("float16", "bfloat16", "float32", "float64"),
        "torch.compile, CUDA graphs, autograd",
        required=False,
    )
    JAX = Declaration(
        "JAX",
        ("float16", "bfloat16", "float32"),
        "jax.jit, jax.vmap, jax.grad",
        flushes_subnormals=True,
        remark="XLA on the CPU flushes subnormal numbers to 0",
    )
    JAX_X64 = Declaration(
        "JAX, x64 enabled",
        ("float64",),
        "jax.jit, jax.vmap, jax.grad",
        flushes_subnormals=True,
    )
    CUPY = Declaration("CuPy", ("float16", "float32", "float64"), "-", required=False)

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The names of the floating dtypes it is tested with."""
        return self.value.dtypes

    @property
    def is_jax(self) -> bool:
        """Whether it is JAX in one of its modes."""
        return self in (Backend.JAX, Backend.JAX_X64)

    @property
    def is_torch(self) -> bool:
        """Whether it is PyTorch on one of its devices."""
        return self in (Backend.TORCH, Backend.TORCH_META, Backend.TORCH_CUDA)

    @functools.cached_property
    def device(self) -> Any:
        """The device the arrays are made on; None where there is no choice."""
        return {Backend.TORCH_META: "meta", Backend.TORCH_CUDA: "cuda"}.get(self)

    def missing(self) -> str | None:
        """Say why an optional backend cannot run here; None if it can.

        Importing proves nothing: CuPy imports without a GPU. So one element is
        allocated. A required backend that cannot be imported raises.
        """
        try:
            with self.context():
                self.array([1.0], self.dtypes[0])
        except Exception as error:
            if self.value.required:
                raise
            reason = str(error).strip().splitlines() or [type(error).__name__]
            return f"{self.value.label}: {reason[0]}"
        return None

    @contextlib.contextmanager
    def context(self):
        """Switch on what the backend stands for, and JAX's strict flags; then restore."""
        if not self.is_jax:
            yield
            return
        import jax

        with (
            jax.enable_x64(self is Backend.JAX_X64),
            jax.numpy_dtype_promotion("strict"),
            jax.numpy_rank_promotion("raise"),
        ):
            yield

    @functools.cached_property
    def xp(self) -> Any:
        """The library as its users import it."""
        if self.is_torch:
            import torch as module
        elif self.is_jax:
            import jax.numpy as module
        elif self is Backend.STRICT:
            import array_api_strict as module
        elif self is Backend.CUPY:
            import cupy as module
        else:
            module = np
        return module

    def dtype(self, name: str) -> Any:
        """Return the dtype object of that name."""
        if self.xp is np and name == "bfloat16":
            return NUMPY_DTYPES[name]
        return getattr(self.xp, name)

    def array(self, values: Any, dtype: str) -> Any:
        """Make an array; the values are numbers that the dtype stores exactly."""
        stored = np.asarray(values, dtype=np.float64 if "float" in dtype else np.int64)
        if self.is_torch:
            return self.xp.tensor(stored, dtype=self.dtype(dtype), device=self.device)
        if self.xp is np or self.is_jax:
            # Through NumPy: the cast of XLA would flush a subnormal number.
            array = stored.astype(NUMPY_DTYPES.get(dtype) or np.dtype(dtype))
            array.flags.writeable = self is not Backend.NUMPY_READONLY
            return array if self.xp is np else self.xp.asarray(array)
        return self.xp.asarray(stored, dtype=self.dtype(dtype))

    def host(self, array: Any) -> np.ndarray:
        """Return the values of a floating array as float64, exactly."""
        if self.is_torch:
            import torch

            return array.detach().cpu().to(torch.float64).numpy()
        if self is Backend.STRICT:
            array = array._array
        elif self is Backend.CUPY:
            array = self.xp.asnumpy(array)
        return np.asarray(array).astype(np.float64)


OPTIONAL = tuple(backend for backend in Backend if not backend.value.required)
# Those that can run here; `test_backends` says why an optional one cannot.
VALUED = tuple(
    backend
    for backend in Backend
    if backend.value.has_values and (backend.value.required or backend.missing() is None)
)
EVERY = tuple((backend, dtype) for backend in VALUED for dtype in backend.dtypes)
