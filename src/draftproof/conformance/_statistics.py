r"""How far counts are from a law, how likely that is by chance, and how many it takes.

The statistic is the likelihood ratio :math:`G = 2 \sum N \log(N / E)`. Of n requests
whose law has the total variation TV from the stated one, its noncentrality is
:math:`2 n \, KL \ge 4 n \, TV^2` (Pinsker), so that the sample size follows from the
noncentral chi-square law whatever the fault is. A p-value of 1e-7 is far out in the
tail, where chi-square is good only if no cell is thin. With every expectation at least
`FEWEST` the tail of G at 1e-7 is within 5% of chi-square's on the tables of this kit,
where Pearson's statistic is 19% too heavy (``tests/error_rates.py`` measures it, by
importance sampling); thinner cells are put together first.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import chndtr, xlogy
from scipy.stats import chi2

if TYPE_CHECKING:
    from collections.abc import Iterable

    from draftproof.conformance._subject import Host

__all__ = ["FEWEST", "Fit", "detectable", "fit", "independence", "sample_size"]

FEWEST = 25
"""The least expectation of a cell."""

_LARGEST = 1e7


class Fit(NamedTuple):
    """How counts agree with a law.

    Attributes
    ----------
    p_value : float
        The probability of counts as far from the law, or further; 0 if something came
        that cannot come.
    freedom : int
        Degrees of freedom of the statistic.
    distance : float
        Total variation between the frequencies and the law; never 0 by chance either.
    log_likelihood : float
        Of the counts under the law, up to what all laws have in common.
    """

    p_value: float
    freedom: int
    distance: float
    log_likelihood: float


def fit(groups: Iterable[tuple[Host, Host]]) -> Fit:
    """Compare counts with laws.

    Parameters
    ----------
    groups
        Pairs of counts and their law, each the numbers of one multinomial draw.
    """
    statistic, freedom, off, size, likelihood = 0.0, 0, 0.0, 0, 0.0
    for counts, law in groups:
        total = int(counts.sum())
        size += total
        off += float(np.abs(counts - total * law).sum())
        if counts[law <= 0].any():
            statistic = likelihood = np.inf
            continue
        likelihood -= float(xlogy(counts, np.where(law > 0, law, 1)).sum())
        seen, expected = _thick(counts, total * law)
        statistic += 2 * float(xlogy(seen, seen / expected).sum())
        freedom += len(seen) - 1
    p_value = float(chi2.sf(statistic, freedom)) if freedom else float(statistic < np.inf)
    return Fit(p_value, freedom, off / (2 * max(size, 1)), -likelihood)


def _thick(counts: Host, expected: Host) -> tuple[Host, Host]:
    """Put cells together until each is expected at least `FEWEST` times."""
    order = np.argsort(expected, kind="stable")
    order = order[expected[order] > 0]
    if not order.size:
        return np.ones(1), np.ones(1)
    seen, expected = counts[order], expected[order]
    sums = np.cumsum(expected)
    first = int((expected < FEWEST).sum())
    if first:  # together they are thick themselves, if need be with some that were
        first = max(first, int(np.searchsorted(sums, FEWEST)) + 1)
    if first >= len(seen):
        return np.ones(1), np.ones(1)
    if not first:
        return seen, expected
    return (
        np.append(seen[first:], seen[:first].sum()),
        np.append(expected[first:], sums[first - 1]),
    )


def independence(table: Host) -> tuple[float, int]:
    """Return the p-value of independence of rows and columns, and its freedom.

    The margins are the table's own; outcomes too rare for them are put together.
    """
    total = table.sum()
    while len(table) > 1:
        rows, columns = table.sum(1), table.sum(0)
        if np.outer(rows, columns).min() >= FEWEST * total:
            break
        rarest = np.argsort(rows + columns, kind="stable")[:2]
        table = _merged(_merged(table, rarest).T, rarest).T
    freedom = (len(table) - 1) ** 2
    if not freedom:
        return 1.0, 0
    expected = np.outer(table.sum(1), table.sum(0)) / total
    statistic = 2 * float(xlogy(table, table / expected).sum())
    return float(chi2.sf(statistic, freedom)), freedom


def _merged(table: Host, rows: Host) -> Host:
    return np.vstack([np.delete(table, rows, 0), table[rows].sum(0)])


def sample_size(
    freedom: int, detect: float, *, false_alarm: float, power: float, least: float = 1.0
) -> int:
    """Return how many draws show a total variation.

    Parameters
    ----------
    freedom
        Degrees of freedom, at least 1.
    detect
        The total variation that must be seen.
    false_alarm
        The probability of rejecting the law itself.
    power
        The probability of rejecting a law as far away as that.
    least
        The smallest probability of a cell: each must be expected `FEWEST` times.
    """
    needed = _noncentrality(freedom, false_alarm, power) / (4 * detect**2)
    return int(np.ceil(max(needed, FEWEST / least)))


def detectable(freedom: int, size: int, *, false_alarm: float, power: float) -> float:
    """Return the least total variation that so many draws show, at most 1."""
    if not freedom or not size:
        return 1.0
    needed = _noncentrality(freedom, false_alarm, power)
    return min(1.0, float(np.sqrt(needed / (4 * size))))


@cache
def _noncentrality(freedom: int, false_alarm: float, power: float) -> float:
    critical = chi2.isf(false_alarm, freedom)

    def missed(noncentrality: float) -> float:
        return float(chndtr(critical, freedom, noncentrality)) - (1 - power)

    return float(brentq(missed, 0.0, _LARGEST)) if missed(0.0) > 0 else 0.0
