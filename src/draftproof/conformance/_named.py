"""Named cases of a verifier: what no law allows, and what peers disagree on."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from draftproof.conformance._calls import Requests
from draftproof.conformance._cells import requests_of
from draftproof.conformance._compare import compare, compare_legal
from draftproof.conformance._models import MODELS
from draftproof.conformance._models_check import needed_on

if TYPE_CHECKING:
    from collections.abc import Sequence

    from draftproof.conformance._calls import Decisions
    from draftproof.conformance._compare import Bench

    Row: TypeAlias = Sequence[float]

__all__ = [
    "conventions",
    "forbidden_tokens",
    "one_hot_targets",
    "out_of_range",
    "without_drafts",
]

NAN = float("nan")
_ANY: Row = (0.25, 0.25, 0.25, 0.25)
_HALVES: Row = (0.5, 0.5, 0, 0)


def forbidden_tokens(bench: Bench) -> None:
    """Add a check of the ends of [0, 1), where tokens of probability 0 come out first."""
    ends = (0.0, 0.5, 1 - bench.arrays.eps / 2)
    for model in MODELS.values():
        paths = [path for path, _ in model.paths()]
        places = list(product(ends, repeat=model.draft_length + 1))
        which = np.repeat(np.arange(len(paths)), len(places))
        uniforms = np.tile(np.asarray(places), (len(paths), 1))
        name = f"nothing of probability 0, {model.name}"
        if not compare_legal(bench, name, requests_of(paths, which, uniforms)):
            return
    # It cannot have been drafted, and the target forbids it: no 0/0 may accept it.
    case = _case(_HALVES, (0, 0.5, 0.5, 0), 3, 0.5, [0.0, 0.5])
    decided = bench.verifier.attempt(case)
    if not isinstance(decided, str):
        compare_legal(bench, "nothing of probability 0, q = p = 0", case, decided)


def one_hot_targets(bench: Bench) -> None:
    """Add a check of one-hot target rows, which leave no choice."""
    rng = np.random.default_rng(bench.seed)
    count, length, size = 64, 2, 4
    best = rng.integers(size, size=(count, length + 1))
    tokens = np.where(rng.integers(3, size=(count, length)) > 0, best[:, :-1], 0)
    draft = np.full((count, length, size), 1 / size)
    uniforms = bench.arrays.coin(rng.random((count, length + 1)) * 0.9 + 0.05)
    requests = Requests(draft, np.eye(size)[best], tokens, uniforms)
    compare_legal(bench, "one-hot targets", requests)


def without_drafts(bench: Bench) -> None:
    """Add a check of K = 0, or a convention where that is not supported."""
    uniforms = bench.arrays.coin((np.arange(16)[:, None] + 0.5) / 16)
    path = MODELS["four tokens"].path(())
    row = [float(prob) for prob in path.target[0]]
    requests = Requests(
        np.empty((16, 0, 4)),
        np.tile(np.asarray(row), (16, 1, 1)),
        np.empty((16, 0), dtype=np.int64),
        uniforms,
    )
    decided = bench.verifier.attempt(requests)
    if isinstance(decided, str):
        bench.session.conventions["K = 0"] = f"raises {decided}"
        return
    needed = needed_on(bench, [path], np.zeros(16, dtype=np.int64), uniforms)
    compare(bench, "K = 0", requests, needed, decided=decided)


def conventions(bench: Bench) -> None:
    """Find out what is done where no law says what is right."""
    found = bench.session.conventions
    tie = _case((0.25, 0.75, 0, 0), _HALVES, 0, 0.5, [0.5])
    found["tie, u = p/q"] = _words(bench.verifier.attempt(tie), 0)
    edge = _case((0.25, 0.25, 0.5, 0), (0.25, 0.25, 0.5, 0), 0, 0.25, [0.25])
    found["tie of the draw"] = _side(bench.verifier.attempt(edge))
    impossible = _case(_HALVES, (0, 0.5, 0.5, 0), 0, 0.5, [0.25])
    found["q = 0, p > 0"] = _words(bench.verifier.attempt(impossible), 0)
    nothing = _case((0, 0.25, 0.25, 0.25), (0, 0.5, 0.25, 0.25), 1, 0.75, [0.1, 0.5, 0.9])
    found["residual of zeros"] = _fallback(bench.verifier.attempt(nothing))
    for name, target, draft, coin in (
        ("NaN in the target row", (NAN,) * 4, _ANY, 0.5),
        ("NaN in the draft row", _ANY, (NAN,) * 4, 0.5),
        ("a coin that is NaN", _HALVES, _ANY, NAN),
        ("a coin of 1", _HALVES, _ANY, 1.0),
    ):
        decided = bench.verifier.attempt(_case(target, draft, 0, coin, [0.5]))
        found[name] = _words(decided, 0)


def out_of_range(bench: Bench) -> None:
    """Find out what ids out of range do; last, for on a GPU they may end the process's use.

    A gather out of bounds is an assertion on CUDA, after which no call works.
    """
    for name, token in (("token V", 4), ("token -2", -2)):
        decided = bench.verifier.attempt(_case(_ANY, _ANY, token, 0.5, [0.5]))
        bench.session.conventions[name] = _words(decided, token)


def _case(target: Row, draft: Row, token: int, coin: float, lasts: list[float]) -> Requests:
    """Return four requests of one draft, for the last uniforms in turn."""
    count = 4
    return Requests(
        np.tile(np.asarray(draft, dtype=float), (count, 1, 1)),
        np.tile(np.asarray([target, _ANY]), (count, 1, 1)),
        np.full((count, 1), token),
        np.asarray([[coin, last] for last in np.resize(lasts, count)]),
    )


def _words(decided: Decisions | str, token: int) -> str:
    """Return in words what became of one draft."""
    if isinstance(decided, str):
        return f"raises {decided}"
    following = int(decided.token[0])
    if following == -1:
        return f"fails closed: next token -1, {int(decided.accepted[0])} accepted"
    verb = "accepts" if decided.accepted[0] > 0 else "rejects"
    return verb if token >= 0 else f"{verb}, next token {following}"


def _side(decided: Decisions | str) -> str:
    if isinstance(decided, str):
        return f"raises {decided}"
    return "the token above the edge" if decided.token[0] == 1 else "the token below it"


def _fallback(decided: Decisions | str) -> str:
    """Return in words what replaces a rejected draft where nothing is left to draw from."""
    if isinstance(decided, str):
        return f"raises {decided}"
    if decided.accepted.any():
        return "not reached, the draft is accepted"
    tokens = decided.token.tolist()[:3]
    if tokens == [1, 2, 3]:
        return "the target"
    if set(tokens) == {-1}:
        return "fails closed: next token -1"
    return f"tokens {', '.join(map(str, tokens))} for uniforms 0.1, 0.5, 0.9"
