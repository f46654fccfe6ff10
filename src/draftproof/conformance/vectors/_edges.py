"""Chains at the edges of the policy: ties, zeros, padding, rows that are no laws."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from draftproof.conformance.vectors._chains import RULES, Chain, header
from draftproof.conformance.vectors._decisions import decide, decided, outcome, refused
from draftproof.conformance.vectors._numbers import (
    BELOW_ONE,
    BELOW_ONE_DOUBLE,
    fractions,
    rational,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from draftproof.conformance.vectors._decisions import Case, Outcome
    from draftproof.conformance.vectors._numbers import Row, Rows, Value

__all__ = ["edge_groups"]

ZERO, HALF, QUARTER = fractions(0, "1/2", "1/4")
BELOW_HALF, ABOVE_HALF = HALF - Fraction(1, 2**25), HALF + Fraction(1, 2**24)


def _rows(*rows: str) -> Rows:
    return tuple(fractions(*row.split()) for row in rows)


# At token 0 both thresholds of both rules are 1/2 at the first place and 0 at the second.
DRAFT = _rows("1/2 1/2 0", "1 0 0")
TARGET = _rows("1/4 1/4 1/2", "0 1 0", "1/4 1/4 1/2")
G1 = _rows("3/4 0 1/4", "3/4 0 1/4"), _rows(*["1/4 1/4 1/2"] * 3)
# Half of the draft everywhere: a rejection leaves no residual.
HALVED = (*_rows("1/4 1/4 0"), *TARGET[1:])
SHRINKING = _rows("1/2 1/2 0", "1/4 1/4 0", "1/4 1/4 1/2")
UNSCALED = _rows("1/8 1/8 1/4", "0 1 0", "1 1 2")
SURE = _rows("1/4 1/4 1/2", "1/2 1/4 1/4", "1/4 1/4 1/2")
GARBAGE: Row = ("nan", "inf", "nan")


class Edge(NamedTuple):
    """One request, and what is said about it."""

    comment: str
    chain: Chain
    uniforms: tuple[Value, ...]
    flags: tuple[str, ...] = ()
    others: str = ""
    """What else is acceptable: a word that `_others` knows."""


def _chain(
    name: str, tokens: tuple[int, ...], draft: Rows | None = DRAFT, target: Rows = TARGET
) -> Chain:
    return Chain(name, draft, target, tokens)


FIRST = _chain("edge", (0, 0))
EMPTY = _chain("no draft", (), (), TARGET[:1])
EVEN = _chain("equal", (0, 2), _rows(*["1/4 1/4 1/2"] * 2), _rows(*["1/4 1/4 1/2"] * 3))
NO_RESIDUAL = _chain("no residual", (0, 0), DRAFT, HALVED)

COINS = [
    Edge("the first coin is just below its threshold", FIRST, (BELOW_HALF, ZERO, ZERO)),
    Edge("the first coin is its threshold", FIRST, (HALF, ZERO, ZERO)),
    Edge("the first coin is just above its threshold", FIRST, (ABOVE_HALF, ZERO, ZERO)),
    Edge("p = 0: not accepted at u = 0 either", FIRST, (ZERO,) * 3, ("ZeroUniform",)),
    Edge("the same with uniforms of -0", FIRST, ("-0",) * 3, ("ZeroUniform",)),
    Edge(
        "p = 0 and q > 0 at the first place, u = 0",
        _chain("disjoint", (0, 0), _rows("1 0 0", "1 0 0"), _rows(*["0 1/2 1/2"] * 3)),
        (ZERO,) * 3,
        ("ZeroUniform",),
    ),
    Edge(
        "h = 1: accepted by the largest float32",
        EVEN,
        (BELOW_ONE, BELOW_ONE, HALF),
        ("LargestUniform",),
    ),
    Edge(
        "h = 1: accepted by the largest double",
        EVEN,
        (BELOW_ONE_DOUBLE,) * 3,
        ("LargestUniform",),
    ),
    Edge("q = 0 < p at the second place", _chain("edge", (0, 1)), (QUARTER, HALF, ZERO)),
    Edge("q = 0 < p at the first place", _chain("edge", (2, 0)), (HALF, ZERO, ZERO)),
    Edge("q = 0 = p at the second place", _chain("edge", (0, 2)), (QUARTER, ZERO, ZERO)),
]
DRAWS = [
    Edge("no draft: the bonus token alone", EMPTY, (Fraction(3, 8),)),
    Edge("the draw at u = 0", EMPTY, (ZERO,), ("ZeroUniform",)),
    Edge("the draw just below an edge", EMPTY, (QUARTER - Fraction(1, 2**26),)),
    Edge("the draw at an edge", EMPTY, (QUARTER,)),
    Edge("the draw at the largest float32", EMPTY, (BELOW_ONE,), ("LargestUniform",)),
    Edge("the draw at the largest double", EMPTY, (BELOW_ONE_DOUBLE,), ("LargestUniform",)),
    Edge(
        "the draw from a residual at an edge",
        _chain("g1", (0, 0), *G1),
        (Fraction(63, 64), HALF, HALF),
    ),
    Edge(
        "one token in all", _chain("single", (0,), _rows("1"), _rows("1", "1")), (HALF,) * 2
    ),
]
ROWS = [
    Edge("the residual is zero: below", NO_RESIDUAL, (3 * QUARTER, ZERO, QUARTER)),
    Edge("the residual is zero: above", NO_RESIDUAL, (3 * QUARTER, ZERO, 3 * QUARTER)),
    Edge(
        "a block threshold of 0/0 is 1",
        _chain("shrinking", (0, 0), _rows(*["1/2 1/2 0"] * 2), SHRINKING),
        (HALF, 3 * QUARTER, 3 * QUARTER),
    ),
]
ROWS = [e._replace(flags=("ZeroResidual",), others="refused") for e in ROWS]
ROWS += [
    Edge(
        f"rows that do not sum to 1 are taken as they are: {told}",
        _chain("unscaled", (0, 0), DRAFT, UNSCALED),
        uniforms,
        others="normalised",
    )
    for told, uniforms in (
        ("accepted", fractions("1/8", "1/2", "1/2")),
        ("rejected", fractions("3/8", "1/2", "1/2")),
    )
]
SURE_DRAFTS = [
    Edge(told, _chain("sure", tokens, None, SURE), uniforms)
    for told, tokens, uniforms in (
        ("both accepted", (2, 0), fractions("1/8", "1/8", "1/8")),
        ("the second coin fails", (2, 0), fractions("1/4", "3/4", "1/8")),
        ("the first coin fails", (2, 0), fractions("3/4", "1/8", "7/8")),
        ("no coin succeeds", (2, 0), fractions("3/4", "3/4", "5/8")),
        ("the second coin is 1/2", (2, 0), fractions("1/8", "1/2", "1/8")),
        ("the residual leaves the drafted token out", (0, 0), fractions("3/4", "3/4", 0)),
        ("no draft at the second place", (2, -1), fractions("1/8", 0, "1/8")),
        ("no draft at all", (-1, -1), fractions(0, 0, "5/8")),
    )
]
PADDED_TARGET = (*_rows("1/4 1/4 1/2", "1/2 1/2 0"), GARBAGE, GARBAGE, GARBAGE)
PADDING = [
    Edge(told, _chain("padded", tokens, draft, target), uniforms)
    for told, tokens, draft, target, uniforms in (
        (
            "no draft at first: from the target, not from a residual",
            (-1, 0),
            DRAFT,
            TARGET,
            fractions(0, 0, "1/8"),
        ),
        ("nothing is accepted behind -1", (-1, 1), DRAFT, TARGET, fractions(0, 0, "3/8")),
        (
            "accepted, then no draft: from the target",
            (0, -1),
            DRAFT,
            SURE,
            fractions("1/4", 0, "1/8"),
        ),
        (
            "rejected, and no draft behind it",
            (0, -1),
            DRAFT,
            SURE,
            fractions("3/4", 0, "1/8"),
        ),
        (
            "rows behind the last draft are not read",
            (0, -1, -1, -1),
            (DRAFT[0], *[GARBAGE] * 3),
            PADDED_TARGET,
            fractions("1/4", 0, 0, 0, "7/8"),
        ),
        (
            "the same, rejected",
            (0, -1, -1, -1),
            (DRAFT[0], *[GARBAGE] * 3),
            PADDED_TARGET,
            fractions("3/4", 0, 0, 0, "7/8"),
        ),
    )
]
PADDING += [
    Edge(
        f"{told} behind the last draft is not read",
        _chain("padded", tokens, DRAFT, SURE),
        uniforms,
        ("NotRead", flag),
        others="refused",
    )
    for told, flag, tokens, uniforms in (
        ("a coin of NaN", "UniformOutOfRange", (0, -1), (QUARTER, "nan", QUARTER)),
        ("a token of 3", "TokenOutOfRange", (-1, 3), (QUARTER, QUARTER, HALF / 4)),
    )
]


def edge_groups() -> Iterator[dict[str, Any]]:
    """Yield the edges, those of the same rows together."""
    for rule in RULES:
        groups: dict[Chain, list[Case]] = {}
        for edge in (*COINS, *DRAWS, *ROWS, *SURE_DRAFTS, *PADDING):
            case = decided(
                edge.chain,
                rule,
                edge.uniforms,
                edge.comment,
                flags=edge.flags,
                others=list(_others(edge, rule)),
            )
            groups.setdefault(edge.chain, []).append(case)
        for chain, cases in groups.items():
            yield {**header(chain, rule, chain.dtypes), "tests": cases}


def _others(edge: Edge, rule: str) -> Iterator[Outcome]:
    """Yield what else is acceptable."""
    if edge.others == "refused":
        place = decide(edge.chain, rule, edge.uniforms).num_accepted
        yield refused(rule, place)
    if edge.others == "normalised":
        chain = edge.chain._replace(target=tuple(map(_normalised, edge.chain.target)))
        verdict = decide(chain, rule, edge.uniforms)
        yield outcome(verdict, "normalised")
        yield refused(rule, 0)


def _normalised(row: Row) -> Row:
    return tuple(rational(value) / sum(map(rational, row)) for value in row)
