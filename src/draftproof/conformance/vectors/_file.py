"""The file of vectors: made, written, and read from the package."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from draftproof.conformance.vectors._chain_cases import long_groups, model_groups
from draftproof.conformance.vectors._draws import draw_groups, match_groups
from draftproof.conformance.vectors._edges import edge_groups
from draftproof.conformance.vectors._faults import fault_groups
from draftproof.conformance.vectors._notes import FLAGS
from draftproof.conformance.vectors._steps import step_groups

if TYPE_CHECKING:
    import os

__all__ = ["generate", "load", "schema", "write"]

_FILE, _SCHEMA = "draftproof-vectors.json", "draftproof-vectors.schema.json"
_HEAD = {
    "algorithm": "speculative decoding, verification of drafted tokens",
    "schema": _SCHEMA,
    "version": "1.0",
    "generator_version": "1.0.0",
    "header": [
        "Made by draftproof from exact rationals.",
        "Numbers are written twice: as rationals, and as hexadecimal floats.",
        "valid: the outcome is the only right one. invalid: the input is to be refused,",
        "by an error or by next_token = -1. acceptable: any outcome of the list is right,",
        "the flags name the convention, and draftproof takes the first one.",
        "margin: how far one uniform must move to change the decision.",
    ],
}


def load() -> dict[str, Any]:
    """Return the vectors that come with the package.

    Returns
    -------
    dict
        The document, of the form that `schema` describes.

    Examples
    --------
    >>> from draftproof.conformance import vectors
    >>> document = vectors.load()
    >>> document["schema"], document["version"]
    ('draftproof-vectors.schema.json', '1.0')
    >>> sorted({group["type"] for group in document["groups"]})
    ['chain', 'draw', 'match', 'step']
    """
    return _packaged(_FILE)


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the vectors.

    Returns
    -------
    dict
        The schema, draft 2020-12.

    Examples
    --------
    >>> from draftproof.conformance import vectors
    >>> vectors.schema()["$schema"]
    'https://json-schema.org/draft/2020-12/schema'
    """
    return _packaged(_SCHEMA)


def generate() -> dict[str, Any]:
    """Make the vectors anew, from `draftproof.exact`.

    Returns
    -------
    dict
        The document; equal to that of `load`.

    Examples
    --------
    >>> from draftproof.conformance import vectors
    >>> vectors.generate() == vectors.load()
    True
    """
    document: dict[str, Any] = json.loads(_text())
    return document


def write(path: str | os.PathLike[str]) -> None:
    """Make the vectors anew and write them to a file: the same bytes everywhere.

    Parameters
    ----------
    path : str
        The file; one that exists is replaced.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from draftproof.conformance import vectors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "vectors.json")
    ...     vectors.write(file)
    ...     file.read_text(encoding="ascii").count('"result": "valid"') > 500
    True
    """
    Path(path).write_bytes(_text().encode("ascii"))


def _packaged(name: str) -> dict[str, Any]:
    text = files(__package__).joinpath(name).read_text(encoding="ascii")
    document: dict[str, Any] = json.loads(text)
    return document


@cache
def _text() -> str:
    """Return the file's text: a line for each case, so that differences are readable."""
    groups = list(
        chain(
            step_groups(),
            model_groups(),
            long_groups(),
            edge_groups(),
            fault_groups(),
            draw_groups(),
            match_groups(),
        )
    )
    cases = [case for group in groups for case in group["tests"]]
    for number, case in zip(count(1), cases, strict=False):
        case["id"] = number
    head = {**_HEAD, "number_of_cases": len(cases), "notes": FLAGS}
    lines = [f"{json.dumps(k)}: {json.dumps(v, indent=1)},\n" for k, v in head.items()]
    told = ",\n".join(map(_group_text, groups))
    return f'{{\n{"".join(lines)}"groups": [\n{told}\n]\n}}\n'


def _group_text(group: dict[str, Any]) -> str:
    head = json.dumps({k: v for k, v in group.items() if k != "tests"})
    tests = ",\n".join(map(json.dumps, group["tests"]))
    return f'{head[:-1]}, "tests": [\n{tests}\n]}}'
