"""Rows from the command line or from a file, exactly and as arrays."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from draftproof.exact import as_fraction

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["Given", "InputError", "read_file", "read_text"]


class InputError(ValueError):
    """Input that cannot be read; the message says which part of it and why."""


class Given(NamedTuple):
    """A draft row, a target row, and the drafted token, if it came with them.

    Attributes
    ----------
    draft_probs, target_probs : array, shape (V,)
        The rows in the dtype they came in, float64 for text.
    exact_draft, exact_target : sequence of number
        The same rows as they were written: a text of ``"0.1"`` is one tenth.
    token : int or None
        The drafted token.
    """

    draft_probs: NDArray[Any]
    target_probs: NDArray[Any]
    exact_draft: Sequence[Any]
    exact_target: Sequence[Any]
    token: int | None = None


def read_text(
    draft: Sequence[str], target: Sequence[str], token: int | None = None
) -> Given:
    """Read two rows of numbers written as decimals or as fractions.

    Parameters
    ----------
    draft, target : sequence of str
        The entries, such as ``"0.25"`` or ``"1/3"``.
    token : int, optional
        The drafted token.

    Returns
    -------
    Given
        The rows as float64 arrays, and as they were written.

    Raises
    ------
    InputError
        If an entry is no number.
    """
    draft_probs = np.asarray([_number("draft", text) for text in draft], dtype=float)
    target_probs = np.asarray([_number("target", text) for text in target], dtype=float)
    return Given(draft_probs, target_probs, draft, target, token)


def read_file(path: Path) -> Given:
    """Read two rows from a JSON or ``.npy`` file.

    Parameters
    ----------
    path : Path
        JSON: an object with the lists ``"draft"`` and ``"target"``, of numbers or of
        strings such as ``"1/3"``, and possibly an integer ``"token"``. ``.npy``: a
        floating array of shape (2, V), the draft row first.

    Returns
    -------
    Given
        The rows, and the token if the file has one.

    Raises
    ------
    InputError
        If the file cannot be read or holds something else.
    """
    try:
        if path.suffix == ".npy":
            return _from_array(np.load(path, allow_pickle=False))
        # As text, so that a decimal stays the decimal it is.
        data = json.loads(path.read_text("utf-8"), parse_float=str, parse_constant=str)
        draft, target = (
            [str(entry) for entry in data[name]] for name in ("draft", "target")
        )
        return read_text(draft, target, data.get("token"))
    except InputError:
        raise
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
        needed = "a floating array (2, V)" if path.suffix == ".npy" else '"draft", "target"'
        msg = f"{path} cannot be read ({type(error).__name__}: {error}); needed: {needed}"
        raise InputError(msg) from error


def _from_array(rows: NDArray[Any]) -> Given:
    if rows.ndim != 2 or rows.shape[0] != 2 or rows.dtype.kind != "f":  # noqa: PLR2004
        msg = f"the array is {rows.dtype} of shape {rows.shape}"
        raise ValueError(msg)
    draft, target = rows
    return Given(draft, target, draft.tolist(), target.tolist())


def _number(name: str, text: str) -> float:
    try:
        return float(as_fraction(text))
    except (ValueError, ZeroDivisionError):
        pass
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if math.isfinite(value):  # a finite number would have been a fraction
        msg = f"`{name}`: {text!r} is no number; needed is a decimal or a fraction like 1/3"
        raise InputError(msg)
    return value
