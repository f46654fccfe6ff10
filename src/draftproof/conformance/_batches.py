"""Requests of a verifier together: alone or in a batch, padded, and without draft rows."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from draftproof.conformance._calls import Decisions, Requests
from draftproof.conformance._cells import cells_of, points_of, requests_of
from draftproof.conformance._compare import Needed, compare
from draftproof.conformance._judgement import differing
from draftproof.conformance._models import MODELS, Path
from draftproof.conformance._models_check import needed_on

if TYPE_CHECKING:
    from draftproof.conformance._calls import Floats, Ints
    from draftproof.conformance._compare import Bench

__all__ = ["certain_drafts", "one_by_one", "padded"]

_MODEL = MODELS["four tokens"]
_ALONE = 8


def one_by_one(bench: Bench) -> None:
    """Add a check that requests are decided alone as they are in a batch."""
    points = points_of(cells_of(_MODEL.paths()), bench.arrays, places="middle")
    chosen = np.random.default_rng(bench.seed).choice(len(points.which), _ALONE)
    requests = requests_of(points.paths, points.which[chosen], points.uniforms[chosen])
    together = bench.verifier(requests, "a batch")
    alone = [
        bench.verifier(requests.take(slice(i, i + 1)), "a batch of one")
        for i in range(_ALONE)
    ]
    found = Decisions(*(np.concatenate(part) for part in zip(*alone, strict=True)))
    needed = Needed(together, np.ones(_ALONE, dtype=bool))
    compare(bench, "alone as in a batch", requests, needed, decided=found)


def padded(bench: Bench) -> None:
    """Add a check of requests with fewer drafts, or a convention for -1."""
    found = bench.session.conventions
    treatment = _of_minus_one(bench)
    found["token -1"] = treatment
    if treatment != "no draft":
        return
    length = _MODEL.draft_length
    begun = {path.tokens[:n] for path, _ in _MODEL.paths() for n in range(length)}
    paths = [_MODEL.path(tokens) for tokens in sorted(begun)]
    rng = np.random.default_rng(bench.seed)
    which = np.repeat(np.arange(len(paths)), 64)
    uniforms = bench.arrays.coin(rng.random((len(which), length + 1)))
    needed = needed_on(bench, paths, which, uniforms)
    requests = _padded_requests(paths, which, uniforms, 0.0)
    if compare(bench, "padded requests", requests, needed):
        hollow = _padded_requests(paths, which, uniforms, np.nan)
        zeros = bench.verifier(requests, "padded requests")
        nans = bench.verifier.attempt(hollow)
        read = isinstance(nans, str) or differing(zeros, nans).any()
        found["rows behind -1"] = "read, must not be NaN" if read else "not read"


def _of_minus_one(bench: Bench) -> str:
    """Return what -1 is taken for: an index from the end would be accepted here."""
    draft = np.full((4, 1, 4), 0.25)
    target = np.tile(np.asarray([(0.125, 0.125, 0.25, 0.5), (0.25,) * 4]), (4, 1, 1))
    uniforms = np.asarray([[0.5, (i + 0.5) / 4] for i in range(4)])
    tokens = np.full((4, 1), -1)
    decided = bench.verifier.attempt(Requests(draft, target, tokens, uniforms))
    if isinstance(decided, str):
        return f"raises {decided}"
    if (decided.token == -1).all():
        return "fails closed: next token -1"
    if decided.accepted.any():
        return "accepted, as an index from the end: padded requests are not supported"
    return "no draft"


def _padded_requests(
    paths: list[Path], which: Ints, uniforms: Floats, fill: float
) -> Requests:
    """Return requests of fewer drafts, with rows that are filled up behind them."""
    length, size = _MODEL.draft_length, _MODEL.size
    draft = np.full((len(paths), length, size), fill)
    target = np.full((len(paths), length + 1, size), fill)
    tokens = np.full((len(paths), length), -1)
    for i, path in enumerate(paths):
        drafted = len(path.tokens)
        for part, rows in ((draft, path.draft), (target, path.target)):
            for j, row in enumerate(rows):
                part[i, j] = [float(prob) for prob in row]
        tokens[i, :drafted] = path.tokens
    return Requests(draft[which], target[which], tokens[which], uniforms)


def certain_drafts(bench: Bench) -> None:
    """Add a check of drafts without rows, or a convention where they are not supported."""
    paths = [(_certain(tokens), Fraction(1)) for tokens in product(range(4), repeat=2)]
    points = points_of(cells_of(paths), bench.arrays)
    requests = requests_of(points.paths, points.which, points.uniforms, certain=True)
    decided = bench.verifier.attempt(requests)
    if isinstance(decided, str):
        bench.session.conventions["None drafts"] = f"not supported, raises {decided}"
        return
    needed = needed_on(bench, points.paths, points.which, points.uniforms)
    if needed is not None:
        needed = Needed(needed.decisions, points.judged)
    compare(bench, "every cell, None drafts", requests, needed, decided=decided)


def _certain(tokens: tuple[int, ...]) -> Path:
    rows = tuple(tuple(Fraction(v == token) for v in range(4)) for token in tokens)
    return _MODEL.path(tokens)._replace(draft=rows)
