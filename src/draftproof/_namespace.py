"""Which library an array belongs to, and what its dtype and device are.

Nothing else in the package asks. Importing this module imports no array library; a
library is looked up when the first array of its kind arrives.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from draftproof._library import Library

if TYPE_CHECKING:
    from draftproof._library import Array

__all__ = [
    "as_index",
    "common_library",
    "device_of",
    "library_of",
    "library_of_rows",
]

# Type of an array -> its library. Also what keeps torch.compile quiet: the
# functools caches inside array_namespace make Dynamo warn at every compilation.
_LIBRARIES: dict[type, Library] = {}


def library_of(name: str, array: Array) -> Library:
    """Return the library of `array`.

    Raises
    ------
    TypeError
        If it is not an array; the message calls it `name`.
    """
    library = _LIBRARIES.get(type(array))
    if library is None:
        library = _LIBRARIES[type(array)] = _look_up(name, array)
    return library


def library_of_rows(draft_probs: Array, target_probs: Array) -> Library:
    """Return the library of two rows, soon where they are of one and the same type."""
    library = _LIBRARIES.get(type(draft_probs))
    if library is None or type(target_probs) is not type(draft_probs):
        return common_library(draft_probs=draft_probs, target_probs=target_probs)
    return library


def common_library(**arrays: Array) -> Library:
    """Return the one library of all `arrays`, traced if any of them is.

    Raises
    ------
    TypeError
        If they come from more than one library; the message names two of them.
    """
    first, *others = arrays
    common = library_of(first, arrays[first])
    for name in others:
        library = library_of(name, arrays[name])
        if library is common:
            continue
        if library.name != common.name:
            msg = (
                f"`{first}` is a {common.name} array, `{name}` a {library.name} array; "
                "all arrays of one call must come from the same library"
            )
            raise TypeError(msg)
        common = library if library.traced else common
    return common


def _look_up(name: str, array: Array) -> Library:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        import array_api_compat.torch as xp

        return Library(xp, "torch", traced=False)

    import array_api_compat

    if hasattr(array, "filled"):
        msg = f"`{name}` is a masked array; pass a plain one, e.g. `{name}.filled(0)`"
        raise TypeError(msg)
    try:
        xp = array_api_compat.array_namespace(array)
    except TypeError:
        xp = None
    if xp is None:
        msg = (
            f"`{name}` is of type {type(array).__name__}; needed is an array of NumPy, "
            "PyTorch, JAX, CuPy or another library of the array API standard, e.g. "
            f"`numpy.asarray({name})`"
        )
        raise TypeError(msg)
    return Library(xp, _library_name(xp), traced=_is_tracer(array))


def _library_name(xp: Any) -> str:
    module = xp.__name__.removeprefix("array_api_compat.")
    return "jax" if module.startswith("jax") else str(module)


def _is_tracer(array: Array) -> bool:
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(array, jax.core.Tracer)


def device_of(library: Library, array: Array) -> Any:
    """Return where `array` lives, in terms that compare; None where it is no place."""
    if library.traced:
        return None
    return array.devices() if library.name == "jax" else getattr(array, "device", None)


def as_index(value: Any) -> int | None:
    """Return a Python or NumPy integer as int; None for anything else, also for bool."""
    if type(value) is int:
        return value
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return int(value)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.integer):
        return int(value)
    return None
