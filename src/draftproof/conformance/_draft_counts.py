"""Logits for a drafter, and what it drew, as counts beside the laws it handed over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from draftproof.conformance._structure import Misfit

if TYPE_CHECKING:
    from draftproof.conformance._subject import Host

__all__ = ["ROWS", "DraftCounts", "draft_misfit", "rows_of_logits", "softmax"]

ROWS = ("broad", "even", "some masked", "narrow", "very narrow", "nearly sure")
_TOLERANCE = 0.01  # of a sum in half precision


def rows_of_logits(size: int) -> Host:
    """Return one row of logits for each of `ROWS`, shape (rows, V)."""
    normal = np.random.default_rng(size).standard_normal((len(ROWS), size))
    rows: Host = normal * np.asarray([1.0, 0.5, 1.0, 2.0, 3.0, 2.0])[:, None]
    rows[2, ::3] = -np.inf
    rows[5] += 20  # which no probability depends on
    rows[5, size // 2] = rows[5].max() + 5
    return rows


def softmax(logits: Host) -> Host:
    """Return probabilities for logits."""
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    probs: Host = weights / weights.sum(-1, keepdims=True)
    return probs


def draft_misfit(tokens: Host, probs: Host, shape: tuple[int, ...]) -> Misfit | None:
    """Return what is wrong with the form of a batch, None if nothing."""
    count, size = shape
    if tokens.shape != (count,) or tokens.dtype.kind not in "iu":
        return Misfit(
            f"returned tokens of {tokens.dtype} and shape {tokens.shape}; needed are "
            f"integers of shape (B,), {(count,)}"
        )
    if probs.shape != shape:
        return Misfit(f"returned rows of shape {probs.shape}; needed is (B, V), {shape}")
    bad = (tokens < 0) | (tokens >= size)
    if bad.any():
        row = int(bad.argmax())
        detail = f"request {row}: token {tokens[row]}; needed is 0 to {size - 1}"
        return Misfit(detail, "id outside the vocabulary")
    sums = probs.sum(1)
    bad = ~(np.isfinite(probs) & (probs >= 0)).all(1) | (np.abs(sums - 1) > _TOLERANCE)
    if bad.any():
        row = int(bad.argmax())
        return Misfit(
            f"request {row}: the row handed over has the sum {sums[row]:.6g} and the least "
            f"entry {probs[row].min():.3g}; needed are probabilities"
        )
    return None


@dataclass
class DraftCounts:
    """What was drawn for each row of logits, and laws that it may have been drawn from.

    Attributes
    ----------
    logits : array, shape (rows, V)
        The rows.
    seen : array, shape (rows, V)
        How often each token was drawn.
    handed : array, shape (rows, V)
        Sums of the laws handed over with these tokens.
    others : dict of str to pair of arrays
        Counts and sums of laws that were handed over with other requests.
    impossible : int
        How many tokens had the probability 0.
    """

    logits: Host
    seen: Host = field(init=False)
    handed: Host = field(init=False)
    others: dict[str, list[Host]] = field(init=False)
    impossible: int = 0

    def __post_init__(self) -> None:
        self.seen, self.handed = (np.zeros(self.logits.shape) for _ in range(2))
        names = ("the request behind", "the request before", "the call before")
        self.others = {name: [np.zeros(self.logits.shape) for _ in "12"] for name in names}
        self._last: tuple[Host, Host] | None = None

    @property
    def size(self) -> int:
        """The number of requests."""
        return int(self.seen.sum())

    def add(self, rows: Host, tokens: Host, probs: Host) -> None:
        """Count a batch that has the right form; `rows` tells the requests' logits."""
        own = (np.arange(len(self.logits))[:, None] == rows).astype(float)
        seen = np.zeros(self.logits.shape)
        np.add.at(seen, (rows, tokens), 1)
        self.seen += seen
        self.handed += _summed(own, probs)
        self.impossible += int((probs[np.arange(len(tokens)), tokens] <= 0).sum())
        # Handed over with a neighbour is the law of this one if rows are off by one.
        for name, shift in (("the request behind", 1), ("the request before", -1)):
            self._other(name, seen, _summed(own, np.roll(probs, shift, axis=0)))
        if self._last is not None:
            last_own, last_seen = self._last
            self._other("the call before", last_seen, _summed(last_own, probs))
        self._last = own, seen

    def _other(self, name: str, seen: Host, handed: Host) -> None:
        self.others[name][0] += seen
        self.others[name][1] += handed

    def laws(self) -> Host:
        """Return the mean law handed over for each row of logits."""
        sums = self.handed.sum(1, keepdims=True)
        laws: Host = self.handed / np.where(sums > 0, sums, 1)
        return laws


def _summed(own: Host, probs: Host) -> Host:
    """Return sums by rows of logits; threads would cost more than they bring."""
    sums: Host = np.einsum("rb,bv->rv", own, probs)
    return sums
