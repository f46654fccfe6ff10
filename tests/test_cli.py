"""The command line: what it prints, its exit codes, and what it says when it cannot."""

from __future__ import annotations

import subprocess
import sys

import pytest

import draftproof
from draftproof.cli import main


def run(*arguments: str) -> subprocess.CompletedProcess:
    """Run the command line as a user does."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "draftproof", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_demo_runs():
    """``python -m draftproof demo`` ends well and closes with the tokens per call."""
    done = run("demo", "--tokens", "40", "--draft-length", "3", "--rule", "block")
    assert done.returncode == 0, done.stderr
    assert "drafts per call: 3; rule: block, on numpy; seed 0" in done.stdout
    assert "tokens per target call" in done.stdout
    assert "given the drafts, rule block" in done.stdout
    assert done.stdout.endswith("tokens per call expected on these drafts\n")
    assert done.stderr == ""


def test_the_demo_prints_the_same_text_on_every_backend(capsys):
    """Between the first line and the time it took, nothing depends on the backend."""
    printed = []
    for backend in ("numpy", "torch", "jax"):
        assert main(["demo", "--tokens", "30", "--seed", "5", "--backend", backend]) == 0
        printed.append(capsys.readouterr().out)
    texts = {out.split("\n\n")[1] for out in printed}
    assert len(texts) == 1
    assert len(texts.pop().split()) == 30


def test_the_version(capsys):
    """``--version`` names the package and its version."""
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"draftproof {draftproof.__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["dance"],
        ["demo", "--tokens", "0"],
        ["demo", "--tokens", "many"],
        ["demo", "--seed", "-1"],
        ["demo", "--backend", "cobol"],
        ["demo", "--draft-length", "0"],
        ["demo", "--rule", "nonsense"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_exits_with_2(arguments, capsys):
    """Each names what is wrong with it."""
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert "error: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("module", "hint"),
    [
        ("numpy", "numpy is not installed; pip install 'draftproof[kit]'"),
        ("rich", "rich is not installed; pip install 'draftproof[kit]'"),
        ("torch", "torch is not installed; pip install torch"),
    ],
)
def test_a_missing_library_is_one_line_and_exit_code_2(module, hint):
    """Whoever lacks an extra or a backend is told what to install."""
    code = (
        f"import sys; sys.modules[{module!r}] = None; from draftproof.cli import main;"
        "sys.exit(main(['demo', '--backend', 'torch']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"draftproof: {hint}\n"


def test_another_missing_module_is_not_explained_away(monkeypatch):
    """An error that is not about the extra or the backend stays an error."""

    def broken(self):
        raise ModuleNotFoundError(name="zlib")

    monkeypatch.setattr("draftproof.demo.Backend.converter", broken)
    with pytest.raises(ModuleNotFoundError):
        main(["demo"])
