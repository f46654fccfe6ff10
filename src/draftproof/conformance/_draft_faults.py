"""Which fault explains drafts that were not drawn from the law handed over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import xlogy

from draftproof.conformance._draft_counts import softmax
from draftproof.conformance._statistics import fit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from draftproof.conformance._draft_counts import DraftCounts
    from draftproof.conformance._subject import Host

__all__ = ["explained_draws"]

_FITS = 1e-4
_ALIKE = 0.01
_CUT = 10


def explained_draws(counts: DraftCounts) -> str | None:
    """Return the name of the fault whose law the counts fit, None if none does."""
    return next((n for n, seen, laws in _candidates(counts) if _fits(seen, laws)), None)


def _candidates(counts: DraftCounts) -> Iterator[tuple[str, Host, Host]]:
    """Yield names, counts and the laws that these should have; first the simplest."""
    seen, handed = counts.seen, counts.laws()
    yield "argmax draw with a dense law", seen, _points(handed)
    for other, (drawn, sums) in counts.others.items():
        if drawn.any():
            yield f"law of {other}", drawn, sums / np.maximum(sums.sum(1, keepdims=True), 1)
    raw = softmax(counts.logits)
    yield _of_raw_draw(handed, counts.logits), seen, raw
    kept = _tops(seen, handed)
    cut = np.where(kept, handed, 0)
    name = f"{_filter(seen, handed, kept)} missing from the law"
    yield name, seen, cut / cut.sum(1, keepdims=True)
    alike = _distance(handed, raw) < _ALIKE
    name = "temperature missing from the law" if alike else "another temperature"
    yield name, seen, _tempered(handed, _power(seen, handed))
    yield "uniform draw", seen, (handed > 0) / (handed > 0).sum(1, keepdims=True)


def _fits(seen: Host, laws: Host) -> bool:
    return all(
        fit([pair]).p_value > _FITS
        for pair in zip(seen, laws, strict=True)
        if pair[0].any()
    )


def _points(laws: Host) -> Host:
    points: Host = np.eye(laws.shape[1])[laws.argmax(1)]
    return points


def _distance(one: Host, other: Host) -> float:
    return float(np.abs(one - other).sum(1).max() / 2)


def _of_raw_draw(handed: Host, logits: Host) -> str:
    """Name what the law went through that the draw, by the bare logits, did not."""
    raw = softmax(logits)
    kept = np.where(handed > 0, raw, 0)
    if _distance(handed, kept / kept.sum(1, keepdims=True)) < _ALIKE:
        return "filter missing from the draw"
    if _distance(handed, softmax(raw)) < _ALIKE:
        return "softmax applied twice to the law"
    if _distance(handed, _tempered(raw, _power(handed, raw))) < _ALIKE:
        return "temperature missing from the draw"
    return "draw from the bare logits"


def _tempered(laws: Host, power: float) -> Host:
    with np.errstate(divide="ignore"):
        return softmax(power * np.log(laws))


def _power(seen: Host, laws: Host) -> float:
    """Return the exponent of the laws that makes the counts the likeliest."""

    def surprise(logarithm: float) -> float:
        warm = _tempered(laws, float(np.exp(logarithm)))
        return -float(xlogy(seen, np.where(warm > 0, warm, 1e-300)).sum())

    return float(np.exp(minimize_scalar(surprise, bounds=(-3, 3), method="bounded").x))


def _tops(seen: Host, handed: Host) -> Host:
    """Return the tokens down to the least likely one that came, for each row."""
    least = np.where(seen > 0, handed, np.inf).min(1, keepdims=True)
    tops: Host = handed >= least
    return tops


def _filter(seen: Host, handed: Host, kept: Host) -> str:
    """Name the filter that keeps these tokens, from where it cut in every row."""
    ordered = -np.sort(-handed, axis=1)
    numbers = kept.sum(1)
    totals = seen.sum(1)
    masses, ends, ratios = [], [], []
    for row, number, total in zip(ordered, numbers, totals, strict=True):
        following = row[number] if number < len(row) else 0
        if following * total < _CUT:
            continue  # what did not come is too rare to tell
        mass = row.cumsum()
        masses.append((mass[number - 1] - row[number - 1], mass[number - 1]))
        ratios.append((following / row[0], row[number - 1] / row[0]))
        ends.append(int(number))
    if len(set(ends)) == 1:
        return "top-k filter"
    for name, ranges in (("top-p filter", masses), ("min-p filter", ratios)):
        if ranges and max(low for low, _ in ranges) <= min(high for _, high in ranges):
            return name
    return "filter"
