"""The wrong rules of public bugs: what a report can name as the suspected fault."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from draftproof.conformance._variants import (
    ONE,
    ZERO,
    Variant,
    block,
    block_residual,
    capped,
    excess,
    ratio,
    ratios,
    rejected_only,
    residual,
    softmax,
)

if TYPE_CHECKING:
    from draftproof.conformance._models import Path, Row
    from draftproof.conformance._variants import Stop

__all__ = ["WRONG"]


def _always(path: Path) -> list[Fraction]:
    return [ONE] * len(path.tokens)


def _without_coin(path: Path) -> list[Fraction]:
    return [ONE if r >= 1 else ZERO for r in ratios(path)]


def _by_maximum(path: Path) -> list[Fraction]:
    rows = zip(path.target, path.draft, path.tokens, strict=False)
    return [min(ONE, max(p) / q[t]) for p, q, t in rows]


def _by_target_alone(path: Path) -> list[Fraction]:
    rows = zip(path.target, path.tokens, strict=False)
    return [p[t] for p, t in rows]


def _lenient(path: Path) -> list[Fraction]:
    return [min(ONE, 2 * r) for r in ratios(path)]


def _squared(path: Path) -> list[Fraction]:
    return [min(ONE, r) ** 2 for r in ratios(path)]


def _inverted(path: Path) -> list[Fraction]:
    return [1 - h for h in capped(path)]


def _swapped(path: Path) -> list[Fraction]:
    rows = zip(path.draft, path.target, path.tokens, strict=False)
    return [min(ONE, ratio(*one)) for one in rows]


def _first_unverified(path: Path) -> list[Fraction]:
    return [ONE, *capped(path)[1:]]


def _last_unverified(path: Path) -> list[Fraction]:
    return [*capped(path)[:-1], ONE]


def _next_row(path: Path) -> list[Fraction]:
    rows = zip(path.target[1:], path.draft, path.tokens, strict=True)
    return [min(ONE, ratio(*one)) for one in rows]


def _greedy(path: Path) -> list[Fraction]:
    rows = zip(path.target, path.tokens, strict=False)
    return [ONE if p.index(max(p)) == t else ZERO for p, t in rows]


def _uncapped_last(path: Path) -> list[Fraction]:
    product = ONE
    for r in ratios(path):
        product *= r
    return [*block(path)[:-1], min(ONE, product)]


def _target(path: Path, accepted: int) -> Row:
    return path.target[accepted]


def _row_before(path: Path, accepted: int) -> Row:
    last = accepted == len(path.tokens)
    return path.target[-2] if last else residual(path, accepted)


def _no_bonus(path: Path, accepted: int) -> Row:
    """Draw the bonus token from the residual of the last draft, which was accepted."""
    last = accepted == len(path.tokens)
    return residual(path, accepted - 1 if last else accepted)


def _later_residual(path: Path, accepted: int) -> Row:
    """Draw from the residual of the row behind the rejected one."""
    return residual(path, min(accepted + 1, len(path.tokens)))


def _earlier_residual(path: Path, accepted: int) -> Row:
    """Draw from the residual of the row before the rejected one."""
    return residual(path, max(accepted - 1, 0))


def _point_mass(path: Path, accepted: int) -> Row:
    """Subtract the draft law at the drafted token alone, as if it were one-hot."""
    token = path.tokens[accepted]
    row = path.target[accepted]
    less = max(row[token] - path.draft[accepted][token], ZERO)
    return (*row[:token], less, *row[token + 1 :])


def _softmax(path: Path, accepted: int) -> Row:
    return softmax(residual(path, accepted))


def _absolute(path: Path, accepted: int) -> Row:
    rows = zip(path.target[accepted], path.draft[accepted], strict=True)
    return tuple(abs(p - q) for p, q in rows)


def _opposite(path: Path, accepted: int) -> Row:
    return excess(path.draft[accepted], path.target[accepted])


def _argmax(path: Path, accepted: int) -> Row:
    weights = residual(path, accepted)
    best = weights.index(max(weights))
    return tuple(Fraction(v == best) for v in range(len(weights)))


def _most_likely(path: Path, accepted: int) -> Row:
    row = path.target[accepted]
    return tuple(Fraction(v == row.index(max(row))) for v in range(len(row)))


def _draft_law(path: Path, accepted: int) -> Row:
    return path.draft[accepted]


def _uniform(path: Path, accepted: int) -> Row:
    return tuple(Fraction(p > 0) for p in path.target[accepted])


def _masked(path: Path, accepted: int) -> Row:
    """Take a draft that the target forbids for no draft, and draw from the target."""
    token, row = path.tokens[accepted], path.target[accepted]
    return residual(path, accepted) if row[token] else row


_TOKEN_RULE = (
    ("replacement from the target", capped, rejected_only(_target)),
    ("bonus row off by one", capped, _row_before),
    ("bonus token from a residual", capped, _no_bonus),
    ("residual of the row behind", capped, _later_residual),
    ("residual of the row before", capped, rejected_only(_earlier_residual)),
    ("point-mass residual for a dense draft", capped, rejected_only(_point_mass)),
    ("softmax of the residual", capped, rejected_only(_softmax)),
    ("residual without its sign", capped, rejected_only(_absolute)),
    ("residual the other way round", capped, rejected_only(_opposite)),
    ("replacement by argmax", capped, rejected_only(_argmax)),
    ("replacement from the draft", capped, rejected_only(_draft_law)),
    ("replacement uniform over the support", capped, rejected_only(_uniform)),
    ("masked draft taken for none", capped, rejected_only(_masked)),
    ("everything accepted", _always, residual),
    ("accepted without a coin", _without_coin, residual),
    ("ratio of the target's maximum", _by_maximum, residual),
    ("accepted with the target's probability", _by_target_alone, residual),
    ("lenient acceptance", _lenient, residual),
    ("ratio squared", _squared, residual),
    ("coin the other way round", _inverted, residual),
    ("draft and target swapped", _swapped, rejected_only(_opposite)),
    ("ratio the other way round", _swapped, residual),
    ("first draft not verified", _first_unverified, residual),
    ("last draft not verified", _last_unverified, residual),
    ("target rows off by one", _next_row, residual),
    ("argmax instead of sampling", _greedy, _most_likely),
)


def _wrong() -> list[Variant]:
    uncapped = partial(block, cap=False)
    uncapped_residual = partial(block_residual, cap=False)
    last: Stop = "last success"
    return [
        *(Variant(name, limits, weights) for name, limits, weights in _TOKEN_RULE),
        Variant("coin reused for the replacement", capped, residual, reused=True),
        Variant("later success after a failure", capped, residual, last),
        Variant("all successes counted", capped, residual, "count"),
        Variant("block coins, first failure stops", block, block_residual),
        Variant("block coins, token residual", block, residual, last),
        Variant("block coins, replacement from the target", block, _target, last),
        Variant("uncapped products", uncapped, uncapped_residual, last),
        Variant("uncapped product at the last draft", _uncapped_last, block_residual, last),
    ]


WRONG = {variant.name: variant for variant in _wrong()}
"""The wrong rules by name."""
