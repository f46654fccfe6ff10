"""What a rule reads of a chain, and what it decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from draftproof._library import Array, Library

__all__ = ["Decision", "Drafted", "check_rule", "read_coins", "read_drafted"]

RULES = ("token", "block")


class Decision(NamedTuple):
    """What the coins decide; all of shape (...).

    Attributes
    ----------
    num_accepted
        How many drafted tokens are accepted.
    scale
        The factor of the target row in the residual: the product c of the block rule;
        None for the token rule, where it is 1.
    absent
        Whether there is no draft behind the accepted ones, so that nothing was rejected.
    failed
        Whether something could not be verified, so that there is no next token.
    """

    num_accepted: Array
    scale: Array | None
    absent: Array
    failed: Array


class Drafted(NamedTuple):
    """The entries at the drafted tokens, and which are there and legal; shape (..., K)."""

    draft: Array
    target: Array
    present: Array
    legal: Array


def check_rule(rule: str) -> None:
    """Require the name of a rule."""
    if rule not in RULES:
        msg = f"`rule` is {rule!r}; needed is one of {', '.join(map(repr, RULES))}"
        raise ValueError(msg)


def read_drafted(
    library: Library,
    draft_probs: Array | None,
    target_probs: Array,
    draft_tokens: Array,
    dtype: object,
) -> Drafted:
    """Read the entries at the drafted tokens."""
    ops = library.ops
    length, size = draft_tokens.shape[-1], target_probs.shape[-1]
    inside = (draft_tokens >= 0) & (draft_tokens < size)
    index = ops.where(inside, draft_tokens, ops.zeros_like(draft_tokens))
    target = _entries_at(library, target_probs[..., :length, :], index, dtype)
    if draft_probs is None:
        draft = ops.ones_like(target)
    else:
        draft = _entries_at(library, draft_probs, index, dtype)
    legal = inside & library.finite(draft) & library.finite(target)
    return Drafted(draft, target, draft_tokens != -1, legal)


def _entries_at(library: Library, rows: Array, index: Array, dtype: object) -> Array:
    return library.cast(library.widen(library.gather(rows, index)[..., 0]), dtype)


def read_coins(library: Library, uniforms: Array, rows: Array) -> Array:
    """Return the coins, in the wider dtype of uniforms and rows."""
    arithmetic = library.arithmetic_dtype(rows.dtype)
    coins = uniforms[..., :-1]
    return coins if coins.dtype == library.ops.float64 else library.cast(coins, arithmetic)
