"""Requests drawn along a model, and what a sampler made of them, as counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from draftproof.conformance._models import Model, Path
    from draftproof.conformance._subject import Host
    from draftproof.conformance._variants import Variant

__all__ = ["Case", "Counts", "chosen", "followed", "stream"]

PAD = -1
_OWN = 0x64726166745072  # any number that nobody else would add


def stream(seed: int) -> np.random.Generator:
    """Return random numbers of the kit's own.

    They are not those of ``default_rng(seed)``, which the sampler is likely to use.
    """
    return np.random.default_rng([seed, _OWN])


def chosen(rng: np.random.Generator, rows: Host) -> Host:
    """Draw a token from each row of probabilities."""
    ends = np.cumsum(rows, axis=-1)
    heights = rng.random(rows.shape[:-1])[..., None] * ends[..., -1:]
    tokens: Host = (heights >= ends).sum(-1)
    return tokens


@dataclass
class Case:
    """A model, as arrays.

    Attributes
    ----------
    model : Model
        The model.
    one_hot : bool
        Whether its drafts are handed over without their law.
    """

    model: Model
    one_hot: bool = False

    @cached_property
    def shape(self) -> tuple[int, int]:
        """K and V."""
        return self.model.draft_length, self.model.size

    @cached_property
    def rows(self) -> tuple[Host, Host]:
        """Draft and target rows by place and last token, whose -1 is the beginning."""
        length, size = self.shape
        tables = []
        for row in (self.model.draft_row, self.model.target_row):
            table = np.zeros((length + 1, size + 1, size))
            for place in range(length + 1):
                # Rows depend on the last token and on how many there are.
                for last in range(size) if place else (-1,):
                    context = (0,) * (place - 1) + (last,) * (place > 0)
                    table[place, last] = [float(prob) for prob in row(context)]
            tables.append(table)
        return tables[0], tables[1]

    @cached_property
    def paths(self) -> list[tuple[Path, float]]:
        """What a rule knows of every path, and the path's probability."""
        found = []
        for path, prob in self.model.paths():
            seen = path._replace(draft=_points(path)) if self.one_hot else path
            found.append((seen, float(prob)))
        return found

    def place(self, path: Path) -> int:
        """Return the place of a path in an array of V**K."""
        return int(_code(np.asarray(path.tokens), self.model.size))

    def draw(self, rng: np.random.Generator, count: int) -> Host:
        """Draw so many drafted paths, shape (count, K)."""
        length, _ = self.shape
        tokens = np.zeros((count, length), np.int64)
        last = np.full(count, PAD)
        for place in range(length):
            last = tokens[:, place] = chosen(rng, self.rows[0][place, last])
        return tokens

    def along(self, tokens: Host) -> tuple[Host, Host]:
        """Return the draft rows (count, K, V) and the target's (count, K + 1, V)."""
        length, _ = self.shape
        last = np.concatenate([np.full((len(tokens), 1), PAD), tokens], axis=1)
        places = np.arange(length + 1)
        draft, target = (table[places, last] for table in self.rows)
        return draft[:, :-1], target

    def completed(self, rng: np.random.Generator, emitted: Host) -> Host:
        """Fill what is padded with draws from the target."""
        tokens = emitted.copy()
        last = np.full(len(tokens), PAD)
        for place in range(tokens.shape[1]):
            missing = tokens[:, place] < 0
            drawn = chosen(rng, self.rows[1][place, last[missing]])
            tokens[missing, place] = drawn
            last = tokens[:, place]
        return tokens

    @cached_property
    def target_law(self) -> Host:
        """The law of K + 1 tokens, shape (V**(K + 1),)."""
        length, size = self.shape
        law = np.zeros(size ** (length + 1))
        for tokens, prob in self.model.target_law().items():
            law[_code(np.asarray(tokens), size)] = float(prob)
        return law

    @cached_property
    def draft_law(self) -> Host:
        """The law of the drafted paths, shape (V**K,)."""
        length, size = self.shape
        law = np.zeros(size**length)
        for path, prob in self.paths:
            law[self.place(path)] = prob
        return law

    def outcome_laws(self, rule: Variant) -> Host:
        """Return the law of what follows each path, shape (V**K, (K + 1) * V)."""
        return _outcome_laws(self.model, self.one_hot, rule)


@cache
def _outcome_laws(model: Model, one_hot: bool, rule: Variant) -> Host:  # noqa: FBT001
    case = Case(model, one_hot=one_hot)
    length, size = case.shape
    laws = np.zeros((size**length, (length + 1) * size))
    for path, _ in case.paths:
        for (accepted, token), prob in rule.outcomes(path).items():
            laws[case.place(path), accepted * size + token] = float(prob)
    laws.flags.writeable = False
    return laws


@dataclass
class Counts:
    """What a sampler made of requests of one case.

    Attributes
    ----------
    case : Case
        The case.
    outcomes : array, shape (V**K, (K + 1) * V)
        How often each path was followed by each number accepted and next token.
    sequences : array, shape (V**(K + 1),)
        How often each K + 1 tokens came, completed from the target.
    """

    case: Case
    outcomes: Host = field(init=False)
    sequences: Host = field(init=False)

    def __post_init__(self) -> None:
        length, size = self.case.shape
        self.outcomes = np.zeros((size**length, (length + 1) * size), np.int64)
        self.sequences = np.zeros(size ** (length + 1), np.int64)

    @property
    def size(self) -> int:
        """The number of requests."""
        return int(self.sequences.sum())

    def add(self, rng: np.random.Generator, tokens: Host, emitted: Host) -> None:
        """Count a batch that has the right form."""
        _, size = self.case.shape
        path = _code(np.maximum(tokens, 0), size)
        self._count(self.outcomes, path, followed(emitted, size))
        self._count(self.sequences, _code(self.case.completed(rng, emitted), size))

    @staticmethod
    def _count(table: Host, *codes: Any) -> None:
        flat = np.ravel_multi_index(codes, table.shape)
        table += np.bincount(flat, minlength=table.size).reshape(table.shape)

    def groups(self, laws: Host) -> list[tuple[Host, Host]]:
        """Return the counts of every path that came, with their law."""
        came = self.outcomes.any(axis=1)
        return list(zip(self.outcomes[came], laws[came], strict=True))


def followed(emitted: Host, size: int) -> Host:
    """Return the number accepted and the next token as one number, shape (B,)."""
    accepted = (emitted >= 0).sum(1) - 1
    following: Host = accepted * size + emitted[np.arange(len(emitted)), accepted]
    return following


def _code(tokens: Host, size: int) -> Any:
    """Return tokens as one number in base V."""
    return tokens @ (size ** np.arange(tokens.shape[-1])[::-1])


def _points(path: Path) -> Any:
    """Return draft rows that are one-hot at the tokens."""
    size = len(path.target[0])
    return tuple(tuple(Fraction(v == token) for v in range(size)) for token in path.tokens)
