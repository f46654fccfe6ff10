"""What a verifier is given, as arrays in double precision, and what it looks up there."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

__all__ = ["Array", "Batch", "at", "batch_of", "one_hot", "row"]

Array: TypeAlias = Any
"""An array of NumPy, of numbers or truth values."""


class Batch(NamedTuple):
    """B requests of K drafted tokens each.

    Attributes
    ----------
    draft : array (B, K, V)
        Draft rows; all zero where no token was drafted.
    target : array (B, K + 1, V)
        Target rows.
    tokens : array (B, K)
        Drafted tokens.
    uniforms : array (B, K + 1)
        K coins, and the uniform of the next token.
    drafted : array (B, K)
        Whether there is a draft.
    """

    draft: Array
    target: Array
    tokens: Array
    uniforms: Array
    drafted: Array

    @property
    def coins(self) -> Array:
        """The coins, (B, K)."""
        return self.uniforms[:, :-1]

    @property
    def p(self) -> Array:
        """Target probability of each drafted token, (B, K)."""
        return at(self.target[:, :-1], self.tokens)

    @property
    def q(self) -> Array:
        """Draft probability of each drafted token, (B, K)."""
        return at(self.draft, self.tokens)

    @property
    def sound(self) -> Array:
        """Whether id, probabilities and coin of a place are what they can be, (B, K)."""
        ids = (self.tokens >= 0) & (self.tokens < self.target.shape[-1])
        coins = (self.coins >= 0) & (self.coins < 1)
        return ids & coins & np.isfinite(self.p) & np.isfinite(self.q)

    def all_accepted(self, accepted: Array) -> Array:
        """Whether the row after so many tokens is the one of the bonus token, (B,)."""
        none_left = accepted == self.tokens.shape[1]
        more = self.drafted.shape[1] > 0
        return none_left | ~row(self.drafted, accepted) if more else none_left


def batch_of(
    draft_probs: Any, target_probs: Any, draft_tokens: Any, uniforms: Any
) -> Batch:
    """Read a verifier's arguments."""
    target, tokens = np.asarray(target_probs, np.float64), np.asarray(draft_tokens)
    drafted = tokens != -1
    if draft_probs is None:
        draft = one_hot(tokens, target.shape[-1])
    else:
        draft = np.asarray(draft_probs, np.float64)
    draft = np.where(drafted[:, :, None], draft, 0)
    return Batch(draft, target, tokens, np.asarray(uniforms, np.float64), drafted)


def at(rows: Array, tokens: Array) -> Array:
    """Return the entry of each row at its token."""
    ids = np.clip(tokens, 0, rows.shape[-1] - 1)
    return np.take_along_axis(rows, ids[..., None], -1)[..., 0]


def row(rows: Array, places: Array) -> Array:
    """Return of each request its row at a place, the last one for places behind it."""
    return rows[np.arange(len(rows)), np.clip(places, 0, rows.shape[1] - 1)]


def one_hot(tokens: Array, size: int) -> Array:
    """Return rows that are 1 at a token."""
    return (tokens[..., None] == np.arange(size)).astype(np.float64)
