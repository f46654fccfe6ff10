"""Cases of a chain: the decision that `exact` makes, and what else is acceptable."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

from draftproof import exact
from draftproof.conformance.vectors._numbers import dtypes_of, rational, written

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from draftproof.conformance.vectors._chains import Chain
    from draftproof.conformance.vectors._numbers import Value

__all__ = ["Case", "Outcome", "case", "decide", "decided", "outcome", "refusal", "refused"]

Case: TypeAlias = dict[str, Any]
Outcome: TypeAlias = dict[str, Any]

# Less than any two edges of these cases are apart.
_NUDGE = Fraction(1, 2**100)
_NEAR = Fraction(1, 2**20)


def decide(chain: Chain, rule: str, uniforms: Sequence[Value]) -> exact.ExactVerdict:
    """Ask `exact`; coins behind the last draft may be anything."""
    rows = chain.draft, chain.target, chain.tokens
    coins = [rational(u) for u in uniforms[: _drafted(chain)]]
    coins += [Fraction(0)] * (len(chain.tokens) - len(coins))
    return exact.verify_chain(*rows, [*coins, rational(uniforms[-1])], rule=rule)


def decided(
    chain: Chain,
    rule: str,
    uniforms: Sequence[Value],
    comment: str,
    *,
    flags: Iterable[str] = (),
    others: Sequence[Outcome] = (),
) -> Case:
    """Return a case that has a decision: valid, or acceptable where there are others."""
    verdict = decide(chain, rule, uniforms)
    found = {*flags, *_features(chain, rule, uniforms, verdict)}
    convention, also = "draftproof", list(others)
    if not verdict.margin:
        tie, inclusive = _inclusive(chain, rule, uniforms, verdict)
        convention, found, also = "strict", {*found, tie}, [inclusive, *also]
    if "ZeroDraftProbability" in found:
        also.append(refused(rule, _zero_draft(chain)))
    first = outcome(verdict, convention if also else None)
    head = case(comment, found, "acceptable" if also else "valid")
    return {**head, **_drawn(uniforms), **_told([first, *also], str(verdict.margin))}


def refusal(
    rule: str, uniforms: Sequence[Value], place: int, comment: str, flags: Iterable[str]
) -> Case:
    """Return a case that must be refused at a place, behind what is accepted before."""
    head = case(comment, flags, "invalid")
    return {**head, **_drawn(uniforms), **_told([refused(rule, place)], None)}


def case(comment: str, flags: Iterable[str], result: str) -> Case:
    """Return the head of a case; its number is set when all are there."""
    return {"id": 0, "comment": comment, "flags": sorted({*flags}), "result": result}


def outcome(verdict: exact.ExactVerdict, convention: str | None = None) -> Outcome:
    """Return a decision as the vectors write it."""
    told = {"num_accepted": verdict.num_accepted, "next_token": verdict.next_token}
    return told if convention is None else {"convention": convention, **told}


def refused(rule: str, place: int) -> Outcome:
    """Return the outcome that fails closed: the block rule stands as a whole."""
    accepted = place if rule == "token" else 0
    return {"convention": "refused", "num_accepted": accepted, "next_token": -1}


def _drawn(uniforms: Sequence[Value]) -> dict[str, Any]:
    dtypes = [d for d in dtypes_of(uniforms) if d in ("float32", "float64")]
    return {"uniforms": written(uniforms), "uniform_dtypes": dtypes}


def _told(outcomes: list[Outcome], margin: str | None) -> dict[str, Any]:
    return {"outcomes": outcomes, "margin": margin}


def _drafted(chain: Chain) -> int:
    return (*chain.tokens, -1).index(-1)


def _features(
    chain: Chain, rule: str, uniforms: Sequence[Value], verdict: exact.ExactVerdict
) -> Iterator[str]:
    """Yield the flags that follow from the numbers."""
    accepted, drafted = verdict.num_accepted, _drafted(chain)
    read = range(drafted if rule == "block" else min(accepted + 1, drafted))
    rows = [*(chain.draft or ())[:drafted], *chain.target[: drafted + 1]]
    scaled = rule == "block" and accepted < drafted and _scale(chain, accepted) < 1
    features = {
        "EmptyDraft": not chain.tokens,
        "Padding": drafted < len(chain.tokens),
        "NoDraftRows": chain.draft is None,
        "ZeroDraftProbability": any(_entries(chain, i)[0] == 0 for i in read),
        "ZeroTargetProbability": any(_entries(chain, i)[1] == 0 for i in read),
        "BonusToken": accepted == drafted,
        "NearTie": 0 < verdict.margin < _NEAR,
        "LateSuccess": rule == "block" and _late(chain, uniforms[:accepted]),
        "ScaledResidual": scaled,
        "NotNormalised": any(sum(map(rational, row)) != 1 for row in rows),
    }
    yield from (name for name, present in features.items() if present)


def _late(chain: Chain, coins: Sequence[Value]) -> bool:
    """Whether a coin of the block rule fails among those of accepted drafts."""
    rows = chain.draft, chain.target, chain.tokens
    limits = exact.chain_thresholds(*rows, rule="block")
    return any(rational(u) >= limit for u, limit in zip(coins, limits, strict=False))


def _entries(chain: Chain, place: int) -> tuple[Fraction, Fraction]:
    token = chain.tokens[place]
    draft = Fraction(1) if chain.draft is None else rational(chain.draft[place][token])
    return draft, rational(chain.target[place][token])


def _scale(chain: Chain, accepted: int) -> Fraction:
    scale = Fraction(1)
    for i in range(accepted):
        draft, target = _entries(chain, i)
        scale = min(Fraction(1), scale * target / draft) if draft else Fraction(1)
    return scale


def _inclusive(
    chain: Chain, rule: str, uniforms: Sequence[Value], strict: exact.ExactVerdict
) -> tuple[str, Outcome]:
    """Return which kind of tie it is, and the decision of a test with ``<=``.

    That test decides at an edge as the strict one does just below it.
    """
    *coins, last = uniforms
    by_coin = decide(chain, rule, [*map(_below, coins), last])
    by_draw = decide(chain, rule, [*coins, _below(last)])
    by = {"CoinTie": by_coin, "DrawTie": by_draw}
    ties = {name: verdict for name, verdict in by.items() if verdict[:2] != strict[:2]}
    if len(ties) != 1:
        msg = f"{chain.name}: {len(ties)} kinds of ties at {uniforms}; needed is one"
        raise AssertionError(msg)
    tie, verdict = ties.popitem()
    return tie, outcome(verdict, "inclusive")


def _below(uniform: Value) -> Value:
    moves = isinstance(uniform, Fraction) and uniform > 0
    return rational(uniform) - _NUDGE if moves else uniform


def _zero_draft(chain: Chain) -> int:
    rows = enumerate(chain.draft or ())
    return next(i for i, row in rows if row[chain.tokens[i]] == 0)
