"""How much a draft is worth: acceptance rates and expected lengths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from draftproof._arithmetic import acceptance, overlap
from draftproof._block_rule import block_terms
from draftproof._chain_checks import check_chain_rows
from draftproof._checks import check_rows
from draftproof._drafted import check_rule, read_drafted
from draftproof._namespace import common_library, library_of_rows

if TYPE_CHECKING:
    from draftproof._library import Array, Library

__all__ = ["acceptance_rate", "accepted_law", "expected_tokens"]

ArrayT = TypeVar("ArrayT")


def acceptance_rate(draft_probs: ArrayT, target_probs: ArrayT) -> ArrayT:
    r"""Return the probability that a token drawn from the draft is accepted.

    .. math:: \alpha = \sum_v \min(p_v, q_v) = 1 - \mathrm{TV}(p, q).

    Parameters
    ----------
    draft_probs, target_probs : array, shape (..., V)
        The laws; same library, shape, dtype and device.

    Returns
    -------
    array, shape (...)
        The rate, float64 for rows of float64 and float32 otherwise.

    Raises
    ------
    TypeError
        If the arrays are not of one library, or a dtype is not supported.
    ValueError
        If shapes or devices do not fit together.

    References
    ----------
    .. [1] Leviathan, Kalman, Matias, "Fast Inference from Transformers via
       Speculative Decoding", ICML 2023, arXiv:2211.17192, section 3.2.

    Examples
    --------
    >>> import numpy as np
    >>> from draftproof import acceptance_rate
    >>> acceptance_rate(np.asarray([0.75, 0.0, 0.25]), np.asarray([0.25, 0.25, 0.5]))
    array(0.5)
    """
    library = library_of_rows(draft_probs, target_probs)
    check_rows(library, draft_probs, target_probs)
    with library.quiet():
        result: ArrayT = library.run(_acceptance_rate, draft_probs, target_probs)
    return result


def expected_tokens(acceptance_rate: ArrayT, draft_length: int) -> ArrayT:
    r"""Return how many tokens a call of the target emits on average.

    For places that accept independently with probability :math:`\alpha`, and the rule
    ``"token"``: the accepted drafts and the one token that follows them,

    .. math:: 1 + \alpha + \dots + \alpha^K = \frac{1 - \alpha^{K+1}}{1 - \alpha}.

    Parameters
    ----------
    acceptance_rate : float or array
        The rate, of `acceptance_rate`; numbers outside [0, 1] are taken as they are.
    draft_length : int
        K, the number of drafted tokens.

    Returns
    -------
    float or array
        The expected number, of the type and shape of the rate: K + 1 where it is 1.

    Raises
    ------
    ValueError
        If the length is negative.

    References
    ----------
    .. [1] Leviathan, Kalman, Matias, "Fast Inference from Transformers via
       Speculative Decoding", ICML 2023, arXiv:2211.17192, equation 1.

    Examples
    --------
    >>> from draftproof import expected_tokens
    >>> expected_tokens(0.5, 3)
    1.875
    """
    if draft_length < 0:
        msg = f"`draft_length` is {draft_length}; needed is a number of drafts, 0 or more"
        raise ValueError(msg)
    rate: Any = acceptance_rate
    # Horner's scheme needs no division, and is exact at a rate of 1.
    total = rate * 0 + 1.0
    for _ in range(draft_length):
        total = 1.0 + rate * total
    result: ArrayT = total
    return result


def accepted_law(
    draft_probs: Any, target_probs: Any, draft_tokens: Any, *, rule: str = "token"
) -> Any:
    r"""Return the law of the number of accepted tokens, given the drafted ones.

    With the threshold :math:`h_i` that the coin of token i is compared with, the rule
    ``"token"`` accepts i tokens with probability
    :math:`h_1 \cdots h_i (1 - h_{i+1})`, and ``"block"`` at most i with probability
    :math:`(1 - h_{i+1}) \cdots (1 - h_K)`.

    Parameters
    ----------
    draft_probs : array, shape (..., K, V), or None
        As for `verify_chain`.
    target_probs : array, shape (..., K + 1, V)
        As for `verify_chain`.
    draft_tokens : array, shape (..., K)
        As for `verify_chain`.
    rule : {"token", "block"}, optional
        The rule of acceptance.

    Returns
    -------
    array, shape (..., K + 1)
        Probabilities of 0, ..., K accepted tokens, float64 for rows of float64 and
        float32 otherwise. NaN from a threshold that is NaN on; throughout for
        ``"block"``.

    Raises
    ------
    TypeError, ValueError
        As `verify_chain`.

    Examples
    --------
    >>> import numpy as np
    >>> from draftproof import accepted_law
    >>> draft = np.asarray([[0.75, 0.0, 0.25], [0.75, 0.0, 0.25]])
    >>> target = np.asarray([[0.25, 0.25, 0.5]] * 3)
    >>> accepted_law(draft, target, np.asarray([2, 0]))
    array([0.        , 0.66666667, 0.33333333])
    """
    check_rule(rule)
    arrays = {} if draft_probs is None else {"draft_probs": draft_probs}
    library = common_library(**arrays, target_probs=target_probs, draft_tokens=draft_tokens)
    check_chain_rows(library, draft_probs, target_probs, draft_tokens)
    core = _LAWS[rule]
    with library.quiet():
        return library.run(core, draft_probs, target_probs, draft_tokens)


def _acceptance_rate(library: Library, draft_probs: Array, target_probs: Array) -> Array:
    draft, target = library.widen(draft_probs), library.widen(target_probs)
    return library.row_totals(overlap(library, target, draft))[..., 0]


def _token_law(library: Library, *arrays: Array) -> Array:
    xp = library.xp
    reached = None
    law = []
    for threshold in _thresholds(library, *arrays, rule="token"):
        reached = xp.ones_like(threshold) if reached is None else reached
        law.append(reached * (1 - threshold))
        reached = reached * threshold
    return _stacked(library, arrays[1], law, reached, last=True)


def _block_law(library: Library, *arrays: Array) -> Array:
    xp = library.xp
    beyond = None
    law = []
    for threshold in reversed(_thresholds(library, *arrays, rule="block")):
        beyond = xp.ones_like(threshold) if beyond is None else beyond
        law.append(beyond * threshold)
        beyond = beyond * (1 - threshold)
    found = _stacked(library, arrays[1], law[::-1], beyond, last=False)
    # One threshold that is NaN fails the request as a whole, as it does the verdict.
    return found if beyond is None else found + 0 * beyond[..., None]


def _thresholds(
    library: Library,
    draft_probs: Array | None,
    target_probs: Array,
    draft_tokens: Array,
    *,
    rule: str,
) -> list[Array]:
    """Return what the coins are compared with: K arrays of shape (...)."""
    ops = library.ops
    dtype = library.arithmetic_dtype(target_probs.dtype)
    drafted = read_drafted(library, draft_probs, target_probs, draft_tokens, dtype)
    illegal = ops.where(drafted.legal, ops.zeros_like(drafted.draft), ops.nan)
    if rule == "token":
        ratios = acceptance(library, drafted.draft, drafted.target) + illegal
        found = [ratios[..., i] for i in range(draft_tokens.shape[-1])]
    else:
        found = [
            ops.where(
                whole == 0, ops.ones_like(whole), mass / ops.where(whole == 0, 1.0, whole)
            )
            + illegal[..., i]
            for i, (_, mass, whole) in enumerate(
                block_terms(library, draft_probs, target_probs, drafted)
            )
        ]
    alive = found and ~drafted.absent[..., 0]
    for i, threshold in enumerate(found):
        alive = alive & ~drafted.absent[..., i]
        found[i] = ops.where(alive, threshold, ops.zeros_like(threshold))
    return found


def _stacked(
    library: Library,
    target_probs: Array,
    law: list[Array],
    rest: Array | None,
    *,
    last: bool,
) -> Array:
    """Put what is left over at its end of the law, and stack the law."""
    if rest is None:  # no drafts: none is accepted
        return library.xp.ones_like(library.widen(target_probs[..., 0]))
    return library.xp.stack([*law, rest] if last else [rest, *law], axis=-1)


_LAWS = {"token": _token_law, "block": _block_law}
