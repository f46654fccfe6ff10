"""Laws of the rules for a chain, by enumeration over every drafted path."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from draftproof.exact import _rules
from draftproof.exact._chain import chain_outcomes
from draftproof.exact._inputs import read_chain, read_length
from draftproof.exact._paths import (
    certain_path,
    drafted_paths,
    drawn,
    extended,
    read_model,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from draftproof.exact._inputs import Context
    from draftproof.exact._paths import JointLaw, Model

__all__ = ["accepted_law", "expected_accepted", "joint_law", "target_law"]


def accepted_law(
    draft_probs: Iterable[Any] | None,
    target_probs: Iterable[Any],
    draft_tokens: Iterable[int],
    *,
    rule: str = "token",
) -> tuple[Fraction, ...]:
    """Return the law of the number of accepted tokens on one drafted path.

    The token rule stops at the first failure: ``P[i] = h_1 * ... * h_i * (1 - h_{i+1})``
    with ``h_{K+1} = 0``. The block rule goes by the last success:
    ``P[i] = h_i * (1 - h_{i+1}) * ... * (1 - h_K)`` with ``h_0 = 1``.

    Parameters
    ----------
    draft_probs, target_probs, draft_tokens, rule
        As `chain_thresholds`.

    Returns
    -------
    tuple of K + 1 Fraction
        The probabilities of 0, ..., K accepted tokens.

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
    >>> rows = [["2/3", "1/3"]] * 2, [["1/3", "2/3"]] * 3
    >>> [str(prob) for prob in exact.accepted_law(*rows, [0, 0])]
    ['1/2', '1/4', '1/4']
    """
    _rules.check_rule(rule)
    chain = read_chain(draft_probs, target_probs, draft_tokens)
    return tuple(_rules.accepted_law(_rules.thresholds(chain, rule), rule))


def expected_accepted(
    draft_model: Model, target_model: Model, draft_length: int, *, rule: str = "token"
) -> Fraction:
    """Return the expected number of accepted tokens, over every drafted path.

    ``sum(Q(x) * sum(i * P[i]))`` over the paths x, where Q(x) is the probability to draft
    x and P its `accepted_law`. A call of the target model emits one token more.

    Parameters
    ----------
    draft_model, target_model, draft_length, rule
        As `joint_law`.

    Returns
    -------
    Fraction
        The expectation.

    Raises
    ------
    TypeError, ValueError
        As `joint_law`.

    References
    ----------
    .. [1] Leviathan, Kalman, Matias, 2023, arXiv:2211.17192.
    .. [2] Sun et al., 2025, arXiv:2403.10444.

    Examples
    --------
    >>> from draftproof import exact
    >>> models = lambda context: ["2/3", "1/3"], lambda context: ["1/3", "2/3"]
    >>> exact.expected_accepted(*models, 2)
    Fraction(10, 9)
    >>> exact.expected_accepted(*models, 2, rule="block")
    Fraction(11, 9)
    """
    draft = read_model("draft_model", draft_model)
    target = read_model("target_model", target_model)
    length = read_length("draft_length", draft_length)
    expected = Fraction(0)
    for path in drafted_paths(draft, target, length):
        law = accepted_law(*path[1:], rule=rule)
        expected += path.prob * sum(i * prob for i, prob in enumerate(law))
    return expected


def joint_law(
    draft_model: Callable[[Context], Any],
    target_model: Model,
    draft_length: int,
    *,
    rule: str = "token",
    one_hot: bool = False,
) -> JointLaw:
    """Return the law of K + 1 emitted tokens, completed from the target model.

    Every path is drafted with its probability and every outcome of its verification is
    followed: the accepted tokens, the next token, and then draws from the target model up
    to K + 1 tokens. The rule is lossless if that is `target_law` of K + 1 tokens.

    Parameters
    ----------
    draft_model : callable
        From a tuple of tokens to the law of the token after them; with `one_hot`, to that
        token itself, or to -1 if nothing is drafted from there on.
    target_model : callable
        From a tuple of tokens to the law of the token after them.
    draft_length : int
        The number K of drafted tokens.
    rule : {"token", "block"}
        The rule.
    one_hot : bool
        Whether the draft model returns a token, so that there are no draft rows.

    Returns
    -------
    dict
        From tuples of K + 1 tokens to their probabilities, where positive.

    Raises
    ------
    TypeError
        If a model returns something else, or the draft length is not an integer.
    ValueError
        If the rule is unknown, the draft length is negative, the rows differ in length,
        or a row is not a law that sums to 1.
    IndexError
        If a drafted token is outside the vocabulary.

    References
    ----------
    .. [1] Leviathan, Kalman, Matias, 2023, arXiv:2211.17192.
    .. [2] Sun et al., 2025, arXiv:2403.10444.

    Examples
    --------
    >>> from draftproof import exact
    >>> models = lambda context: ["2/3", "1/3"], lambda context: ["1/3", "2/3"]
    >>> law = exact.joint_law(*models, 2, rule="block")
    >>> str(law[0, 0, 1])
    '2/27'
    >>> law == exact.target_law(models[1], 3)
    True
    """
    target = read_model("target_model", target_model)
    length = read_length("draft_length", draft_length)
    if one_hot:
        paths = [certain_path(draft_model, target, length)]
    else:
        draft = read_model("draft_model", draft_model)
        paths = list(drafted_paths(draft, target, length))
    stopped: list[JointLaw] = [defaultdict(Fraction) for _ in range(length + 1)]
    for path in paths:
        for prob, accepted, law in chain_outcomes(*path[1:], rule=rule):
            for token, share in enumerate(law):
                emitted = (*path.tokens[:accepted], token)
                stopped[accepted][emitted] += path.prob * prob * share
    joint: JointLaw = {}
    for emitted_law in stopped:
        joint = extended(joint, target)  # one more token for all that stopped before
        for emitted, prob in emitted_law.items():
            joint[emitted] = joint.get(emitted, 0) + prob
    return {emitted: prob for emitted, prob in joint.items() if prob}


def target_law(target_model: Model, length: int) -> JointLaw:
    """Return the law of `length` tokens that are drawn from a model one by one.

    ``P(x_1, ..., x_n) = p_1[x_1] * p_2[x_2] * ... * p_n[x_n]``.

    Parameters
    ----------
    target_model : callable
        From a tuple of tokens to the law of the token after them.
    length : int
        The number of tokens.

    Returns
    -------
    dict
        From tuples of `length` tokens to their probabilities, where positive.

    Raises
    ------
    TypeError, ValueError
        As `joint_law`.

    Examples
    --------
    >>> from draftproof import exact
    >>> exact.target_law(lambda context: ["1/4", "3/4", 0], 1)
    {(0,): Fraction(1, 4), (1,): Fraction(3, 4)}
    """
    return drawn(read_model("target_model", target_model), read_length("length", length))
