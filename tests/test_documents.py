"""The README and the pages: up to date with the code, and with each other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import support

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_support_table_is_up_to_date():
    """The README has the declared table; ``python tests/support.py`` writes it."""
    text = support.README.read_text(encoding="utf-8")
    assert "| NumPy |" in text
    assert support.updated(text) == text


def test_ci_runs_the_command_of_the_readme():
    """The test command of the README is the last line of ``.ci/run``, to the letter."""
    commands = re.findall(r"```console\n(.*?)\n```", support.README.read_text("utf-8"))
    last = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()[-1]
    assert last == commands[1]
    assert len(commands) == 2


def test_the_number_of_wrong_steps_is_the_one_told():
    """The README says how many wrong steps there are."""
    from broken import BROKEN

    assert f"table of {len(BROKEN)} wrong steps" in support.README.read_text("utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    """A relative link names a file that exists."""
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


def test_every_example_of_a_page_is_run():
    """Code blocks that look like Python are marked as Python, so that they are run."""
    for page in PAGES:
        for language, code in re.findall(
            r"^```(\w*)\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL
        ):
            looks_like_python = ">>>" in code or code.startswith(("import ", "from "))
            assert not looks_like_python or language == "python", (page.name, code)
