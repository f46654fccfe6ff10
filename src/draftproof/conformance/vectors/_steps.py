"""Groups of single drafted tokens: how likely each is kept, and what replaces it."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from draftproof import exact
from draftproof.conformance.vectors._decisions import case
from draftproof.conformance.vectors._numbers import (
    FORMATS,
    dtypes_of,
    fractions,
    nearest,
    rational,
    written,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from draftproof.conformance.vectors._decisions import Case
    from draftproof.conformance.vectors._numbers import Row

__all__ = ["step_groups"]

_PAIRS = {
    "g1": ("3/4 0 1/4", "1/4 1/4 1/2"),
    "m2, at the root": ("0 3/4 1/4", "0 1/2 1/2"),
    "m3, after 0": ("0 1/2 1/2", "1/4 0 3/4"),
    "one-hot draft": ("1 0 0", "1/2 1/4 1/4"),
    "greedy target": ("1/2 1/4 1/4", "0 1 0"),
    "equal rows": ("1/4 1/4 1/2", "1/4 1/4 1/2"),
    "disjoint rows": ("1 0 0", "0 1/2 1/2"),
    "rows that do not sum to 1": ("1/2 1/4 1/4", "1/4 1/8 1/4"),
    "a ratio of 1/3 in small numbers": (f"1 {3 / 2**20} 0", f"1/2 {1 / 2**20} 1/2"),
    "a single token": ("1", "1"),
    "sun": ("2/3 1/3", "1/3 2/3"),
    "tenths": ("4/10 3/10 2/10 1/10", "1/10 2/10 3/10 4/10"),
    "sevenths": ("3/7 2/7 1/7 1/7 0", "1/7 2/7 1/7 1/7 2/7"),
}
_SUBNORMAL = Fraction(1, 2**149)


def step_groups() -> Iterator[dict[str, Any]]:
    """Yield a group for each pair of rows and set of stored values."""
    for name, pair in _PAIRS.items():
        given = [fractions(*row.split()) for row in pair]
        for dtypes, draft, target in _stored(*given):
            yield _group(name, dtypes, draft, target, list(_cases(draft, target)))
    yield from _refused_groups()
    yield from _subnormal_groups()


def _refused_groups() -> Iterator[dict[str, Any]]:
    draft, target = fractions("3/4", 0, "1/4"), fractions("1/4", "1/4", "1/2")
    outside = [
        _refused("a token that is none", token, ["TokenOutOfRange"])
        for token in (3, -1, -2, 2**31 - 1)
    ]
    yield _group("g1", list(FORMATS), draft, target, outside)
    for value in ("nan", "inf"):
        for place, row in (("draft", draft), ("target", target)):
            spoilt: dict[str, Row] = {"draft": draft, "target": target}
            spoilt[place] = (row[0], value, row[2])
            tests = [_refused(f"{value} in the {place} row", 0, ["NotFinite"])]
            yield _group("g1", list(FORMATS), spoilt["draft"], spoilt["target"], tests)


def _subnormal_groups() -> Iterator[dict[str, Any]]:
    tiny = _SUBNORMAL
    pairs = [
        ((1 - Fraction(1, 2**24), 3 * tiny), (Fraction(1, 2), tiny)),
        ((Fraction(1, 2), tiny), (Fraction(0), Fraction(1))),
        ((Fraction(1, 2), Fraction(1, 2)), (Fraction(1), tiny)),
    ]
    for draft, target in pairs:
        dtypes = dtypes_of(draft, target)
        cases = list(_cases(draft, target, ["Subnormal"]))
        yield _group("subnormal numbers", dtypes, draft, target, cases)


def _stored(
    draft: tuple[Fraction, ...], target: tuple[Fraction, ...]
) -> Iterator[tuple[list[str], Row, Row]]:
    dtypes = dtypes_of(draft, target)
    if dtypes:
        yield dtypes, draft, target
        return
    for dtype in FORMATS:
        draft_row, target_row = (
            tuple(nearest(n, dtype) for n in row) for row in (draft, target)
        )
        yield [dtype], draft_row, target_row


def _group(
    name: str, dtypes: list[str], draft: Row, target: Row, tests: list[Case]
) -> dict[str, Any]:
    return {
        "type": "step",
        "model": name,
        "dtypes": dtypes,
        "size": len(draft),
        "draft_probs": written(draft),
        "target_probs": written(target),
        "tests": tests,
    }


def _cases(draft: Row, target: Row, flags: Iterable[str] = ()) -> Iterator[Case]:
    """Yield a case for each token; one that was never drawn has the limits 0 and 1."""
    drawn = next(token for token, q in enumerate(draft) if q)
    residual = exact.speculative_decode_step(draft, target, drawn)["residual"]
    for token, q in enumerate(draft):
        found = {*flags}
        if q:
            accept = exact.speculative_decode_step(draft, target, token)["accept_prob"]
        else:
            accept = Fraction(bool(target[token]))
            found.add("ZeroDraftProbability")
        if not target[token]:
            found.add("ZeroTargetProbability")
        if not any(residual):
            found.add("ZeroResidual")
        if any(sum(map(rational, row)) != 1 for row in (draft, target)):
            found.add("NotNormalised")
        yield _told(token, found, accept, residual, target)


def _told(
    token: int, flags: set[str], accept: Fraction, residual: Row, target: Row
) -> Case:
    told = {"accept_prob": written(accept), "residual": written(residual)}
    also = []
    if "ZeroResidual" in flags:
        also.append({**told, "convention": "the target", "residual": written(target)})
    if "ZeroDraftProbability" in flags:
        also.append(_refusal())
    result = "acceptable" if also else "valid"
    first = {"convention": "draftproof", **told} if also else told
    comment = f"token {token}"
    return {
        **case(comment, flags, result),
        "drafted_token": token,
        "outcomes": [first, *also],
    }


def _refused(comment: str, token: int, flags: list[str]) -> Case:
    head = case(comment, flags, "invalid")
    return {**head, "drafted_token": token, "outcomes": [_refusal()]}


def _refusal() -> dict[str, Any]:
    return {"convention": "refused", "accept_prob": None, "residual": None}
