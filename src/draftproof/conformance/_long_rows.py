"""Rows as long as real ones, against the exact rule with a margin for rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from draftproof.conformance._calls import Arrays, Decisions, Requests
from draftproof.conformance._cells import ULPS
from draftproof.conformance._compare import Needed, compare, compare_legal
from draftproof.conformance._tables import table_of_rows

if TYPE_CHECKING:
    from draftproof.conformance._calls import Floats, Ints
    from draftproof.conformance._compare import Bench
    from draftproof.conformance._tables import Table

__all__ = ["RECIPE", "ROOT_ULPS", "Long", "Rows", "again", "long_rows", "random_rows"]

ROOT_ULPS = 4
"""How many eps, times the root of the length, sums may be off in other orders."""
_MANY = 16  # requests a call
RECIPE = (
    '__import__("draftproof.conformance._long_rows", fromlist=["again"])'
    ".again({}, {}, {}, {})"
)


class Rows(NamedTuple):
    """One path of long rows."""

    draft: Floats
    target: Floats
    tokens: Ints


def random_rows(seed: int, size: int, length: int, arrays: Arrays) -> Rows:
    """Return a path of random rows, peaked as those of language models are."""
    rng = np.random.default_rng([seed, size, length])
    logits = 4 * rng.normal(size=(length + 1, size))
    target = _softmax(logits)
    draft = _softmax(logits[:-1] + rng.normal(size=(length, size)))
    draft, target = arrays.rounded(draft), arrays.rounded(target)
    levels = rng.random(length) * draft.sum(axis=-1)
    rows = zip(draft, levels, strict=True)
    drawn = [int(np.searchsorted(np.cumsum(row), level, "right")) for row, level in rows]
    return Rows(draft, target, np.asarray(drawn, dtype=np.int64))


def again(seed: int, size: int, length: int, made: tuple[str, str]) -> Rows:
    """Return the same path again, for a snippet."""
    return random_rows(seed, size, length, Arrays(*made))


def _softmax(logits: Floats) -> Floats:
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    probs = (shares / shares.sum(axis=-1, keepdims=True)).astype(np.float32)
    doubles: Floats = probs.astype(np.float64)
    return doubles


class Long(NamedTuple):
    """How long the rows are, and how many."""

    size: int
    length: int
    paths: int
    calls: int


def long_rows(bench: Bench, rows: Long) -> None:
    """Add checks of long rows: the decisions, and what comes out at the ends of [0, 1)."""
    size, length, paths, calls = rows
    if not paths:
        return
    arrays = bench.arrays
    margin = ULPS * arrays.eps + ROOT_ULPS * size**0.5 * arrays.sum_eps
    rng = np.random.default_rng([bench.seed, size])
    parts: list[Requests] = []
    needed, clear = [], []
    for path in range(paths):
        made = random_rows(bench.seed + path, size, length, arrays)
        uniforms = arrays.coin(rng.random((calls * _MANY, length + 1)))
        if bench.held is not None:
            table = table_of_rows(*made[:2], made.tokens.tolist(), rule=bench.held)
            uniforms = arrays.coin(_near_edges(table, uniforms, 2 * margin))
            decisions, gap = table.decide(uniforms)
            needed.append(decisions)
            clear.append(gap >= margin)
        recipe = RECIPE.format(bench.seed + path, size, length, arrays.text)
        parts += [_requests(made, part, recipe) for part in np.split(uniforms, calls)]
    name = f"rows of {size:,}"
    decided = _joined([bench.verifier(part, name) for part in parts])
    joined: list[Any] = [np.concatenate(part) for part in zip(*parts, strict=True)]
    requests = Requests(*joined)
    known = Needed(_joined(needed), np.concatenate(clear)) if needed else None
    if compare(bench, name, requests, known, decided=decided):
        ends = np.tile([0.0, 1 - arrays.eps / 2], _MANY // 2)
        uniforms = np.full((_MANY, length + 1), 0.5)
        uniforms[:, -1] = ends
        uniforms[_MANY // 2 :, :-1] = 1 - arrays.eps / 2
        compare_legal(bench, f"{name}, ends of [0, 1)", _requests(made, uniforms, recipe))


def _near_edges(table: Table, uniforms: Floats, offset: float) -> Floats:
    """Return uniforms of which one coin and the last are a little to a side of an edge."""
    moved = uniforms.copy()
    rows, length = np.arange(len(moved)), len(table.limits)
    # What is left of a uniform behind its first digits says which edge, and which side.
    which = (uniforms[:, 0] * 64 * length).astype(np.int64) % length
    side = np.where(uniforms[:, -1] * 1024 % 2 < 1, -offset, offset)
    moved[rows, which] = table.limits[which] + side
    (accepted, token), _ = table.decide(moved)
    moved[:, -1] = table.ends[accepted, token] + side
    # Edges of 0 and 1 have one side only.
    return np.where((moved >= 0) & (moved < 1), moved, uniforms)


def _requests(rows: Rows, uniforms: Floats, recipe: str) -> Requests:
    """Return requests of one path; rows are repeated without copies."""
    many = len(uniforms)
    repeated: list[Any] = [np.broadcast_to(part, (many, *part.shape)) for part in rows]
    repeated += [uniforms, np.full(many, recipe, dtype=object)]
    return Requests(*repeated)


def _joined(parts: list[Decisions]) -> Decisions:
    return Decisions(*(np.concatenate(part) for part in zip(*parts, strict=True)))
