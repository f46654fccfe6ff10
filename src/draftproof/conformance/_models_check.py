"""The judgement over all models: which rule is followed, and whether the law is right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from draftproof.conformance._calls import Decisions
from draftproof.conformance._cells import ULPS, grid_of, requests_of
from draftproof.conformance._compare import Needed, compare
from draftproof.conformance._diagnosis import by_decisions, by_law
from draftproof.conformance._judgement import (
    constant,
    differing,
    distance,
    expected,
    found_rule,
    law_of,
    observe,
)
from draftproof.conformance._models import MODELS
from draftproof.conformance._report import Check
from draftproof.conformance._tables import table_of
from draftproof.conformance._variants import RIGHT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from draftproof.conformance._calls import Floats, Ints
    from draftproof.conformance._cells import Places
    from draftproof.conformance._compare import Bench
    from draftproof.conformance._judgement import Observed
    from draftproof.conformance._models import Model, Path

__all__ = ["OTHER", "finer_grid", "judge", "needed_on"]

SHORT = 2  # drafts; finer grids of more would be too many points
OTHER = "another mapping from uniforms to tokens"


def judge(bench: Bench, seen: Sequence[Observed], *, calling: bool = True) -> None:
    """Add a check for each model, and name the fault if one of them fails.

    Without calling the subject again, nothing is said of one that follows no rule.
    """
    session = bench.session
    rule, nearest = found_rule(seen)
    fault = None if rule else by_decisions(seen, bench.arrays)
    bench.held = session.rule or rule
    if rule is not None:
        session.conventions["rule"] = rule
    elif (
        session.rule is None
        and fault is None
        and _other_mapping(bench, seen, calling=calling)
    ):
        return
    if bench.held is None:
        bench.held = nearest
    for one in seen:
        _add(bench, one, bench.held)
    if session.failed and rule is None:
        if fault is None and calling:
            fault = by_law(bench.verifier, seen, bench.arrays)
        session.fault = fault


def _add(bench: Bench, one: Observed, rule: str) -> None:
    points = one.points
    needed, _ = expected(RIGHT[rule], points)
    off = distance(law_of(one, rule), one.model.target_law())
    detail = f"the law of {one.model.draft_length + 1} tokens is the target's, exactly"
    if off:
        detail = f"in these cells the law is off by a total variation of {off:.3g}"
    elif (differing(one.decided, needed) & points.judged).any():
        detail = f"in these cells the law is right, but the decisions not rule {rule!r}'s"
    compare(
        bench,
        f"every cell, {one.model.name}",
        requests_of(points.paths, points.which, points.uniforms),
        Needed(needed, points.judged),
        decided=one.decided,
        detail=detail,
    )


def _other_mapping(bench: Bench, seen: Sequence[Observed], *, calling: bool) -> bool:
    """Add checks and return True if the law is right though no rule is followed.

    Without calling the subject, that is left open.
    """
    if not calling:
        return True
    cases = {}
    both: tuple[Places, Places] = ("middle", "diagonal")
    # A wrong law should be cheap to see.
    for places in both:
        for one in seen:
            refined = 8 if one.model.draft_length <= SHORT else 4
            cells = _observe(bench, one.model, refined, places)
            if law_of(cells) != one.model.target_law() or not constant(cells):
                return False
            cases[one.model.name] = len(cells.points.which)
    for model in (one.model for one in seen if one.model.draft_length <= SHORT):
        if bench.quick:
            break
        if law_of(_observe(bench, model, 32, "middle")) != model.target_law():
            return False
    detail = "no known rule is followed, but the law is the target's, exactly"
    for name, count in cases.items():
        bench.session.add(Check(f"every cell, {name}", True, count, detail))
    bench.session.conventions["rule"] = OTHER
    return True


def _observe(bench: Bench, model: Model, refined: int, places: Places) -> Observed:
    return observe(bench.verifier, model, bench.arrays, refined=refined, places=places)


def needed_on(
    bench: Bench, paths: Sequence[Path], which: Ints, uniforms: Floats
) -> Needed | None:
    """Return what the rule that is held needs, clear where it is clear of every edge."""
    if bench.held is None:
        return None
    accepted, token = (np.empty(len(which), dtype=np.int64) for _ in range(2))
    gap = np.empty(len(which))
    for number, path in enumerate(paths):
        here = which == number
        drafted = len(path.tokens)
        own = np.concatenate([uniforms[here, :drafted], uniforms[here, -1:]], axis=1)
        table = table_of(RIGHT[bench.held], path)
        (accepted[here], token[here]), gap[here] = table.decide(own)
    return Needed(Decisions(accepted, token), gap >= ULPS * bench.arrays.eps)


def finer_grid(bench: Bench) -> None:
    """Add a check of a grid of uniforms that knows of no edges."""
    for model in MODELS.values():
        paths = [path for path, _ in model.paths()]
        short = model.draft_length <= SHORT
        count = (8, 4) if bench.quick else (32, 12)
        which, uniforms = grid_of(paths, count[not short], model.draft_length)
        uniforms = bench.arrays.coin(uniforms)
        requests = requests_of(paths, which, uniforms)
        needed = needed_on(bench, paths, which, uniforms)
        if not compare(bench, f"finer grid, {model.name}", requests, needed):
            return
