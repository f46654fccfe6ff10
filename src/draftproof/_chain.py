"""A chain of drafted tokens: how many are accepted, and which token comes next."""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from draftproof._arithmetic import positive_part
from draftproof._block_rule import decide_block
from draftproof._chain_checks import check_chain_rows, check_uniforms
from draftproof._drafted import check_rule
from draftproof._draw import draw_row, draw_tokens
from draftproof._namespace import common_library
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
        the number that draws the next token.
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
    finish = _each_request if long else _all_requests
    coins = uniforms[..., -1]
    token = finish(library, decision, draft_probs, target_probs, draft_tokens, coins)
    token = library.cast(token, draft_tokens.dtype)
    return Verdict(
        library.cast(decision.num_accepted, draft_tokens.dtype),
        library.ops.where(decision.failed, -1, token),
    )


def _all_requests(
    library: Library,
    decision: Decision,
    draft_probs: Array | None,
    target_probs: Array,
    draft_tokens: Array,
    coins: Array,
) -> Array:
    """Gather one row pair of each request, and draw from all of them at once."""
    ops = library.ops
    tau, scale = decision.num_accepted, decision.scale
    target = library.widen(_rows_at(library, target_probs, tau))
    if scale is not None:
        scale = library.cast(scale, target.dtype)[..., None]
    length = draft_tokens.shape[-1]
    if not length:
        return draw_tokens(library, target, coins)
    place = ops.where(tau < length, tau, length - 1)
    if draft_probs is None:
        numbers = library.numbers(target)
        token = library.gather(draft_tokens, place)
        drafted = numbers == library.cast(token, numbers.dtype)
        draft = library.cast(drafted, target.dtype)
    else:
        draft = library.widen(_rows_at(library, draft_probs, place))
    weights = positive_part(library, target, draft, scale)
    return draw_tokens(library, weights, coins, target, decision.absent)


def _rows_at(library: Library, rows: Array, place: Array) -> Array:
    """Return the row at one place of each request, shape ``(..., V)``."""
    *leading, length, size = rows.shape
    index = library.ops.reshape(place, (-1,))
    if math.prod(leading) != 1:
        start = length * library.numbers(index)
        index = start + library.cast(index, start.dtype)
    taken = library.take_rows(library.ops.reshape(rows, (-1, size)), index)
    return library.ops.reshape(taken, (*leading, size))


def _each_request(
    library: Library,
    decision: Decision,
    draft_probs: Array | None,
    target_probs: Array,
    draft_tokens: Array,
    coins: Array,
) -> Array:
    """Draw request by request from views of its rows."""
    np = library.ops
    tau = decision.num_accepted
    drawn = []
    for at in product(*map(range, tau.shape)):
        if decision.failed[at]:
            drawn.append(-1)
            continue
        place = (*at, int(tau[at]))
        weights = target = library.widen(target_probs[place])
        if not decision.absent[at]:
            scale = None
            if decision.scale is not None:
                scale = decision.scale[at].astype(target.dtype)
            if draft_probs is None:
                weights = target.copy() if scale is None else scale * target
                drafted = draft_tokens[place]
                weights[drafted] = max(weights[drafted] - 1, 0)
            else:
                draft = library.widen(draft_probs[place])
                weights = positive_part(library, target, draft, scale)
        drawn.append(draw_row(library, weights, float(coins[at]), target))
    return np.asarray(drawn, dtype=draft_tokens.dtype).reshape(tau.shape)
