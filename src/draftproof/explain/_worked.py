"""The numbers of a worked step, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from draftproof import exact

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction
    from typing import Any

__all__ = ["Worked", "work"]


@dataclass(frozen=True)
class Worked:
    """Everything that is to be said about one step.

    Attributes
    ----------
    draft, target : tuple of Fraction
        The rows q and p.
    token : int
        The drafted token.
    accept_prob : Fraction
        Probability to keep it.
    kept : tuple of Fraction
        ``min(p, q)``: the probability that a token is drafted and kept.
    replacing : tuple of Fraction
        ``max(p - q, 0)``: what the replacement of a rejected token has to supply.
    residual : tuple of Fraction
        The law of the replacement.
    emitted : tuple of Fraction
        The law of what is emitted: the target, if both rows have the same sum.
    """

    draft: tuple[Fraction, ...]
    target: tuple[Fraction, ...]
    token: int
    accept_prob: Fraction
    kept: tuple[Fraction, ...]
    replacing: tuple[Fraction, ...]
    residual: tuple[Fraction, ...]
    emitted: tuple[Fraction, ...]

    @property
    def error(self) -> Fraction:
        """Largest difference between the emitted law and the target."""
        return max(abs(e - p) for e, p in zip(self.emitted, self.target, strict=True))


def work(draft: Sequence[Any], target: Sequence[Any], token: int) -> Worked:
    """Work out one step with fractions.

    Parameters
    ----------
    draft, target : sequence of number
        The rows, of anything that `draftproof.exact` reads.
    token : int
        The drafted token.

    Returns
    -------
    Worked
        The numbers.

    Raises
    ------
    ValueError, IndexError, TypeError
        As `draftproof.exact.speculative_decode_step`.
    """
    step = exact.speculative_decode_step(draft, target, token)
    q, p = (tuple(map(exact.as_fraction, row)) for row in (draft, target))
    kept = tuple(map(min, p, q))
    return Worked(
        draft=q,
        target=p,
        token=token,
        accept_prob=step["accept_prob"],
        kept=kept,
        replacing=tuple(above - both for above, both in zip(p, kept, strict=True)),
        residual=step["residual"],
        emitted=exact.reconstruct(q, p),
    )
