"""All uniforms of the paths of a model, cut where a rule may decide anew."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from draftproof.conformance._calls import Requests
from draftproof.conformance._models import completed
from draftproof.conformance._tables import edges_of
from draftproof.conformance._variants import RIGHT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from draftproof.conformance._calls import Arrays, Decisions, Floats, Ints
    from draftproof.conformance._models import Model, Path, Tokens

__all__ = [
    "ULPS",
    "Cells",
    "Places",
    "Points",
    "cells_of",
    "emitted_law",
    "grid_of",
    "points_of",
    "requests_of",
]

Places: TypeAlias = Literal["middle", "diagonal", "all"]
"""Which points of a cell are probed: 1, 3, or 3 for each combination of the axes."""
ULPS = 8
"""How many eps of the dtype a uniform keeps from the edges, to be judged."""
ZERO, ONE = Fraction(0), Fraction(1)


class Cells(NamedTuple):
    """The cells of one path: a grid, by its edges on each axis.

    Attributes
    ----------
    path
        The path.
    prob
        How likely it is drafted.
    axes
        Of each uniform, the sorted edges, from 0 to 1.
    """

    path: Path
    prob: Fraction
    axes: tuple[list[Fraction], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of cells on each axis."""
        return tuple(len(axis) - 1 for axis in self.axes)

    def volumes(self) -> tuple[NDArray[Any], int]:
        """Return the volumes of the cells in whole numbers, and how many of these are 1."""
        units = [math.lcm(*(edge.denominator for edge in axis)) for axis in self.axes]
        widths = [
            np.asarray([int((b - a) * unit) for a, b in pairwise(axis)], dtype=object)
            for axis, unit in zip(self.axes, units, strict=True)
        ]
        return reduce(np.multiply.outer, widths).reshape(-1), math.prod(units)


class Points(NamedTuple):
    """Uniforms inside cells: near the low ends, in the middle, near the high ends.

    Attributes
    ----------
    paths
        The paths.
    which
        Shape (n,): the path of each point.
    uniforms
        Shape (n, K + 1).
    cell
        Shape (n,): the number of the cell in its path.
    middle
        Shape (n,): whether it is the middle of the cell.
    judged
        Shape (n,): whether it keeps its distance from all edges.
    """

    paths: list[Path]
    which: Ints
    uniforms: Floats
    cell: Ints
    middle: NDArray[np.bool_]
    judged: NDArray[np.bool_]


def cells_of(
    paths: Iterable[tuple[Path, Fraction]], *, refined: int | None = None
) -> list[Cells]:
    """Cut the uniforms where a right rule may decide anew.

    With a refinement, cut also at the mirror images of these edges and at the multiples
    of one over that number: where other ways to use the uniforms may decide anew.
    """
    return [Cells(path, prob, _axes(path, refined)) for path, prob in paths]


def _axes(path: Path, refined: int | None) -> tuple[list[Fraction], ...]:
    axes: list[set[Fraction]] = [{ZERO, ONE} for _ in range(len(path.tokens) + 1)]
    for variant in RIGHT.values():
        limits, ends = edges_of(variant, path)
        for axis, limit in zip(axes, limits, strict=False):
            axis.add(limit)
        axes[-1] |= ends
    if refined:
        grid = {Fraction(i, refined) for i in range(refined)}
        axes = [axis | {1 - edge for edge in axis} | grid for axis in axes]
    return tuple(sorted(axis) for axis in axes)


def points_of(cells: Sequence[Cells], arrays: Arrays, *, places: Places = "all") -> Points:
    """Return points of each cell: its middle, or with it two corners, or all of them.

    Where a cell is too narrow to keep a distance of `ULPS` from its edges, the points are
    in its middle, and not judged.
    """
    margin = ULPS * Fraction(arrays.eps)
    parts = [_points(one, margin, arrays, places=places) for one in cells]
    uniforms, judged = zip(*parts, strict=True)
    return Points(
        [one.path for one in cells],
        np.repeat(np.arange(len(cells)), [part[..., 0].size for part in uniforms]),
        np.concatenate([part.reshape(-1, part.shape[-1]) for part in uniforms]),
        np.concatenate([np.indices(part.shape[:2])[0].reshape(-1) for part in uniforms]),
        # Of an odd number of points, ordered by their axes, the one at half is the middle.
        np.concatenate(
            [
                np.indices(part.shape[:2])[1].reshape(-1) == part.shape[1] // 2
                for part in uniforms
            ]
        ),
        np.concatenate(judged),
    )


def _points(
    cells: Cells, margin: Fraction, arrays: Arrays, *, places: Places
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return points, shape (cells, points of each, K + 1), and whether they are judged."""
    probes, wide = [], []
    for axis in cells.axes:
        sides = list(pairwise(axis))
        fits = [high - low >= 2 * margin for low, high in sides]
        rows = [
            _inside(low, high, margin if fit else (high - low) / 2)
            for (low, high), fit in zip(sides, fits, strict=True)
        ]
        probes.append(
            arrays.coin([row[1:2] for row in rows] if places == "middle" else rows)
        )
        wide.append(np.asarray(fits))
    axes = len(probes)
    cell = np.indices(cells.shape).reshape(axes, -1, 1)
    place = np.indices([probe.shape[1] for probe in probes]).reshape(axes, 1, -1)
    if places == "diagonal":
        place = np.tile(np.arange(3), (axes, 1, 1))
    uniforms = [probe[i, j] for probe, i, j in zip(probes, cell, place, strict=True)]
    judged = np.all([fit[i] for fit, i in zip(wide, cell, strict=True)], axis=0)
    return np.stack(uniforms, axis=-1), np.repeat(judged[:, 0], place.shape[-1])


def _inside(low: Fraction, high: Fraction, margin: Fraction) -> list[float]:
    return [float(low + margin), float((low + high) / 2), float(high - margin)]


def grid_of(paths: Sequence[Path], count: int, length: int) -> tuple[Ints, Floats]:
    """Return the paths and uniforms of a grid: so many dyadic numbers on each axis."""
    axis = (np.arange(count) + 0.5) / count
    grid = np.stack(np.meshgrid(*[axis] * (length + 1), indexing="ij"), axis=-1)
    grid = grid.reshape(-1, length + 1)
    return np.repeat(np.arange(len(paths)), len(grid)), np.tile(grid, (len(paths), 1))


def requests_of(
    paths: Sequence[Path], which: Ints, uniforms: Floats, *, certain: bool = False
) -> Requests:
    """Return requests for uniforms on paths; no draft rows where drafts are certain."""
    rows = [
        np.asarray([[[float(p) for p in row] for row in part] for part in parts])
        for parts in zip(*((path.draft, path.target) for path in paths), strict=True)
    ]
    tokens = np.asarray([path.tokens for path in paths], dtype=np.int64)
    draft = None if certain else rows[0][which]
    return Requests(draft, rows[1][which], tokens[which], uniforms)


def emitted_law(
    model: Model, cells: Sequence[Cells], points: Points, decided: Decisions
) -> dict[Tokens, Fraction]:
    """Return the law of K + 1 tokens: decisions by their cells' volumes, and completed."""
    emitted: dict[Tokens, Fraction] = {}
    for number, one in enumerate(cells):
        here = points.middle & (points.which == number)
        volumes, unit = one.volumes()
        accepted, token = (part[here] for part in decided)
        legal = (accepted >= 0) & (accepted <= model.draft_length)
        token = np.where(legal & (token >= 0) & (token < model.size), token, -1)
        accepted = np.where(legal, accepted, 0)
        codes = accepted * (model.size + 2) + token
        for code in np.unique(codes):
            first = int(np.argmax(codes == code))
            tokens = (*one.path.tokens[: accepted[first]], int(token[first]))
            part = Fraction(int(volumes[codes == code].sum()), unit) * one.prob
            emitted[tokens] = emitted.get(tokens, ZERO) + part
    return _completed(model, emitted)


def _completed(model: Model, emitted: dict[Tokens, Fraction]) -> dict[Tokens, Fraction]:
    # What is no token has nothing that follows it.
    legal = {t: p for t, p in emitted.items() if t[-1] >= 0}
    lost = {t: p for t, p in emitted.items() if t not in legal}
    return completed(model, legal, model.draft_length + 1) | lost
