"""The run of a check of a drafter: the calls, the counts, the judgement."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from draftproof.conformance._call import called, placed
from draftproof.conformance._counts import stream
from draftproof.conformance._draft_counts import (
    ROWS,
    DraftCounts,
    draft_misfit,
    rows_of_logits,
)
from draftproof.conformance._draft_faults import explained_draws
from draftproof.conformance._noise import NOISE_BATCHES, NOISE_TESTS, noise
from draftproof.conformance._plan import BATCH
from draftproof.conformance._report import Check
from draftproof.conformance._statistics import detectable, fit, sample_size
from draftproof.conformance._subject import CouldNotRunError, to_host

if TYPE_CHECKING:
    from collections.abc import Callable

    from draftproof.conformance._progress import Step
    from draftproof.conformance._subject import Convert, Host

__all__ = ["Drafter", "Drawing", "Rates"]

_FORM = "form of tokens and rows"


@dataclass
class Drafter:
    """A drafter, called with NumPy arrays."""

    function: Callable[..., Any]
    convert: Convert
    dtype: str

    def drawn(self, logits: Host, seed: int) -> tuple[Host, Host]:
        """Return the tokens and the rows for logits.

        Raises
        ------
        CouldNotRunError
            If it raises or does not return a pair.
        """
        rows = placed(self.convert, logits, self.dtype)
        pair = called("drafter", self.function, rows, seed)
        if not isinstance(pair, tuple) or len(pair) != 2:  # noqa: PLR2004 - a pair
            kind = type(pair).__name__
            msg = f"the drafter returned a {kind}; needed is (tokens, draft_probs)"
            raise CouldNotRunError(msg)
        tokens, probs = map(to_host, pair)
        return tokens, probs.astype(np.float64)


@dataclass(frozen=True)
class Rates:
    """The total variation to be seen, the rate of the whole check, and the power."""

    detect: float
    false_alarm: float
    power: float

    @property
    def each(self) -> float:
        """The false-alarm rate of each test."""
        return self.false_alarm / (len(ROWS) + NOISE_TESTS)

    def batches(self, size: int) -> int:
        """Return how many calls the rows need."""
        rates = {"false_alarm": self.each, "power": self.power}
        return -(-len(ROWS) * sample_size(size - 1, self.detect, **rates) // BATCH)

    def sees(self, freedom: int, count: int) -> float:
        """Return the total variation that a test sees."""
        return detectable(freedom, count, false_alarm=self.each, power=self.power)


class _EndedError(Exception):
    """What was seen makes the rest of the run pointless."""


@dataclass
class Drawing:
    """A run, and what it has found so far.

    Attributes
    ----------
    drafter, rates, size, seed
        What is called, how much, for which vocabulary.
    checks, fault
        What was found.
    again : pair or None
        The row and the seed that show a failure again.
    """

    drafter: Drafter
    rates: Rates
    size: int
    seed: int
    checks: list[Check] = field(default_factory=list)
    fault: str | None = None
    again: tuple[str, int] | None = None
    formed: int = 0

    def __post_init__(self) -> None:
        self.rng = stream(self.seed)
        self.counts = DraftCounts(rows_of_logits(self.size))
        self.last = 0

    def steps(self) -> int:
        """Return how many calls there are."""
        return NOISE_BATCHES + self.rates.batches(self.size)

    def run(self, step: Step) -> bool:
        """Call the drafter and judge it; return whether the run came to its end."""
        complete = True
        try:
            self._look(step)
            for _ in range(self.rates.batches(self.size)):
                rows = self.rng.integers(len(ROWS), size=BATCH)
                self.counts.add(rows, *self._drawn(rows))
                step("draws")
        except KeyboardInterrupt:
            complete = False
        except _EndedError:
            return True
        if self.formed:
            self.checks.insert(0, Check(_FORM, passed=True, cases=self.formed))
        if self.counts.size:
            self._judge()
        return complete

    def _drawn(self, rows: Host) -> tuple[Host, Host]:
        self.last = int(self.rng.integers(2**31))
        logits = self.counts.logits[rows]
        tokens, probs = self.drafter.drawn(logits, self.last)
        wrong = draft_misfit(tokens, probs, logits.shape)
        if wrong is not None:
            self.checks.append(
                Check(_FORM, passed=False, cases=len(rows), detail=wrong.detail)
            )
            self.fault, self.again = wrong.fault, (ROWS[rows[0]], self.last)
            raise _EndedError
        self.formed += len(rows)
        return tokens, probs

    def _look(self, step: Step) -> None:
        """Look at a request alone, and at the noise of equal requests."""
        self._drawn(np.full(1, 3))
        batches = []
        for _ in range(NOISE_BATCHES):
            tokens, probs = self._drawn(np.full(BATCH, 3))
            batches.append(tokens)
            step("equal requests")
        if (probs.max(axis=1) == 1).all():  # one-hot: there is nothing to draw
            return
        rates = self.rates
        seen = noise(np.asarray(batches), false_alarm=rates.each, power=rates.power)
        self.checks.append(seen.check)
        self.fault = seen.fault
        if not seen.usable:
            self.again = ROWS[3], self.last
            raise _EndedError

    def _judge(self) -> None:
        """Compare the counts with the laws, and look for a name for the fault."""
        laws = self.counts.laws()
        impossible = self.counts.impossible
        detail = f"{impossible:,} tokens had the probability 0" if impossible else ""
        name = "every token has a probability"
        self.checks.append(Check(name, not impossible, self.counts.size, detail))
        passed = not impossible
        for words, seen, law in zip(ROWS, self.counts.seen, laws, strict=True):
            if not seen.any():
                continue
            one = fit([(seen, law)])
            good = one.p_value >= self.rates.each
            detail = "" if good else _detail(seen, law, one.distance)
            count = int(seen.sum())
            sees = self.rates.sees(one.freedom, count)
            row = f"law of the tokens, {words} row"
            self.checks.append(Check(row, good, count, detail, one.p_value, sees))
            if not good and self.again is None:
                self.again = words, self.last
            passed &= good
        if not passed and self.fault is None:
            self.fault = explained_draws(self.counts)


def _detail(seen: Host, law: Host, distance: float) -> str:
    expected = law * seen.sum()
    worst = int(np.abs(seen - expected).argmax())
    return (
        f"total variation {distance:.3f}; token {worst} came {int(seen[worst]):,} times, "
        f"{expected[worst]:,.1f} expected"
    )
