"""Fixtures, Hypothesis profiles, and the collection of the documents' examples."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

from backends import VALUED
from properties import PROPERTIES

# The tests run in two processes: one thread each, or they wait for one another.
torch.set_num_threads(1)

settings.register_profile(
    "default",
    deadline=None,  # the first call of a compiled backend takes its time
    derandomize=True,
    max_examples=20,
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
FIGURES = pytest.StashKey[dict]()


class Pages:
    """Plugin that runs the Python blocks of the README and of the pages."""

    pytest_collect_file = staticmethod(
        Sybil(parsers=[PythonCodeBlockParser()], patterns=["*.md"], path=str(ROOT)).pytest()
    )


def pytest_configure(config):
    """Collect the pages' examples; give tests a place to leave figures for the report."""
    config.pluginmanager.register(Pages())
    config.stash[FIGURES] = {"worst": {}, "matrix": {}, "lines": []}


# Compiling takes its time: JAX half a second for every shape and dtype. Of the tests of
# chains the default run keeps on JAX these, beside the agreement with NumPy and PyTorch
# and the loops of the pages; and it compiles the functions that others are made of.
CHAIN_TESTS = ("test_chain.py", "test_draw.py", "test_match.py", "test_metrics.py")
KEPT_ON_JAX = ("test_golden_vectors[jax-float32]", "test_public_faults[jax_x64]")
COMPILED = ("[accept_residual]", "[verify_chain]")
COMPILING = ("test_jax_jit", "test_jax_traces", "test_torch_compile")


LATER = (
    "test_the_kit_judges_the_rest",
    "test_our_own_verifier_conforms_in_jax",
    "test_the_sampler_compiles_and_needs_no_values",
    "test_the_loop_of_jax_has_the_law_of_the_model",
    "test_lossless_on_other_libraries[jax_x64",
    "test_batch_equals_loop[jax-bfloat16",
    "test_batch_equals_loop[jax_x64",
    "test_filters_are_their_definition[jax_x64",
    "test_the_same_text_on_every_backend[jax",
    "test_noise_that_drafts_and_coins_share_is_found",
    "test_torch_compile_before_any_eager_call[verify_chain",
    "test_a_wrong_sampler_misses_the_law",
)


def later(item) -> bool:
    """Whether a test is left to the thorough run."""
    if item.name.startswith(LATER):
        return True
    if item.path.name in CHAIN_TESTS:
        return "jax" in item.name and item.name not in KEPT_ON_JAX
    compiles = item.path.name == "test_tracing.py" and item.name.startswith(COMPILING)
    return compiles and not item.name.endswith(COMPILED)


def pytest_collection_modifyitems(config, items):
    """Leave what is later to ``HYPOTHESIS_PROFILE=thorough``, and count it."""
    if os.environ.get("HYPOTHESIS_PROFILE") != "thorough":
        config.hook.pytest_deselected(items=list(filter(later, items)))
        items[:] = [item for item in items if not later(item)]


@pytest.fixture
def worst_errors(request):
    """Worst error of a residual by dtype and backend, in units of the last place."""
    return request.config.stash[FIGURES]["worst"]


@pytest.fixture
def matrix(request):
    """Which property rejects which wrong step."""
    return request.config.stash[FIGURES]["matrix"]


@pytest.fixture
def report(request):
    """A function that puts a line of figures at the end of the report."""
    return request.config.stash[FIGURES]["lines"].append


def pytest_sessionfinish(session):
    """In a worker process, hand the figures to the one that reports."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["figures"] = session.config.stash[FIGURES]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Take the figures of a worker process that is done."""
    found = getattr(node, "workeroutput", {}).get("figures", {})
    figures = node.config.stash[FIGURES]
    for name, value in found.items():
        if name == "lines":
            figures[name] += value
        else:
            figures[name].update(value)


def pytest_terminal_summary(terminalreporter, config):
    """Print the figures that the tests measured."""
    write, figures = terminalreporter.line, config.stash[FIGURES]
    if figures["worst"]:
        terminalreporter.section("worst error of the residual, real vocabularies")
        for name, units in sorted(figures["worst"].items()):
            write(f"{name:25} {units:6.2f} ulp")
    if figures["matrix"]:
        terminalreporter.section("wrong step x property (x: rejected)")
        columns = [*(holds.__name__ for holds in PROPERTIES), "the worked examples"]
        for i, column in enumerate(columns):
            write(f"{'  ' * i}{i + 1} {column.replace('_', ' ')}")
        for name, row in figures["matrix"].items():
            marks = " ".join("x" if rejected else "." for rejected in row)
            write(f"{marks}  {name.replace('_', ' ')}")
    if figures["lines"]:
        terminalreporter.section("figures")
        for line in figures["lines"]:
            write(line)
