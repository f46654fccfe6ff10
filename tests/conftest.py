"""Fixtures, Hypothesis profiles, and the collection of the documents' examples."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

from backends import VALUED
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
    """Each backend that has values and can run here, in its own mode."""
    with request.param.context():
        yield request.param


@pytest.fixture
def step_case(request):
    """A backend and one of its dtypes, from an indirect parametrisation."""
    backend, dtype = request.param
    with backend.context():
        yield backend, dtype


ROOT = Path(__file__).parent.parent
WORST_ERRORS = pytest.StashKey[dict]()
MATRIX = pytest.StashKey[dict]()


class Pages:
    """Plugin that runs the Python blocks of the README and of the pages."""

    pytest_collect_file = staticmethod(
        Sybil(parsers=[PythonCodeBlockParser()], patterns=["*.md"], path=str(ROOT)).pytest()
    )


def pytest_configure(config):
    """Collect the pages' examples; give tests a place to leave figures for the report."""
    config.pluginmanager.register(Pages())
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
