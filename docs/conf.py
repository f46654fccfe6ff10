"""Configuration of the pages."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import draftproof
from draftproof import exact

sys.path.insert(0, str(Path(__file__).parent))
import figures

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

project = "draftproof"
author = "The draftproof developers"
copyright = author  # noqa: A001 - Sphinx's name
release = version = draftproof.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx-mathjax-offline",  # formulas without a network
]
exclude_patterns = ["_build", "_generated", "*_table.md"]
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
default_role = "code"
# Types in docstrings that are words, not objects of this package.
nitpick_ignore_regex = [
    (
        "py:class",
        (
            r"array|iterable|callable|numbers?|length V|shape.*|optional"
            r"|\.\.\.|V\)|[KV]( .*)?"
            r"|[01]|\{.*|\".*"
        ),
    ),
]


html_theme = "furo"
html_title = f"draftproof {release}"


def draw_figures(_: Sphinx) -> None:
    """Draw the pictures before the pages are read."""
    figures.draw_all(Path(__file__).parent / "_generated")


def check_reference(_: Sphinx, env: BuildEnvironment) -> list[str]:
    """Fail the build if a public name has no entry in the reference."""
    from sphinx.util import logging

    documented = set(env.get_domain("py").objects)
    public = {f"draftproof.{name}" for name in draftproof.__all__}
    public |= {f"draftproof.exact.{name}" for name in exact.__all__}
    for name in sorted(public - documented):
        logging.getLogger(__name__).warning("%s is not in the reference", name)
    return []


def setup(app: Sphinx) -> None:
    """Hook the pictures and the check in."""
    app.connect("builder-inited", draw_figures)
    app.connect("env-check-consistency", check_reference)
