"""Drafted tokens by the batch: traceable, differentiable, without a look at a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from draftproof._arithmetic import acceptance, normalised, positive_part
from draftproof._checks import check_rows, check_tokens
from draftproof._namespace import common_library

if TYPE_CHECKING:
    from draftproof._library import Array, Library

__all__ = ["AcceptResidual", "accept_residual"]

ArrayT = TypeVar("ArrayT")


class AcceptResidual(NamedTuple, Generic[ArrayT]):
    """What `accept_residual` returns: two arrays, a pytree of every library.

    Attributes
    ----------
    accept_prob : array, shape (...)
        Probability to keep each drafted token.
    residual : array, shape (..., V)
        Law of the token that replaces a rejected one.
    """

    accept_prob: ArrayT
    residual: ArrayT


def accept_residual(
    draft_probs: ArrayT, target_probs: ArrayT, draft_tokens: Any
) -> AcceptResidual[ArrayT]:
    r"""Return acceptance probabilities and residuals for a batch of drafted tokens.

    `speculative_decode_step` on every row at once,

    .. math::

        \mathrm{accept\_prob} = \min\left(1, \frac{p_t}{q_t}\right), \qquad
        \mathrm{residual}_v = \frac{\max(p_v - q_v, 0)}{\sum_w \max(p_w - q_w, 0)},

    without reading a value on the host: it works under ``jax.jit``, ``jax.vmap``,
    ``torch.compile(fullgraph=True)`` and CUDA-graph capture, and gradients flow.

    Parameters
    ----------
    draft_probs : array, shape (..., V)
        The laws the tokens were really drawn from; float16, bfloat16, float32 or
        float64.
    target_probs : array, shape (..., V)
        The laws of the target model at the same places, over the same
        vocabulary; same library, shape, dtype and device.
    draft_tokens : array, shape (...)
        The drafted tokens, int32 or int64; ``-1`` for 'no draft here'.

    Returns
    -------
    AcceptResidual
        ``accept_prob``, shape (...), float64 for float64 rows and float32
        otherwise: within 1 ulp of the ratio of the stored values. It is 0 for a
        token of ``-1``, and NaN, which no coin is below, for any other token
        outside ``range(V)`` and for a drafted entry that is NaN or infinite.
        Where the draft entry is 0 it is 1 if the target's is positive, else 0.
        ``residual``, shape (..., V), the dtype of the rows: it does not depend on
        the token. Zeros where no entry of the target is above the draft's; NaN
        somewhere in a row whose difference is not finite.

    Raises
    ------
    TypeError
        If the arrays are not of one library, or a dtype is not supported.
    ValueError
        If shapes or devices do not fit together.

    See Also
    --------
    speculative_decode_step : one token, with its values checked.
    check_probs : checks of values, outside any transformation.

    Notes
    -----
    Only metadata is checked, for a value cannot be looked at without waiting for
    it. Rows are taken as they are: no softmax, no renormalising.

    References
    ----------
    .. [1] Leviathan, Kalman, Matias, "Fast Inference from Transformers via
       Speculative Decoding", ICML 2023, arXiv:2211.17192.

    Examples
    --------
    >>> import numpy as np
    >>> from draftproof import accept_residual
    >>> draft = np.asarray([[0.4, 0.6], [0.4, 0.6]])
    >>> target = np.asarray([[0.7, 0.3], [0.7, 0.3]])
    >>> accept_prob, residual = accept_residual(draft, target, np.asarray([0, 1]))
    >>> accept_prob
    array([1. , 0.5])
    >>> residual
    array([[1., 0.],
           [1., 0.]])
    """
    library = common_library(
        draft_probs=draft_probs, target_probs=target_probs, draft_tokens=draft_tokens
    )
    rows: Array = draft_probs
    check_rows(library, draft_probs, target_probs)
    check_tokens(library, draft_tokens, rows.shape[:-1], rows)
    with library.quiet():
        result: AcceptResidual[ArrayT] = library.run(
            _accept_residual, draft_probs, target_probs, draft_tokens
        )
    return result


def _accept_residual(
    library: Library, draft_probs: Array, target_probs: Array, draft_tokens: Array
) -> AcceptResidual[Array]:
    draft, target = library.widen(draft_probs), library.widen(target_probs)
    weights = positive_part(library, target, draft)
    residual = normalised(library, weights, library.row_totals(weights))
    return AcceptResidual(
        _accept_probs(library, draft_probs, target_probs, draft_tokens),
        library.cast(residual, draft_probs.dtype),
    )


def _accept_probs(
    library: Library, draft_probs: Array, target_probs: Array, draft_tokens: Array
) -> Array:
    xp = library.xp
    inside = (draft_tokens >= 0) & (draft_tokens < draft_probs.shape[-1])
    # Whatever is no index must not be used as one: each library does something else.
    index = xp.where(inside, draft_tokens, xp.zeros_like(draft_tokens))
    draft_entries = library.widen(library.gather(draft_probs, index))
    target_entries = library.widen(library.gather(target_probs, index))
    accepted = acceptance(library, draft_entries, target_entries)[..., 0]
    absent = xp.zeros_like(accepted)
    otherwise = xp.where(draft_tokens == -1, absent, xp.nan * xp.ones_like(accepted))
    return xp.where(inside, accepted, otherwise)
