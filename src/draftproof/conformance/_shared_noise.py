"""What becomes of a rule that draws the draft and what follows from the same noise.

The laws are exact: of a race, the ratio of two exponential times is integrated piece by
piece; of an inverse cumulative sum, intervals overlap.
"""

from __future__ import annotations

from itertools import accumulate, pairwise, zip_longest
from typing import TYPE_CHECKING

from draftproof.conformance._variants import ONE, ZERO, Variant, capped, residual

if TYPE_CHECKING:
    from fractions import Fraction

    from draftproof.conformance._models import Path, Row

__all__ = ["SHARED", "raced"]


def raced(draft: Row, weights: Row, token: int) -> Row:
    r"""Return the law of a race's winner, given who won with the same times before.

    Every token has an exponential time :math:`E_v`. The draft is the token a that has
    the least :math:`E_v / q_v`, the replacement that b with the least
    :math:`E_v / r_v`. With :math:`s = E_b / E_a`,

    .. math::

        P(a, b) = \int_{q_b / q_a}^\infty
        \Bigl(1 + s + \sum_{v \ne a, b}
        \max\bigl(\tfrac{q_v}{q_a}, \tfrac{r_v}{r_b} s\bigr)\Bigr)^{-2} ds ,

    as long as :math:`r_a = 0`, which the residual of a rejected token has.

    Parameters
    ----------
    draft, weights
        The draft law q and the weights r.
    token
        The token a that was drafted.
    """
    return tuple(
        _both(draft, weights, token, other) / draft[token]
        if weight and other != token
        else ZERO
        for other, weight in enumerate(weights)
    )


def _both(draft: Row, weights: Row, token: int, other: int) -> Fraction:
    lines = [
        (draft[v] / draft[token], weights[v] / weights[other])
        for v in range(len(draft))
        if v not in {token, other}
    ]
    start = draft[other] / draft[token]
    bends = {level / slope for level, slope in lines if slope}
    ends = [start, *sorted(bend for bend in bends if bend > start)]
    area = ZERO
    for left, right in zip_longest(ends, ends[1:]):  # the last piece has no end
        middle = left + 1 if right is None else (left + right) / 2
        level = ONE + sum(a for a, b in lines if a > b * middle)
        slope = ONE + sum(b for a, b in lines if a <= b * middle)
        area += 1 / (slope * (level + slope * left))
        if right is not None:
            area -= 1 / (slope * (level + slope * right))
    return area


def _race(path: Path, accepted: int) -> Row:
    weights = residual(path, accepted)
    if accepted == len(path.tokens) or not any(weights):
        return weights
    return raced(path.draft[accepted], weights, path.tokens[accepted])


def _interval(row: Row, token: int) -> tuple[Fraction, Fraction]:
    ends = list(accumulate(row, initial=ZERO))
    return ends[token], ends[token + 1]


def _overlaps(path: Path, accepted: int) -> Row:
    """Draw the replacement at the height at which the draft was drawn."""
    weights = residual(path, accepted)
    total = sum(weights)
    if accepted == len(path.tokens) or not total:
        return weights
    start, end = _interval(path.draft[accepted], path.tokens[accepted])
    heights = [height / total for height in accumulate(weights, initial=ZERO)]
    return tuple(
        max(min(end, right) - max(start, left), ZERO) for left, right in pairwise(heights)
    )


def _coins(path: Path) -> list[Fraction]:
    """Compare with the number that drew the draft, as if it were a coin of its own."""
    found = []
    for row, token, limit in zip(path.draft, path.tokens, capped(path), strict=True):
        start, end = _interval(row, token)
        found.append(max(min(end, limit) - start, ZERO) / (end - start))
    return found


SHARED = {
    variant.name: variant
    for variant in (
        Variant("noise shared between draft and replacement", capped, _race),
        Variant("uniform shared between draft and replacement", capped, _overlaps),
        Variant("uniform shared between draft and coin", _coins, residual),
    )
}
"""The laws that only a drafter of the engine's own can show, by name."""
