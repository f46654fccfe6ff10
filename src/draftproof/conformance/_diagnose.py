"""Which wrong rule explains the counts, and where they leave the law."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from draftproof.conformance._shared_noise import SHARED
from draftproof.conformance._statistics import fit
from draftproof.conformance._variants import RIGHT, ZERO, Variant
from draftproof.conformance._wrong import WRONG

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from draftproof.conformance._counts import Counts
    from draftproof.conformance._models import Path, Row
    from draftproof.conformance._subject import Host

__all__ = ["explained", "explained_drafts", "outcome_detail", "sequence_detail"]

_FITS = 1e-4


def _own_token(path: Path) -> list[Fraction]:
    return [p[t] for p, t in zip(path.target, path.tokens, strict=False)]


def _another_token(path: Path, accepted: int) -> Row:
    row = path.target[accepted]
    if accepted == len(path.tokens):
        return row
    token = path.tokens[accepted]
    return (*row[:token], ZERO, *row[token + 1 :])


class _WithoutBonus(Variant):
    """A rule whose token behind the last draft is thrown away."""

    def outcomes(self, path: Path) -> dict[tuple[int, int], Fraction]:
        length = len(path.tokens)
        law: dict[tuple[int, int], Fraction] = {}
        for (accepted, token), prob in super().outcomes(path).items():
            last = accepted == length
            key = (length - 1, path.tokens[-1]) if last else (accepted, token)
            law[key] = law.get(key, ZERO) + prob
        return law


# Lossless, but not what was asked for where a rule is named.
_OTHERS = (
    Variant("exact match", _own_token, _another_token),
    *(
        _WithoutBonus(f"{rule.name} without the bonus token", *choices)
        for rule in RIGHT.values()
        for choices in [(rule.thresholds, rule.weights, rule.stop)]
    ),
)


def explained(found: Sequence[Counts], rule: str | None, *, drafter: bool) -> str | None:
    """Return the name of the rule that the counts of all models fit, None if none does.

    Parameters
    ----------
    found
        Counts of which at least one does not fit its law.
    rule
        The rule that was asked for.
    drafter
        Whether the drafts were the engine's own, so that it could share their noise.
    """
    candidates = list(WRONG.values())
    if drafter:
        candidates += SHARED.values()
    if rule is not None:
        candidates += [*_OTHERS, *(v for name, v in RIGHT.items() if name != rule)]
    likelihoods = {}
    for candidate in candidates:
        fits = [fit(c.groups(c.case.outcome_laws(candidate))) for c in found]
        if all(one.p_value > _FITS for one in fits):
            likelihoods[candidate.name] = sum(one.log_likelihood for one in fits)
    return max(likelihoods, key=lambda name: likelihoods[name], default=None)


def explained_drafts(found: Sequence[Counts]) -> str | None:
    """Return the name of the fault of a drafter whose drafts do not fit their law."""
    laws = {"argmax drafts with a dense draft law": _likeliest, "uniform drafts": _uniform}
    for name, law in laws.items():
        if all(fit([_drafts(c, law(c))]).p_value > _FITS for c in found):
            return name
    return None


def _drafts(counts: Counts, law: Host) -> tuple[Host, Host]:
    return counts.outcomes.sum(1), law


def _likeliest(counts: Counts) -> Host:
    law = np.zeros(len(counts.outcomes))
    tokens: tuple[int, ...] = ()
    model = counts.case.model
    for _ in range(model.draft_length):
        row = model.draft_row(tokens)
        tokens = (*tokens, row.index(max(row)))
    law[np.ravel_multi_index(tokens, (model.size,) * len(tokens))] = 1
    return law


def _uniform(counts: Counts) -> Host:
    return np.full(len(counts.outcomes), 1 / len(counts.outcomes))


def sequence_detail(counts: Counts, false_alarm: float) -> str:
    """Return in words where K + 1 tokens leave the target's law."""
    length, size = counts.case.shape
    distances, first = [], None
    for place in range(1, length + 2):
        seen, law = (
            array.reshape(size**place, -1).sum(1)
            for array in (counts.sequences, counts.case.target_law)
        )
        one = fit([(seen, law)])
        distances.append(one.distance)
        if first is None and one.p_value < false_alarm:
            first = place
    shape = (size,) * (length + 1)
    worst = _worst(counts.sequences, counts.case.target_law, counts.size)
    tokens = [int(token) for token in np.unravel_index(worst, shape)]
    came = _came(counts.sequences[worst], counts.case.target_law[worst] * counts.size)
    off = "" if first is None else f"off from token {first} on; "
    beginnings = ", ".join(f"{distance:.3f}" for distance in distances)
    return (
        f"{off}total variation of the first 1 to {length + 1} tokens: {beginnings}; "
        f"tokens {tokens} {came}"
    )


def outcome_detail(counts: Counts, laws: Host) -> str:
    """Return in words which outcome after which drafts is the furthest from its law."""
    length, size = counts.case.shape
    expected = laws * counts.outcomes.sum(1, keepdims=True)
    worst = _worst(counts.outcomes.ravel(), expected.ravel(), 1)
    path, code = divmod(worst, counts.outcomes.shape[1])
    tokens = [int(token) for token in np.unravel_index(path, (size,) * length)]
    accepted, token = divmod(code, size)
    came = _came(counts.outcomes[path, code], expected[path, code])
    return f"after drafts {tokens}: {accepted} accepted and next token {token} {came}"


def _worst(seen: Host, law: Host, total: int) -> int:
    """Return the place of the largest term of Pearson's sum; the impossible first."""
    expected = law * total
    terms = (seen - expected) ** 2 / np.where(expected > 0, expected, 1e-9)
    return int(terms.argmax())


def _came(seen: int, expected: float) -> str:
    if not expected:
        return f"came {seen:,} times and cannot come"
    return f"came {seen:,} times, {expected:,.1f} expected"
