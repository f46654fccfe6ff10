"""The support table of the README, made from the declarations in `backends`.

``python tests/support.py`` writes it; a test fails if it is out of date.
"""

from __future__ import annotations

import re
from pathlib import Path

from backends import Backend

README = Path(__file__).parent.parent / "README.md"
MARKED = re.compile(r"(<!-- support table -->\n).*?(<!-- end -->)", re.DOTALL)


def table() -> str:
    """Render the table in Markdown."""
    lines = ["| arrays | dtypes | transformations | tested |", "| --- | --- | --- | --- |"]
    for backend in Backend:
        told = backend.value
        tested = "always" if told.required else "where a GPU answers"
        remark = f" ({told.remark})" if told.remark else ""
        dtypes = ", ".join(told.dtypes)
        lines.append(f"| {told.label} | {dtypes}{remark} | {told.traces} | {tested} |")
    return "\n".join(lines) + "\n"


def updated(text: str) -> str:
    """Return a text with the table between its marks renewed."""
    return MARKED.sub(lambda match: match[1] + table() + match[2], text)


if __name__ == "__main__":
    README.write_text(updated(README.read_text(encoding="utf-8")), encoding="utf-8")
