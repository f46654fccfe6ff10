"""Groups of chains: every outcome on every path of small models, and long rows."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from draftproof import exact
from draftproof.conformance.vectors._chains import (
    RULES,
    Chain,
    Made,
    drafted_chains,
    header,
)
from draftproof.conformance.vectors._decisions import decided
from draftproof.conformance.vectors._numbers import brackets, dtypes_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from draftproof.conformance.vectors._decisions import Case

__all__ = ["long_groups", "model_groups", "on_grid"]

# An ordinary case is so clear that no rounding of float32 decides it. In a long row no
# uniform is farther from an edge than half an entry.
_CLEAR = Fraction(1, 2**10)
_CLEAR_IN_LONG_ROWS = Fraction(1, 2**14)


def spread(number: int) -> Fraction:
    """Return one of the odd 64ths, in an order that mixes them."""
    return Fraction(2 * ((37 * number + 11) % 32) + 1, 64)


def on_grid(number: Fraction) -> Fraction:
    """Return a number near by that float32 stores and that is no edge of these cases."""
    return Fraction(2 * math.floor(number * 2**11) + 1, 2**12)


def model_groups() -> Iterator[dict[str, Any]]:
    """Yield a group for each path, rule and set of stored values."""
    for chain, dtypes in drafted_chains():
        for rule in RULES:
            cases = [*_covering(chain, rule), *_spread(chain, rule)]
            clear = [case for case in cases if Fraction(case["margin"]) >= _CLEAR]
            yield {**header(chain, rule, dtypes), "tests": [*clear, *_ties(chain, rule)]}


def long_groups() -> Iterator[dict[str, Any]]:
    """Yield groups on a vocabulary that is too long to be written out."""
    draft = Made(1024, 128, ((5, 1), (7, 3)))
    target = Made(1024, 128, ((11, 2), (13, 5), (3, 9)))
    chain = Chain("long", draft.laws(), target.laws(), (701, 276), (draft, target))
    for rule in RULES:
        limits = _limits(chain, rule)
        cases = [
            decided(
                chain,
                rule,
                [*_coins(limits, rule, accepted, 0), spread(accepted)],
                "rows of 1024 entries, made by a rule",
                flags=["LongRow"],
            )
            for accepted in range(len(limits) + 1)
        ]
        clear = [c for c in cases if Fraction(c["margin"]) >= _CLEAR_IN_LONG_ROWS]
        yield {**header(chain, rule, chain.dtypes), "tests": clear}


def _limits(chain: Chain, rule: str) -> tuple[Fraction, ...]:
    return exact.chain_thresholds(chain.draft, chain.target, chain.tokens, rule=rule)


def _covering(chain: Chain, rule: str) -> Iterator[Case]:
    """Yield a case for each number accepted and each next token that is possible."""
    rows = chain.draft, chain.target, chain.tokens
    limits = _limits(chain, rule)
    number = 0
    for _, accepted, law in exact.chain_outcomes(*rows, rule=rule):
        for token, (below, reached) in enumerate(brackets(law)):
            if below < reached:
                coins = _coins(limits, rule, accepted, number)
                uniforms = [*coins, on_grid((below + reached) / 2)]
                comment = f"{accepted} accepted, then token {token}"
                yield decided(chain, rule, uniforms, comment)
                number += 1


def _ties(chain: Chain, rule: str) -> Iterator[Case]:
    """Yield a case for each coin that can equal its threshold, where that decides."""
    limits = _limits(chain, rule)
    for i, limit in enumerate(limits):
        coins = _coins(limits, rule, i, 0)
        coins[i] = limit
        if limit and max(coins) < 1 and "float32" in dtypes_of(limits[i : i + 1]):
            case = decided(chain, rule, [*coins, spread(0)], f"coin {i} is its threshold")
            if "CoinTie" in case["flags"]:
                yield case


def _coins(
    limits: Sequence[Fraction], rule: str, accepted: int, number: int
) -> list[Fraction]:
    """Return coins with which so many are accepted; those that decide nothing are any."""
    first = 0 if rule == "token" else max(accepted - 1, 0)
    last = accepted if rule == "token" else len(limits)
    return [
        on_grid((limit + (i >= accepted)) / 2)  # half way to 0, or to 1
        if first <= i <= last
        else spread(number + i)
        for i, limit in enumerate(limits)
    ]


def _spread(chain: Chain, rule: str) -> Iterator[Case]:
    length = len(chain.tokens) + 1
    for number in range(3):
        uniforms = [spread(7 * number + i) for i in range(length)]
        yield decided(chain, rule, uniforms, "uniforms at odd 64ths")
