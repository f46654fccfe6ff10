"""What the calls of the target emitted, and what was to be expected of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from draftproof import acceptance_rate, accepted_law

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from numpy.typing import NDArray

__all__ = ["RULES", "Call", "Emitted", "Run", "figures"]

RULES = ("token", "block")


class Emitted(NamedTuple):
    """One emitted token, and whether it is a drafted one."""

    token: int
    accepted: bool


class Call(NamedTuple):
    """The figures of one call of the target.

    Attributes
    ----------
    emitted : int
        How many tokens it emitted: the accepted ones and the next.
    laws : mapping of str to array, shape (K + 1,)
        For each rule the law of the number of accepted tokens, given the drafted ones.
    rate : float
        The acceptance rate, which no drafted token enters, averaged over the places.
    """

    emitted: int
    laws: Mapping[str, NDArray[np.float64]]
    rate: float


@dataclass
class Run:
    """What a run emitted, and the figures of its calls."""

    rule: str
    emitted: list[Emitted] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    @property
    def measured(self) -> float:
        """Tokens per call of the target, with those that the last call emitted too many."""
        return sum(call.emitted for call in self.calls) / len(self.calls)

    def expected(self, rule: str) -> float:
        """Return the mean, over the calls, of the tokens that `rule` emits on average."""
        means = (1 + _moments(call.laws[rule])[0] for call in self.calls)
        return math.fsum(means) / len(self.calls)

    @property
    def standard_error(self) -> float:
        """Standard deviation of the measured figure around the expected one.

        Given the drafted tokens the coins of different calls are independent, so that
        the variances of the calls add up.
        """
        variances = (_moments(call.laws[self.rule])[1] for call in self.calls)
        return math.sqrt(math.fsum(variances)) / len(self.calls)

    @property
    def acceptance_rate(self) -> float:
        """Mean of ``sum(min(p, q))`` over all the places that were drafted for."""
        return math.fsum(call.rate for call in self.calls) / len(self.calls)


def figures(
    draft_rows: NDArray[Any],
    target_rows: NDArray[Any],
    tokens: NDArray[Any],
    num_accepted: int,
) -> Call:
    """Return the figures of one call, computed in float64.

    Parameters
    ----------
    draft_rows : array, shape (K, V)
        The laws the tokens were drawn from.
    target_rows : array, shape (K + 1, V)
        The laws of the target.
    tokens : array, shape (K,)
        The drafted tokens.
    num_accepted : int
        How many of them were accepted.
    """
    draft, target = draft_rows.astype(np.float64), target_rows.astype(np.float64)
    laws = {rule: accepted_law(draft, target, tokens, rule=rule) for rule in RULES}
    return Call(num_accepted + 1, laws, float(acceptance_rate(draft, target[:-1]).mean()))


def _moments(law: NDArray[np.float64]) -> tuple[float, float]:
    """Return mean and variance of a law on 0, 1, ..."""
    numbers = np.arange(law.size)
    mean = float(law @ numbers)
    return mean, float(law @ (numbers - mean) ** 2)
