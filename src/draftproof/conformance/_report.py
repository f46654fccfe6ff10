"""What a check found: a verdict, the evidence for it, and how to see it again."""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass, field
from importlib import metadata
from io import StringIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Check", "NotConformingError", "Report", "versions"]

SCHEMA = "draftproof-report-1"
_LIBRARIES = ("draftproof", "numpy", "scipy", "array-api-compat", "torch", "jax", "cupy")


class NotConformingError(AssertionError):
    """A subject was checked and does not conform; the message is the report."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes
    ----------
    name : str
        What was looked at.
    passed : bool
        Whether it was as it should be.
    cases : int
        How many decisions, rows or tokens were compared.
    detail : str
        In words what was seen; where it failed, the first case.
    p_value : float or None
        Of a statistical check: how likely a conforming subject gives counts as far from
        the law, or further. None of a check that is exact.
    detectable : float or None
        Of a statistical check: the least total variation that it had the stated power
        to see.
    ties : int
        How many cases were not judged, for a uniform was within rounding of a boundary.
    """

    name: str
    passed: bool
    cases: int
    detail: str = ""
    p_value: float | None = None
    detectable: float | None = None
    ties: int = 0


@dataclass(frozen=True)
class Report:
    """The verdict on a subject.

    Attributes
    ----------
    subject : str
        What was checked.
    kind : {"step", "verifier", "sampler", "draft"}
        As what.
    rule : str or None
        The rule it was held to.
    conforms : bool
        Whether everything was checked and was as it should be.
    fault : str or None
        The name of the fault that explains what was seen, where one does.
    checks : tuple of Check
        What was run.
    conventions : dict
        Where conventions legitimately differ, the one that was found.
    seed : int
        The seed of everything random.
    complete : bool
        Whether the check ran to its end; False after an interruption.
    seconds : float
        How long it took.
    snippet : str or None
        Lines of Python that show the first failure again.
    versions : dict
        Of Python and the libraries.
    """

    subject: str
    kind: str
    rule: str | None
    conforms: bool
    fault: str | None
    checks: tuple[Check, ...]
    conventions: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    complete: bool = True
    seconds: float = 0.0
    snippet: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)

    def assert_conforms(self) -> None:
        """Raise unless the subject conforms: the way to use a check in a test.

        Raises
        ------
        NotConformingError
            An `AssertionError` with the report as its message.
        """
        if not self.conforms:
            raise NotConformingError(str(self))

    def to_json(self) -> dict[str, Any]:
        """Return the report as what `json.dump` takes; the names are the attributes'."""
        return {"schema": SCHEMA, **asdict(self)}

    def __rich_console__(self, console: Any, options: Any) -> Any:
        """Yield what rich prints."""
        from draftproof.conformance._show import shown

        yield from shown(self)

    def __str__(self) -> str:
        """Return the report as plain text."""
        from rich.console import Console

        text = StringIO()
        Console(file=text, width=100, color_system=None).print(self, crop=False)
        return text.getvalue()


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that are installed."""
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
