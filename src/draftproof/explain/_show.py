"""A worked step on a terminal: in 80 columns, in colour or without."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from draftproof.explain._worked import Worked

__all__ = ["show"]

# Glyph and colour of each part of a bar; the glyphs do without the colours, and the
# colours are those that read on dark and on light.
_KEPT = ("█", "green")
_REPLACING = ("▒", "magenta")
_REJECTED = ("·", "default")

_BAR = 44
_LONGEST = 9  # characters of a fraction that still helps to read


def show(console: Console, worked: Worked, *, top: int) -> None:
    """Print table, bars and arithmetic.

    Parameters
    ----------
    console : rich.console.Console
        Where to print.
    worked : Worked
        The numbers.
    top : int
        How many entries of a large vocabulary to show; the others are added up.
    """
    shown = _largest(worked, top)
    console.print(
        f"Token {worked.token} was drawn from the draft law q; the target law is p.\n",
        highlight=False,
    )
    console.print(_table(worked, shown))
    console.print(_bars(worked, shown))
    console.print(_arithmetic(worked), highlight=False)


def _largest(worked: Worked, top: int) -> list[int]:
    """Return the entries to show, in the order of the vocabulary."""
    entries = range(len(worked.target))
    by_size = sorted(
        entries,
        key=lambda v: (v != worked.token, -max(worked.draft[v], worked.target[v]), v),
    )
    return sorted(by_size[:top])


def _table(worked: Worked, shown: Sequence[int]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    columns = (worked.draft, worked.target, worked.kept, worked.replacing, worked.residual)
    headers = ("q", "p", "min(p, q)", "max(p - q, 0)", "residual")
    table.add_column("token", justify="right")
    for header in headers:
        table.add_column(header, justify="right", no_wrap=True)
    for v in shown:
        mark = "> " if v == worked.token else ""
        table.add_row(f"{mark}{v}", *(_number(column[v]) for column in columns))
    rest = len(worked.target) - len(shown)
    if rest:
        left = [Fraction(sum(column) - sum(column[v] for v in shown)) for column in columns]
        table.add_row(f"{rest:,} more", *map(_number, left))
    table.add_row(
        "sum", *(_number(Fraction(sum(column))) for column in columns), style="bold"
    )
    return table


def _bars(worked: Worked, shown: Sequence[int]) -> Text:
    """Draw how min(p, q) and the residual's mass make up p, and what is rejected."""
    text = Text("\n")
    scale = max(max(worked.draft[v], worked.target[v]) for v in shown) or Fraction(1)
    width = max(len(str(v)) for v in shown)
    for v in shown:
        excess = worked.draft[v] - worked.kept[v]
        parts = (
            (worked.kept[v], _KEPT),
            (worked.replacing[v], _REPLACING),
            (excess, _REJECTED),
        )
        text.append(f"{v:>{width}} ")
        end = Fraction(0)
        for part, (glyph, style) in parts:
            # Ends are rounded, not lengths, so that the parts line up.
            start, end = end, end + part
            text.append(glyph * (_cells(end, scale) - _cells(start, scale)), style)
        text.append("\n")
    for (glyph, style), words in (
        (_KEPT, " min(p, q): drafted, kept   "),
        (_REPLACING, " up to p: the residual   "),
        (_REJECTED, " up to q: rejected"),
    ):
        text.append(glyph, style)
        text.append(words)
    text.append("\n")
    return text


def _cells(end: Fraction, scale: Fraction) -> int:
    return round(_BAR * end / scale)


def _arithmetic(worked: Worked) -> str:
    t = worked.token
    q, p = worked.draft[t], worked.target[t]
    rejected = Fraction(sum(worked.draft)) - sum(worked.kept)
    lines = [
        f"accept_prob = min(1, p[{t}] / q[{t}])",
        f"            = min(1, {_short(p)} / {_short(q)})",
        f"            = {_equal(worked.accept_prob)}",
        f"acceptance on average, sum min(p, q) = {_equal(Fraction(sum(worked.kept)))}",
    ]
    if any(worked.replacing):
        lines.append(
            f"residual = max(p - q, 0) / {_short(Fraction(sum(worked.replacing)))}"
        )
        lines.append(
            f"emitted  = min(p, q) + {_short(rejected)} * residual = {_verdict(worked)}"
        )
    else:
        lines.append("p is nowhere above q: nothing is rejected, the residual is zero")
    return "\n".join(lines)


def _verdict(worked: Worked) -> str:
    if not worked.error:
        return "p, exactly"
    return f"p within {float(worked.error):.2g} (sums differ)"


def _fraction(number: Fraction) -> str | None:
    """Return the number as a fraction if that is short enough to be read."""
    text = str(number)
    return text if len(text) <= _LONGEST else None


def _decimal(number: Fraction) -> str:
    return f"{float(number):.4g}"


def _number(number: Fraction) -> str:
    """Write a number for the table: the fraction, and beside it the decimal."""
    fraction = _fraction(number)
    if fraction is None or number.denominator == 1:
        return fraction or _decimal(number)
    return f"{fraction} {_decimal(number)}"


def _short(number: Fraction) -> str:
    fraction = _fraction(number)
    if fraction is None:
        return f"{float(number):.6g}"
    return fraction if number.denominator == 1 else f"({fraction})"


def _equal(number: Fraction) -> str:
    decimal = f"{float(number):.10g}"
    fraction = _fraction(number)
    if fraction is None or number.denominator == 1:
        return decimal
    sign = "=" if Fraction(decimal) == number else "~"
    return f"{fraction} {sign} {decimal}"
