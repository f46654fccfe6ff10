"""Subjects from outside: how they are found, named, and handed arrays of their library."""

from __future__ import annotations

import importlib
import sys
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Host: TypeAlias = NDArray[Any]
    Convert: TypeAlias = Callable[[Host], Any]

__all__ = ["CouldNotRunError", "converter", "find", "name_of", "to_host"]


class CouldNotRunError(Exception):
    """The subject was not found, or does not take what its protocol says."""


def find(subject: Callable[..., Any] | str) -> Callable[..., Any]:
    """Return the subject: itself, or what ``"module:function"`` names.

    Modules of the working directory are found as well.

    Raises
    ------
    CouldNotRunError
        If there is no such module or function, or it cannot be called.
    """
    if isinstance(subject, str):
        module, colon, function = subject.partition(":")
        if not (module and colon and function):
            msg = f"`subject` is {subject!r}; needed is MODULE:FUNCTION"
            raise CouldNotRunError(msg)
        folder = str(Path.cwd())
        if folder not in sys.path:
            sys.path.insert(0, folder)
        try:
            found: Any = importlib.import_module(module)
            found = reduce(getattr, function.split("."), found)
        except (ImportError, AttributeError) as error:
            msg = f"{subject!r} cannot be imported: {error}"
            raise CouldNotRunError(msg) from error
    else:
        found = subject
    if not callable(found):
        msg = f"`subject` is a {type(found).__name__}; needed is something to call"
        raise CouldNotRunError(msg)
    called: Callable[..., Any] = found
    return called


def name_of(subject: Callable[..., Any] | str) -> str:
    """Return ``"module:function"`` of a subject, as far as it has such a name."""
    if isinstance(subject, str):
        return subject
    name = getattr(subject, "__qualname__", None)
    if name is None:
        return repr(subject)
    return f"{subject.__module__}:{name}"


def converter(xp: str | Convert) -> Convert:
    """Return what turns a NumPy array into one of the subject's library.

    Parameters
    ----------
    xp
        ``"numpy"``, ``"torch"``, ``"jax"``, ``"cupy"``, ``"array_api_strict"``, or a
        function that converts, for a device or another library.

    Raises
    ------
    CouldNotRunError
        If the library is not installed, or its name is not known.
    """
    if not isinstance(xp, str):
        return xp
    if xp not in _CONVERTERS:
        known = ", ".join(map(repr, _CONVERTERS))
        msg = f"`xp` is {xp!r}; needed is one of {known}, or a function that converts"
        raise CouldNotRunError(msg)
    module, function = _CONVERTERS[xp]
    try:
        convert: Convert = getattr(importlib.import_module(module), function)
    except ImportError as error:
        msg = f"`xp` is {xp!r}, which cannot be imported: {error}"
        raise CouldNotRunError(msg) from error
    return convert


_CONVERTERS = {
    "numpy": ("numpy", "asarray"),
    "torch": ("torch", "from_numpy"),
    "jax": ("jax.numpy", "asarray"),
    "cupy": ("cupy", "asarray"),
    "array_api_strict": ("array_api_strict", "asarray"),
}


def to_host(array: Any) -> Host:
    """Return an array of any library, or a list, as one of NumPy.

    Raises
    ------
    CouldNotRunError
        If it cannot be read as one.
    """
    if hasattr(array, "detach"):  # PyTorch, which has no bfloat16 in NumPy
        array = array.detach().cpu()
        array = array.float() if "bfloat16" in str(array.dtype) else array
        return np.asarray(array.numpy())
    if hasattr(array, "get") and hasattr(array, "device"):  # CuPy
        return np.asarray(array.get())
    if type(array).__module__.startswith("array_api_strict"):
        return np.from_dlpack(array)
    try:
        return np.asarray(array)
    except (TypeError, ValueError) as error:
        msg = f"the subject returned a {type(array).__name__}, not an array: {error}"
        raise CouldNotRunError(msg) from error
