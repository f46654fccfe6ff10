"""The rules themselves, on one drafted path.

``scales`` are the c_i, ``thresholds`` the h_i, and the residual after ``i`` accepted
tokens is ``max(c_i * p_{i+1} - q_{i+1}, 0)``; with the zero row that ends the draft
rows, the token after all drafts is such a residual too.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, TypeAlias

from draftproof.exact._step import _excess

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from draftproof.exact._inputs import Chain

RULES = ("token", "block")
ZERO, ONE = Fraction(0), Fraction(1)

Compared: TypeAlias = "tuple[Fraction, Fraction]"
"""A uniform, and the number that it is compared with."""


def check_rule(rule: str) -> None:
    """Raise for a rule that does not exist."""
    if rule not in RULES:
        msg = f"`rule` is {rule!r}; needed is one of {', '.join(map(repr, RULES))}"
        raise ValueError(msg)


def scales(chain: Chain, rule: str) -> list[Fraction]:
    """Return c_0, ..., c_n: by how much the target row of the next token is scaled."""
    if rule == "token":
        return [ONE] * len(chain.target)
    return list(
        accumulate(_ratios(chain), lambda scale, pair: _capped(scale, *pair), initial=ONE)
    )


def thresholds(chain: Chain, rule: str) -> list[Fraction]:
    """Return h_1, ..., h_K."""
    if rule == "token":
        found = [_capped(ONE, *pair) for pair in _ratios(chain)]
    else:
        after = list(enumerate(scales(chain, rule)))[1:]
        found = [_block_threshold(chain, accepted, scale) for accepted, scale in after]
    return found + [ZERO] * chain.padding


def accepted_law(limits: Sequence[Fraction], rule: str) -> list[Fraction]:
    """Return the law of the number accepted, for given thresholds."""
    law = []
    left = ONE
    if rule == "token":  # all before succeed, this one fails
        for limit in (*limits, ZERO):
            law.append(left * (1 - limit))
            left *= limit
        return law
    for limit in reversed((ONE, *limits)):  # all after fail, this one succeeds
        law.append(left * limit)
        left *= 1 - limit
    return law[::-1]


def next_weights(chain: Chain, rule: str, accepted: int) -> list[int]:
    """Return the law of the next token, in whole numbers of some unit."""
    weights, _ = _residual(chain, accepted, scales(chain, rule)[accepted])
    if not any(weights):  # nothing is missing: the target itself
        weights, _ = _excess([ZERO] * len(weights), chain.target[accepted])
    return weights


def decide(compared: Sequence[Compared], rule: str) -> tuple[int, Sequence[Compared]]:
    """Return how many are accepted, and the coins whose flip would change that."""
    succeeded = [coin < limit for coin, limit in compared]
    if rule == "token":
        accepted = (*succeeded, False).index(False)
        return accepted, compared[: accepted + 1]
    accepted = max((i for i, success in enumerate(succeeded, 1) if success), default=0)
    return accepted, compared[max(accepted - 1, 0) :]


def draw(weights: Sequence[int], uniform: Fraction) -> tuple[int, Fraction, Fraction]:
    """Return the token a uniform draws, and its bracket in the cumulative law."""
    total = sum(weights)
    mark = math.floor(uniform * total)  # a whole number exceeds this iff it exceeds that
    brackets = pairwise(accumulate(weights, initial=0))
    return next(
        (token, Fraction(below, total), Fraction(reached, total))
        for token, (below, reached) in enumerate(brackets)
        if reached > mark
    )


def margin(compared: Iterable[Compared]) -> Fraction:
    """Return the least distance from an edge that a uniform in [0, 1) can cross."""
    return min(
        (abs(uniform - edge) for uniform, edge in compared if 0 < edge < 1), default=ONE
    )


def _ratios(chain: Chain) -> list[tuple[Fraction, Fraction]]:
    # As many as there are tokens: the last rows have none.
    rows = zip(chain.target, chain.draft, chain.tokens, strict=False)
    return [(target[token], draft[token]) for target, draft, token in rows]


def _capped(scale: Fraction, target: Fraction, draft: Fraction) -> Fraction:
    if not draft:
        return ONE if scale * target else ZERO
    return min(ONE, scale * target / draft)


def _block_threshold(chain: Chain, accepted: int, scale: Fraction) -> Fraction:
    if accepted == len(chain.tokens):
        mass = scale  # behind the last draft, whatever the target row sums to
    else:
        weights, unit = _residual(chain, accepted, scale)
        mass = Fraction(sum(weights), unit)
    whole = mass + (1 - scale)
    return mass / whole if whole else ONE


def _residual(chain: Chain, accepted: int, scale: Fraction) -> tuple[list[int], int]:
    scaled = [scale * prob for prob in chain.target[accepted]]
    return _excess(chain.draft[accepted], scaled)
