"""What the exact rules for chains are given, read once and named in every error."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from draftproof.exact._step import _integer, _law, as_fraction

if TYPE_CHECKING:
    from collections.abc import Iterable

    from draftproof.exact._step import Number

Row: TypeAlias = tuple[Fraction, ...]
Context: TypeAlias = tuple[int, ...]

NO_DRAFT = -1


class Chain(NamedTuple):
    """One drafted path as far as there are drafts; whatever follows was not read."""

    draft: tuple[Row, ...]
    """n rows of the draft model, then the zero row."""
    target: tuple[Row, ...]
    """n + 1 rows of the target model."""
    tokens: Context
    """n drafted tokens."""
    padding: int
    """How many positions have no draft."""


def read_chain(
    draft_probs: Iterable[Any] | None,
    target_probs: Iterable[Any],
    draft_tokens: Iterable[int],
) -> Chain:
    """Read a path up to its first -1, and the target row there."""
    listed = _listed("draft_tokens", draft_tokens)
    target_rows = _listed("target_probs", target_probs)
    _check_count("target_probs", len(target_rows), "rows", len(listed) + 1)
    size = len(read_row("target_probs[0]", target_rows[0]))
    tokens = _drafted(listed, size)
    target = _rows("target_probs", target_rows[: len(tokens) + 1], size)
    for index, row in enumerate(target):
        if not any(row):
            msg = f"`target_probs[{index}]` has no positive entry; needed is a law"
            raise ValueError(msg)
    draft = _draft_rows(draft_probs, listed, tokens, size)
    zero = (Fraction(0),) * size
    return Chain((*draft, zero), tuple(target), tokens, len(listed) - len(tokens))


def read_uniforms(
    uniforms: Iterable[Number], chain: Chain
) -> tuple[list[Fraction], Fraction]:
    """Read the coins that have a draft, and the last uniform, which draws a token."""
    drafted = len(chain.tokens)
    listed = _listed("uniforms", uniforms)
    _check_count("uniforms", len(listed), "entries", drafted + chain.padding + 1)
    read = [_uniform(f"uniforms[{i}]", listed[i]) for i in range(drafted)]
    return read, _uniform(f"uniforms[{len(listed) - 1}]", listed[-1])


def read_row(name: str, probs: Iterable[Number]) -> Row:
    """Read a row of at least one entry."""
    row = _law(name, _listed(name, probs))
    if not row:
        msg = f"`{name}` is empty; needed is at least one entry"
        raise ValueError(msg)
    return row


def read_length(name: str, length: int) -> int:
    """Read a number of tokens."""
    number = _integer(name, length)
    if number < 0:
        msg = f"`{name}` is {number}; needed is at least 0"
        raise ValueError(msg)
    return number


def read_token(name: str, token: int, size: int) -> int:
    """Read a drafted token, or -1."""
    number = _integer(name, token)
    if number != NO_DRAFT and not 0 <= number < size:
        msg = f"`{name}` is {number}; needed is 0 <= token < {size}, or -1 for no draft"
        raise IndexError(msg)
    return number


def _listed(name: str, given: Iterable[Any]) -> tuple[Any, ...]:
    try:
        return tuple(given)
    except TypeError as error:
        msg = f"`{name}` is {given!r}; needed is something to iterate over"
        raise TypeError(msg) from error


def _check_count(name: str, count: int, what: str, needed: int) -> None:
    if count != needed:
        msg = f"`{name}` has {count} {what}; needed are {needed}, as `draft_tokens` tells"
        raise ValueError(msg)


def _drafted(listed: tuple[int, ...], size: int) -> Context:
    tokens = []
    for index, given in enumerate(listed):
        token = read_token(f"draft_tokens[{index}]", given, size)
        if token == NO_DRAFT:
            break
        tokens.append(token)
    return tuple(tokens)


def _draft_rows(
    draft_probs: Iterable[Any] | None, listed: Context, tokens: Context, size: int
) -> list[Row]:
    if draft_probs is None:
        return [tuple(Fraction(v == token) for v in range(size)) for token in tokens]
    rows = _listed("draft_probs", draft_probs)
    _check_count("draft_probs", len(rows), "rows", len(listed))
    return _rows("draft_probs", rows[: len(tokens)], size)


def _rows(name: str, rows: tuple[Any, ...], size: int) -> list[Row]:
    read = [read_row(f"{name}[{index}]", row) for index, row in enumerate(rows)]
    for index, row in enumerate(read):
        if len(row) != size:
            msg = (
                f"`{name}[{index}]` has {len(row)} entries, `target_probs[0]` {size}; "
                "needed is the same number"
            )
            raise ValueError(msg)
    return read


def _uniform(name: str, number: Number) -> Fraction:
    try:
        uniform = as_fraction(number)
    except (TypeError, ValueError) as error:
        msg = f"`{name}`: {error}"
        raise type(error)(msg) from error
    if not 0 <= uniform < 1:
        msg = f"`{name}` is {number!r}; needed is 0 <= uniform < 1"
        raise ValueError(msg)
    return uniform
