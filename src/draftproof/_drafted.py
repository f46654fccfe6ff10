"""What a rule reads of a chain, and what it decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from draftproof._library import Array, Library

__all__ = [
    "Decision",
    "Drafted",
    "behind",
    "check_rule",
    "fair",
    "read_coins",
    "read_drafted",
]

RULES = ("token", "block")


class Decision(NamedTuple):
    """What the coins decide; all of shape (..., 1).

    Attributes
    ----------
    num_accepted
        How many drafted tokens are accepted.
    place
        The draft row behind the accepted ones; the last one if there is none behind.
    scale
        The factor of the target row in the residual: the product c of the block rule;
        None for the token rule, where it is 1.
    absent
        Whether there is no draft behind the accepted ones, so that nothing was rejected.
    verified
        Whether all that was read could be verified; if not there is no next token.
    """

    num_accepted: Array
    place: Array
    scale: Array | None
    absent: Array
    verified: Array


class Drafted(NamedTuple):
    """The entries at the drafted tokens, and which are no drafts or legal; shape (..., K).

    Legal is what lies within the vocabulary, with entries that are finite.
    """

    draft: Array
    target: Array
    absent: Array
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
    index = ops.clip(draft_tokens, 0, size - 1)
    at = index[..., None]
    target = _entries_at(library, target_probs[..., :length, :], at, dtype)
    if draft_probs is None:
        draft = ops.ones_like(target)
    else:
        draft = _entries_at(library, draft_probs, at, dtype)
    # A difference of a number to itself is 0, or NaN where the number is not finite.
    legal = (index == draft_tokens) & (draft - draft == target - target)
    return Drafted(draft, target, draft_tokens == -1, legal)


def _entries_at(library: Library, rows: Array, index: Array, dtype: object) -> Array:
    return library.cast(library.widen(library.take(rows, index)[..., 0]), dtype)


def behind(library: Library, drafted: Drafted, num_accepted: Array) -> tuple[Array, Array]:
    """Return the draft row behind the accepted ones, and whether no draft is there."""
    length = drafted.absent.shape[-1]
    if not length:
        return num_accepted, num_accepted == 0
    place = library.ops.clip(num_accepted, 0, length - 1)
    return place, (num_accepted == length) | library.take(drafted.absent, place)


def fair(library: Library, coins: Array) -> Array:
    """Whether each coin is in [0, 1); NaN is not."""
    return library.ops.floor(coins) == 0


def read_coins(library: Library, uniforms: Array, rows: Array) -> Array:
    """Return the coins, in the wider dtype of uniforms and rows."""
    arithmetic = library.arithmetic_dtype(rows.dtype)
    coins = uniforms[..., :-1]
    return coins if coins.dtype == library.ops.float64 else library.cast(coins, arithmetic)
