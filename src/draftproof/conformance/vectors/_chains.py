"""Drafted chains: small models along every drafted path, and rows made by a rule."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from draftproof.conformance.vectors._numbers import (
    FORMATS,
    dtypes_of,
    fractions,
    nearest,
    written,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from draftproof.conformance.vectors._numbers import Rows

__all__ = ["RULES", "Chain", "Made", "drafted_chains", "header"]

RULES = ("token", "block")

Table: TypeAlias = "tuple[tuple[str, ...], ...]"
"""The rows after nothing, after token 0, after token 1, ...; a single one is for all."""


class Made(NamedTuple):
    """Laws that a rule makes, so that they need not be written out.

    Entry v of row ``(a, b)`` is ``(2 * ((a * v + b) % modulus) + 1) / (size * modulus)``.
    For an odd a, and powers of two, these sum to 1, and every format stores them.
    """

    size: int
    modulus: int
    rows: tuple[tuple[int, int], ...]

    def laws(self) -> tuple[tuple[Fraction, ...], ...]:
        """Return the rows."""
        whole = self.size * self.modulus
        units = [
            [2 * ((a * v + b) % self.modulus) + 1 for v in range(self.size)]
            for a, b in self.rows
        ]
        return tuple(tuple(Fraction(u, whole) for u in row) for row in units)


class Chain(NamedTuple):
    """One drafted path with its rows; `draft` is None for drafts without a law."""

    name: str
    draft: Rows | None
    target: Rows
    tokens: tuple[int, ...]
    made: tuple[Made, Made] | None = None

    @property
    def dtypes(self) -> list[str]:
        """The formats that store all rows exactly."""
        return dtypes_of(*(self.draft or ()), *self.target)

    def stored(self, dtype: str) -> Chain:
        """Return the chain with its rows as a format stores them."""
        draft = self.draft and _stored(self.draft, dtype)
        return self._replace(draft=draft, target=_stored(self.target, dtype))


def header(chain: Chain, rule: str, dtypes: list[str]) -> dict[str, Any]:
    """Return what all cases of a group have in common."""
    rows = {"draft_probs": chain.draft, "target_probs": chain.target}
    told: list[Any] = [None if row is None else written(row) for row in rows.values()]
    if chain.made:
        told = [{"rule": made._asdict()} for made in chain.made]
    return {
        "type": "chain",
        "rule": rule,
        "model": chain.name,
        "dtypes": dtypes,
        "size": len(chain.target[0]),
        **dict(zip(rows, told, strict=True)),
        "draft_tokens": list(chain.tokens),
    }


class _Model(NamedTuple):
    length: int
    draft: Table
    target: Table
    paths: tuple[tuple[int, ...], ...] = ()
    """The paths to take; all that can be drafted if none is named."""


def _table(*rows: str) -> Table:
    return tuple(tuple(row.split()) for row in rows)


_G1 = _table("3/4 0 1/4"), _table("1/4 1/4 1/2")
_TENTHS = _table("4/10 3/10 2/10 1/10"), _table("1/10 2/10 3/10 4/10")
_MODELS = {
    "sun": _Model(2, _table("2/3 1/3"), _table("1/3 2/3")),
    "g1": _Model(2, *_G1),
    "m2": _Model(
        2,
        _table("0 3/4 1/4", "3/4 0 1/4", "0 1/2 1/2", "1/4 3/4 0"),
        _table("0 1/2 1/2", "3/4 1/4 0", "1/4 3/4 0", "3/4 1/4 0"),
    ),
    "m3": _Model(
        3,
        _table("3/4 0 1/4", "0 1/2 1/2", "0 1/2 1/2", "1/2 1/4 1/4"),
        _table("1/4 0 3/4", "1/4 0 3/4", "0 1/4 3/4", "1/4 1/4 1/2"),
    ),
    "onehot": _Model(3, _table("1 0 0"), _table("1/2 1/4 1/4")),
    "greedy": _Model(2, _table("1/2 1/4 1/4"), _table("0 1 0", "0 0 1", "1 0 0", "0 1 0")),
    "equal": _Model(2, _table("1/4 1/4 1/2"), _table("1/4 1/4 1/2")),
    "disjoint": _Model(2, _table("1 0 0"), _table("0 1/2 1/2")),
    "tenths": _Model(2, *_TENTHS, ((0, 0), (1, 3), (3, 1))),
}


def drafted_chains() -> Iterator[tuple[Chain, list[str]]]:
    """Yield every path that each model can draft, as its formats store it."""
    for name, model in _MODELS.items():
        for tokens in model.paths or _paths(model):
            contexts = [tokens[:i] for i in range(model.length + 1)]
            draft = tuple(_row(model.draft, context) for context in contexts[:-1])
            target = tuple(_row(model.target, context) for context in contexts)
            chain = Chain(name, draft, target, tokens)
            if chain.dtypes:
                yield chain, chain.dtypes
            else:
                yield from ((chain.stored(dtype), [dtype]) for dtype in FORMATS)


def _paths(model: _Model) -> Iterator[tuple[int, ...]]:
    for tokens in product(range(len(model.draft[0])), repeat=model.length):
        if all(_row(model.draft, tokens[:i])[token] for i, token in enumerate(tokens)):
            yield tokens


def _row(table: Table, context: tuple[int, ...]) -> tuple[Fraction, ...]:
    place = context[-1] + 1 if context and len(table) > 1 else 0
    return fractions(*table[place])


def _stored(rows: Rows, dtype: str) -> Rows:
    return tuple(tuple(_nearest(v, dtype) for v in row) for row in rows)


def _nearest(value: Any, dtype: str) -> Any:
    return nearest(value, dtype) if isinstance(value, Fraction) else value
