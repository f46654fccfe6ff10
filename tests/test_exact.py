"""The exact reference: its own rules, and that it stands alone."""

from __future__ import annotations

import ast
import json
import math
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftproof import exact

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


@st.composite
def laws(draw):
    """Draw two exact laws over one vocabulary; zeros are frequent."""
    size = draw(st.integers(1, 8))
    weights = st.lists(st.integers(0, 6), min_size=size, max_size=size).filter(any)
    return [
        tuple(Fraction(w, sum(row)) for w in row) for row in (draw(weights), draw(weights))
    ]


@given(laws())
def test_accept_then_residual_reconstructs_the_target(pair):
    """Summed over every draft, the emitted law is the target's, with ``==``."""
    draft, target = pair
    assert exact.reconstruct(draft, target) == target


@given(laws())
def test_the_law_by_the_definition(pair):
    """The same law, spelled out: for each draft, the token or a draw that replaces it."""
    draft, target = pair
    law = [Fraction(0)] * len(draft)
    for token, prob in enumerate(draft):
        if prob:
            step = exact.speculative_decode_step(draft, target, token)
            law[token] += prob * step["accept_prob"]
            for other, replacing in enumerate(step["residual"]):
                law[other] += prob * (1 - step["accept_prob"]) * replacing
    assert tuple(law) == target == exact.reconstruct(draft, target)


@given(laws())
def test_acceptance_is_the_overlap(pair):
    """On average a draft is kept with probability ``sum(min(p, q))``."""
    draft, target = pair
    kept = sum(
        prob * exact.speculative_decode_step(draft, target, token)["accept_prob"]
        for token, prob in enumerate(draft)
        if prob
    )
    assert kept == sum(map(min, draft, target))


@given(laws())
def test_the_residual_is_a_law_or_nothing(pair):
    """The residual sums to 1, or to 0 if the target is nowhere above the draft."""
    draft, target = pair
    token = next(token for token, prob in enumerate(draft) if prob)
    residual = exact.speculative_decode_step(draft, target, token)["residual"]
    assert sum(residual) == (0 if draft == target else 1)
    above = [p > q for p, q in zip(target, draft, strict=True)]
    assert [weight > 0 for weight in residual] == above


def test_reconstruct_is_not_the_identity():
    """With unequal sums, which floats may have, the excess is spread by the residual."""
    law = exact.reconstruct([1, 0], [HALF, Fraction(1, 4)])
    assert law == (HALF, HALF)


def test_a_wrong_rule_does_not_reconstruct():
    """The negative control: replacing from the target gives another law."""
    draft, target = (Fraction(2, 3), THIRD), (THIRD, Fraction(2, 3))
    kept = tuple(map(min, draft, target))
    wrong = tuple(k + (1 - sum(kept)) * p for k, p in zip(kept, target, strict=True))
    assert wrong != target
    assert exact.reconstruct(draft, target) == target


@pytest.mark.parametrize(
    ("number", "fraction"),
    [
        (1, Fraction(1)),
        (0.1, Fraction(0.1)),
        ("0.1", Fraction(1, 10)),
        ("1/3", THIRD),
        (Decimal("0.1"), Fraction(1, 10)),
        (THIRD, THIRD),
        (np.float64(0.1), Fraction(0.1)),
        (np.float32(0.1), Fraction(float(np.float32(0.1)))),
        (np.float16(0.1), Fraction(float(np.float16(0.1)))),
        (np.int32(1), Fraction(1)),
        (5e-324, Fraction(1, 2**1074)),
    ],
    ids=str,
)
def test_numbers_are_read_exactly(number, fraction):
    """Every number is the rational it stores, not the decimal it prints as."""
    assert exact.as_fraction(number) == fraction


def test_numpy_rows_are_read_entry_by_entry():
    """A float32 array is a row of exact numbers."""
    draft, target = np.float32([0.8, 0.2]), np.float32([0.4, 0.6])
    step = exact.speculative_decode_step(draft, target, 0)
    assert step["accept_prob"] == HALF
    assert step["residual"] == (0, 1)


ERRORS = {
    "NaN": ([math.nan, 1], [HALF, HALF], 0, ValueError, r"`draft_probs\[0\]`.*NaN"),
    "infinity": ([HALF, HALF], [1, math.inf], 0, ValueError, r"`target_probs\[1\]`: inf"),
    "negative": ([HALF, -HALF], [1, 0], 0, ValueError, r"`draft_probs\[1\]` is Fraction"),
    "no number": ([HALF, None], [1, 0], 0, TypeError, r"`draft_probs\[1\]`: None of type"),
    "no number in text": (["a half"], [1], 0, ValueError, r"`draft_probs\[0\]`: Invalid"),
    "array": ([np.zeros(2)], [1], 0, TypeError, r"`draft_probs\[0\]`.*tolist"),
    "lengths": ([1], [HALF, HALF], 0, ValueError, "has 1 entries, `target_probs` 2"),
    "empty": ([], [], 0, ValueError, "has 0 entries"),
    "range": ([1], [1], 1, IndexError, "`drafted_token` is 1; needed is 0 <= .* < 1"),
    "negative token": ([1], [1], -1, IndexError, "`drafted_token` is -1"),
    "float token": ([1], [1], 0.0, TypeError, "`drafted_token` is 0.0"),
    "bool token": ([1], [1], False, TypeError, "`drafted_token` is False"),
    "not drawn": ([1, 0], [HALF, HALF], 1, ValueError, "cannot have been drawn"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_name_the_argument(name):
    """Each misuse raises an error that names the argument and what came."""
    *arguments, error, message = ERRORS[name]
    with pytest.raises(error, match=message):
        exact.speculative_decode_step(*arguments)


def test_only_the_standard_library_is_imported():
    """The reference shares no code with what it checks."""
    package = Path(exact.__file__).parent
    for path in package.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = (
                [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            )
            if isinstance(node, ast.ImportFrom):
                names = [node.module]
            for name in names:
                root = name.split(".")[0]
                assert root in sys.stdlib_module_names or name.startswith(
                    "draftproof.exact"
                )


def test_the_worked_models_of_the_golden_vectors():
    """Acceptance probabilities of the golden models are reproduced, path by path."""
    data = Path(__file__).parent / "data" / "golden.json"
    models = json.loads(data.read_text(encoding="utf-8"))["models"]
    checked = 0
    for model in models.values():
        for path in model["paths"]:
            steps = zip(path["q"], path["p"], path["x"], path["token_h"], strict=False)
            for draft, target, token, threshold in steps:
                step = exact.speculative_decode_step(draft, target, token)
                assert step["accept_prob"] == Fraction(threshold)
                checked += 1
    assert checked > 40
