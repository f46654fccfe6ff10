"""The token rule: accept up to the first failure."""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING

from draftproof._drafted import Decision, behind, fair, read_coins, read_drafted

if TYPE_CHECKING:
    from draftproof._library import Array, Library

__all__ = ["decide_token", "decide_token_rows"]


def decide_token(
    library: Library,
    draft_probs: Array | None,
    target_probs: Array,
    draft_tokens: Array,
    uniforms: Array,
) -> Decision:
    """Accept ``x_i`` if ``u_i * q_i(x_i) < p_i(x_i)``, up to the first failure."""
    coins = read_coins(library, uniforms, target_probs)
    drafted = read_drafted(library, draft_probs, target_probs, draft_tokens, coins.dtype)
    legal = drafted.legal & fair(library, coins)
    accepted = legal & (coins * drafted.draft < drafted.target)
    num_accepted = library.leading(accepted)
    place, absent = behind(library, drafted, num_accepted)
    verified = absent | library.take(legal, place) if coins.shape[-1] else absent
    return Decision(num_accepted, place, None, absent, verified)


def decide_token_rows(
    library: Library,
    draft_probs: Array | None,
    target_probs: Array,
    draft_tokens: Array,
    uniforms: Array,
) -> Decision:
    """Decide as `decide_token`, entry by entry: for NumPy and few, long rows."""
    np = library.ops
    shape = draft_tokens.shape[:-1]
    decided = []
    for at in product(*map(range, shape)):
        draft = None if draft_probs is None else draft_probs[at]
        coins, tokens = uniforms[at].tolist(), draft_tokens[at].tolist()
        decided.append(_decide_one(draft, target_probs[at], tokens, coins))
    columns = zip(*decided, strict=True) if decided else ([], [], [])
    num_accepted, absent, verified = (
        np.asarray(column, dtype=kind).reshape((*shape, 1))
        for column, kind in zip(columns, ("int64", "bool", "bool"), strict=True)
    )
    return Decision(num_accepted, num_accepted, None, absent, verified)


def _decide_one(
    draft: Array | None, target: Array, tokens: list[int], coins: list[float]
) -> tuple[int, bool, bool]:
    """Return how many are accepted, whether none stands behind, and if that is legal."""
    for i, token in enumerate(tokens):
        if token == -1:
            return i, True, True
        if not 0 <= token < target.shape[-1]:
            return i, False, False
        q = 1.0 if draft is None else float(draft[i, token])
        p, coin = float(target[i, token]), coins[i]
        if not (math.isfinite(q) and math.isfinite(p) and 0 <= coin < 1):
            return i, False, False
        if not coin * q < p:
            return i, False, True
    return len(tokens), True, True
