"""A chain of drafted tokens: how many are accepted, and which token comes next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from draftproof._block_rule import decide_block
from draftproof._chain_checks import check_chain_rows, check_uniforms
from draftproof._drafted import check_rule
from draftproof._namespace import common_library
from draftproof._next_token import all_requests, each_request
from draftproof._token_rule import decide_token, decide_token_rows

if TYPE_CHECKING:
    from draftproof._drafted import Decision
    from draftproof._library import Array, Library

__all__ = ["Verdict", "verify_chain"]

TokensT = TypeVar("TokensT")

# From this vocabulary on NumPy goes through the requests one by one.
_LONG = 4096


class Verdict(NamedTuple, Generic[TokensT]):
    """What a verification decides: two arrays, a pytree of every library.

    Attributes
    ----------
    num_accepted : array, shape (...)
        How many drafted tokens are accepted, 0 to K.
    next_token : array, shape (...)
        The token that follows them, drawn from the residual where a draft was rejected
        and from the target otherwise: the bonus token. ``-1`` where nothing legal can
        be drawn: test ``>= 0`` before using it as an index, for ``-1`` wraps.
    """

    num_accepted: TokensT
    next_token: TokensT


def verify_chain(
    draft_probs: Any,
    target_probs: Any,
    draft_tokens: TokensT,
    uniforms: Any,
    *,
    rule: str = "token",
) -> Verdict[TokensT]:
    r"""Return how many tokens of each drafted chain are accepted, and the next token.

    Row i of the rows is the law of token i after the tokens before it. With the
    drafted tokens :math:`x_1, \dots, x_K` and a row of zeros behind the last draft row,

    .. math::

        c_0 = 1, \quad c_i = \min\left(1, c_{i-1} \frac{p_i(x_i)}{q_i(x_i)}\right), \quad
        R_i = \max(c_i \, p_{i+1} - q_{i+1}, 0), \quad S_i = \sum_v R_i(v).

    Rule ``"token"`` has every :math:`c_i = 1`, accepts :math:`x_i` if
    :math:`u_i q_i(x_i) < p_i(x_i)`, and stops at the first failure. Rule ``"block"``
    accepts up to the largest i with :math:`u_i < S_i / (S_i + 1 - c_i)`. The next token
    is drawn from :math:`R_i` after i accepted ones. Both rules emit the law of the
    target exactly; ``"block"`` accepts at least as many on average.

    Parameters
    ----------
    draft_probs : array, shape (..., K, V), or None
        The laws the tokens were really drawn from. None for drafts without a law, of an
        n-gram table or an argmax: one-hot rows at the tokens.
    target_probs : array, shape (..., K + 1, V)
        The laws of the target at the same places and one behind.
    draft_tokens : array, shape (..., K)
        The drafted tokens, int32 or int64; ``-1`` for 'no draft here', after which
        nothing is accepted. Padded requests are told apart by it alone.
    uniforms : array, shape (..., K + 1)
        Uniform numbers in [0, 1), float32 or float64: a coin for each draft and, last,
        the number that draws the next token. New ones for every call: rule ``"block"``
        reads the coins behind the accepted tokens too, and reused at the same places of
        the text they would bias it.
    rule : {"token", "block"}, optional
        The rule of acceptance; a constant under transformations.

    Returns
    -------
    Verdict
        ``num_accepted`` and ``next_token``, shape (...), in the dtype of the tokens.

    Raises
    ------
    TypeError
        If the arrays are not of one library, or a dtype is not supported.
    ValueError
        If shapes or devices do not fit together, or the rule is unknown.

    Notes
    -----
    Metadata is checked, values are not. What cannot be verified fails closed: a drafted
    entry or a row of the next token that is NaN or infinite, a token outside
    ``range(V)`` other than ``-1``, and a coin outside [0, 1) end the request with
    ``next_token = -1``; rule ``"token"`` accepts what comes before, ``"block"`` nothing.
    ``-inf`` in a target row is not seen. If a residual sums to zero the next token is
    drawn from the target.

    ``-1`` may depend on the place and on earlier tokens, never on the token drawn there:
    a forbidden draft keeps its id and is rejected by its target probability of 0.

    References
    ----------
    .. [1] Leviathan, Kalman, Matias, "Fast Inference from Transformers via
       Speculative Decoding", ICML 2023, arXiv:2211.17192.
    .. [2] Sun, Mendlovic, Leviathan, Aharoni, Ro, Beirami, Suresh, "Block Verification
       Accelerates Speculative Decoding", ICLR 2025, arXiv:2403.10444.

    Examples
    --------
    >>> import numpy as np
    >>> from draftproof import verify_chain
    >>> draft = np.asarray([[0.75, 0.0, 0.25], [0.75, 0.0, 0.25]])
    >>> target = np.asarray([[0.25, 0.25, 0.5]] * 3)
    >>> uniforms = np.asarray([0.3, 0.6, 0.9])
    >>> verify_chain(draft, target, np.asarray([0, 0]), uniforms)
    Verdict(num_accepted=array(1), next_token=array(2))
    >>> verify_chain(draft, target, np.asarray([0, 2]), uniforms, rule="block")
    Verdict(num_accepted=array(2), next_token=array(2))
    """
    check_rule(rule)
    arrays = {} if draft_probs is None else {"draft_probs": draft_probs}
    library = common_library(
        **arrays, target_probs=target_probs, draft_tokens=draft_tokens, uniforms=uniforms
    )
    check_chain_rows(library, draft_probs, target_probs, draft_tokens)
    rows: Array = target_probs
    check_uniforms(library, uniforms, rows.shape[:-1], "target_probs", rows)
    with library.quiet():
        result: Verdict[TokensT] = library.run(
            _RULES[rule], draft_probs, target_probs, draft_tokens, uniforms
        )
    return result


def _verify_token(library: Library, *arrays: Array) -> Verdict[Array]:
    long = library.name == "numpy" and arrays[1].shape[-1] >= _LONG
    decide = decide_token_rows if long else decide_token
    return _verify(library, decide(library, *arrays), *arrays)


def _verify_block(library: Library, *arrays: Array) -> Verdict[Array]:
    accepted, token = _verify(library, decide_block(library, *arrays), *arrays)
    # The rule stands for the chain as a whole, or for nothing of it.
    return Verdict(library.ops.where(token < 0, 0, accepted), token)


_RULES = {"token": _verify_token, "block": _verify_block}


def _verify(
    library: Library,
    decision: Decision,
    draft_probs: Array | None,
    target_probs: Array,
    draft_tokens: Array,
    uniforms: Array,
) -> Verdict[Array]:
    """Draw the next token of each request after what was decided."""
    # In NumPy, gathering long rows costs more than a loop over views of them.
    long = library.name == "numpy" and target_probs.shape[-1] >= _LONG
    finish = each_request if long else all_requests
    coins = uniforms[..., -1:]
    token, drawn = finish(library, decision, draft_probs, target_probs, draft_tokens, coins)
    token = library.ops.where(drawn & decision.verified, token, -1)
    return Verdict(
        library.cast(decision.num_accepted, draft_tokens.dtype)[..., 0],
        library.cast(token, draft_tokens.dtype)[..., 0],
    )
