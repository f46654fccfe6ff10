"""The run of the demo on a terminal: readable in colour and without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from draftproof.demo._loop import Run

__all__ = ["show"]

# Both read on dark and on light; the underline still shows without colour.
_ACCEPTED, _REPLACED = "green", "bold underline magenta"


def show(console: Console, run: Run, words: Sequence[str], *, seconds: float) -> None:
    """Print the text with accepted and replaced words apart, then the statistics.

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
            text.append(marked.format(words[token]), _REPLACED)
        text.append(" ")
    console.print(text)
    console.print()
    kept = sum(one.accepted for one in run.emitted)
    legend = Text()
    legend.append(f"{kept} accepted", _ACCEPTED)
    legend.append(" words of the bigram drafter, ")
    legend.append(marked.format(f"{len(run.emitted) - kept} replaced"), _REPLACED)
    legend.append(f" by a draw from the residual, in {seconds:.2f} s")
    console.print(legend)
    off = run.measured_rate - run.predicted_rate
    lines = [
        f"measured acceptance   {run.measured_rate:.4f}",
        f"predicted acceptance  {run.predicted_rate:.4f}   mean of sum(min(p, q))",
        f"standard error        {run.standard_error:.4f}",
    ]
    if run.standard_error > 0:
        lines.append(
            f"difference           {off:+.4f}   {off / run.standard_error:+.2f} errors"
        )
    console.print("\n".join(lines), highlight=False)
