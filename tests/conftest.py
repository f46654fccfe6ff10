"""Fixtures, Hypothesis profiles, and the collection of the documents' examples."""

from __future__ import annotations

import os

import pytest
from backends import VALUED, Backend
from hypothesis import HealthCheck, settings
from properties import PROPERTIES

settings.register_profile(
    "default",
    deadline=None,  # the first call of a compiled backend takes its time
    derandomize=True,
    max_examples=40,
    # The fixture is the backend, the same for every example on purpose.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(params=VALUED, ids=lambda backend: backend.name.lower())
def backend(request):
    """Each backend that has values, in its own mode; the optional may be missing."""
    with switched_on(request.param) as found:
        yield found


@pytest.fixture
def step_case(request):
    """A backend and one of its dtypes, from an indirect parametrisation."""
    backend, dtype = request.param
    with switched_on(backend) as found:
        yield found, dtype


class switched_on:  # noqa: N801 - reads as a statement
    """Context of a backend; skips with the reason if it is optional and missing."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    def __enter__(self) -> Backend:
        reason = self.backend.missing()
        if reason is not None:
            pytest.skip(reason)
        self.context = self.backend.context()
        self.context.__enter__()
        return self.backend

    def __exit__(self, *exception: object) -> None:
        self.context.__exit__(*exception)


WORST_ERRORS = pytest.StashKey[dict]()
MATRIX = pytest.StashKey[dict]()


def pytest_configure(config):
    """Give the tests a place to leave figures for the end of the report."""
    config.stash[WORST_ERRORS] = {}
    config.stash[MATRIX] = {}


@pytest.fixture
def worst_errors(request):
    """Worst error of a residual by dtype and backend, in units of the last place."""
    return request.config.stash[WORST_ERRORS]


@pytest.fixture
def matrix(request):
    """Which property rejects which wrong step."""
    return request.config.stash[MATRIX]


def pytest_terminal_summary(terminalreporter, config):
    """Print the figures that the tests measured."""
    worst = config.stash[WORST_ERRORS]
    if worst:
        terminalreporter.section("worst error of the residual, real vocabularies")
        for (dtype, name), units in sorted(worst.items()):
            terminalreporter.line(f"{dtype:9} {name:15} {units:6.2f} ulp")
    matrix = config.stash[MATRIX]
    if matrix:
        terminalreporter.section("wrong step x property (x: rejected)")
        columns = [*(holds.__name__ for holds in PROPERTIES), "the worked examples"]
        for i, column in enumerate(columns):
            terminalreporter.line(f"{'  ' * i}{i + 1} {column.replace('_', ' ')}")
        for name, row in matrix.items():
            marks = " ".join("x" if rejected else "." for rejected in row)
            terminalreporter.line(f"{marks}  {name.replace('_', ' ')}")
