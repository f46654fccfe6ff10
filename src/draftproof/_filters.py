"""From logits to the law that is sampled: temperature, top-k, top-p and min-p."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from draftproof._checks import check_device, check_floating, check_vocabulary
from draftproof._dtypes import dtype_name, is_integer
from draftproof._namespace import as_index, common_library

if TYPE_CHECKING:
    from collections.abc import Callable

    from draftproof._library import Array, Library

__all__ = ["apply_filters"]


def apply_filters(
    logits: Any,
    *,
    temperature: Any = 1.0,
    top_k: Any = None,
    top_p: Any = None,
    min_p: Any = None,
) -> Any:
    r"""Return the probabilities that are sampled from, given logits and filters.

    Draft and target rows must go through the same filters: the law of the target is
    then that of its filtered rows, and the law of a draft is the one it is drawn from.
    In this order,

    .. math::

        p = \operatorname{softmax}(\text{logits} / \text{temperature}), \quad
        p \gets p \text{ on the } k \text{ most probable tokens}, \\
        p \gets p \text{ on the tokens with less than } \text{top\_p}
        \text{ before them}, \quad
        p \gets p \text{ where } p \ge \text{min\_p} \cdot \max p,

    each time divided by the sum. Temperature 0 puts everything on the largest logit.

    Parameters
    ----------
    logits : array, shape (..., V)
        float16, bfloat16, float32 or float64; ``-inf`` for a forbidden token.
    temperature : float or array, shape (...), optional
        At least 0.
    top_k : int or array, shape (...), optional
        Integers of at least 1; V leaves it out for a request.
    top_p : float or array, shape (...), optional
        In (0, 1]; 1 leaves it out for a request.
    min_p : float or array, shape (...), optional
        In [0, 1]; 0 leaves it out for a request.

    Returns
    -------
    array, shape (..., V)
        Probabilities in the dtype of the arithmetic: float32, float64 for float64.

    Raises
    ------
    TypeError
        If a dtype is not supported, or arrays are of more than one library.
    ValueError
        If a number is out of its range, or shapes or devices do not fit together.

    Notes
    -----
    Tokens of equal probability stay or go together, so that more than k may stay; a sort
    would decide between them by chance. Of equal largest logits, temperature 0 takes the
    one of lowest index. Values of arrays cannot be looked at: a request with a number out
    of its range gets a row of NaN, as logits with NaN, ``+inf`` or ``-inf`` only do, which
    `verify_chain` refuses.

    The order is that of the logits processors of Hugging Face's transformers. It matters
    when `min_p` meets `top_p`: taken first, `min_p` leaves fewer tokens to count.

    References
    ----------
    .. [1] Holtzman, Buys, Du, Forbes, Choi, "The Curious Case of Neural Text
       Degeneration", ICLR 2020, arXiv:1904.09751 (top-p).
    .. [2] Nguyen et al., "Turning Up the Heat: Min-p Sampling for Creative and Coherent
       LLM Outputs", ICLR 2025, arXiv:2407.01082 (min-p).

    Examples
    --------
    >>> import numpy as np
    >>> from draftproof import apply_filters
    >>> logits = np.log(np.asarray([0.5, 0.25, 0.125, 0.125]))
    >>> apply_filters(logits, top_p=0.6)
    array([0.66666667, 0.33333333, 0.        , 0.        ])
    >>> apply_filters(logits, temperature=0)
    array([1., 0., 0., 0.])
    """
    given = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
    given = {name: one for name, one in given.items() if one is not None}
    arrays = {name: one for name, one in given.items() if hasattr(one, "dtype")}
    library = common_library(logits=logits, **arrays)
    check_floating(library, "logits", logits)
    check_vocabulary("logits", logits.shape)
    for name, one in given.items():
        if name in arrays:
            _check_array(library, name, one, logits)
        else:
            _check_number(name, one)
    with library.quiet():
        return _filtered(library, library.widen(logits), given)


def _filtered(library: Library, rows: Array, given: dict[str, Any]) -> Array:
    ops = library.ops
    numbers = {name: _column(library, name, one, rows) for name, one in given.items()}
    greedy = numbers["temperature"] == 0
    # Less the largest logit first: then no temperature, however small, overflows.
    rows = rows - _largest(library, rows)
    heated = rows / ops.where(greedy, 1.0, numbers["temperature"])
    weights = ops.exp(heated)
    if "top_k" in given or "top_p" in given:
        kept = rows >= _least(library, rows, heated, numbers)
        weights = ops.where(kept, weights, ops.zeros_like(weights))
    if "min_p" in given:  # the largest weight is 1
        kept = weights >= numbers["min_p"]
        weights = ops.where(kept, weights, ops.zeros_like(weights))
    probs = weights / library.row_totals(weights)
    best = library.numbers(rows, rows.shape[-1]) == ops.argmax(rows, axis=-1, keepdims=True)
    chosen = library.cast(best, probs.dtype)
    probs = ops.where(greedy & library.finite(probs), chosen, probs)
    for name, number in numbers.items():
        probs = ops.where(_RANGES[name][1](number), probs, ops.nan)
    return probs


def _least(
    library: Library, rows: Array, heated: Array, numbers: dict[str, Array]
) -> Array:
    """Return the least logit of the tokens that top-k and top-p leave."""
    ops, last = library.ops, rows.shape[-1] - 1
    order = _sorted_down(library, rows)
    least = order[..., -1:]
    if "top_k" in numbers:
        least = library.take(order, ops.clip(numbers["top_k"] - 1, 0, last))
    if "top_p" in numbers:
        shares = ops.exp(_sorted_down(library, heated))
        shares = ops.where(order >= least, shares, ops.zeros_like(shares))
        running = library.running_sum(shares)
        before = running - library.cast(shares, running.dtype)
        enough = library.cast(numbers["top_p"], running.dtype) * running[..., -1:]
        # Before a token whose share is lost in the sum there may be all of it.
        short = library.cast((before < enough) | (numbers["top_p"] == 1), ops.int32)
        place = ops.sum(short, axis=-1, keepdims=True) - 1
        least = ops.maximum(least, library.take(order, ops.clip(place, 0, last)))
    return least


def _sorted_down(library: Library, rows: Array) -> Array:
    """Return each row sorted, the largest entry first."""
    if library.name == "torch":
        return rows.sort(-1, descending=True).values
    return library.xp.sort(rows, axis=-1, descending=True)


def _largest(library: Library, rows: Array) -> Array:
    if library.name == "torch":
        return rows.amax(-1, keepdim=True)
    return library.ops.max(rows, axis=-1, keepdims=True)


def _column(library: Library, name: str, number: Any, rows: Array) -> Array:
    """Return a number as an array of shape (..., 1), one for each row."""
    ops = library.ops
    if hasattr(number, "dtype"):
        column = number[..., None]
        return column if name == "top_k" else library.cast(column, rows.dtype)
    like = ops.zeros_like(rows[..., :1])
    return library.cast(like, ops.int32) + number if name == "top_k" else like + number


def _check_number(name: str, number: Any) -> None:
    needed, within = _RANGES[name]
    whole = name == "top_k"
    if whole and as_index(number) is None:
        msg = f"`{name}` is {number!r}; needed is {needed}, or an array of integers"
        raise TypeError(msg)
    try:
        good = math.isfinite(number) and bool(within(number))
    except TypeError as error:
        msg = f"`{name}` is {number!r}; needed is a number {needed}, or an array"
        raise TypeError(msg) from error
    if not good:
        msg = f"`{name}` is {number!r}; needed is {needed}"
        raise ValueError(msg)


def _check_array(library: Library, name: str, array: Any, logits: Any) -> None:
    whole = is_integer(array.dtype)
    if name == "top_k" and not whole:
        msg = f"`{name}` has dtype {dtype_name(array.dtype)}; needed are integers"
        raise TypeError(msg)
    if name != "top_k":
        check_floating(library, name, array)
    if array.shape != logits.shape[:-1]:
        msg = (
            f"`{name}` has shape {tuple(array.shape)}; needed is a number, or an array "
            f"of shape {tuple(logits.shape[:-1])}, one for each row of `logits`"
        )
        raise ValueError(msg)
    check_device(library, name, array, "logits", logits)


_RANGES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "temperature": ("at least 0", lambda t: t >= 0),
    "top_k": ("an integer of at least 1", lambda k: k >= 1),
    "top_p": ("greater than 0 and at most 1", lambda p: (p > 0) & (p <= 1)),
    "min_p": ("at least 0 and at most 1", lambda p: (p >= 0) & (p <= 1)),
}
