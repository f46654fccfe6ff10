"""The rules for a chain of drafted tokens, exactly, for given rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from draftproof.exact import _rules
from draftproof.exact._inputs import read_chain, read_uniforms
from draftproof.exact._step import _shares

if TYPE_CHECKING:
    from collections.abc import Iterable
    from fractions import Fraction

    from draftproof.exact._step import Number

__all__ = [
    "ChainOutcome",
    "ExactVerdict",
    "chain_outcomes",
    "chain_thresholds",
    "verify_chain",
]


class ChainOutcome(NamedTuple):
    """One way in which the verification of a drafted path can end."""

    probability: Fraction
    num_accepted: int
    law: tuple[Fraction, ...]
    """The law of the token that follows the accepted ones."""


class ExactVerdict(NamedTuple):
    """What `verify_chain` decides, and how clear the decision was."""

    num_accepted: int
    next_token: int
    margin: Fraction
    """How far a single uniform must move within [0, 1) to change the decision."""


def chain_thresholds(
    draft_probs: Iterable[Any] | None,
    target_probs: Iterable[Any],
    draft_tokens: Iterable[int],
    *,
    rule: str = "token",
) -> tuple[Fraction, ...]:
    """Return what the coin of each drafted token is compared with.

    The token rule has ``h_i = min(1, p_i[x_i] / q_i[x_i])``. The block rule has
    ``c_0 = 1``, ``c_i = min(1, c_{i-1} * p_i[x_i] / q_i[x_i])``,
    ``S_i = sum(max(c_i * p_{i+1} - q_{i+1}, 0))`` and ``h_i = S_i / (S_i + 1 - c_i)``,
    where 0/0 is 1 and the draft row after the last draft is zero. If ``q_i[x_i]`` is 0,
    its ratio is infinite, or 0 if the factors above it are 0.

    Parameters
    ----------
    draft_probs : iterable of K rows, or None
        The laws the tokens were drawn from; None if each was certain (one-hot rows).
    target_probs : iterable of K + 1 rows
        The laws of the target model, the last one after all drafts.
    draft_tokens : iterable of K ints
        The drafted tokens; -1 where there is no draft. Draft rows from the first -1 on,
        and target rows after it, are not read.
    rule : {"token", "block"}
        The rule.

    Returns
    -------
    tuple of K Fraction
        The thresholds; 0 from the first -1 on.

    Raises
    ------
    TypeError
        If an entry stores no rational number, or a token is not an integer.
    ValueError
        If the rule is unknown, numbers of rows or entries do not fit, an entry is NaN,
        infinite or negative, or a target row is zero.
    IndexError
        If a token is neither -1 nor in ``range(V)``.

    References
    ----------
    .. [1] Leviathan, Kalman, Matias, "Fast Inference from Transformers via
       Speculative Decoding", ICML 2023, arXiv:2211.17192.
    .. [2] Sun et al., "Block Verification Accelerates Speculative Decoding",
       ICLR 2025, arXiv:2403.10444.

    Examples
    --------
    >>> from draftproof import exact
    >>> draft, target = [["2/3", "1/3"]] * 2, [["1/3", "2/3"]] * 3
    >>> [str(h) for h in exact.chain_thresholds(draft, target, [0, 1])]
    ['1/2', '1']
    >>> [str(h) for h in exact.chain_thresholds(draft, target, [0, 1], rule="block")]
    ['0', '1']
    """
    _rules.check_rule(rule)
    chain = read_chain(draft_probs, target_probs, draft_tokens)
    return tuple(_rules.thresholds(chain, rule))


def chain_outcomes(
    draft_probs: Iterable[Any] | None,
    target_probs: Iterable[Any],
    draft_tokens: Iterable[int],
    *,
    rule: str = "token",
) -> tuple[ChainOutcome, ...]:
    """Return every way in which the verification of one drafted path can end.

    After ``i`` accepted tokens the next one is drawn from
    ``max(c_i * p_{i+1} - q_{i+1}, 0)`` over its sum (``c_i = 1`` for the token rule),
    or from ``p_{i+1}`` if that is zero everywhere.

    Parameters
    ----------
    draft_probs, target_probs, draft_tokens, rule
        As `chain_thresholds`.

    Returns
    -------
    tuple of ChainOutcome
        ``(probability, num_accepted, law)`` of each outcome of positive probability,
        from many accepted tokens to few.

    Raises
    ------
    TypeError, ValueError, IndexError
        As `chain_thresholds`.

    References
    ----------
    .. [1] Leviathan, Kalman, Matias, 2023, arXiv:2211.17192.
    .. [2] Sun et al., 2025, arXiv:2403.10444.

    Examples
    --------
    >>> from draftproof import exact
    >>> rows = [["2/3", "1/3"]], [["1/3", "2/3"], ["1/3", "2/3"]]
    >>> for prob, accepted, law in exact.chain_outcomes(*rows, [0]):
    ...     print(prob, accepted, *law)
    1/2 1 1/3 2/3
    1/2 0 0 1
    """
    _rules.check_rule(rule)
    chain = read_chain(draft_probs, target_probs, draft_tokens)
    law = _rules.accepted_law(_rules.thresholds(chain, rule), rule)
    return tuple(
        ChainOutcome(prob, accepted, _shares(_rules.next_weights(chain, rule, accepted)))
        for accepted, prob in reversed(list(enumerate(law)))
        if prob
    )


def verify_chain(
    draft_probs: Iterable[Any] | None,
    target_probs: Iterable[Any],
    draft_tokens: Iterable[int],
    uniforms: Iterable[Number],
    *,
    rule: str = "token",
) -> ExactVerdict:
    """Decide with given uniforms how many tokens are accepted, and which one follows.

    A coin succeeds iff ``u_i < h_i``. The token rule accepts up to the first failure, the
    block rule up to the last success. The next token is the first whose cumulative weight
    exceeds the last uniform times the total, so no token of weight 0 is ever drawn.

    Parameters
    ----------
    draft_probs, target_probs, draft_tokens, rule
        As `chain_thresholds`.
    uniforms : iterable of K + 1 numbers in [0, 1)
        K coins, and the last one for the next token. Coins from the first -1 on are not
        read.

    Returns
    -------
    ExactVerdict
        ``(num_accepted, next_token, margin)``. The margin is how far one uniform, the
        others fixed, must move within [0, 1) to change the decision (to reach the edge
        counts as changing it): the least of

        * ``|u_i - h_i|`` over the coins whose flip would change `num_accepted`. Token
          rule: all up to and including the first failure. Block rule: the last success
          and all after it. Thresholds of 0 and 1 do not count: no coin crosses them.
        * the distances of the last uniform from both ends of the bracket
          ``[cumulative before the token, cumulative with it)`` of the law of the next
          token. The ends 0 and 1 do not count.

        It is 0 for a tie, and 1 if nothing counts.

    Raises
    ------
    TypeError, ValueError, IndexError
        As `chain_thresholds`; ValueError also for a uniform outside [0, 1).

    References
    ----------
    .. [1] Leviathan, Kalman, Matias, 2023, arXiv:2211.17192.
    .. [2] Sun et al., 2025, arXiv:2403.10444.

    Examples
    --------
    >>> from draftproof import exact
    >>> rows = [["2/3", "1/3"]], [["1/3", "2/3"], ["1/3", "2/3"]]
    >>> exact.verify_chain(*rows, [0], [0.25, 0.5])
    ExactVerdict(num_accepted=1, next_token=1, margin=Fraction(1, 6))
    >>> exact.verify_chain(*rows, [0], [0.5, 0.5])  # a tie: not below the threshold
    ExactVerdict(num_accepted=0, next_token=1, margin=Fraction(0, 1))
    """
    _rules.check_rule(rule)
    chain = read_chain(draft_probs, target_probs, draft_tokens)
    coins, last = read_uniforms(uniforms, chain)
    # Only the drafted positions have a coin that was read.
    compared = list(zip(coins, _rules.thresholds(chain, rule), strict=False))
    accepted, decisive = _rules.decide(compared, rule)
    weights = _rules.next_weights(chain, rule, accepted)
    token, below, reached = _rules.draw(weights, last)
    margin = _rules.margin([*decisive, (last, below), (last, reached)])
    return ExactVerdict(accepted, token, margin)
