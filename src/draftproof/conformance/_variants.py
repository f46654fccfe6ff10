"""The right rules and the wrong ones that ship, each as three choices, on fractions.

A rule is what the coins are compared with, how the coins become a number of accepted
tokens, and what the next token is drawn from. The wrong choices here are those that
public bugs made; the law of each is known exactly, which is how a fault gets its name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias

from draftproof.conformance._models import completed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from draftproof.conformance._models import Model, Path, Row, Tokens

__all__ = ["RIGHT", "Variant"]

ZERO, ONE = Fraction(0), Fraction(1)
Thresholds: TypeAlias = "Callable[[Path], list[Fraction]]"
Weights: TypeAlias = "Callable[[Path, int], Row]"
Stop: TypeAlias = Literal["first failure", "last success", "count"]


@dataclass(frozen=True)
class Variant:
    """A rule of acceptance, right or wrong.

    Attributes
    ----------
    name : str
        What a report calls it.
    thresholds : callable
        From a path to what its K coins are compared with.
    weights : callable
        From a path and a number of accepted tokens to the weights of the next token.
    stop : {"first failure", "last success", "count"}
        How the coins become a number of accepted tokens.
    reused : bool
        Whether the coin that failed also draws the next token.
    """

    name: str
    thresholds: Thresholds
    weights: Weights
    stop: Stop = "first failure"
    reused: bool = False

    def accepted_law(self, path: Path) -> list[Fraction]:
        """Return the law of the number of accepted tokens on a path."""
        law = [ONE] + [ZERO] * len(path.tokens)
        if self.stop == "last success":
            for i, limit in enumerate(self.thresholds(path), 1):
                law = [prob * (1 - limit) for prob in law]
                law[i] = limit
        elif self.stop == "count":
            for limit in self.thresholds(path):
                shifted = [ZERO, *law[:-1]]
                law = [
                    stay * (1 - limit) + move * limit
                    for stay, move in zip(law, shifted, strict=True)
                ]
        else:
            for i, limit in enumerate(self.thresholds(path)):
                law[i], law[i + 1] = law[i] * (1 - limit), law[i] * limit
        return law

    def next_law(self, path: Path, accepted: int) -> Row:
        """Return the law of the token after so many accepted ones."""
        weights = self._drawn_from(path, accepted)
        total = sum(weights)
        law = tuple(weight / total for weight in weights)
        if not self.reused or accepted == len(path.tokens):
            return law
        # The coin is known to be at least its threshold: only what lies above is drawn.
        failed = self.thresholds(path)[accepted]
        ends = list(accumulate(law, initial=ZERO))
        return tuple(
            max(end - max(start, failed), ZERO) / (1 - failed)
            for start, end in pairwise(ends)
        )

    def outcomes(self, path: Path) -> dict[tuple[int, int], Fraction]:
        """Return the law of the number accepted and the next token on a path."""
        return {
            (accepted, token): prob * share
            for accepted, prob in enumerate(self.accepted_law(path))
            if prob
            for token, share in enumerate(self.next_law(path, accepted))
            if share
        }

    def joint_law(self, model: Model) -> dict[Tokens, Fraction]:
        """Return the law of K + 1 tokens: emitted, then completed from the target."""
        return dict(_joint_law(self, model))

    def decide(self, path: Path, uniforms: Sequence[Fraction]) -> tuple[int, int]:
        """Return the number accepted and the next token for K + 1 uniforms."""
        pairs = zip(uniforms, self.thresholds(path), strict=False)
        success = [coin < limit for coin, limit in pairs]
        if self.stop == "first failure":
            accepted = (*success, False).index(False)
        elif self.stop == "count":
            accepted = sum(success)
        else:
            accepted = max((i for i, good in enumerate(success, 1) if good), default=0)
        weights = self._drawn_from(path, accepted)
        reused = self.reused and accepted < len(path.tokens)
        level = uniforms[accepted if reused else -1] * sum(weights)
        reached = enumerate(accumulate(weights))
        return accepted, next(token for token, end in reached if end > level)

    def _drawn_from(self, path: Path, accepted: int) -> Row:
        weights = self.weights(path, accepted)
        return weights if any(weights) else path.target[min(accepted, len(path.tokens))]


@cache
def _joint_law(variant: Variant, model: Model) -> dict[Tokens, Fraction]:
    emitted: dict[Tokens, Fraction] = {}
    for path, drafted in model.paths():
        for (accepted, token), prob in variant.outcomes(path).items():
            tokens = (*path.tokens[:accepted], token)
            emitted[tokens] = emitted.get(tokens, ZERO) + drafted * prob
    return completed(model, emitted, model.draft_length + 1)


def ratio(target: Row, draft: Row, token: int) -> Fraction:
    """Return p/q at the token; where q is 0, its limit as far as coins can tell."""
    if not draft[token]:
        return ONE if target[token] else ZERO
    return target[token] / draft[token]


def capped(path: Path) -> list[Fraction]:
    """Return the thresholds of the token rule."""
    return [min(ONE, r) for r in ratios(path)]


def ratios(path: Path) -> list[Fraction]:
    """Return p/q at each drafted token."""
    rows = zip(path.target, path.draft, path.tokens, strict=False)
    return [ratio(*one) for one in rows]


def scales(path: Path, *, cap: bool = True) -> list[Fraction]:
    """Return c_0, ..., c_K of the block rule, or the uncapped products."""
    products = [ONE]
    for r in ratios(path):
        product = products[-1] * r
        products.append(min(ONE, product) if cap else product)
    return products


def excess(target: Row, draft: Row, scale: Fraction = ONE) -> Row:
    """Return ``max(scale * target - draft, 0)``."""
    return tuple(max(scale * p - q, ZERO) for p, q in zip(target, draft, strict=True))


def residual(path: Path, accepted: int, scale: Fraction = ONE) -> Row:
    """Return the residual after so many tokens; after all of them the scaled target."""
    if accepted == len(path.tokens):
        return tuple(scale * p for p in path.target[-1])
    return excess(path.target[accepted], path.draft[accepted], scale)


def block(path: Path, *, cap: bool = True) -> list[Fraction]:
    """Return the thresholds of the block rule."""
    found = []
    for i, scale in enumerate(scales(path, cap=cap)[1:], 1):
        if i == len(path.tokens):
            found.append(min(ONE, scale))
            continue
        mass = sum(residual(path, i, scale))
        whole = mass + max(ONE - scale, ZERO)
        found.append(mass / whole if whole else ONE)
    return found


def block_residual(path: Path, accepted: int, *, cap: bool = True) -> Row:
    """Return the residual of the block rule."""
    return residual(path, accepted, scales(path, cap=cap)[accepted])


def rejected_only(weights: Weights) -> Weights:
    """Return weights that are the residual's after all drafts are accepted."""
    return lambda path, accepted: (
        residual(path, accepted)
        if accepted == len(path.tokens)
        else weights(path, accepted)
    )


def softmax(row: Row) -> Row:
    """Return the softmax of a row, rounded to doubles."""
    return tuple(Fraction(math.exp(entry)) for entry in row)


RIGHT = {
    "token": Variant("token rule", capped, residual),
    "block": Variant("block rule", block, block_residual, "last success"),
}
"""The right rules by name."""
