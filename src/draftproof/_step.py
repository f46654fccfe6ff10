"""One drafted token: the probability to keep it, and what replaces it if not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypedDict, TypeVar

from draftproof._arithmetic import normalised, positive_part
from draftproof._checks import check_rows, drafted_index
from draftproof._library import NoValuesError
from draftproof._namespace import library_of_rows

if TYPE_CHECKING:
    from draftproof._library import Array, Library

__all__ = ["DecodeStep", "speculative_decode_step"]

ArrayT = TypeVar("ArrayT")


class DecodeStep(TypedDict, Generic[ArrayT]):
    """What `speculative_decode_step` returns: a plain dict with these two entries."""

    accept_prob: float
    residual: ArrayT


def speculative_decode_step(
    draft_probs: ArrayT, target_probs: ArrayT, drafted_token: Any
) -> DecodeStep[ArrayT]:
    r"""Return how likely a drafted token is kept, and what replaces it if it is not.

    With the draft law :math:`q`, the target law :math:`p` and the token :math:`t`
    that was drawn from :math:`q`,

    .. math::

        \mathrm{accept\_prob} = \min\left(1, \frac{p_t}{q_t}\right), \qquad
        \mathrm{residual}_v = \frac{\max(p_v - q_v, 0)}{\sum_w \max(p_w - q_w, 0)}.

    Keep `t` if a uniform number in [0, 1) is below ``accept_prob``, else emit a
    token drawn from ``residual``: the emitted token then has the law :math:`p`,
    exactly, whatever :math:`q` is.

    Parameters
    ----------
    draft_probs : array, shape (V,)
        The law the token was really drawn from, after temperature and filters:
        probabilities, not logits. float16, bfloat16, float32 or float64, of
        NumPy, PyTorch, JAX, CuPy or another library of the array API standard.
    target_probs : array, shape (V,)
        The law of the target model at the same place, over the same vocabulary;
        same library, dtype and device.
    drafted_token : int
        The drafted token: a Python or NumPy integer, or a 0-d integer array of
        the same library.

    Returns
    -------
    dict
        ``"accept_prob"``, a Python float: the double nearest to the ratio of the
        two stored values, capped at 1, the same on every library.
        ``"residual"``, an array of shape (V,) in the library, dtype and device of
        the input. It does not depend on the token. If no entry of the target is
        above the draft's it is the zero vector; the token is then always kept.

    Raises
    ------
    TypeError
        If the arrays differ in library or dtype, a dtype is not supported, the
        token is not an integer, or an array is traced (``jax.jit``, ``vmap``):
        use `accept_residual` there.
    ValueError
        If the arrays are not of one shape (V,) with V >= 1 or on different
        devices; if the draft probability of the token is not positive, so that it
        cannot have been drawn; if a row holds NaN or infinity.
    IndexError
        If the token is outside ``range(V)``.

    See Also
    --------
    accept_residual : the same for batches, and under transformations.
    check_probs : checks of values that would cost a pass over the rows.

    Notes
    -----
    Rows are taken as they are: no softmax, no renormalising, and nothing is
    written to the inputs. float16 and bfloat16 are computed in float32 and
    rounded once. On an accelerator a call waits for one transfer, and for a
    second one if the token is an array. Not seen here, but by `check_probs`:
    negative entries, ``-inf`` in the target, sums other than 1.

    References
    ----------
    .. [1] Leviathan, Kalman, Matias, "Fast Inference from Transformers via
       Speculative Decoding", ICML 2023, arXiv:2211.17192.
    .. [2] Chen, Borgeaud, Irving, Lespiau, Sifre, Jumper, "Accelerating Large
       Language Model Decoding with Speculative Sampling", 2023, arXiv:2302.01318.

    Examples
    --------
    >>> import numpy as np
    >>> from draftproof import speculative_decode_step
    >>> draft, target = np.asarray([0.8, 0.2]), np.asarray([0.4, 0.6])
    >>> step = speculative_decode_step(draft, target, 0)
    >>> step["accept_prob"]
    0.5
    >>> step["residual"]
    array([0., 1.])
    """
    library = library_of_rows(draft_probs, target_probs)
    rows: Array = draft_probs
    check_rows(library, draft_probs, target_probs)
    _check_one_row(library, rows)
    try:
        token = drafted_index(library, drafted_token, rows.shape[-1])
        with library.quiet():
            # Dividing after a look at the mass is cheapest, save where each step
            # out of the compiled code is another call.
            core = _weigh_and_divide if library.compiles else _weigh
            facts, residual, total = library.run(core, draft_probs, target_probs, token)
            draft_prob, target_prob, mass = library.read(facts)
            if not math.isfinite(mass):
                _raise_not_finite(library, draft_probs, target_probs)
            if mass > 0 and not library.compiles:
                residual /= total
    except NoValuesError:
        _raise_no_values()
    return {
        "accept_prob": _accept_prob(draft_prob, target_prob, token),
        "residual": library.cast(residual, rows.dtype),
    }


def _weigh(
    library: Library, draft_probs: Array, target_probs: Array, token: int
) -> tuple[Any, Array, Array]:
    """Return the three numbers the host must see, the weights, and their sum."""
    draft, target = library.widen(draft_probs), library.widen(target_probs)
    weights = positive_part(library, target, draft)
    total = library.row_totals(weights)
    return library.facts(draft[token], target[token], total), weights, total


def _weigh_and_divide(
    library: Library, draft_probs: Array, target_probs: Array, token: int
) -> tuple[Any, Array, Array]:
    facts, weights, total = _weigh(library, draft_probs, target_probs, token)
    return facts, normalised(library, weights, total), total


def _check_one_row(library: Library, rows: Array) -> None:
    if library.traced:
        _raise_no_values()
    if rows.ndim != 1:
        msg = (
            f"`draft_probs` and `target_probs` have shape {tuple(rows.shape)}; needed "
            "is one row, (V,): use accept_residual for a batch"
        )
        raise ValueError(msg)


def _accept_prob(draft_prob: float, target_prob: float, token: int) -> float:
    """Return ``min(1, target_prob / draft_prob)`` of two entries read from the rows.

    As doubles both are exact, so their quotient is rounded just once.
    """
    if not draft_prob > 0:
        msg = (
            f"`draft_probs[{token}]` is {draft_prob!r}, so `drafted_token` = {token} "
            "cannot have been drawn from `draft_probs`; pass the law the token was "
            "really drawn from"
        )
        raise ValueError(msg)
    if target_prob < 0:
        msg = f"`target_probs[{token}]` is {target_prob!r}; needed is a probability"
        raise ValueError(msg)
    return min(1.0, target_prob / draft_prob)


def _raise_not_finite(
    library: Library, draft_probs: Array, target_probs: Array
) -> NoReturn:
    """Say which entry made the sum of the residual NaN or infinite."""
    xp = library.xp
    for name, row in (("draft_probs", draft_probs), ("target_probs", target_probs)):
        wide = library.widen(row)
        if not bool(xp.all(xp.isfinite(wide))):
            bad = xp.astype(~xp.isfinite(wide), xp.int32)
            where = int(xp.argmax(bad))
            msg = (
                f"`{name}[{where}]` is {float(wide[where])!r}; needed are finite "
                "probabilities"
            )
            raise ValueError(msg)
    msg = (
        "the sum of max(`target_probs` - `draft_probs`, 0) overflows; needed are "
        "probabilities"
    )
    raise ValueError(msg)


def _raise_no_values() -> NoReturn:
    msg = (
        "speculative_decode_step reads values, and `draft_probs` or `drafted_token` is "
        "abstract here (inside jit, vmap or on a meta device); use accept_residual, "
        "which traces"
    )
    raise TypeError(msg)
