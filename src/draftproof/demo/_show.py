"""The run of the demo on a terminal: readable in colour and without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from draftproof.demo._figures import RULES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from draftproof.demo._figures import Run

__all__ = ["show"]

# Both read on dark and on light; the underline still shows without colour.
_ACCEPTED, _NEXT = "green", "bold underline magenta"


def show(console: Console, run: Run, words: Sequence[str], *, seconds: float) -> None:
    """Print the text with accepted and next words apart, then the statistics.

    Parameters
    ----------
    console : rich.console.Console
        Where to print.
    run : Run
        What `decode` returned.
    words : sequence of str
        The vocabulary.
    seconds : float
        How long the decoding took.
    """
    # Brackets where there are neither colours nor underlines.
    marked = "[{}]" if console.color_system is None else "{}"
    text = Text()
    for token, accepted in run.emitted:
        if accepted:
            text.append(words[token], _ACCEPTED)
        else:
            text.append(marked.format(words[token]), _NEXT)
        text.append(" ")
    console.print(text)
    console.print()
    kept = sum(one.accepted for one in run.emitted)
    legend = Text()
    legend.append(f"{kept} accepted", _ACCEPTED)
    legend.append(" drafts, ")
    legend.append(marked.format(f"{len(run.emitted) - kept} next words"), _NEXT)
    legend.append(f" from residual or bonus, in {seconds:.2f} s")
    console.print(legend)
    console.print("\n".join(_statistics(run)), highlight=False)


def _statistics(run: Run) -> list[str]:
    """Return the lines that hold what was measured against what was expected."""
    calls, expected, error = len(run.calls), run.expected(run.rule), run.standard_error
    off = run.measured - expected
    lines = [
        f"measured        {run.measured:.4f}   tokens per target call, {calls} calls",
        f"expected        {expected:.4f}   given the drafts, rule {run.rule}",
        f"standard error  {error:.4f}",
    ]
    if error > 0:
        lines.append(f"difference     {off:+.4f}   {off / error:+.2f} errors")
    both = ", ".join(f"{rule} {run.expected(rule):.2f}" for rule in RULES)
    lines += [
        f"acceptance      {run.acceptance_rate:.4f}   per place, mean of sum(min(p, q))",
        f"{both} tokens per call expected on these drafts",
    ]
    return lines
