"""The token that follows the accepted ones: a draw from the residual of one row pair."""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING

from draftproof._arithmetic import positive_part
from draftproof._draw import BLOCK, blocks_of, draw_row, draw_tokens

if TYPE_CHECKING:
    from collections.abc import Callable

    from draftproof._drafted import Decision
    from draftproof._library import Array, Library

__all__ = ["all_requests", "each_request"]


def all_requests(
    library: Library,
    decision: Decision,
    draft_probs: Array | None,
    target_probs: Array,
    draft_tokens: Array,
    coins: Array,
) -> tuple[Array, Array]:
    """Gather one row pair of each request, and draw from all of them at once."""
    target, entries = _rows_at(library, target_probs, decision.num_accepted)
    if not draft_tokens.shape[-1]:
        return draw_tokens(library, target, coins)
    scale = decision.scale
    if scale is not None:
        scale = library.cast(scale, target.dtype)
    if draft_probs is None:
        numbers = library.numbers(target, target.shape[-1])
        token = library.take(draft_tokens, decision.place)
        drafted = numbers == library.cast(token, numbers.dtype)
        draft = library.cast(drafted, target.dtype)
    else:
        draft, _ = _rows_at(library, draft_probs, decision.place)
    # In PyTorch fresh memory for many rows costs more than the arithmetic on them.
    many = math.prod(target.shape[:-1]) > 1 and target.shape[-1] > BLOCK
    spent = library.name == "torch" and many
    fallback = blocks_of(library, target, entries if spent else None)
    weights = positive_part(library, target, draft, scale, into_target=spent)
    return draw_tokens(library, weights, coins, fallback, decision.absent)


def _rows_at(
    library: Library, rows: Array, place: Array
) -> tuple[Array, Callable[[Array], Array]]:
    """Return a copy of the row at one place of each request, shape ``(..., V)``.

    And a function that reads entries of that row, shape ``(..., n)``, from the original.
    """
    *leading, length, size = rows.shape
    index = library.ops.reshape(place, (-1,))
    if math.prod(leading) != 1:
        start = length * library.numbers(index, index.shape[0])
        index = start + library.cast(index, start.dtype)
    flat = library.ops.reshape(rows, (-1, size))

    def entries(numbers: Array) -> Array:
        count = numbers.shape[-1]
        found = flat[index[:, None], library.ops.reshape(numbers, (-1, count))]
        return library.ops.reshape(library.widen(found), (*leading, count))

    taken = library.ops.reshape(library.take_rows(flat, index), (*leading, size))
    return library.widen(taken), entries


def each_request(
    library: Library,
    decision: Decision,
    draft_probs: Array | None,
    target_probs: Array,
    draft_tokens: Array,
    coins: Array,
) -> tuple[Array, Array]:
    """Draw request by request from views of its rows."""
    np = library.ops
    tau = decision.num_accepted
    drawn = []
    for at in product(*map(range, tau.shape)):
        if not decision.verified[at]:
            drawn.append(-1)
            continue
        place = (*at[:-1], int(tau[at]))
        weights = target = library.widen(target_probs[place])
        if not decision.absent[at]:
            scale = None
            if decision.scale is not None:
                scale = decision.scale[at].astype(target.dtype)
            if draft_probs is None:
                weights = target.copy() if scale is None else scale * target
                drafted = draft_tokens[place]
                weights[drafted] = max(weights[drafted] - 1, 0)
            else:
                draft = library.widen(draft_probs[place])
                weights = positive_part(library, target, draft, scale)
        drawn.append(draw_row(library, weights, float(coins[at]), target))
    token = np.asarray(drawn, dtype=draft_tokens.dtype).reshape(tau.shape)
    return token, token >= 0
