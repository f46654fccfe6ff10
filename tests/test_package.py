"""The package as a whole: what importing it costs, its names, its version, its files."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

import draftproof

PACKAGE = Path(draftproof.__file__).parent
LIBRARIES = (
    "numpy",
    "torch",
    "jax",
    "cupy",
    "array_api_strict",
    "ml_dtypes",
    "scipy",
    "rich",
)


def run(code: str) -> str:
    """Run Python code in a fresh interpreter, with byte code kept as installers do."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return done.stdout.strip()


@pytest.mark.parametrize("module", ["draftproof", "draftproof.exact", "draftproof.cli"])
def test_importing_loads_no_array_library(module):
    """Not even NumPy: the libraries are the user's, loaded when their arrays arrive."""
    loaded = run(
        f"import sys, {module}; print([m for m in {LIBRARIES!r} if m in sys.modules])"
    )
    assert loaded == "[]"


def test_one_library_does_not_load_another():
    """NumPy rows load neither PyTorch nor JAX."""
    loaded = run(
        "import sys, numpy as np, draftproof as d; r = np.asarray([0.5, 0.5]);"
        "d.speculative_decode_step(r, r, 0); d.accept_residual(r, r, np.asarray(0));"
        "d.check_probs(r, r, 0); print([m for m in ('torch', 'jax', 'cupy', 'ml_dtypes',"
        "'array_api_strict', 'scipy', 'rich') if m in sys.modules])"
    )
    assert loaded == "[]"


def test_importing_is_fast():
    """Under 50 ms for the package, by the clock, best of five."""
    code = (
        "import time; t = time.perf_counter(); import draftproof;"
        "print(time.perf_counter() - t)"
    )
    assert min(float(run(code)) for _ in range(5)) < 0.05


def test_the_version_is_the_distribution_s():
    """One version, written in one place."""
    assert draftproof.__version__ == importlib.metadata.version("draftproof")


def test_public_names_are_sorted_and_documented():
    """Everything public is listed once, in order, and has a docstring."""
    assert draftproof.__all__ == sorted(draftproof.__all__)
    for name in draftproof.__all__:
        assert getattr(draftproof, name).__doc__


def test_the_run_time_dependency_is_one():
    """Only array-api-compat; everything else is an extra."""
    needed = importlib.metadata.requires("draftproof")
    assert [line for line in needed if "extra ==" not in line] == ["array-api-compat>=1.12"]


def modules():
    """Yield every module of the package with its parsed source."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def test_modules_and_functions_stay_short():
    """Modules have at most 250 lines, bodies of functions at most 40."""
    for path, tree in modules():
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 250, path
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                documented = ast.get_docstring(node) is not None
                body = node.body[documented:] or node.body
                assert node.end_lineno - body[0].lineno + 1 <= 40, (path, node.name)


FLOORS = [
    {"_sums", "_dtypes"},
    {"_library"},
    {"_namespace", "_arithmetic", "_drafted"},
    {"_checks"},
    {"_chain_checks", "_token_rule", "_block_rule"},
    {"_draw", "_step", "_batch", "_metrics", "_values", "_filters"},
    {"_next_token"},
    {"_chain"},
    {"_match"},
    {"__init__"},
    {"demo", "explain", "conformance"},
    {"_kit_commands"},
    {"cli"},
    {"__main__"},
]


def test_the_floors_of_the_house():
    """A module imports only from the floors below it; `exact` stands apart."""
    height = {name: i for i, names in enumerate(FLOORS) for name in names}
    for path, tree in modules():
        name = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        imports = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
        for node in imports:
            if node.module is None or not node.module.startswith("draftproof"):
                continue
            other = ([*node.module.split("."), "__init__"])[1]
            if name == other:
                continue
            if other == "exact" and name in ("explain", "conformance"):
                continue  # what shows the exact numbers, and what compares with them
            assert "exact" not in (name, other), f"{path} imports {node.module}"
            assert height[other] < height[name], f"{path} imports {node.module}"
