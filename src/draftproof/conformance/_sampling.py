"""The run of a check of a sampler: the calls, the counts, the judgement."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from draftproof.conformance._counts import Counts, followed, stream
from draftproof.conformance._diagnose import (
    explained,
    explained_drafts,
    outcome_detail,
    sequence_detail,
)
from draftproof.conformance._noise import NOISE_BATCHES, noise
from draftproof.conformance._plan import BATCH
from draftproof.conformance._report import Check
from draftproof.conformance._statistics import Fit, fit
from draftproof.conformance._structure import Misfit, misfit
from draftproof.conformance._subject import CouldNotRunError, to_host
from draftproof.conformance._variants import RIGHT

if TYPE_CHECKING:
    from draftproof.conformance._call import Caller
    from draftproof.conformance._counts import Case
    from draftproof.conformance._plan import Plan
    from draftproof.conformance._progress import Step
    from draftproof.conformance._subject import Host

__all__ = ["Sampling"]

_FORM = "form of the tokens"
_RAGGED = "requests of unequal length"


class _EndedError(Exception):
    """What was seen makes the rest of the run pointless."""


@dataclass
class Sampling:
    """A run, and what it has found so far."""

    plan: Plan
    caller: Caller
    seed: int
    checks: list[Check] = field(default_factory=list)
    conventions: dict[str, str] = field(default_factory=dict)
    fault: str | None = None
    again: dict[str, Any] | None = None
    formed: int = 0
    refused: Misfit | None = None

    def __post_init__(self) -> None:
        self.rng = stream(self.seed)
        self.found = [Counts(case) for case in self.plan.cases]
        self.ragged = Counts(self.plan.cases[-2:][0])
        self.seeds: dict[str, int] = {}

    def steps(self) -> int:
        """Return how many calls with whole batches there are."""
        batches = sum(self.plan.batches(case) for case in self.plan.cases)
        unequal = self.plan.batches(self.ragged.case) if self.plan.ragged else 0
        return NOISE_BATCHES + batches + unequal

    def run(self, step: Step) -> bool:
        """Call the sampler and judge it; return whether the run came to its end."""
        complete = True
        try:
            self._look(step)
            self._count(step)
            if self.plan.ragged:
                self._unequal(step)
        except KeyboardInterrupt:
            complete = False
        except _EndedError:
            return True
        if self.formed:
            self.checks.insert(0, Check(_FORM, passed=True, cases=self.formed))
        self._judge()
        return complete

    def _new_seed(self) -> int:
        return int(self.rng.integers(2**31))

    def _emitted(self, case: Case, tokens: Host, seed: int) -> Host:
        """Return the tokens of a batch, or end the run if they have the wrong form."""
        emitted = self.caller.emitted(case, tokens, seed)
        wrong = misfit(tokens, emitted, case.shape[1])
        if wrong is not None:
            self.checks.append(
                Check(_FORM, passed=False, cases=len(tokens), detail=wrong.detail)
            )
            self.fault = wrong.fault
            self.again = {"model": case.model.name, "seed": seed, "size": len(tokens)}
            raise _EndedError
        self.formed += len(tokens)
        return emitted

    def _look(self, step: Step) -> None:
        """Look at a request alone, at equal requests, and at what conventions there are."""
        case = self.plan.cases[-1]
        tokens = case.draw(self.rng, 1).repeat(BATCH, axis=0)
        seeds = [self._new_seed() for _ in range(NOISE_BATCHES)]
        alone = self._emitted(case, tokens[:1], seeds[0])
        batches = []
        for seed in seeds:
            batches.append(self._emitted(case, tokens, seed))
            step("equal requests")
        arrays = self.caller.arrays(case, tokens)
        before = [to_host(array).copy() for array in arrays if array is not None]
        again = to_host(self.caller.sampler(*arrays, seeds[0]))
        same = np.array_equal(again, batches[0])
        self.conventions["same seed again"] = "same tokens" if same else "other tokens"
        if same:
            one = np.array_equal(alone[0], again[0])
            words = "same tokens as in a batch" if one else "other tokens than in a batch"
            self.conventions["same seed, request alone"] = words
        after = [to_host(array) for array in arrays if array is not None]
        kept = all(map(np.array_equal, before, after))
        self.conventions["arguments"] = "left as they are" if kept else "written to"
        codes = np.asarray([followed(emitted, case.shape[1]) for emitted in batches])
        seen = noise(codes, false_alarm=self.plan.each, power=self.plan.power)
        self.checks.append(seen.check)
        self.fault = seen.fault
        if not seen.usable:
            raise _EndedError

    def _count(self, step: Step) -> None:
        """Draw, call and count; the models take turns, so that none is left behind."""
        left = {
            counts.case.model.name: self.plan.batches(counts.case) for counts in self.found
        }
        while any(left.values()):
            for counts in self.found:
                name = counts.case.model.name
                if left[name]:
                    left[name] -= 1
                    self._batch(counts)
                    step(name)

    def _batch(self, counts: Counts) -> None:
        seed = self._new_seed()
        rng = stream(seed)
        tokens = self.caller.drafted(counts.case, rng, BATCH, seed)
        counts.add(rng, tokens, self._emitted(counts.case, tokens, seed))
        self.seeds.setdefault(counts.case.model.name, seed)

    def _unequal(self, step: Step) -> None:
        """Draw and count requests that have fewer drafts, or none."""
        case = self.ragged.case
        length, size = case.shape
        for _ in range(self.plan.batches(case)):
            seed = self._new_seed()
            rng = stream(seed)
            tokens = case.draw(rng, BATCH)
            ends = rng.integers(length + 1, size=(BATCH, 1))
            tokens[np.arange(length) >= ends] = -1
            try:
                emitted = self.caller.emitted(case, tokens, seed)
            except CouldNotRunError as error:
                self.refused = Misfit(f"{error}; `ragged=False` leaves these requests out")
                return
            self.refused = misfit(tokens, emitted, size)
            if self.refused is not None:
                return
            self.ragged.add(rng, tokens, emitted)
            step(_RAGGED)

    def _judge(self) -> None:
        """Compare what was counted with its laws, and look for a name for the fault."""
        found = [counts for counts in self.found if counts.size]
        own = self.caller.drafter is not None
        drafts = [self._drafts(counts) for counts in found if self.plan.tests_drafts]
        laws = [self._sequences(counts) for counts in found]
        if self.plan.rule is not None:
            laws += [self._outcomes(counts, self.plan.rule) for counts in found]
        if self.refused is not None:
            self.checks.append(
                Check(_RAGGED, passed=False, cases=BATCH, detail=self.refused.detail)
            )
        elif self.ragged.size:
            self._sequences(self.ragged, _RAGGED)
        if self.fault is None and not all(drafts):
            self.fault = explained_drafts(found)
        if self.fault is None and not all(laws):
            self.fault = explained(found, self.plan.rule, drafter=own)
        elif self.fault is None and self.refused is not None:
            self.fault = self.refused.fault

    def _drafts(self, counts: Counts) -> bool:
        one = fit([(counts.outcomes.sum(1), counts.case.draft_law)])
        detail = f"total variation {one.distance:.3f}"
        return self._judged(counts, "law of the drafts", one, detail)

    def _sequences(self, counts: Counts, name: str = "law of the tokens") -> bool:
        one = fit([(counts.sequences, counts.case.target_law)])
        return self._judged(counts, name, one, sequence_detail(counts, self.plan.each))

    def _outcomes(self, counts: Counts, rule: str) -> bool:
        laws = counts.case.outcome_laws(RIGHT[rule])
        one = fit(counts.groups(laws))
        return self._judged(counts, "outcomes", one, outcome_detail(counts, laws), rule)

    def _judged(
        self, counts: Counts, name: str, one: Fit, detail: str, rule: str | None = None
    ) -> bool:
        """Add a check, with the detail if it failed; return whether it passed."""
        passed = one.p_value >= self.plan.each
        model, size = counts.case.model.name, counts.size
        title = name if name == _RAGGED else f"{name}, {model}"
        sees = self.plan.sees(one.freedom, size)
        words = "" if passed else detail
        self.checks.append(Check(title, passed, size, words, one.p_value, sees))
        if not passed and self.again is None and counts is not self.ragged:
            self.again = {"model": model, "seed": self.seeds[model], "rule": rule}
        return passed
