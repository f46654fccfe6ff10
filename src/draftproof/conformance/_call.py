"""A sampler from outside, called with NumPy arrays."""

from __future__ import annotations

import keyword
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from draftproof.conformance._subject import CouldNotRunError, to_host

if TYPE_CHECKING:
    from collections.abc import Callable

    from draftproof.conformance._counts import Case
    from draftproof.conformance._subject import Convert, Host

__all__ = ["Caller", "called", "placed", "replaying"]


@dataclass
class Caller:
    """A sampler, and a drafter if it has one of its own.

    Attributes
    ----------
    sampler, drafter : callable
        The functions; the drafter may be None.
    convert : callable
        From NumPy to the subject's library.
    dtype : str
        Of the rows.
    """

    sampler: Callable[..., Any]
    drafter: Callable[..., Any] | None
    convert: Convert
    dtype: str

    def drafted(self, case: Case, rng: np.random.Generator, count: int, seed: int) -> Host:
        """Return drafted tokens, shape (count, K), by the drafter if there is one."""
        if self.drafter is None:
            return case.draw(rng, count)
        length, size = case.shape
        tokens = np.zeros((count, length), np.int64)
        last = np.full(count, -1)
        for place in range(length):
            rows = placed(self.convert, case.rows[0][place, last], self.dtype)
            drawn = to_host(called("drafter", self.drafter, rows, place, seed))
            fits = drawn.shape == (count,) and drawn.dtype.kind in "iu"
            if not fits or (drawn < 0).any() or (drawn >= size).any():
                msg = (
                    f"the drafter returned {drawn.dtype} of shape {drawn.shape}; needed "
                    f"are integers from 0 to {size - 1}, shape ({count},)"
                )
                raise CouldNotRunError(msg)
            last = tokens[:, place] = drawn
        return tokens

    def emitted(self, case: Case, tokens: Host, seed: int) -> Host:
        """Return what the sampler emits for drafted tokens."""
        arrays = self.arrays(case, tokens)
        return to_host(called("sampler", self.sampler, *arrays, seed))

    def arrays(self, case: Case, tokens: Host) -> tuple[Any, Any, Any]:
        """Return the arguments for drafted tokens, of which -1 are no drafts."""
        draft, target = case.along(tokens)
        ended = np.cumsum(tokens < 0, axis=1) > 0
        draft[ended] = 0
        target[:, 1:][ended] = 1 / target.shape[-1]  # behind the end nothing is read
        rows = None if case.one_hot else placed(self.convert, draft, self.dtype)
        return rows, placed(self.convert, target, self.dtype), self.convert(tokens.copy())


def placed(convert: Convert, rows: Host, dtype: str) -> Any:
    """Return rows in the subject's library and a dtype."""
    if dtype != "bfloat16":  # which NumPy does not have
        return convert(rows.astype(dtype))
    array = convert(rows.astype("float32"))
    return array.bfloat16() if hasattr(array, "bfloat16") else array.astype(dtype)


def called(what: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call somebody else's function.

    Raises
    ------
    CouldNotRunError
        If it raises.
    """
    try:
        return function(*arguments)
    except Exception as error:
        shapes = ", ".join(str(tuple(getattr(a, "shape", ()))) or str(a) for a in arguments)
        msg = f"the {what} raised {type(error).__name__} for shapes {shapes}: {error}"
        raise CouldNotRunError(msg) from error


def replaying(function: str, subjects: dict[str, str], options: dict[str, Any]) -> str:
    """Return the lines of Python that print a batch again.

    Parameters
    ----------
    function
        What prints it, of `draftproof.conformance._replay`.
    subjects
        The functions that were checked: what they are called there, and their names.
    options
        The other arguments, of which those that are None or False go without saying.
    """
    given = {key: value for key, value in options.items() if value not in {None, False}}
    words = [f"{key}={key}" for key in subjects]
    words += [f"{k}={'...' if callable(v) else repr(v)}" for k, v in given.items()]
    lines = [
        f"from draftproof.conformance._replay import {function}",
        *(_imported(name, known_as) for known_as, name in subjects.items()),
        f"for line in {function}(",
        *(f"    {word}," for word in words),
        "):",
        "    print(line)",
    ]
    return "\n".join(lines)


def _imported(name: str, known_as: str) -> str:
    """Return the line that imports what has a name, or that leaves it to the reader."""
    module, _, function = name.partition(":")
    parts = [*module.split("."), *function.split(".")]
    plain = all(part.isidentifier() and not keyword.iskeyword(part) for part in parts)
    if not plain or module == "__main__":
        return f"{known_as} = ...  # {name}"
    first, *rest = function.split(".")
    if rest:
        return f"from {module} import {first}\n{known_as} = {function}"
    return f"from {module} import {first} as {known_as}"
