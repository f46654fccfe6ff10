"""What must be true of a step, as functions that any step can be put to.

`test_step` runs them on the package's own step on every backend; `test_broken` runs
them on steps that are wrong on purpose, to show that each can fail.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from assertions import assert_like, assert_values, bits
from backends import NUMPY_DTYPES, Backend
from budgets import ARITHMETIC, SMALLEST_NORMAL, residual_budget
from rows import Rows, flushed

Step = Callable[[Any, Any, Any], dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """One input of a step, on one backend."""

    backend: Backend
    rows: Rows
    token: int

    def arrays(self) -> tuple[Any, Any]:
        """Make fresh arrays of the two rows."""
        make, dtype = self.backend.array, self.rows.dtype
        return make(self.rows.draft, dtype), make(self.rows.target, dtype)

    def run(self, step: Step) -> dict[str, Any]:
        """Call the step on fresh arrays."""
        return step(*self.arrays(), self.token)


def accept_prob_is_exact(step: Step, case: Case) -> None:
    """The acceptance probability is the double nearest to the exact ratio."""
    got = case.run(step)["accept_prob"]
    assert type(got) is float, f"accept_prob is a {type(got)}"
    needed = float(case.rows.exact_accept_prob(case.token))
    assert got == needed, f"accept_prob is {got!r}, needed {needed!r}"


def residual_is_within_budget(step: Step, case: Case) -> None:
    """Every entry of the residual is within the budget of its exact value."""
    residual = case.run(step)["residual"]
    seen = _as_seen(case)
    needed = seen.exact_residual()
    within = residual_budget(needed, case.rows.dtype)
    if case.backend.value.flushes_subnormals:
        # A result below the smallest normal number may be flushed as well.
        tiny = SMALLEST_NORMAL[ARITHMETIC[case.rows.dtype]]
        within = np.maximum(within, np.where(needed < tiny, tiny, 0))
    assert_values(case.backend, residual, needed, within=within)


def residual_is_zero_where_draft_covers_target(step: Step, case: Case) -> None:
    """The residual is +0.0 where ``p <= q`` and positive everywhere else."""
    values = case.backend.host(case.run(step)["residual"])
    covered = np.asarray(case.rows.target) <= np.asarray(case.rows.draft)
    assert not np.any(values[covered]), "positive where the draft covers the target"
    assert not np.any(np.signbit(values)), "a negative zero"
    seen = _as_seen(case)
    above = np.asarray(seen.target) > np.asarray(seen.draft)
    if case.backend.value.flushes_subnormals:
        above &= seen.exact_residual() >= SMALLEST_NORMAL[ARITHMETIC[case.rows.dtype]]
    assert np.all(values[above] > 0), "not positive where the target is above the draft"


def residual_does_not_depend_on_the_token(step: Step, case: Case) -> None:
    """Whichever token was drafted, the residual is the same, bit for bit."""
    first = bits(case.backend, case.run(step)["residual"])
    for token in case.rows.draftable[:3]:
        other = Case(case.backend, case.rows, token).run(step)["residual"]
        assert bits(case.backend, other) == first, "the residual depends on the token"


def reconstructs_the_target(step: Step, case: Case) -> None:
    """Accept, else draw from the residual: summed over the drafts, it is the target.

    With rows of unequal sums the emitted law is the target's plus what the draft
    row has too much, spread like the residual.
    """
    rows, seen = case.rows, _as_seen(case).exact_residual()
    drafts = rows.draftable if len(rows.draft) <= 12 else rows.draftable[:6]
    kept = np.minimum(rows.draft, rows.target)
    rejected = math.fsum(rows.draft) - math.fsum(kept)
    for token in drafts:
        one = Case(case.backend, rows, token).run(step)
        kept[token] = rows.draft[token] * one["accept_prob"]
    law = kept + rejected * case.backend.host(case.run(step)["residual"])
    excess = rejected - math.fsum(np.maximum(np.subtract(rows.target, rows.draft), 0))
    needed = np.asarray(rows.target) + excess * seen
    slack = abs(rejected) * residual_budget(seen, rows.dtype)
    slack += 2 * len(law) * SMALLEST_NORMAL[ARITHMETIC[rows.dtype]]
    slack += 2.0**-50 * (1 + needed)  # of the sums and differences made here
    bad = np.abs(law - needed) > slack
    assert not bad.any(), f"emits {law[bad][:3]}, the target is {needed[bad][:3]}"


def inputs_are_untouched(step: Step, case: Case) -> None:
    """The input arrays hold what they held."""
    draft, target = case.arrays()
    before = bits(case.backend, draft), bits(case.backend, target)
    step(draft, target, case.token)
    assert (bits(case.backend, draft), bits(case.backend, target)) == before


def library_dtype_shape_and_device_are_kept(step: Step, case: Case) -> None:
    """The residual is the same kind of array as the rows, in a plain dict of two."""
    draft, target = case.arrays()
    result = step(draft, target, case.token)
    assert type(result) is dict
    assert set(result) == {"accept_prob", "residual"}
    assert_like(result["residual"], draft)


def not_finite_rows_are_refused(step: Step, case: Case) -> None:
    """NaN in either row, and infinity where it would show, raise `ValueError`."""
    ends = {0, len(case.rows.draft) // 2, len(case.rows.draft) - 1}
    for which, at in product((0, 1), ends):
        for bad in (math.nan, math.inf):
            values = [list(case.rows.draft), list(case.rows.target)]
            values[which][at] = bad
            # NumPy warns of the cast of an infinity, not of the arithmetic.
            arrays = (case.backend.array(row, case.rows.dtype) for row in values)
            try:
                step(*arrays, case.token)
            except ValueError:
                continue
            msg = f"{bad} in row {which} was not refused"
            raise AssertionError(msg)


def impossible_tokens_are_refused(step: Step, case: Case) -> None:
    """A token of draft probability 0 raises: it cannot have been drawn."""
    for token in set(range(len(case.rows.draft))) - set(case.rows.draftable):
        try:
            Case(case.backend, case.rows, token).run(step)
        except ValueError:
            return
        msg = f"token {token} of draft probability 0 was not refused"
        raise AssertionError(msg)


PROPERTIES = (
    reconstructs_the_target,
    accept_prob_is_exact,
    residual_is_within_budget,
    residual_is_zero_where_draft_covers_target,
    residual_does_not_depend_on_the_token,
    inputs_are_untouched,
    library_dtype_shape_and_device_are_kept,
    not_finite_rows_are_refused,
    impossible_tokens_are_refused,
)


def the_worked_examples(step: Step, dtype: str) -> None:
    """The two examples everybody checks first; not enough on their own."""
    for draft, target, token, accept_prob, residual in EXAMPLES:
        arrays = [np.asarray(row, NUMPY_DTYPES[dtype]) for row in (draft, target)]
        result = step(*arrays, token)
        assert result["accept_prob"] == accept_prob
        assert result["residual"].tolist() == residual


EXAMPLES = (
    ((0.8, 0.2), (0.4, 0.6), 0, 0.5, [0.0, 1.0]),
    ((0.4, 0.6), (0.7, 0.3), 0, 1.0, [1.0, 0.0]),
    ((0.4, 0.6), (0.7, 0.3), 1, 0.5, [1.0, 0.0]),
)


def _as_seen(case: Case) -> Rows:
    """Return the rows as the backend's arithmetic sees them."""
    return flushed(case.rows) if case.backend.value.flushes_subnormals else case.rows
