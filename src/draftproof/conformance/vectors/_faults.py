"""Chains with something that cannot be verified, and whether the rule reads it."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from draftproof.conformance.vectors._chains import RULES, Chain, header
from draftproof.conformance.vectors._decisions import decide, decided, refusal, refused
from draftproof.conformance.vectors._numbers import fractions, written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from draftproof.conformance.vectors._decisions import Case
    from draftproof.conformance.vectors._numbers import Rows, Value

__all__ = ["fault_groups"]

_G1 = Chain(
    "g1",
    (fractions("3/4", 0, "1/4"),) * 2,
    (fractions("1/4", "1/4", "1/2"),) * 3,
    (0, 0),
)
_LENGTH = 2
_DRAFTED, _OTHER = 0, 2
# Of thresholds 1/3 and 1/9 the coins fail and fail, succeed and fail, and so on.
_UNIFORMS = [
    (Fraction(first, 32), Fraction(second, 32), Fraction(7, 8))
    for first, second in product((1, 16), repeat=2)
]


class Fault(NamedTuple):
    """Something illegal at a place, and whether it is at the drafted token."""

    what: str
    """``draft_probs``, ``target_probs``, ``draft_tokens`` or ``uniforms``."""
    place: int
    value: Any
    entry: int = _DRAFTED

    def spoil(self, chain: Chain) -> Chain:
        """Return the chain with it."""
        if self.what == "draft_tokens":
            return chain._replace(tokens=_put(chain.tokens, self.place, self.value))
        if self.what == "draft_probs":
            return chain._replace(draft=self._spoil_rows(chain.draft or ()))
        if self.what == "target_probs":
            return chain._replace(target=self._spoil_rows(chain.target))
        return chain

    def spoil_uniforms(self, uniforms: tuple[Value, ...]) -> tuple[Value, ...]:
        """Return the uniforms with it."""
        if self.what == "uniforms":
            return _put(uniforms, self.place, self.value)
        return uniforms

    def is_read(self, rule: str, accepted: int) -> bool:
        """Whether the rule reads it when so many are accepted without it."""
        if self.what == "uniforms" and self.place == _LENGTH:
            return True
        of_next_token = self.what.endswith("probs") and self.place == accepted
        drafted = self.entry == _DRAFTED and self.place < _LENGTH
        if rule == "token":  # up to the first failure, and the row of the next token
            return of_next_token or (drafted and self.place <= accepted)
        # all drafts, and the rows behind each, for the masses of the residuals
        return of_next_token or drafted or 0 < self.place < _LENGTH

    def _spoil_rows(self, rows: Rows) -> Rows:
        return _put(rows, self.place, _put(rows[self.place], self.entry, self.value))


def fault_groups() -> Iterator[dict[str, Any]]:
    """Yield groups with NaN, infinity, illegal tokens and illegal uniforms."""
    for rule in RULES:
        groups: dict[Chain, list[Case]] = {}
        for fault, uniforms in product([*_faults()], _UNIFORMS):
            spoilt = fault.spoil(_G1)
            groups.setdefault(spoilt, []).append(_case(fault, rule, uniforms))
        for chain, cases in groups.items():
            yield {**header(chain, rule, chain.dtypes), "tests": cases}


def _faults() -> Iterator[Fault]:
    for value, entry in product(("nan", "inf"), (_DRAFTED, _OTHER)):
        for place in range(_LENGTH):
            yield Fault("draft_probs", place, value, entry)
        for place in range(_LENGTH + 1):
            yield Fault("target_probs", place, value, entry)
    for token, place in product((3, -2, 2**31 - 1), range(_LENGTH)):
        yield Fault("draft_tokens", place, token)
    outside: list[Value] = ["nan", "inf", Fraction(1), Fraction(-1, 2**24)]
    for uniform, place in product(outside, range(_LENGTH + 1)):
        yield Fault("uniforms", place, uniform)


def _case(fault: Fault, rule: str, uniforms: tuple[Value, ...]) -> Case:
    accepted = decide(_G1, rule, uniforms).num_accepted
    spoilt = fault.spoil_uniforms(uniforms)
    place = min(fault.place, accepted)
    comment = f"{fault.value} in {fault.what}[{fault.place}]"
    flag = {"draft_tokens": "TokenOutOfRange", "uniforms": "UniformOutOfRange"}
    flags = [flag.get(fault.what, "NotFinite")]
    if fault.is_read(rule, accepted):
        return refusal(rule, spoilt, place, comment, flags)
    case = decided(
        _G1,
        rule,
        uniforms,
        f"{comment}, which the rule does not read",
        flags=[*flags, "NotRead"],
        others=[refused(rule, place)],
    )
    return {**case, "uniforms": written(spoilt)}


def _put(items: tuple[Any, ...], place: int, item: Any) -> tuple[Any, ...]:
    return (*items[:place], item, *items[place + 1 :])
