"""Checks of a chain's arguments by their metadata: how their shapes fit together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftproof._checks import (
    check_device,
    check_floating,
    check_same_dtype,
    check_tokens,
    check_vocabulary,
)
from draftproof._dtypes import dtype_name

if TYPE_CHECKING:
    from draftproof._library import Array, Library

__all__ = ["check_chain_rows", "check_ids", "check_together", "check_uniforms"]


def check_chain_rows(
    library: Library, draft_probs: Array | None, target_probs: Array, draft_tokens: Array
) -> None:
    """Require the rows and tokens of a chain of K drafts.

    Raises
    ------
    TypeError
        If a dtype is not supported, or the rows differ in it.
    ValueError
        If the shapes are not those of K drafts and K + 1 target rows, or the devices
        differ.
    """
    if draft_probs is not None:
        check_floating(library, "draft_probs", draft_probs)
    check_floating(library, "target_probs", target_probs)
    check_vocabulary("target_probs", target_probs.shape)
    if target_probs.ndim < 2 or not target_probs.shape[-2]:  # noqa: PLR2004 - two axes
        msg = (
            f"`target_probs` has shape {tuple(target_probs.shape)}; needed is "
            "(..., K + 1, V), one row more than drafts"
        )
        raise ValueError(msg)
    chain = chain_shape(target_probs)
    if draft_probs is not None:
        check_same_dtype(draft_probs, target_probs)
        if draft_probs.shape != chain:
            msg = (
                f"`draft_probs` has shape {tuple(draft_probs.shape)}, `target_probs` "
                f"{tuple(target_probs.shape)}; needed are (..., K, V) and "
                f"(..., K + 1, V), so here {chain} for `draft_probs`"
            )
            raise ValueError(msg)
        check_device(library, "draft_probs", draft_probs, "target_probs", target_probs)
    check_tokens(library, draft_tokens, chain[:-1], target_probs)


def check_ids(
    library: Library, draft_tokens: Array, name: str, tokens: Array, *, more: int | None
) -> None:
    """Require tokens that go with drafted ones: of so many more, or one per request.

    Raises
    ------
    TypeError
        If the dtypes are not int32 or int64, or differ.
    ValueError
        If the shape or the device does not fit.
    """
    shape = draft_tokens.shape
    if not shape:
        msg = "`draft_tokens` has shape (); needed is (..., K), an axis of drafted tokens"
        raise ValueError(msg)
    check_tokens(library, draft_tokens, shape, draft_tokens)
    if tokens.dtype != draft_tokens.dtype:
        msg = (
            f"`{name}` has dtype {dtype_name(tokens.dtype)}, `draft_tokens` "
            f"{dtype_name(draft_tokens.dtype)}; both must have the same"
        )
        raise TypeError(msg)
    needed = shape[:-1] if more is None else (*shape[:-1], shape[-1] + more)
    if tokens.shape != needed:
        msg = (
            f"`{name}` has shape {tuple(tokens.shape)}; needed is {tuple(needed)}, as "
            f"`draft_tokens` has shape {tuple(shape)}"
        )
        raise ValueError(msg)
    check_device(library, name, tokens, "draft_tokens", draft_tokens)


def check_uniforms(
    library: Library, uniforms: Array, shape: tuple[int, ...], name: str, rows: Array
) -> None:
    """Require float32 or float64 uniforms of the given shape, where `name` is.

    Raises
    ------
    TypeError
        If the dtype is another one: a half type has numbers that round to 1.
    ValueError
        If the shape or the device is another one.
    """
    dtype = dtype_name(uniforms.dtype)
    if dtype not in ("float32", "float64"):
        msg = f"`uniforms` has dtype {dtype}; needed is float32 or float64"
        raise TypeError(msg)
    if uniforms.shape != shape:
        msg = (
            f"`uniforms` has shape {tuple(uniforms.shape)}; needed is {tuple(shape)}, "
            f"as `{name}` has shape {tuple(rows.shape)}"
        )
        raise ValueError(msg)
    check_device(library, "uniforms", uniforms, name, rows)


def check_together(
    library: Library, draft: Array | None, target: Array, tokens: Array | None
) -> None:
    """Require shapes that are those of equal rows or of a chain."""
    if draft is not None:
        check_same_dtype(draft, target)
        check_device(library, "draft_probs", draft, "target_probs", target)
        if draft.shape not in (target.shape, chain_shape(target)):
            msg = (
                f"`draft_probs` has shape {tuple(draft.shape)}, `target_probs` "
                f"{tuple(target.shape)}; needed are equal shapes or, for a chain, "
                "(..., K, V) and (..., K + 1, V)"
            )
            raise ValueError(msg)
    if tokens is not None:
        shape = tokens.shape if draft is None else draft.shape[:-1]
        check_tokens(library, tokens, shape, target)
        if shape not in (target.shape[:-1], chain_shape(target)[:-1]):
            msg = (
                f"`draft_tokens` has shape {tuple(shape)}, `target_probs` "
                f"{tuple(target.shape)}; needed is one token for each row or, for a "
                "chain, for each but the last"
            )
            raise ValueError(msg)


def chain_shape(target: Array) -> tuple[int, ...]:
    """Return the shape of the draft rows that belong to a chain of target rows."""
    *leading, size = target.shape
    return (*leading[:-1], leading[-1] - 1, size) if leading else (-1, size)
