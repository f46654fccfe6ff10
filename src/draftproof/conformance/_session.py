"""A check that is under way: what was found so far, and the report of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from draftproof.conformance._report import Check, Report, versions

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Session"]


@dataclass
class Session:
    """What is known of a subject so far.

    Attributes
    ----------
    subject, kind, rule, seed, conventions, fault, snippet
        As of `Report`.
    """

    subject: str
    kind: str
    rule: str | None
    seed: int
    conventions: dict[str, str] = field(default_factory=dict)
    fault: str | None = None
    snippet: str | None = None
    _checks: list[Check] = field(default_factory=list)
    _started: float = field(default_factory=time.perf_counter)

    @property
    def failed(self) -> bool:
        """Whether any check has failed."""
        return not all(check.passed for check in self._checks)

    def add(
        self,
        check: Check,
        snippet: Callable[[], str] | None = None,
    ) -> None:
        """Add a check; the first one that fails is shown again by its snippet."""
        self._checks.append(check)
        if not check.passed and self.snippet is None and snippet is not None:
            self.snippet = snippet()

    def report(self, *, complete: bool = True) -> Report:
        """Return the report. What was interrupted or looked at nothing does not conform."""
        return Report(
            subject=self.subject,
            kind=self.kind,
            rule=self.rule,
            conforms=complete and bool(self._checks) and not self.failed,
            fault=self.fault,
            checks=tuple(self._checks),
            conventions=dict(self.conventions),
            seed=self.seed,
            complete=complete,
            seconds=time.perf_counter() - self._started,
            snippet=self.snippet,
            versions=versions(),
        )
