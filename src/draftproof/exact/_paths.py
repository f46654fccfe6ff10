"""Models, and the paths of tokens that can be drawn from them."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from draftproof.exact._inputs import NO_DRAFT, read_row, read_token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from draftproof.exact._inputs import Context, Row
    from draftproof.exact._step import Number

Model: TypeAlias = "Callable[[Context], Iterable[Number]]"
"""From the tokens so far to a row: the law of the token after them."""
Rows: TypeAlias = "Callable[[Context], Row]"
"""A model whose rows are read."""
JointLaw: TypeAlias = "dict[Context, Fraction]"


class Path(NamedTuple):
    """A drafted path, the probability to draft it, and the rows along it."""

    prob: Fraction
    draft: list[Row] | None
    target: list[Row]
    tokens: Context


def read_model(name: str, model: Model) -> Rows:
    """Return the model with its rows read, each once, and known to be laws."""

    @cache
    def row(context: Context) -> Row:
        law = read_row(f"{name}({context})", model(context))
        total = sum(law)
        if total != 1:
            msg = f"`{name}({context})` sums to {total}; needed is a law, which sums to 1"
            raise ValueError(msg)
        return law

    return row


def drawn(model: Rows, length: int) -> JointLaw:
    """Return the law of so many tokens that are drawn from the model one by one."""
    law: JointLaw = {(): Fraction(1)}
    for _ in range(length):
        law = extended(law, model)
    return law


def extended(law: JointLaw, model: Rows) -> JointLaw:
    """Return the law with one more token, drawn from the model."""
    return {
        (*context, token): weight * prob
        for context, weight in law.items()
        for token, prob in enumerate(model(context))
        if prob
    }


def drafted_paths(draft: Rows, target: Rows, length: int) -> Iterator[Path]:
    """Yield every path that the draft model can draft."""
    for tokens, prob in drawn(draft, length).items():
        contexts = [tokens[:i] for i in range(length + 1)]
        yield Path(
            prob, [draft(c) for c in contexts[:-1]], [target(c) for c in contexts], tokens
        )


def certain_path(draft: Callable[[Context], int], target: Rows, length: int) -> Path:
    """Return the path of a draft model that returns a token, or -1 for the path's end."""
    tokens: Context = ()
    rows = [target(tokens)]
    while len(tokens) < length:
        token = read_token(f"draft_model({tokens})", draft(tokens), len(rows[-1]))
        if token == NO_DRAFT:
            break
        tokens = (*tokens, token)
        rows.append(target(tokens))
    return Path(Fraction(1), None, rows, tokens)
