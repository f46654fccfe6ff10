"""Comparisons of decisions: with what a rule needs, or with what every law forbids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from draftproof.conformance._judgement import differing
from draftproof.conformance._report import Check

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from draftproof.conformance._calls import Arrays, Decisions, Ints, Requests, Verifier
    from draftproof.conformance._session import Session
    from draftproof.conformance._snippets import Snippets

    Flags = NDArray[np.bool_]

__all__ = ["Bench", "Needed", "compare", "compare_legal", "legal"]


@dataclass
class Bench:
    """A verifier under check, and what is needed to look at it.

    Attributes
    ----------
    held
        The right rule whose decisions are compared; None where the uniforms are used in
        another way, so that only what no law allows can be compared.
    """

    verifier: Verifier
    arrays: Arrays
    session: Session
    snippets: Snippets
    seed: int
    quick: bool
    held: str | None = None


class Needed(NamedTuple):
    """What is needed, and whether it is clear of every edge."""

    decisions: Decisions
    clear: Flags


def compare(
    bench: Bench,
    name: str,
    requests: Requests,
    needed: Needed | None,
    *,
    decided: Decisions | None = None,
    detail: str = "",
) -> bool:
    """Add a check of what is decided on requests; return whether it passed.

    Where nothing is known to be needed, what no law allows is looked for.
    """
    if decided is None:
        decided = bench.verifier(requests, name)
    if needed is None:
        return compare_legal(bench, name, requests, decided)
    differs = differing(decided, needed.decisions)
    wrong = np.flatnonzero(differs & needed.clear)
    ties = int((~needed.clear).sum())
    if not len(wrong):
        bench.session.add(Check(name, True, len(differs), detail, ties=ties))
        return True
    first = _clearest(requests, wrong)
    pair, right = (_pair(part, first) for part in (decided, needed.decisions))
    first_one = _request(requests, first)
    text = (
        f"{detail}{'; ' * bool(detail)}{len(wrong):,} differ, such as {first_one}: "
        f"accepted, next token {pair}, needed {right}"
    )
    bench.session.add(
        Check(name, False, len(differs), text, ties=ties),
        lambda: bench.snippets.verifier(
            requests.take(slice(first, first + 1)),
            f"accepted, next token were {pair}; needed are {right}",
            f"(int(accepted[0]), int(token[0])) == {right}",
        ),
    )
    return False


def legal(requests: Requests, decided: Decisions) -> Flags:
    """Return whether only tokens come out that the target allows."""
    length = requests.tokens.shape[1]
    size = requests.target.shape[2]
    known = (decided.accepted >= 0) & (decided.accepted <= length)
    known &= (decided.token >= 0) & (decided.token < size)
    accepted, token = (np.where(known, part, 0) for part in decided)
    rows = np.arange(len(known))
    good: Flags = known & (requests.target[rows, accepted, token] > 0)
    for i in range(length):
        drafted = requests.tokens[:, i]
        prob = requests.target[rows, i, drafted.clip(min=0)]
        good &= (i >= accepted) | ((prob > 0) & (drafted >= 0))
    return good


def compare_legal(
    bench: Bench, name: str, requests: Requests, decided: Decisions | None = None
) -> bool:
    """Add a check that only tokens come out that the target allows."""
    decided = bench.verifier(requests, name) if decided is None else decided
    wrong = np.flatnonzero(~legal(requests, decided))
    if not len(wrong):
        bench.session.add(Check(name, True, len(decided.token)))
        return True
    first = _clearest(requests, wrong)
    pair = _pair(decided, first)
    text = (
        f"{len(wrong):,} times, such as {_request(requests, first)}: accepted, next token "
        f"{pair}, of which the target allows less"
    )
    bench.session.add(
        Check(name, False, len(decided.token), text),
        lambda: bench.snippets.verifier(
            requests.take(slice(first, first + 1)),
            f"accepted, next token were {pair}: not all have a target probability above 0",
            f"(int(accepted[0]), int(token[0])) != {pair}",
        ),
    )
    return False


def _clearest(requests: Requests, wrong: Ints) -> int:
    """Return the request whose uniforms are farthest from the ends: the best to read."""
    uniforms = requests.uniforms[wrong]
    clear = np.minimum(uniforms, 1 - uniforms).min(axis=-1)
    return int(wrong[clear.argmax()])


def _pair(decisions: Decisions, index: int) -> tuple[int, int]:
    return int(decisions.accepted[index]), int(decisions.token[index])


_WRITTEN = 8  # entries of a row that is shown


def _request(requests: Requests, index: int) -> str:
    one = requests.take(index)
    text = f"tokens {one.tokens.tolist()}, uniforms {_numbers(one.uniforms)}"
    if one.target.shape[-1] > _WRITTEN:
        return f"{text}, V = {one.target.shape[-1]:,}"
    draft = "None" if one.draft is None else _rows(one.draft)
    return f"{text}, draft rows {draft}, target rows {_rows(one.target)}"


def _rows(rows: NDArray[np.float64]) -> str:
    return " | ".join(map(_numbers, rows))


def _numbers(row: NDArray[np.float64]) -> str:
    return " ".join(f"{number:.6g}" for number in row)
