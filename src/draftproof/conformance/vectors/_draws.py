"""Groups of draws from weights, and of comparisons of tokens."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from draftproof.conformance.vectors._chain_cases import on_grid
from draftproof.conformance.vectors._chains import Chain, Made
from draftproof.conformance.vectors._decisions import (
    case,
    decide,
    decided,
    outcome,
    refusal,
)
from draftproof.conformance.vectors._numbers import (
    BELOW_ONE,
    BELOW_ONE_DOUBLE,
    FORMATS,
    brackets,
    dtypes_of,
    fractions,
    nearest,
    rational,
    written,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from draftproof.conformance.vectors._decisions import Case
    from draftproof.conformance.vectors._numbers import Row, Value

__all__ = ["draw_groups", "match_groups"]

# Not laws: only the shares of the sum count.
_WEIGHTS = {
    "weight zero at both ends": "0 0 1 0 3 0 0",
    "one entry": "5",
    "one entry of weight": "0 1 0",
    "a law": "1/4 1/4 1/2",
    "small weights": "1/65536 0 3/65536 4/65536",
    "thirds": "1/3 0 2/3",
    "tenths": "1/10 2/10 3/10 4/10",
}
_EDGES: list[tuple[str, Value]] = [
    ("u = 0", Fraction(0)),
    ("the largest float32", BELOW_ONE),
    ("the largest double", BELOW_ONE_DOUBLE),
]
_OUTSIDE: list[Value] = ["nan", "inf", Fraction(1), Fraction(-1, 2**24), Fraction(2)]
_FLAGS = {"u = 0": "ZeroUniform"}
_OF_CHAINS = {"EmptyDraft", "BonusToken", "NotNormalised"}


def draw_groups() -> Iterator[dict[str, Any]]:
    """Yield a group for each row of weights and set of stored values."""
    for name, told in _WEIGHTS.items():
        weights = fractions(*told.split())
        dtypes = dtypes_of(weights)
        for stored in [dtypes] if dtypes else [[dtype] for dtype in FORMATS]:
            row = tuple(nearest(w, stored[0]) for w in weights)
            yield _group(name, stored, row, list(_draws(row)))
    weights = fractions(0, 1, 3)
    outside = [
        refusal("token", [u], 0, f"a uniform of {u}", ["UniformOutOfRange"])
        for u in _OUTSIDE
    ]
    yield _group("a uniform outside [0, 1)", list(FORMATS), weights, outside)
    half = Fraction(1, 2)
    spoilt: list[Row] = [fractions(0, 0, 0), (*weights[:2], "nan"), ("inf", *weights[1:])]
    for bad in spoilt:
        flag = "ZeroWeights" if not any(bad) else "NotFinite"
        tests = [refusal("token", [half], 0, "nothing can be drawn", [flag])]
        yield _group("no weights", list(FORMATS), bad, tests)
    yield _long_group()


def match_groups() -> Iterator[dict[str, Any]]:
    """Yield the comparisons of drafted tokens with the target's own."""
    pairs = [
        ("all agree", (5, 7, 9), (5, 7, 9, 3)),
        ("the last differs", (5, 7, 9), (5, 7, 8, 3)),
        ("the first differs", (5, 7, 9), (4, 7, 9, 3)),
        ("what agrees behind a difference does not count", (5, 7, 9), (5, 1, 9, 3)),
        ("token 0 is a token", (0, 0), (0, 0, 0)),
        ("-1 never agrees", (5, -1, 9), (5, 7, 9, 3)),
        ("no draft at first", (-1, 7), (5, 7, 3)),
        ("no draft at all", (-1, -1), (0, 1, 2)),
        ("a draft of length 0", (), (6,)),
        ("one token", (2,), (2, 4)),
    ]
    yield {"type": "match", "tests": [_match(*pair) for pair in pairs]}


def _group(name: str, dtypes: list[str], row: Row, tests: list[Case]) -> dict[str, Any]:
    """Return a group of draws: its cases look like those of chains without drafts."""
    return {
        "type": "draw",
        "model": name,
        "dtypes": dtypes,
        "size": len(row),
        "weights": written([row]),
        "tests": tests,
    }


def _draws(weights: tuple[Fraction, ...]) -> Iterator[Case]:
    """Yield the middle of every bracket, the ends of [0, 1), and the ties."""
    for token, (below, reached) in enumerate(brackets(weights)):
        if below < reached:
            middle = on_grid((below + reached) / 2)
            yield _draw(weights, middle, f"the middle of token {token}", ())
        if 0 < below < reached and nearest(below, "float32") == below:
            yield _draw(weights, below, f"the edge of token {token}", ())
    for comment, uniform in _EDGES:
        yield _draw(weights, uniform, comment, [_FLAGS.get(comment, "LargestUniform")])


def _draw(weights: Row, uniform: Value, comment: str, flags: Iterable[str]) -> Case:
    chain = Chain("draw", (), (weights,), ())
    made = decided(chain, "token", [uniform], comment, flags=flags)
    found = {*made["flags"]} - _OF_CHAINS
    if rational(weights[0]) == 0 or rational(weights[-1]) == 0:
        found.add("ZeroWeightAtAnEnd")
    return {**made, "flags": sorted(found)}


def _long_group() -> dict[str, Any]:
    """Return draws from a row that is too long to be written out."""
    made = Made(2**12, 128, ((5, 1),))
    weights = made.laws()[0]
    edges = brackets(weights)
    most = max(weights)
    heavy = [token for token, weight in enumerate(weights) if weight == most]
    tests = [
        _draw(
            weights,
            sum(edges[token]) / Fraction(2),
            f"the middle of token {token}; the row is made by a rule",
            ["LongRow"],
        )
        for token in (heavy[0], heavy[len(heavy) // 2], heavy[-1])
    ]
    group = _group("long", list(FORMATS), (), tests)
    return {**group, "size": made.size, "weights": {"rule": made._asdict()}}


def _match(comment: str, draft: tuple[int, ...], target: tuple[int, ...]) -> Case:
    """Return a comparison: the token rule on one-hot target rows."""
    size = max(*draft, *target, 0) + 1
    rows = tuple(tuple(Fraction(v == token) for v in range(size)) for token in target)
    chain = Chain("match", None, rows, draft)
    verdict = decide(chain, "token", [Fraction(0)] * len(target))
    flags = ["Padding"] * (-1 in draft) + ["EmptyDraft"] * (not draft)
    tokens = {"draft_tokens": list(draft), "target_tokens": list(target)}
    return {**case(comment, flags, "valid"), **tokens, "outcomes": [outcome(verdict)]}
