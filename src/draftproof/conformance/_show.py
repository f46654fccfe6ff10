"""A report as text, for terminals, for messages of failing tests and for files."""

from __future__ import annotations

from textwrap import indent
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from draftproof.conformance._report import Check, Report

__all__ = ["shown"]


def shown(report: Report) -> Iterator[Any]:
    """Yield the parts of a report in the order in which they are read."""
    yield _verdict(report)
    yield _checks(report)
    if report.conventions:
        yield Text("Conventions found", style="bold")
        for name, found in report.conventions.items():
            yield Padding(Text(f"{name}: {found}"), (0, 0, 0, 2))
    if report.snippet:
        yield Text("To see the first failure again", style="bold")
        # Never wrapped: it is there to be copied.
        lines = indent(report.snippet.rstrip(), "  ")
        yield Text(lines, no_wrap=True, overflow="ignore")
    known = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    yield Text(f"seed {report.seed}; {report.seconds:.1f} s; {known}", style="dim")


def _verdict(report: Report) -> Text:
    held = f" to rule {report.rule!r}" if report.rule else ""
    text = Text(f"{report.subject}, as {report.kind}{held}: ")
    if report.conforms:
        text.append("conforms", style="bold green")
    elif any(not check.passed for check in report.checks):
        text.append("does not conform", style="bold red")
    else:
        text.append("not known", style="bold yellow")
    if report.fault:
        text.append(f"; suspected fault: {report.fault}", style="red")
    if not report.complete:
        text.append("; interrupted, this is what is known so far", style="yellow")
    return text


def _checks(report: Report) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("check")
    table.add_column("")
    table.add_column("cases", justify="right")
    table.add_column("found", overflow="fold")
    for check in report.checks:
        mark = "[green]ok[/]" if check.passed else "[red]FAIL[/]"
        table.add_row(escape(check.name), mark, f"{check.cases:,}", escape(_found(check)))
    return table


def _found(check: Check) -> str:
    parts = [check.detail] if check.detail else []
    if check.p_value is not None:
        parts.append(f"p = {check.p_value:.2g}")
    if check.detectable is not None:
        parts.append(f"sees a total variation of {check.detectable:.2g}")
    if check.ties:
        parts.append(f"{check.ties:,} within rounding of a boundary, not judged")
    return "; ".join(parts)
