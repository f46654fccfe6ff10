"""Checks of arguments by their metadata: library, dtype, device, shape.

No check here reads a value of an array, so all of them work on tracers and
none makes an accelerator wait. The one that reads a token is
`drafted_index`, for the step, which needs that token on the host anyway.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from draftproof._dtypes import dtype_name, is_integer
from draftproof._namespace import as_index, device_of, library_of

if TYPE_CHECKING:
    from draftproof._library import Array, Library

__all__ = [
    "check_device",
    "check_floating",
    "check_rows",
    "check_same_dtype",
    "check_tokens",
    "check_vocabulary",
    "drafted_index",
]

_FLOATING = "float16, bfloat16, float32 or float64"


def check_rows(library: Library, draft_probs: Array, target_probs: Array) -> None:
    """Require two arrays of probabilities that are alike in all but their values.

    Raises
    ------
    TypeError
        If a dtype is not supported, or the two differ.
    ValueError
        If the two differ in shape or device, or there is no vocabulary axis.
    """
    check_floating(library, "draft_probs", draft_probs)
    if draft_probs.dtype != target_probs.dtype:
        check_floating(library, "target_probs", target_probs)
        check_same_dtype(draft_probs, target_probs)
    shape = draft_probs.shape
    if shape != target_probs.shape:
        msg = (
            f"`draft_probs` has shape {tuple(shape)}, `target_probs` "
            f"{tuple(target_probs.shape)}; both must have the same, over one "
            "vocabulary: extend the smaller with zeros"
        )
        raise ValueError(msg)
    check_vocabulary("draft_probs", shape)
    check_device(library, "draft_probs", draft_probs, "target_probs", target_probs)


def check_floating(library: Library, name: str, array: Array) -> None:
    """Require a floating dtype that the arithmetic supports."""
    if library.arithmetic_dtype(array.dtype) is None:
        msg = (
            f"`{name}` has dtype {dtype_name(array.dtype)}; needed is {_FLOATING}, in "
            "native byte order"
        )
        raise TypeError(msg)


def check_same_dtype(draft_probs: Array, target_probs: Array) -> None:
    """Require rows of one dtype: promoting silently would hide which one was wrong."""
    if draft_probs.dtype != target_probs.dtype:
        msg = (
            f"`draft_probs` has dtype {dtype_name(draft_probs.dtype)}, `target_probs` "
            f"{dtype_name(target_probs.dtype)}; both must have the same: cast one, "
            "explicitly"
        )
        raise TypeError(msg)


def check_vocabulary(name: str, shape: tuple[int, ...]) -> None:
    """Require a last axis with at least one entry."""
    if not shape or not shape[-1]:
        msg = (
            f"`{name}` has shape {tuple(shape)}; needed is a last axis, the "
            "vocabulary, of at least one entry"
        )
        raise ValueError(msg)


def check_device(
    library: Library, name: str, array: Array, other_name: str, other: Array
) -> None:
    """Require two arrays in one place."""
    device, other_device = device_of(library, array), device_of(library, other)
    if device != other_device:
        msg = (
            f"`{name}` is on {device}, `{other_name}` on {other_device}; all arrays of "
            "one call must be on the same device"
        )
        raise ValueError(msg)


def check_tokens(
    library: Library, draft_tokens: Array, shape: tuple[int, ...], rows: Array
) -> None:
    """Require int32 or int64 tokens of the given shape, where the rows are.

    Raises
    ------
    TypeError
        If the dtype is another one; unsigned integers cannot hold ``-1``.
    ValueError
        If the shape or the device is another one.
    """
    name = dtype_name(draft_tokens.dtype)
    if name not in ("int32", "int64"):
        msg = (
            f"`draft_tokens` has dtype {name}; needed is int32 or int64, which can hold "
            "-1 for 'no draft here'"
        )
        raise TypeError(msg)
    if draft_tokens.shape != shape:
        msg = (
            f"`draft_tokens` has shape {tuple(draft_tokens.shape)}; needed is "
            f"{tuple(shape)}, one token for each row of `draft_probs`"
        )
        raise ValueError(msg)
    check_device(library, "draft_tokens", draft_tokens, "draft_probs", rows)


def drafted_index(library: Library, drafted_token: Any, size: int) -> int:
    """Return the token of the step as an int in ``range(size)``.

    Raises
    ------
    TypeError
        If it is not an integer, or an array of another library.
    ValueError
        If it is an array that is not 0-d.
    IndexError
        If it is outside the vocabulary.
    """
    index = as_index(drafted_token)
    if index is None:
        index = _scalar_index(library, drafted_token)
    if not 0 <= index < size:
        msg = (
            f"`drafted_token` is {index}; needed is an index into the vocabulary, "
            f"0 <= drafted_token < {size}"
        )
        raise IndexError(msg)
    return index


def _scalar_index(library: Library, drafted_token: Any) -> int:
    if not hasattr(drafted_token, "dtype"):
        msg = (
            f"`drafted_token` is {drafted_token!r}, of type "
            f"{type(drafted_token).__name__}; needed is an integer or a 0-d integer array"
        )
        raise TypeError(msg)
    token_library = library_of("drafted_token", drafted_token)
    if token_library.name != library.name:
        msg = (
            f"`drafted_token` is a {token_library.name} array, `draft_probs` a "
            f"{library.name} array; needed is an integer or an array of the same library"
        )
        raise TypeError(msg)
    if not is_integer(drafted_token.dtype):
        msg = (
            f"`drafted_token` has dtype {dtype_name(drafted_token.dtype)}; needed is an "
            "integer dtype"
        )
        raise TypeError(msg)
    if drafted_token.ndim:
        hint = ": pass drafted_token[0]" if drafted_token.shape == (1,) else ""
        msg = (
            f"`drafted_token` has shape {tuple(drafted_token.shape)}; needed is one "
            f"token, an integer or an array of shape (){hint}"
        )
        raise ValueError(msg)
    return token_library.read_index(drafted_token)
