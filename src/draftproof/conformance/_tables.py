"""What a rule decides on one path, as a table: for many uniforms at once.

Thresholds and cumulative laws are exact and rounded once, so a decision is exact for
uniforms that keep a distance of a few ulp from each of them; the distance comes with it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from draftproof import exact
from draftproof.conformance._calls import Decisions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from draftproof.conformance._calls import Floats, Ints
    from draftproof.conformance._models import Path
    from draftproof.conformance._variants import Stop, Variant

__all__ = ["Table", "drawn", "edges_of", "table_of", "table_of_rows"]


class Table(NamedTuple):
    """What the coins of a path are compared with, and what the last uniform is.

    Attributes
    ----------
    limits
        Shape (K,).
    ends
        Shape (K + 1, V): the cumulative law of the next token after each number accepted.
    stop
        How the coins become a number of accepted tokens.
    reused
        Whether the coin that failed draws the next token.
    """

    limits: Floats
    ends: Floats
    stop: Stop = "first failure"
    reused: bool = False

    def decide(self, uniforms: Floats) -> tuple[Decisions, Floats]:
        """Return decisions, and how far the uniforms are from changing any of them."""
        length = len(self.limits)
        coins = uniforms[:, :length]
        success = coins < self.limits
        if self.stop == "first failure":
            accepted = np.cumprod(success, axis=1).sum(axis=1)
        elif self.stop == "count":
            accepted = success.sum(axis=1)
        else:
            accepted = (success * np.arange(1, length + 1)).max(axis=1, initial=0)
        column = np.where(accepted < length, accepted, -1) if self.reused else -1
        last = uniforms[np.arange(len(uniforms)), column]
        token, gap = drawn(self.ends, accepted, last)
        distance = np.abs(coins - self.limits).min(axis=1, initial=1.0)
        return Decisions(accepted, token), np.minimum(distance, gap)


def drawn(ends: Floats, accepted: Ints, last: Floats) -> tuple[Ints, Floats]:
    """Return the tokens drawn by the last uniforms, and their distance from an edge."""
    token = np.empty(len(last), dtype=np.int64)
    gap = np.empty(len(last))
    for number in np.unique(accepted):
        where = accepted == number
        row, level = np.append(0.0, ends[number]), last[where]
        found = np.searchsorted(row[1:], level, side="right").clip(max=len(row) - 2)
        token[where] = found
        gap[where] = np.minimum(abs(level - row[found]), abs(row[found + 1] - level))
    return token, gap


@lru_cache(maxsize=8192)
def table_of(variant: Variant, path: Path) -> Table:
    """Return the table of a rule, right or wrong."""
    limits, laws = _exact_parts(variant, path)
    ends = np.asarray([[float(end) for end in accumulate(law)] for law in laws])
    return Table(
        np.asarray([float(h) for h in limits]), ends, variant.stop, reused=variant.reused
    )


@lru_cache(maxsize=8192)
def edges_of(variant: Variant, path: Path) -> tuple[list[Fraction], set[Fraction]]:
    """Return the edges of a rule, exactly: of each coin, and of the last uniform."""
    limits, laws = _exact_parts(variant, path)
    return limits, {end for law in laws for end in accumulate(law)}


def _exact_parts(
    variant: Variant, path: Path
) -> tuple[list[Fraction], list[tuple[Fraction, ...]]]:
    # The law of a reused coin is conditional; its table is not.
    plain = replace(variant, reused=False)
    laws = [plain.next_law(path, accepted) for accepted in range(len(path.tokens) + 1)]
    return variant.thresholds(path), laws


def table_of_rows(
    draft: Floats, target: Floats, tokens: Sequence[int], *, rule: str
) -> Table:
    """Return the table of a right rule for rows of any length, from `draftproof.exact`."""
    rows = draft.tolist(), target.tolist(), tokens
    limits = exact.chain_thresholds(*rows, rule=rule)
    ends = np.cumsum(target, axis=-1)
    for outcome in exact.chain_outcomes(*rows, rule=rule):
        law = np.asarray([float(share) for share in outcome.law], dtype=np.longdouble)
        ends[outcome.num_accepted] = np.cumsum(law)
    stop: Stop = "first failure" if rule == "token" else "last success"
    return Table(np.asarray([float(h) for h in limits]), ends, stop)
