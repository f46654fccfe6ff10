"""A step under check: its results beside the right ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from draftproof.conformance._cells import ULPS
from draftproof.conformance._long_rows import ROOT_ULPS
from draftproof.conformance._report import Check
from draftproof.conformance._step_cases import Case, Result, Right, long_case, right
from draftproof.conformance._step_faults import step_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from draftproof.conformance._calls import Floats
    from draftproof.conformance._session import Session
    from draftproof.conformance._snippets import Snippets
    from draftproof.conformance._step_cases import Stepper

    Seen = list[tuple[Case, Result]]

__all__ = ["StepBench"]


class StepBench:
    """A step under check."""

    def __init__(self, stepper: Stepper, session: Session, snippets: Snippets) -> None:
        self.stepper = stepper
        self.session = session
        self.snippets = snippets

    def at(self, name: str, cases: Sequence[Case]) -> None:
        """Add checks of the cases, and name the fault if one of them fails."""
        seen = [(case, self.stepper(case)) for case in cases]
        needed = [right(case) for case in cases]
        again = all(_same(self.stepper(case), result) for case, result in seen[:8])
        self._add(f"{name}, accept_prob", seen, needed, self._accept_off)
        self._add(f"{name}, residual", seen, needed, self._residual_off)
        self._add(f"{name}, zero where the target is", seen, needed, self._forbidden)
        self.session.add(Check(f"{name}, the same again", again, min(len(seen), 8)))
        if self.session.failed and self.session.fault is None:
            self.session.fault = step_fault(seen, 64 * self.stepper.arrays.row_eps)

    def at_long(self, name: str, size: int, seed: int) -> None:
        """Add checks of long rows, unless all is known."""
        if not self.session.failed:
            arrays = self.stepper.arrays
            self.at(name, [long_case(seed + i, size, arrays) for i in range(2)])

    def _add(
        self,
        name: str,
        seen: Seen,
        needed: Sequence[Right],
        off: Callable[[Case, Result, Right], tuple[str, str] | None],
    ) -> None:
        found = [off(*one, known) for one, known in zip(seen, needed, strict=True)]
        wrong = [i for i, text in enumerate(found) if text is not None]
        if not wrong:
            self.session.add(Check(name, True, len(seen)))
            return
        case = seen[wrong[0]][0]
        text, condition = found[wrong[0]] or ("", "")
        detail = f"{len(wrong):,} differ, such as {_case_text(case)}: {text}"
        check = Check(name, False, len(seen), detail)
        self.session.add(
            check,
            lambda: self.snippets.step(case, text, condition, mapping=self.stepper.mapping),
        )

    def _accept_off(self, _: Case, got: Result, known: Right) -> tuple[str, str] | None:
        needed = known.result.accept_prob
        most = ULPS * self.stepper.arrays.row_eps * needed
        if abs(got.accept_prob - needed) <= most:
            return None
        condition = f"abs(accept_prob - {needed!r}) <= {most:.3g}"
        return f"accept_prob is {got.accept_prob:.6g}, needed is {needed:.6g}", condition

    def _residual_off(self, _: Case, got: Result, known: Right) -> tuple[str, str] | None:
        if not known.mass:
            return None
        arrays, size = self.stepper.arrays, len(got.residual)
        most = ULPS * arrays.row_eps + ROOT_ULPS * size**0.5 * arrays.sum_eps
        most /= known.mass
        far = float(np.abs(got.residual - known.result.residual).sum() / 2)
        if far <= most:
            return None
        text = f"the residual is off by {far:.3g}, the sum of differences over 2"
        if size <= _WRITTEN:
            rows = [_numbers(row) for row in (got.residual, known.result.residual)]
            text = f"residual is {rows[0]}, needed is {rows[1]}"
        return text, f"abs(residual - needed).sum() / 2 <= {most:.3g}"

    def _forbidden(self, case: Case, got: Result, known: Right) -> tuple[str, str] | None:
        if not known.mass or not got.residual[case.target == 0].any():
            return None
        return (
            "the residual is not 0 where the target is",
            "not residual[target == 0].any()",
        )

    def for_conventions(self) -> None:
        """Find out what is done where no law says what is right."""
        halves, others = np.asarray([0.5, 0.5, 0.0]), np.asarray([0.0, 0.5, 0.5])
        nan = np.full(3, np.nan)
        found = self.session.conventions
        attempt = self.stepper.attempt
        same = attempt(Case(halves, halves, 0))
        found["residual of zeros"] = (
            same if isinstance(same, str) else _of_nothing(same, halves)
        )
        for name, case in (
            ("q = 0, p > 0", Case(others, halves, 0)),
            ("q = p = 0", Case(halves, halves, 2)),
            ("NaN in the target row", Case(halves, nan, 0)),
            ("NaN in the draft row", Case(nan, halves, 0)),
            ("token -1", Case(halves, others, -1)),
            ("token V", Case(halves, others, 3)),
        ):
            result = attempt(case)
            raised = isinstance(result, str)
            found[name] = f"raises {result}" if raised else f"accept_prob {result[0]:.3g}"

    def add_manners(self) -> None:
        """Add checks of what every call was watched for."""
        for name in ("inputs are not written to", "shape"):
            problem = self.stepper.problems.get(name)
            check = Check(name, problem is None, self.stepper.calls, problem or "")
            self.session.add(check)


_WRITTEN = 8  # entries of a row that is shown


def _of_nothing(result: Result, target: Floats) -> str:
    residual = result.residual
    if not residual.any():
        return "zeros"
    if np.isnan(residual).any():
        return "NaN"
    return "the target" if np.allclose(residual, target) else _numbers(residual)


def _same(one: Result, other: Result) -> bool:
    return one[0] == other[0] and np.array_equal(one[1], other[1])


def _case_text(case: Case) -> str:
    if len(case.draft) > _WRITTEN:
        return f"token {case.token}, V = {len(case.draft):,}"
    rows = f"draft {_numbers(case.draft)}, target {_numbers(case.target)}"
    return f"token {case.token}, {rows}"


def _numbers(row: Floats) -> str:
    return " ".join(f"{number:.6g}" for number in row)
