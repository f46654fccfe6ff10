"""The worked arithmetic: its numbers, its layout, and what it says of bad input."""

from __future__ import annotations

import io
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from draftproof import speculative_decode_step
from draftproof.cli import main
from draftproof.explain import InputError, read_file, read_text, show, work

FIRST = ["--draft", "0.8,0.2", "--target", "0.4,0.6"]
WORKED = """\
Token 0 was drawn from the draft law q; the target law is p.

token        q        p  min(p, q)  max(p - q, 0)  residual
  > 0  4/5 0.8  2/5 0.4    2/5 0.4              0         0
    1  1/5 0.2  3/5 0.6    1/5 0.2        2/5 0.4         1
  sum        1        1    3/5 0.6        2/5 0.4         1

0 ██████████████████████······················
1 ███████████▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒
█ min(p, q): drafted, kept   ▒ up to p: the residual   · up to q: rejected

accept_prob = min(1, p[0] / q[0])
            = min(1, (2/5) / (4/5))
            = 1/2 = 0.5
acceptance on average, sum min(p, q) = 3/5 = 0.6
residual = max(p - q, 0) / (2/5)
emitted  = min(p, q) + (2/5) * residual = p, exactly
"""


def printed(capsys, *arguments: str) -> str:
    """Return what the command prints, without the spaces that fill up lines."""
    assert main(["explain", *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


def test_the_first_worked_example(capsys):
    """Table, bars and arithmetic of the example everybody starts with."""
    assert printed(capsys, *FIRST, "--token", "0") == WORKED


def test_the_second_worked_example(capsys):
    """Acceptance 1 and 1/2 on the same rows, as the token has it."""
    rows = ["--draft", "0.4,0.6", "--target", "0.7,0.3"]
    assert "            = 1\n" in printed(capsys, *rows, "--token", "0")
    out = printed(capsys, *rows, "--token", "1")
    assert "            = 1/2 = 0.5\n" in out
    assert "emitted  = min(p, q) + (3/10) * residual = p, exactly" in out


def test_fractions_and_what_they_are_about(capsys):
    """Thirds are thirds, and their decimals are marked as rounded."""
    out = printed(capsys, "--draft", "2/3,1/3", "--target", "1/3, 2/3", "--token", "0")
    assert "2/3 0.6667" in out
    assert "= 2/3 ~ 0.6666666667" in out


def test_equal_rows(capsys):
    """Where nothing is rejected there is no residual to divide."""
    out = printed(capsys, "--draft", "1/2,1/2", "--target", "1/2,1/2", "--token", "1")
    assert "nothing is rejected, the residual is zero" in out


def test_large_vocabularies_show_the_top_and_the_rest(capsys, tmp_path, monkeypatch):
    """The largest entries and the drafted one are shown, the others are added up."""
    monkeypatch.setenv("COLUMNS", "200")  # so that nothing is wrapped out of sight
    rows = np.random.default_rng(0).dirichlet(np.ones(5_000) / 50, 2).astype(np.float32)
    token = int(np.argsort(rows[0])[4_000])
    path = tmp_path / "rows.npy"
    np.save(path, rows)
    out = printed(capsys, "--file", str(path), "--token", str(token), "--top", "5")
    assert f"> {token}" in out
    assert "4,995 more" in out
    assert len(out.splitlines()) < 25
    assert max(map(len, out.splitlines())) <= 80
    assert "p within" in out  # float32 rows do not sum to the same
    needed = speculative_decode_step(*rows, token)["accept_prob"]
    assert f"= {needed:.10g}" in out


def test_json_files(capsys, tmp_path):
    """A JSON file may hold numbers or fractions, and the token."""
    path = tmp_path / "rows.json"
    path.write_text(json.dumps({"draft": [0.8, 0.2], "target": ["2/5", "3/5"], "token": 0}))
    assert printed(capsys, "--file", str(path)) == WORKED
    assert "> 1  1/5" in printed(capsys, "--file", str(path), "--token", "1")


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.data())
def test_the_parts_make_up_the_rows(weights, data):
    """Kept and supplied mass make p; the law of what is emitted is p, exactly."""
    draft = [Fraction(w, sum(weights)) for w in weights]
    target = draft[::-1]
    worked = work(draft, target, data.draw(st.integers(0, len(draft) - 1)))
    for kept, replacing, p in zip(worked.kept, worked.replacing, target, strict=True):
        assert kept + replacing == p
    assert worked.emitted == tuple(target)
    assert worked.error == 0


BAD = {
    "sum": ("0.8,0.1", "0.4,0.6", "0", "`draft_probs` sums to 0.9, not to 1"),
    "negative": ("0.8,0.2", "1.4,-0.4", "0", "`target_probs[1]` is -0.4; needed are"),
    "not finite": ("nan,0.2", "0.4,0.6", "0", "`draft_probs[0]` is nan; needed are"),
    "range": ("0.8,0.2", "0.4,0.6", "2", "`draft_tokens` is 2; needed is an index"),
    "not drawn": ("0,1", "0.4,0.6", "0", "`draft_tokens` is 0, which has probability 0"),
    "lengths": ("1", "0.4,0.6", "0", "`draft_probs` has shape (1,), `target_probs` (2,)"),
    "no number": (
        "0.8,x",
        "0.4,0.6",
        "0",
        "`draft`: 'x' is no number; needed is a decimal",
    ),
    "no divisor": ("1/0,0", "0.4,0.6", "0", "`draft`: '1/0' is no number"),
    "placeholder": ("0.8,0.2", "0.4,0.6", "-1", "`drafted_token` is -1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_and_exit_code_2(name, capsys):
    """`check_probs` says what is wrong with rows; nothing is worked out from them."""
    draft, target, token, message = BAD[name]
    assert (
        main(["explain", f"--draft={draft}", f"--target={target}", f"--token={token}"]) == 2
    )
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"draftproof explain: {message}")
    assert captured.err.count("\n") == 1


MISSING = {
    "everything": ([], "needed are --draft and --target, or --file"),
    "target": (["--draft", "1", "--token", "0"], "`target` is missing"),
    "draft": (["--target", "1", "--token", "0"], "`draft` is missing"),
    "token": (FIRST, "`token` is missing: add --token T"),
    "choice": (
        [*FIRST, "--file", "rows.json"],
        "needed are --draft and --target, or --file",
    ),
    "file": (["--file", "nothing.json"], "nothing.json cannot be read (FileNotFoundError"),
}


@pytest.mark.parametrize("name", MISSING)
def test_missing_input_is_named(name, capsys):
    """What is missing is said in one line, with exit code 2."""
    arguments, message = MISSING[name]
    assert main(["explain", *arguments]) == 2
    assert capsys.readouterr().err.startswith(f"draftproof explain: {message}")


FILES = {
    "rows.json": [b"[]", b"{}", b"{", b'{"draft": 1, "target": 2}', b"\xff"],
    "rows.npy": [b"", b"nonsense"],
}


@pytest.mark.parametrize("name", FILES)
def test_files_that_hold_something_else(name, tmp_path):
    """A broken file raises one error that names the file and what it should hold."""
    path = tmp_path / name
    for content in FILES[name]:
        path.write_bytes(content)
        with pytest.raises(InputError, match=f"{name} cannot be read"):
            read_file(path)


@pytest.mark.parametrize("array", [np.ones(3), np.ones((3, 2)), np.ones((2, 2), dtype=int)])
def test_arrays_of_another_shape_or_kind(array, tmp_path):
    """A .npy file must hold two floating rows."""
    path = Path(tmp_path) / "rows.npy"
    np.save(path, array)
    with pytest.raises(InputError, match=r"needed: a floating array \(2, V\)"):
        read_file(path)


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("color", [None, "truecolor"])
def test_it_fits_the_terminal(width, color):
    """No line is cut or wrapped at 80 columns, and colours are only added."""
    console = Console(
        file=io.StringIO(),
        width=width,
        color_system=color,
        force_terminal=color is not None,
    )
    given = read_text(["1/7"] * 7, ["1/9999"] * 3 + ["9996/39996"] * 4)
    show(console, work(given.exact_draft, given.exact_target, 6), top=10)
    lines = console.file.getvalue().splitlines()
    assert ("\x1b[32m" in "".join(lines)) == (color is not None)
    if color is None:
        assert max(map(len, lines)) <= 80
        assert "…" not in "".join(lines)
