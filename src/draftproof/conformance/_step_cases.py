"""Rows for steps, what is right on them, and what a step returns."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from draftproof import exact
from draftproof.conformance._calls import UnusableError
from draftproof.conformance._long_rows import RECIPE, random_rows
from draftproof.conformance._models import MODELS
from draftproof.conformance._subject import CouldNotRunError, to_host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from draftproof.conformance._calls import Arrays, Floats

__all__ = ["Case", "Result", "Right", "Stepper", "dyadic_cases", "long_case", "right"]


class Case(NamedTuple):
    """Two rows and a token, and of long rows the expression that makes them again."""

    draft: Floats
    target: Floats
    token: int
    recipe: str = ""


class Result(NamedTuple):
    """What a step returns."""

    accept_prob: float
    residual: Floats


class Right(NamedTuple):
    """What is right: rounded to doubles once; and the sum of the residual's weights."""

    result: Result
    mass: float


def dyadic_cases() -> Iterator[Case]:
    """Yield all tokens that can be drafted of the models' rows, and of a few others."""
    pairs = {
        (path.draft[i], path.target[i]): None
        for model in MODELS.values()
        for path, _ in model.paths()
        for i in range(model.draft_length)
    }
    quarter, half = Fraction(1, 4), Fraction(1, 2)
    equal, one_hot = (quarter, half, quarter), (Fraction(0), Fraction(1), Fraction(0))
    others = (equal, equal), (equal, one_hot), (one_hot, equal), (one_hot, one_hot)
    disjoint = ((half, half, Fraction(0)), (Fraction(0), Fraction(0), Fraction(1)))
    for draft, target in (*pairs, *others, disjoint):
        rows = [np.asarray([float(prob) for prob in row]) for row in (draft, target)]
        for token, prob in enumerate(draft):
            if prob:
                yield Case(rows[0], rows[1], token)


def long_case(seed: int, size: int, arrays: Arrays) -> Case:
    """Return random rows as long as real ones."""
    rows = random_rows(seed, size, 1, arrays)
    recipe = RECIPE.format(seed, size, 1, arrays.text)
    return Case(rows.draft[0], rows.target[0], int(rows.tokens[0]), recipe)


def right(case: Case) -> Right:
    """Return the right step, from `draftproof.exact`."""
    rows = case.draft.tolist(), case.target.tolist()
    step = exact.speculative_decode_step(*rows, case.token)
    residual = np.asarray([float(share) for share in step["residual"]])
    mass = float(np.maximum(case.target - case.draft, 0).sum())
    return Right(Result(float(step["accept_prob"]), residual), mass)


class Stepper:
    """A step that is called with NumPy's arrays.

    Attributes
    ----------
    problems
        As of `Verifier`.
    mapping
        Whether the step returns a mapping.
    """

    def __init__(self, called: Callable[..., Any], arrays: Arrays) -> None:
        self.called = called
        self.arrays = arrays
        self.calls = 0
        self.mapping = True
        self.problems: dict[str, str] = {}

    def __call__(self, case: Case) -> Result:
        """Take a step.

        Raises
        ------
        CouldNotRunError
            If the subject raises, or returns no acceptance probability and residual.
        """
        given = [self.arrays.rows(row.copy()) for row in case[:2]]
        self.calls += 1
        try:
            with np.errstate(all="ignore"):
                returned = self.called(*given, case.token)
        except Exception as error:
            msg = (
                f"the subject raised {type(error).__name__} on token {case.token} of rows "
                f"of {len(case.draft)}: {error}"
            )
            raise CouldNotRunError(msg) from error
        rows = ("draft_probs", case.draft), ("target_probs", case.target)
        for (name, row), array in zip(rows, given, strict=True):
            host = to_host(array).astype(np.float64)
            if not np.array_equal(host, self.arrays.rounded(row), equal_nan=True):
                self.problems.setdefault("inputs are not written to", f"`{name}`")
        return self._read(returned, len(case.draft))

    def attempt(self, case: Case) -> Result | str:
        """Take a step that need not be supported, or return the name of what it raised."""
        known = dict(self.problems)
        try:
            return self(case)
        except CouldNotRunError as error:
            return type(error.__cause__ or error).__name__
        except UnusableError:
            self.problems = known
            return "nothing, but returns something of another shape"

    def _read(self, returned: Any, size: int) -> Result:
        self.mapping = isinstance(returned, Mapping)
        try:
            parts = (
                (returned["accept_prob"], returned["residual"])
                if self.mapping
                else returned
            )
            accept_prob, residual = map(to_host, parts)
            found = Result(float(accept_prob.reshape(())), residual.astype(np.float64))
        except (TypeError, ValueError, KeyError) as error:
            msg = (
                f"the subject returned a {type(returned).__name__}; needed is a mapping "
                'with "accept_prob", a number, and "residual", a row; or the two as a pair'
            )
            raise CouldNotRunError(msg) from error
        if found.residual.shape != (size,):
            detail = f"`residual` has shape {found.residual.shape}; needed is ({size},)"
            self.problems.setdefault("shape", detail)
            raise UnusableError
        return found
