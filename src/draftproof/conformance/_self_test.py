"""The kit on its own controls: it must reject what is wrong, and nothing else."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from rich.table import Table

from draftproof.conformance import broken
from draftproof.conformance._progress import tracked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from draftproof.conformance._progress import Progress
    from draftproof.conformance._report import Report
    from draftproof.conformance.broken import Broken

    Check: TypeAlias = Callable[..., Report]

__all__ = ["Control", "Judged", "controls", "judged", "self_test", "table"]

RIGHT = {
    "step": broken.RIGHT_STEPS,
    "verifier": broken.RIGHT_VERIFIERS,
    "sampler": broken.RIGHT_SAMPLERS,
    "draft": broken.RIGHT_DRAFTERS,
}
WRONG = {
    "step": broken.STEPS,
    "verifier": broken.VERIFIERS,
    "sampler": broken.SAMPLERS,
    "draft": broken.DRAFTERS,
}


class Control(NamedTuple):
    """A subject of which it is known whether it is right."""

    name: str
    kind: str
    wrong: bool
    subject: Broken


class Judged(NamedTuple):
    """What a check said about a control.

    Attributes
    ----------
    name, kind : str
        Of the control; the kind is a report's.
    rejected : bool
        Whether the report says that it does not conform.
    found, expected : str or None
        The fault that the report names, and the one that it should name. Of a control
        that is not to be rejected, the convention that shows what it does.
    ok : bool
        Whether the check judged it as it should.
    """

    name: str
    kind: str
    rejected: bool
    found: str | None
    expected: str | None
    ok: bool


def controls(*, quick: bool = True) -> Iterator[Control]:
    """Yield the controls, the right ones first.

    A quick run leaves out samplers that are made of a verifier which is a control itself
    and has the same fault.
    """
    for wrong, catalogues in ((False, RIGHT), (True, WRONG)):
        for kind, catalogue in catalogues.items():
            for name, subject in catalogue.items():
                again = kind == "sampler" and _same_fault(name, subject)
                if not (quick and wrong and again):
                    yield Control(name, kind, wrong, subject)


def _same_fault(name: str, subject: Broken) -> bool:
    verifier = broken.VERIFIERS.get(name)
    return verifier is not None and verifier.fault == subject.fault


def judged(control: Control, *, quick: bool = True, seed: int = 0) -> Judged:
    """Check a control, and compare the report with what is known about it."""
    name, kind, wrong, subject = control
    report = _checked(kind, subject, quick=quick, seed=seed)
    rejected, found, expected = not report.conforms, report.fault, subject.fault
    if subject.noted is not None:
        known = _conventions(kind, subject.rule, quick=quick, seed=seed)
        differs = report.conventions.get(subject.noted) != known.get(subject.noted)
        wrong, found, expected = False, subject.noted if differs else None, subject.noted
    return Judged(
        name, kind, rejected, found, expected, rejected == wrong and found == expected
    )


@cache
def _conventions(kind: str, rule: str | None, *, quick: bool, seed: int) -> dict[str, str]:
    """Return the conventions of the right subject that follows a rule."""
    same = (subject for subject in RIGHT[kind].values() if subject.rule == rule)
    return dict(_checked(kind, next(same), quick=quick, seed=seed).conventions)


def _checked(kind: str, subject: Broken, *, quick: bool, seed: int) -> Report:
    options: dict[str, Any] = {"quick": quick, "seed": seed, "progress": False}
    if kind in {"verifier", "sampler"}:
        options["rule"] = subject.rule
    return _check(kind)(subject.subject, **options)


def _check(kind: str) -> Check:
    from draftproof.conformance._draft import check_draft
    from draftproof.conformance._sampler import check_sampler
    from draftproof.conformance._step import check_step
    from draftproof.conformance._verifier import check_verifier

    checks: dict[str, Check] = {
        "step": check_step,
        "verifier": check_verifier,
        "sampler": check_sampler,
        "draft": check_draft,
    }
    return checks[kind]


def self_test(
    *, quick: bool = True, seed: int = 0, progress: Progress = None
) -> list[Judged]:
    """Run every control through its check.

    Parameters
    ----------
    quick
        Whether to run the quick checks, and fewer samplers.
    seed
        The seed of everything random.
    progress
        True for a progress bar, None for one on a terminal, False for none, or a function
        of steps done, steps in all, and words.

    Returns
    -------
    list of Judged
        In the order of `controls`. The kit is right if all are ``ok``.
    """
    todo = list(controls(quick=quick))
    results = []
    with tracked(progress, len(todo)) as step:
        for control in todo:
            results.append(judged(control, quick=quick, seed=seed))
            step(f"{control.kind}: {control.name}")
    return results


def table(results: list[Judged]) -> Table:
    """Return what was judged as a table for rich, and how many rightly in its caption."""
    right = sum(result.ok for result in results)
    shown = Table(
        box=None,
        pad_edge=False,
        header_style="bold",
        caption=f"{right} of {len(results)} controls judged as they should be",
        caption_justify="left",
    )
    for column in ("", "kind", "control", "verdict", "found"):
        shown.add_column(column)
    for result in results:
        mark = "[green]ok[/]" if result.ok else "[red]FAIL[/]"
        verdict = "rejected" if result.rejected else "conforms"
        found = result.found or ""
        if result.found != result.expected:
            found += f" (expected: {result.expected or 'no name'})"
        shown.add_row(mark, result.kind, result.name.replace("_", " "), verdict, found)
    return shown
