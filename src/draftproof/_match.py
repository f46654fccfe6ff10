"""Verification by comparing tokens, and what an engine appends after any verification."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from draftproof._chain import Verdict
from draftproof._chain_checks import check_ids
from draftproof._namespace import common_library

if TYPE_CHECKING:
    from draftproof._library import Array, Library

__all__ = ["emitted_tokens", "match_tokens"]

TokensT = TypeVar("TokensT")


def match_tokens(draft_tokens: TokensT, target_tokens: TokensT) -> Verdict[TokensT]:
    """Accept the drafted tokens that agree with the target's own, up to the first other.

    For greedy decoding, where the target's tokens are its argmax, and for sampling with
    shared randomness, where they are drawn at every place by the caller, for instance
    by `draw` with uniforms that belong to the place: what is emitted is then the
    target's own tokens, whatever the drafter proposes.

    Parameters
    ----------
    draft_tokens : array, shape (..., K)
        The drafted tokens, int32 or int64; ``-1`` for 'no draft here' never matches.
    target_tokens : array, shape (..., K + 1)
        The target's tokens at the same places and one behind, given the drafted ones
        before; same library, dtype and device.

    Returns
    -------
    Verdict
        ``num_accepted``, the length of the common beginning, and ``next_token``, the
        target's token behind it; shape (...), in the dtype of the tokens.

    Raises
    ------
    TypeError
        If the arrays are not of one library or not int32 or int64.
    ValueError
        If shapes or devices do not fit together.

    References
    ----------
    .. [1] Stern, Shazeer, Uszkoreit, "Blockwise Parallel Decoding for Deep
       Autoregressive Models", NeurIPS 2018, arXiv:1811.03115.

    Examples
    --------
    >>> import numpy as np
    >>> from draftproof import match_tokens
    >>> match_tokens(np.asarray([5, 7, 9]), np.asarray([5, 7, 8, 3]))
    Verdict(num_accepted=array(2), next_token=array(8))
    """
    library = common_library(draft_tokens=draft_tokens, target_tokens=target_tokens)
    check_ids(library, draft_tokens, "target_tokens", target_tokens, more=1)
    result: Verdict[TokensT] = library.run(_match, draft_tokens, target_tokens)
    return result


def emitted_tokens(draft_tokens: Any, verdict: Verdict[Any], *, fill: int = -1) -> Any:
    """Return what the engine appends: the accepted drafts and the next token, padded.

    Parameters
    ----------
    draft_tokens : array, shape (..., K)
        The drafted tokens.
    verdict : Verdict
        The verdict on them, arrays of shape (...) in the dtype of the tokens.
    fill : int, optional
        What stands behind the next token; a constant under transformations.

    Returns
    -------
    array, shape (..., K + 1)
        ``num_accepted`` drafted tokens, then ``next_token``, then `fill`. The number of
        tokens emitted is ``num_accepted + 1``; where ``next_token`` is ``-1``, which is
        no token, it is ``num_accepted``.

    Raises
    ------
    TypeError
        If the arrays are not of one library or not int32 or int64.
    ValueError
        If shapes or devices do not fit together.

    Examples
    --------
    >>> import numpy as np
    >>> from draftproof import emitted_tokens, match_tokens
    >>> draft_tokens = np.asarray([5, 7, 9])
    >>> verdict = match_tokens(draft_tokens, np.asarray([5, 7, 8, 3]))
    >>> emitted_tokens(draft_tokens, verdict)
    array([ 5,  7,  8, -1])
    """
    library = common_library(
        draft_tokens=draft_tokens,
        num_accepted=verdict.num_accepted,
        next_token=verdict.next_token,
    )
    for name, array in zip(verdict._fields, verdict, strict=True):
        check_ids(library, draft_tokens, name, array, more=None)
    xp = library.xp
    behind = verdict.next_token[..., None]
    tokens = xp.concat([draft_tokens, behind], axis=-1)
    place = library.cast(library.numbers(tokens, tokens.shape[-1]), tokens.dtype)
    accepted = verdict.num_accepted[..., None]
    filled = xp.where(place == accepted, behind, xp.full_like(tokens, fill))
    return xp.where(place < accepted, tokens, filled)


def _match(library: Library, draft_tokens: Array, target_tokens: Array) -> Verdict[Array]:
    same = draft_tokens == target_tokens[..., : draft_tokens.shape[-1]]
    num_accepted = library.leading(same & (draft_tokens != -1))
    next_token = library.take(target_tokens, num_accepted)
    return Verdict(
        library.cast(num_accepted, draft_tokens.dtype)[..., 0], next_token[..., 0]
    )
