"""The cells of the uniforms put to a verifier, and what its decisions amount to."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from draftproof.conformance._calls import Decisions
from draftproof.conformance._cells import (
    cells_of,
    emitted_law,
    points_of,
    requests_of,
)
from draftproof.conformance._tables import table_of
from draftproof.conformance._variants import RIGHT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from draftproof.conformance._calls import Arrays, Verifier
    from draftproof.conformance._cells import Cells, Places, Points
    from draftproof.conformance._models import Model, Tokens
    from draftproof.conformance._variants import Variant

    Flags = NDArray[np.bool_]

__all__ = [
    "Observed",
    "constant",
    "differing",
    "distance",
    "expected",
    "found_rule",
    "law_of",
    "observe",
]


class Observed(NamedTuple):
    """What a verifier decided in the cells of a model."""

    model: Model
    cells: list[Cells]
    points: Points
    decided: Decisions


def observe(
    verifier: Verifier,
    model: Model,
    arrays: Arrays,
    *,
    refined: int | None = None,
    places: Places = "all",
) -> Observed:
    """Put all cells of a model to a verifier."""
    cells = cells_of(model.paths(), refined=refined)
    points = points_of(cells, arrays, places=places)
    requests = requests_of(points.paths, points.which, points.uniforms)
    return Observed(model, cells, points, verifier(requests, f"model {model.name!r}"))


def expected(variant: Variant, points: Points) -> tuple[Decisions, NDArray[np.float64]]:
    """Return what a rule decides at all points, and how clearly."""
    accepted, token = (np.empty(len(points.which), dtype=np.int64) for _ in range(2))
    gap = np.empty(len(points.which))
    for number, path in enumerate(points.paths):
        here = points.which == number
        decided, gap[here] = table_of(variant, path).decide(points.uniforms[here])
        accepted[here], token[here] = decided
    return Decisions(accepted, token), gap


def differing(one: Decisions, other: Decisions) -> Flags:
    """Return where decisions differ."""
    differs: Flags = (one.accepted != other.accepted) | (one.token != other.token)
    return differs


def found_rule(seen: Sequence[Observed]) -> tuple[str | None, str]:
    """Return the right rule that was followed everywhere, if any, and the nearest one."""
    missed = {
        rule: sum(
            int(
                (
                    differing(one.decided, expected(variant, one.points)[0])
                    & one.points.judged
                ).sum()
            )
            for one in seen
        )
        for rule, variant in RIGHT.items()
    }
    nearest = min(missed, key=missed.__getitem__)
    return (None if missed[nearest] else nearest), nearest


def constant(observed: Observed) -> bool:
    """Return whether the decisions at all points of each cell are the same."""
    points, decided = observed.points, observed.decided
    number = points.which * (points.cell.max() + 1) + points.cell
    _, starts, sizes = np.unique(number, return_index=True, return_counts=True)
    first = Decisions(*(np.repeat(part[starts], sizes) for part in decided))
    return not bool((differing(first, decided) & points.judged).any())


def law_of(observed: Observed, rule: str | None = None) -> dict[Tokens, Fraction]:
    """Return the law of what was decided; a rule's own decision where it is not judged."""
    decided = observed.decided
    if rule is not None:
        needed, _ = expected(RIGHT[rule], observed.points)
        pairs = zip(decided, needed, strict=True)
        decided = Decisions(*(np.where(observed.points.judged, *pair) for pair in pairs))
    return emitted_law(observed.model, observed.cells, observed.points, decided)


def distance(one: dict[Tokens, Fraction], other: dict[Tokens, Fraction]) -> float:
    """Return the total variation distance of two laws."""
    zero = Fraction(0)
    apart = (abs(one.get(x, zero) - other.get(x, zero)) for x in {*one, *other})
    return float(sum(apart, start=zero) / 2)
