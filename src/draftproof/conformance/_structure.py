"""The form of what a sampler returns: what must hold for every request."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from draftproof.conformance._subject import Host

__all__ = ["Misfit", "misfit"]


class Misfit(NamedTuple):
    """What is wrong with the form, and the name of the fault that does so."""

    detail: str
    fault: str | None = None


def misfit(drafted: Host, emitted: Host, size: int) -> Misfit | None:
    """Return what is wrong with the tokens of a batch, None if nothing.

    Parameters
    ----------
    drafted, emitted
        What went in, shape (B, K), and what came out.
    size
        The number of tokens V.
    """
    needed = (len(drafted), drafted.shape[1] + 1)
    if emitted.shape != needed:
        return Misfit(f"returned shape {emitted.shape}; needed is (B, K + 1), {needed}")
    if emitted.dtype.kind not in "iu":
        return Misfit(f"returned {emitted.dtype}; needed are integers")
    for test in (_outside, _interrupted, _nothing, _too_many, _others):
        bad, words, fault = test(drafted, emitted, size)
        if bad.any():
            row = int(bad.argmax())
            came = f"request {row}: drafted {drafted[row].tolist()}"
            detail = f"{came}, emitted {emitted[row].tolist()}: {words}"
            return Misfit(f"{detail} ({int(bad.sum()):,} of {len(bad):,} requests)", fault)
    return None


def _outside(_: Host, emitted: Host, size: int) -> tuple[Host, str, str | None]:
    bad = np.any((emitted >= size) | (emitted < -1), axis=1)
    return bad, f"tokens are 0 to {size - 1}, padding -1", "id outside the vocabulary"


def _interrupted(_: Host, emitted: Host, __: int) -> tuple[Host, str, str | None]:
    gone = emitted < 0
    bad = np.any(gone[:, :-1] & ~gone[:, 1:], axis=1)
    return bad, "padding before a token", None


def _nothing(_: Host, emitted: Host, __: int) -> tuple[Host, str, str | None]:
    bad = np.all(emitted < 0, axis=1)
    words = "every call emits at least one token"
    return bad, words, "nothing emitted"


def _too_many(drafted: Host, emitted: Host, _: int) -> tuple[Host, str, str | None]:
    bad = (emitted >= 0).sum(1) > (drafted >= 0).sum(1) + 1
    return bad, "more tokens than drafts and one", "padding counted as accepted"


def _others(drafted: Host, emitted: Host, _: int) -> tuple[Host, str, str | None]:
    """Every token but the last is an accepted draft."""
    accepted = (emitted >= 0).sum(1)[:, None] - 1
    other = (np.arange(drafted.shape[1]) < accepted) & (emitted[:, :-1] != drafted)
    bad = other.any(1)
    # Behind the first other token, the drafts as they were: the buffer was not cleared.
    first = np.where(bad, other.argmax(1), 0)[:, None]
    behind = np.arange(drafted.shape[1]) > first
    same = ((emitted[:, :-1] == drafted) | ~behind).all(1)
    left = (same | ~bad).all() and (bad[:, None] & behind).any()
    words = "only the last token may differ from the drafts"
    return bad, words, "rejected drafts left behind the replacement" if left else None
