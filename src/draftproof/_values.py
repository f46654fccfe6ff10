"""Checks of values, for whoever asks for them: they read every row."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from draftproof._chain_checks import check_together
from draftproof._checks import check_floating, check_vocabulary
from draftproof._dtypes import dtype_name
from draftproof._namespace import as_index, common_library, device_of, library_of

if TYPE_CHECKING:
    from draftproof._library import Array, Library

__all__ = ["check_probs"]

# Machine epsilon, and half the smallest subnormal number, of each stored dtype.
_PRECISION = {
    "float16": (2.0**-10, 2.0**-25),
    "bfloat16": (2.0**-7, 2.0**-134),
    "float32": (2.0**-23, 2.0**-150),
    "float64": (2.0**-52, 0.0),  # half of it is no double
}


def check_probs(
    draft_probs: Any,
    target_probs: Any,
    draft_tokens: Any = None,
    *,
    tolerance: float | None = None,
) -> None:
    r"""Raise unless the rows are probabilities and the tokens can be draws from them.

    The other functions look at metadata only; this one reads every row that a rule
    may read. Call it in tests and while debugging.

    Parameters
    ----------
    draft_probs : array, shape (..., V) or (..., K, V), or None
        Draft laws; None for one-hot drafts, which have no rows.
    target_probs : array, shape (..., V) or (..., K + 1, V)
        Target laws: as many rows as draft laws or, for a chain, one more.
    draft_tokens : int or array, shape (...) or (..., K), optional
        Drafted tokens, int32 or int64, or an integer for rows of shape (V,). The
        draft row of a token ``-1`` is not looked at, nor, in a chain, any row
        behind its target row: no rule reads them.
    tolerance : float, optional
        How far the sum of a row may be from 1. By default, with the machine
        epsilon of the dtype and the smallest subnormal number :math:`\eta` of it,

        .. math::

            4 \epsilon + (\sqrt{V} + V/64) \epsilon_\text{arithmetic} + V \eta / 2,

        for the rounding of the entries, of the sum they were divided by, and of the
        smallest to zero: for float32 7e-7 at V = 3 and 2e-4 at V = 100,000. (PyTorch
        adds up a softmax in single precision, a few lanes at a time.) Rows computed in
        float32 and stored as float64 need the tolerance of float32.

    Raises
    ------
    TypeError
        If a dtype or library does not fit, or an array is traced.
    ValueError
        If a shape or device does not fit; if an entry is NaN, infinite or
        negative; if a row does not sum to 1; if a drafted token has draft
        probability 0. The message names argument, row and value.
    IndexError
        If a drafted token is not ``-1`` and outside ``range(V)``.

    Examples
    --------
    >>> import numpy as np
    >>> from draftproof import check_probs
    >>> check_probs(np.asarray([0.8, 0.2]), np.asarray([0.4, 0.6]), 0)
    >>> check_probs(np.asarray([0.8, 0.2]), np.asarray([0.4, 0.5]), 0)
    Traceback (most recent call last):
        ...
    ValueError: `target_probs` sums to 0.9, not to 1 within 1.2e-15; ...
    """
    arrays = {} if draft_probs is None else {"draft_probs": draft_probs}
    arrays["target_probs"] = target_probs
    library = common_library(**arrays)
    if library.traced:
        msg = "check_probs reads values: call it outside jit and vmap"
        raise TypeError(msg)
    for name, rows in arrays.items():
        check_floating(library, name, rows)
        check_vocabulary(name, rows.shape)
    tokens = _as_tokens(library, draft_tokens, target_probs)
    check_together(library, draft_probs, target_probs, tokens)
    if library.compiles:
        # Operation by operation, JAX would compile each for every shape.
        draft_probs, target_probs, tokens = library.on_host(
            draft_probs, target_probs, tokens
        )
        library = library_of("target_probs", target_probs)
    with library.quiet():
        _check_values(library, draft_probs, target_probs, tokens, tolerance)


def _as_tokens(library: Library, draft_tokens: Any, target_probs: Array) -> Array | None:
    if draft_tokens is None:
        return None
    index = as_index(draft_tokens)
    if index is not None:
        device = device_of(library, target_probs) if library.name == "torch" else None
        return library.xp.asarray(index, device=device)
    common_library(draft_tokens=draft_tokens, target_probs=target_probs)
    return draft_tokens


def _check_values(
    library: Library,
    draft: Array | None,
    target: Array,
    tokens: Array | None,
    tolerance: float | None,
) -> None:
    draft_read, target_read = _rows_read(library, target, tokens)
    if draft is not None:
        _check_law(library, "draft_probs", draft, draft_read, tolerance)
    _check_law(library, "target_probs", target, target_read, tolerance)
    if tokens is not None:
        _check_drafted(library, draft, tokens, draft_read, target.shape[-1])


def _rows_read(
    library: Library, target: Array, tokens: Array | None
) -> tuple[Array | None, Array | None]:
    """Return which draft and target rows a rule may read; None for all of them."""
    if tokens is None:
        return None, None
    xp = library.xp
    present = tokens != -1
    if tokens.shape == target.shape[:-1]:
        return present, None
    # In a chain nothing after the first -1 is read but the target row beside it.
    first = xp.ones_like(present[..., :1])
    gaps = xp.cumulative_sum(xp.astype(~present, xp.int32), axis=-1)
    draft_read = gaps == 0
    return draft_read, xp.concat([first, draft_read], axis=-1)


def _check_law(
    library: Library, name: str, rows: Array, read: Array | None, tolerance: float | None
) -> None:
    xp = library.xp
    wide = library.widen(rows)
    bad = ~(xp.isfinite(wide) & (wide >= 0))
    where = _first(library, bad, read)
    if where is not None:
        msg = (
            f"`{_at(name, where)}` is {float(wide[where])!r}; needed are probabilities, "
            "finite and not negative (logits need a softmax first)"
        )
        raise ValueError(msg)
    if tolerance is None:
        tolerance = default_tolerance(dtype_name(rows.dtype), rows.shape[-1])
    totals = library.row_totals(library.widest(wide))
    off = ~(xp.abs(totals - 1) <= tolerance)
    where = _first(library, off, read)
    if where is not None:
        msg = (
            f"`{_at(name, where[:-1])}` sums to {float(totals[where]):.9g}, not to 1 "
            f"within {tolerance:.2g}; needed are probabilities, renormalised after any "
            "filter"
        )
        raise ValueError(msg)


def default_tolerance(dtype: str, size: int) -> float:
    """Return how far from 1 the sum of a stored row may be; see `check_probs`."""
    epsilon, flushed = _PRECISION[dtype]
    arithmetic = min(epsilon, 2.0**-23)
    return 4 * epsilon + (math.sqrt(size) + size / 64) * arithmetic + size * flushed


def _check_drafted(
    library: Library, draft: Array | None, tokens: Array, read: Array | None, size: int
) -> None:
    xp = library.xp
    outside = (tokens < -1) | (tokens >= size)
    where = _first(library, outside[..., None], read)
    if where is not None:
        where = where[:-1]  # the axis of the vocabulary has one entry here
        msg = (
            f"`{_at('draft_tokens', where)}` is {int(tokens[where])}; needed is an index "
            f"into the vocabulary, below {size}, or -1 for 'no draft here'"
        )
        raise IndexError(msg)
    if draft is None:
        return
    index = xp.where(outside | (tokens < 0), xp.zeros_like(tokens), tokens)
    where = _first(library, ~(library.gather(draft, index) > 0), read)
    if where is not None:
        where = where[:-1]
        msg = (
            f"`{_at('draft_tokens', where)}` is {int(tokens[where])}, which has "
            f"probability 0 in `{_at('draft_probs', where)}` and cannot have been drawn "
            "from it; pass the law the token was really drawn from"
        )
        raise ValueError(msg)


def _first(library: Library, bad: Array, read: Array | None) -> tuple[int, ...] | None:
    """Return the index of the first true entry in the rows that are read."""
    xp = library.xp
    if read is not None:
        bad = bad & read[..., None]
    if not bool(xp.any(bad)):
        return None
    flat = int(xp.argmax(xp.astype(xp.reshape(bad, (-1,)), xp.int32)))
    index: tuple[int, ...] = ()
    for length in reversed(bad.shape):
        flat, last = divmod(flat, length)
        index = (last, *index)
    return index


def _at(name: str, where: tuple[int, ...]) -> str:
    return f"{name}[{', '.join(map(str, where))}]" if where else name
