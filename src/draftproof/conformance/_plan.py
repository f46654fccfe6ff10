"""How much is drawn, for a stated false-alarm rate and power."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from draftproof.conformance._counts import Case
from draftproof.conformance._models import MODELS
from draftproof.conformance._noise import NOISE_TESTS
from draftproof.conformance._statistics import detectable, sample_size
from draftproof.conformance._variants import RIGHT

__all__ = ["BATCH", "Plan", "check_rates"]

BATCH = 16384
"""Requests in a call."""


def check_rates(**rates: float) -> None:
    """Raise unless every rate lies between 0 and 1.

    Raises
    ------
    ValueError
        If one does not.
    """
    for name, rate in rates.items():
        if not 0 < rate < 1:
            msg = f"`{name}` is {rate!r}; needed is a number between 0 and 1"
            raise ValueError(msg)


@dataclass(frozen=True)
class Plan:
    """What is drawn and tested.

    Attributes
    ----------
    rule : str or None
        The rule whose outcomes are tested as well.
    one_hot, ragged, drafter : bool
        Whether drafts come without a law, whether requests of unequal length come too,
        and whether the drafter is the engine's own.
    detect, false_alarm, power : float
        The total variation to be seen, the rate of the whole check, and the power.
    """

    rule: str | None
    one_hot: bool
    ragged: bool
    drafter: bool
    detect: float
    false_alarm: float
    power: float

    def __post_init__(self) -> None:
        check_rates(detect=self.detect, false_alarm=self.false_alarm, power=self.power)
        if self.rule is not None and self.rule not in RIGHT:
            known = ", ".join(map(repr, RIGHT))
            msg = f"`rule` is {self.rule!r}; needed is None or one of {known}"
            raise ValueError(msg)

    @cached_property
    def cases(self) -> list[Case]:
        """One for each model."""
        return [Case(model, one_hot=self.one_hot) for model in MODELS.values()]

    @property
    def each(self) -> float:
        """The false-alarm rate of each test, which add up to the whole's (Bonferroni)."""
        laws = 1 + (self.rule is not None) + self.tests_drafts
        return self.false_alarm / (len(MODELS) * laws + self.ragged + NOISE_TESTS)

    @property
    def tests_drafts(self) -> bool:
        """Whether the drafts' own law is tested."""
        return self.drafter and not self.one_hot

    def batches(self, case: Case) -> int:
        """Return how many calls the sequences of a case need."""
        law = case.target_law[case.target_law > 0]
        needed = sample_size(
            len(law) - 1,
            self.detect,
            false_alarm=self.each,
            power=self.power,
            least=float(law.min()),
        )
        return -(-needed // BATCH)

    def sees(self, freedom: int, size: int) -> float:
        """Return the total variation that a test sees."""
        return detectable(freedom, size, false_alarm=self.each, power=self.power)
