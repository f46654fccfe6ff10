"""Wrong steps of public bugs: what a report can name as the suspected fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from draftproof.conformance._calls import Floats
    from draftproof.conformance._step_cases import Case, Result

    Accept = Callable[[Floats, Floats, int], float]
    Replace = Callable[[Floats, Floats, int], Floats]

__all__ = ["WRONG_STEPS", "step_fault"]

_EPSILONS = tuple(10.0**-n for n in range(2, 13))
_TINY = float(np.finfo(np.float32).tiny)


def _ratio(p: Floats, q: Floats, t: int) -> float:
    return min(1.0, float(p[t] / q[t]))


def _swapped_ratio(p: Floats, q: Floats, t: int) -> float:
    return min(1.0, float(q[t] / p[t])) if p[t] else 1.0


def _shares(weights: Floats) -> Floats:
    total = weights.sum()
    shares: Floats = weights / total if total else weights
    return shares


def _excess(p: Floats, q: Floats) -> Floats:
    excess: Floats = np.maximum(p - q, 0.0)
    return excess


def _residual(p: Floats, q: Floats, _: int) -> Floats:
    return _shares(_excess(p, q))


def _opposite(p: Floats, q: Floats, _: int) -> Floats:
    return _shares(_excess(q, p))


def _softmax(p: Floats, q: Floats, _: int) -> Floats:
    weights: Floats = np.exp(_excess(p, q))
    return _shares(weights)


def _argmax(p: Floats, q: Floats, _: int) -> Floats:
    row: Floats = np.eye(len(p))[_excess(p, q).argmax()]
    return row


def _point_mass(p: Floats, q: Floats, t: int) -> Floats:
    at_token = np.arange(len(p)) == t
    return _shares(_excess(p, np.where(at_token, q, 0.0)))


def _without_token(p: Floats, _: Floats, t: int) -> Floats:
    return _shares(np.where(np.arange(len(p)) == t, 0.0, p))


_TABLE: tuple[tuple[str, Accept, Replace], ...] = (
    ("replacement from the target", _ratio, lambda p, _q, _t: p),
    ("residual not normalised", _ratio, lambda p, q, _: _excess(p, q)),
    ("softmax of the residual", _ratio, _softmax),
    ("residual without its sign", _ratio, lambda p, q, _: _shares(abs(p - q))),
    ("difference without its positive part", _ratio, lambda p, q, _: p - q),
    ("residual the other way round", _ratio, _opposite),
    ("replacement by argmax", _ratio, _argmax),
    ("replacement from the draft", _ratio, lambda _p, q, _t: q),
    (
        "replacement uniform over the support",
        _ratio,
        lambda p, _q, _t: _shares((p > 0).astype(np.float64)),
    ),
    ("point-mass residual for a dense draft", _ratio, _point_mass),
    ("residual of the target without the token", _ratio, _without_token),
    ("clamp to a tiny number", _ratio, lambda p, q, _: _shares(np.maximum(p - q, _TINY))),
    ("draft and target swapped", _swapped_ratio, _opposite),
    ("ratio the other way round", _swapped_ratio, _residual),
    ("ratio not capped at 1", lambda p, q, t: float(p[t] / q[t]), _residual),
    ("everything accepted", lambda _p, _q, _t: 1.0, _residual),
    ("accepted without a coin", lambda p, q, t: float(p[t] >= q[t]), _residual),
    (
        "ratio of the target's maximum",
        lambda p, q, t: min(1.0, float(p.max() / q[t])),
        _residual,
    ),
    ("accepted with the target's probability", lambda p, _q, t: float(p[t]), _residual),
    ("lenient acceptance", lambda p, q, t: min(1.0, float(2 * p[t] / q[t])), _residual),
    ("ratio squared", lambda p, q, t: _ratio(p, q, t) ** 2, _residual),
    ("coin the other way round", lambda p, q, t: 1 - _ratio(p, q, t), _residual),
)


def _with_epsilons() -> Iterable[tuple[str, Accept, Replace]]:
    def ratio(epsilon: float) -> Accept:
        return lambda p, q, t: min(1.0, float(p[t] / (q[t] + epsilon)))

    def residual(epsilon: float) -> Replace:
        return lambda p, q, _: _excess(p, q) / (_excess(p, q).sum() + epsilon)

    for epsilon in _EPSILONS:
        yield "epsilon in the denominator", ratio(epsilon), _residual
        yield "epsilon in the residual's denominator", _ratio, residual(epsilon)
        yield "epsilon in both denominators", ratio(epsilon), residual(epsilon)


WRONG_STEPS = (*_TABLE, *_with_epsilons())
"""Names, probabilities of acceptance, residuals."""


def step_fault(seen: Iterable[tuple[Case, Result]], tolerance: float) -> str | None:
    """Return the first fault that gives what was seen, in every case.

    A residual that is zero everywhere is replaced in many ways, which say nothing.
    """
    known = list(seen)
    for name, accept, replace in WRONG_STEPS:
        if all(_explains(accept, replace, *one, tolerance) for one in known):
            return name
    return None


def _explains(
    accept: Accept, replace: Replace, case: Case, result: Result, tolerance: float
) -> bool:
    rows = case.target, case.draft, case.token
    if abs(accept(*rows) - result.accept_prob) > tolerance * max(1.0, result.accept_prob):
        return False
    if not _excess(case.target, case.draft).any():
        return True
    return bool(np.abs(replace(*rows) - result.residual).sum() <= 2 * tolerance)
