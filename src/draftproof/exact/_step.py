"""One drafted token, exactly."""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Rational
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["ExactStep", "as_fraction", "reconstruct", "speculative_decode_step"]

Number: TypeAlias = Any
"""A number that stores a rational: it has ``as_integer_ratio()``, or is a string."""


class ExactStep(TypedDict):
    """What `speculative_decode_step` returns: a plain dict with these two entries."""

    accept_prob: Fraction
    residual: tuple[Fraction, ...]


def speculative_decode_step(
    draft_probs: Iterable[Number], target_probs: Iterable[Number], drafted_token: int
) -> ExactStep:
    """Return acceptance probability and residual of one drafted token, exactly.

    ``accept_prob = min(1, p[t] / q[t])`` and ``residual = max(p - q, 0)`` over its
    sum, for the draft law q, the target law p and the drafted token t.

    Parameters
    ----------
    draft_probs : iterable of numbers, length V
        The law the token was drawn from.
    target_probs : iterable of numbers, length V
        The law of the target model. Neither is required to sum to 1.
    drafted_token : int
        The drafted token.

    Returns
    -------
    dict
        ``"accept_prob"``, a `Fraction`, and ``"residual"``, a tuple of V of them:
        zeros if no entry of the target is above the draft's.

    Raises
    ------
    TypeError
        If an entry stores no rational number, or the token is not an integer.
    ValueError
        If the lengths differ or are zero, an entry is NaN, infinite or negative,
        or the draft probability of the token is zero.
    IndexError
        If the token is outside ``range(V)``.

    References
    ----------
    .. [1] Leviathan, Kalman, Matias, "Fast Inference from Transformers via
       Speculative Decoding", ICML 2023, arXiv:2211.17192.

    Examples
    --------
    >>> from draftproof import exact
    >>> exact.speculative_decode_step(["2/3", "1/3"], ["1/3", "2/3"], 0)
    {'accept_prob': Fraction(1, 2), 'residual': (Fraction(0, 1), Fraction(1, 1))}
    """
    draft, target = _laws(draft_probs, target_probs)
    token = _token(drafted_token, len(draft))
    if not draft[token]:
        msg = (
            f"`draft_probs[{token}]` is 0, so `drafted_token` = {token} cannot have been "
            "drawn from `draft_probs`"
        )
        raise ValueError(msg)
    return {
        "accept_prob": _accept_prob(draft, target, token),
        "residual": _residual(draft, target),
    }


def reconstruct(
    draft_probs: Iterable[Number], target_probs: Iterable[Number]
) -> tuple[Fraction, ...]:
    """Return the law of the emitted token, summed over every draft.

    For each token that can be drafted, the law of what is emitted: the token itself
    with the probability to accept it, else a draw from the residual. If both rows
    have the same sum, it is the target law, which makes the rule correct.

    Parameters
    ----------
    draft_probs : iterable of numbers, length V
        The law the tokens are drawn from.
    target_probs : iterable of numbers, length V
        The law of the target model.

    Returns
    -------
    tuple of Fraction
        The law of the emitted token.

    Raises
    ------
    TypeError, ValueError
        As `speculative_decode_step`.

    Examples
    --------
    >>> from draftproof import exact
    >>> exact.reconstruct(["3/4", 0, "1/4"], ["1/4", "1/4", "1/2"])
    (Fraction(1, 4), Fraction(1, 4), Fraction(1, 2))
    """
    draft, target = _laws(draft_probs, target_probs)
    law = [Fraction(0)] * len(draft)
    rejected = Fraction(0)
    for token, prob in enumerate(draft):
        accepted = prob * _accept_prob(draft, target, token) if prob else Fraction(0)
        law[token] += accepted
        rejected += prob - accepted
    # The residual is the same whichever token was rejected.
    return tuple(
        kept + rejected * replacing
        for kept, replacing in zip(law, _residual(draft, target), strict=True)
    )


def as_fraction(number: Number) -> Fraction:
    """Return the rational that `number` stores.

    Parameters
    ----------
    number : number or str
        Anything with ``as_integer_ratio()``, or a string such as ``"1/3"``.

    Returns
    -------
    Fraction
        Exactly that number.

    Raises
    ------
    TypeError
        If it stores no rational number.
    ValueError
        If it is NaN or infinite, or the string is no number.

    Examples
    --------
    >>> from draftproof.exact import as_fraction
    >>> as_fraction(0.1)
    Fraction(3602879701896397, 36028797018963968)
    >>> as_fraction("0.1")
    Fraction(1, 10)
    """
    try:
        # Fraction itself knows Python's own numbers; NumPy's floats know their ratio.
        if isinstance(number, str | float | Rational):
            return Fraction(number)
        return Fraction(*number.as_integer_ratio())
    except AttributeError as error:
        msg = (
            f"{number!r} of type {type(number).__name__} stores no rational number; "
            "needed are int, float, Fraction, Decimal or str (an array: its tolist())"
        )
        raise TypeError(msg) from error
    except OverflowError as error:  # infinity; NaN is a ValueError already
        msg = f"{number!r} is not a finite number"
        raise ValueError(msg) from error


def _laws(
    draft_probs: Iterable[Number], target_probs: Iterable[Number]
) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    draft = _law("draft_probs", draft_probs)
    target = _law("target_probs", target_probs)
    if len(draft) != len(target) or not draft:
        msg = (
            f"`draft_probs` has {len(draft)} entries, `target_probs` {len(target)}; needed "
            "is the same number, at least one"
        )
        raise ValueError(msg)
    return draft, target


def _law(name: str, probs: Iterable[Number]) -> tuple[Fraction, ...]:
    law = []
    for index, number in enumerate(probs):
        try:
            prob = as_fraction(number)
        except (TypeError, ValueError) as error:
            msg = f"`{name}[{index}]`: {error}"
            raise type(error)(msg) from error
        if prob.numerator < 0:
            msg = f"`{name}[{index}]` is {number!r}; needed is a probability"
            raise ValueError(msg)
        law.append(prob)
    return tuple(law)


def _token(drafted_token: int, size: int) -> int:
    token = _integer("drafted_token", drafted_token)
    if not 0 <= token < size:
        msg = f"`drafted_token` is {token}; needed is 0 <= drafted_token < {size}"
        raise IndexError(msg)
    return token


def _integer(name: str, number: int) -> int:
    if isinstance(number, bool) or not hasattr(number, "__index__"):
        msg = f"`{name}` is {number!r}; needed is an integer"
        raise TypeError(msg)
    return number.__index__()


def _accept_prob(
    draft: Sequence[Fraction], target: Sequence[Fraction], token: int
) -> Fraction:
    return min(Fraction(1), target[token] / draft[token])


def _residual(
    draft: Sequence[Fraction], target: Sequence[Fraction]
) -> tuple[Fraction, ...]:
    weights, _ = _excess(draft, target)
    return _shares(weights)


def _excess(draft: Sequence[Fraction], target: Sequence[Fraction]) -> tuple[list[int], int]:
    # max(p - q, 0) in whole numbers of one unit, and how many units make 1: adding
    # fractions would look for a common denominator anew at every entry.
    unit = math.lcm(*(prob.denominator for prob in (*draft, *target)))
    weights = [
        max(_units(p, unit) - _units(q, unit), 0)
        for p, q in zip(target, draft, strict=True)
    ]
    return weights, unit


def _shares(weights: Sequence[int]) -> tuple[Fraction, ...]:
    total = sum(weights) or 1  # if it is zero, so are the weights
    return tuple(Fraction(weight, total) for weight in weights)


def _units(prob: Fraction, unit: int) -> int:
    return prob.numerator * (unit // prob.denominator)
