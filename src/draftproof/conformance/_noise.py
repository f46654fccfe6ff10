"""Whether equal requests get noise of their own, within a batch and with another seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from draftproof.conformance._report import Check
from draftproof.conformance._statistics import detectable, independence

if TYPE_CHECKING:
    from draftproof.conformance._subject import Host

__all__ = ["NOISE_BATCHES", "NOISE_TESTS", "Noise", "noise"]

NOISE_BATCHES = 4
"""How many batches of equal requests it takes, an even number."""

NOISE_TESTS = 3
"""How many statistical tests there are here."""


class Noise(NamedTuple):
    """What equal requests show.

    Attributes
    ----------
    check : Check
        The verdict.
    fault : str or None
        The name of what is wrong.
    usable : bool
        Whether counts of many requests and seeds mean anything.
    """

    check: Check
    fault: str | None = None
    usable: bool = True


def noise(batches: Host, *, false_alarm: float, power: float) -> Noise:
    """Judge the outcomes of equal requests.

    Parameters
    ----------
    batches
        Outcomes as numbers, shape (batches, B), each batch with a seed of its own.
    false_alarm
        Of each of the `NOISE_TESTS` tests.
    power
        For which the total variation is stated that the tests see.
    """
    name, cases = "equal requests are drawn apart", batches.size
    one_answer = bool((batches == batches[:, 0, None]).all())
    one_seed = bool((batches == batches[:1]).all())
    if one_answer and one_seed:
        # Nothing is drawn: what counts there are will tell the law.
        return Noise(Check(name, passed=False, cases=cases, detail="nothing is drawn"))
    if one_answer or one_seed:
        fault = "same noise for every request" if one_answer else "seed ignored"
        of = "equal requests of a batch get" if one_answer else "every seed gives"
        check = Check(name, passed=False, cases=cases, detail=f"{of} the same tokens")
        return Noise(check, fault, usable=False)
    labels = np.unique(batches, return_inverse=True)[1].reshape(batches.shape)
    half = batches.shape[-1] // 2
    pairs = {
        "neighbours in a batch": (labels[:, : 2 * half : 2], labels[:, 1 : 2 * half : 2]),
        "the halves of a batch": (labels[:, :half], labels[:, half : 2 * half]),
        "equal places of two seeds": (labels[0:-1:2], labels[1::2]),
    }
    found = {words: _independence(*pair) for words, pair in pairs.items()}
    worst = min(found, key=lambda words: found[words][0])
    p_value, freedom, count = found[worst]
    fails = p_value < false_alarm
    detail = f"{worst} depend on each other" if fails else ""
    sees = detectable(freedom, count, false_alarm=false_alarm, power=power)
    passed = not fails
    # The least of several p-values, for what they are together.
    p_value = min(1.0, NOISE_TESTS * p_value)
    check = Check(name, passed, cases, detail, p_value, sees)
    between = "seeds" if "seeds" in worst else "requests"
    return Noise(check, f"noise correlated between {between}" if fails else None)


def _independence(one: Host, other: Host) -> tuple[float, int, int]:
    kinds = int(max(one.max(), other.max())) + 1
    codes = one.ravel() * kinds + other.ravel()
    table = np.bincount(codes, minlength=kinds**2).reshape(kinds, kinds)
    came = (table.sum(0) + table.sum(1)) > 0
    p_value, freedom = independence(table[np.ix_(came, came)].astype(float))
    return p_value, freedom, codes.size
