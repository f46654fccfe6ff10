"""How far a long check has come."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Step: TypeAlias = Callable[[str], None]
    Progress: TypeAlias = bool | Callable[[int, int, str], None] | None

__all__ = ["tracked"]


@contextmanager
def tracked(progress: Progress, total: int) -> Iterator[Step]:
    """Yield a function to call, with words for it, after each of so many steps.

    Parameters
    ----------
    progress
        True for a bar on the standard error stream, False for nothing, None for a bar
        where that is a terminal; or a function of steps done, steps in all, and words.
    total
        How many steps there will be.
    """
    if callable(progress):
        yield _calling(progress, total)
    elif progress or (progress is None and sys.stderr.isatty()):
        from rich.console import Console
        from rich.progress import Progress as Bar

        with Bar(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("", total=total)
            yield lambda words: bar.update(task, advance=1, description=words)
    else:
        yield lambda _: None


def _calling(progress: Callable[[int, int, str], None], total: int) -> Step:
    done = 0

    def step(words: str) -> None:
        nonlocal done
        done += 1
        progress(done, total, words)

    return step
