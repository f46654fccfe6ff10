"""Small pairs of models on which wrong rules show: narrow, and dependent on context."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["MODELS", "Model", "Path", "Row", "Tokens", "completed"]

Row: TypeAlias = tuple[Fraction, ...]
Tokens: TypeAlias = tuple[int, ...]


class Path(NamedTuple):
    """One drafted path: K draft rows, K + 1 target rows and K tokens."""

    draft: tuple[Row, ...]
    target: tuple[Row, ...]
    tokens: Tokens


class Model(NamedTuple):
    """A draft and a target law of the next token, from the last one and how many came.

    Attributes
    ----------
    name
        What it is called in a report.
    draft_length
        The number K of drafted tokens.
    draft, target
        Row of the next token after each last token; the first row is the beginning's.
        Dyadic numbers, so that every dtype holds them exactly.
    turned
        Whether rows turn by one token with every place, so that equal contexts at
        different places have different rows.
    """

    name: str
    draft_length: int
    draft: tuple[Row, ...]
    target: tuple[Row, ...]
    turned: bool = False

    @property
    def size(self) -> int:
        """The number V of tokens."""
        return len(self.target[0])

    def draft_row(self, context: Tokens) -> Row:
        """Return the draft law after a context."""
        return self._row(self.draft, context)

    def target_row(self, context: Tokens) -> Row:
        """Return the target law after a context."""
        return self._row(self.target, context)

    def _row(self, rows: tuple[Row, ...], context: Tokens) -> Row:
        row = rows[context[-1] + 1 if context else 0]
        turn = len(context) % self.size if self.turned else 0
        return (*row[turn:], *row[:turn])

    def path(self, tokens: Tokens) -> Path:
        """Return the rows along drafted tokens."""
        contexts = [tokens[:i] for i in range(len(tokens) + 1)]
        return Path(
            tuple(map(self.draft_row, contexts[:-1])),
            tuple(map(self.target_row, contexts)),
            tokens,
        )

    def paths(self) -> Iterator[tuple[Path, Fraction]]:
        """Yield every path that can be drafted, and its probability."""
        for tokens in product(range(self.size), repeat=self.draft_length):
            path = self.path(tokens)
            prob = Fraction(1)
            for row, token in zip(path.draft, tokens, strict=True):
                prob *= row[token]
            if prob:
                yield path, prob

    def target_law(self, length: int | None = None) -> dict[Tokens, Fraction]:
        """Return the law of so many tokens, by default K + 1, drawn from the target."""
        length = self.draft_length + 1 if length is None else length
        return completed(self, {(): Fraction(1)}, length)


def completed(
    model: Model, emitted: Mapping[Tokens, Fraction], length: int
) -> dict[Tokens, Fraction]:
    """Return the law of so many tokens of what was emitted and draws from the target."""
    law: dict[Tokens, Fraction] = {}
    for tokens, prob in emitted.items():
        if len(tokens) >= length:
            law[tokens[:length]] = law.get(tokens[:length], Fraction(0)) + prob
            continue
        row = model.target_row(tokens)
        longer = {(*tokens, v): prob * p for v, p in enumerate(row) if p}
        for final, part in completed(model, longer, length).items():
            law[final] = law.get(final, Fraction(0)) + part
    return law


def _rows(*rows: str) -> tuple[Row, ...]:
    """Read rows of whole numbers, each over its sum."""
    read = [[int(entry) for entry in row.split()] for row in rows]
    return tuple(tuple(Fraction(n, sum(row)) for n in row) for row in read)


MODELS = {
    model.name: model
    for model in (
        # Two tokens, the same rows everywhere: what papers show, and blind to some faults.
        Model("two tokens", 2, _rows("3 1", "3 1", "3 1"), _rows("1 3", "1 3", "1 3")),
        # Zeros on either side, rows that depend on the token before.
        Model(
            "three tokens",
            2,
            _rows("0 3 1", "3 0 1", "0 2 2", "1 3 0"),
            _rows("0 2 2", "3 1 0", "1 3 0", "3 1 0"),
        ),
        Model(
            "three drafts",
            3,
            _rows("3 0 1", "0 2 2", "0 2 2", "2 1 1"),
            _rows("1 0 3", "1 0 3", "0 1 3", "1 1 2"),
        ),
        # Drafts that the target forbids, and rows that change with the place as well.
        Model(
            "four tokens",
            2,
            _rows("4 2 1 1", "1 5 1 1", "2 2 2 2", "1 1 1 5", "3 1 3 1"),
            _rows("1 1 2 4", "3 1 4 0", "0 4 2 2", "2 2 0 4", "1 3 1 3"),
            turned=True,
        ),
    )
}
"""By name; the laws of faults differ from the target's on at least one of them."""
