"""`acceptance_rate`, `expected_tokens` and `accepted_law` against exact numbers."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assertions import assert_like, assert_values, bits
from backends import EVERY, VALUED, Backend
from budgets import ARITHMETIC, EPSILON
from draftproof import acceptance_rate, accepted_law, expected_tokens, verify_chain

GOLDEN = json.loads(
    (Path(__file__).parent / "data" / "golden.json").read_text(encoding="utf-8")
)
PATHS = [path for model in GOLDEN["models"].values() for path in model["paths"]]

both_rules = pytest.mark.parametrize("rule", ["token", "block"])
combinations = pytest.mark.parametrize(
    "step_case", EVERY, indirect=True, ids=[f"{b.name.lower()}-{d}" for b, d in EVERY]
)


def floats(rows, size=3):
    """Return rows of fractions as floats, with tokens of probability 0 up to a size."""
    return [[float(Fraction(x)) for x in row] + [0.0] * (size - len(row)) for row in rows]


# --- acceptance_rate ------------------------------------------------------------------

# Dyadic rows, exact in every dtype: draft, target and the rate.
RATES = {
    "equal": ((0.5, 0.25, 0.25), (0.5, 0.25, 0.25), 1.0),
    "disjoint": ((1.0, 0.0, 0.0), (0.0, 0.5, 0.5), 0.0),
    "g1": ((0.75, 0.0, 0.25), (0.25, 0.25, 0.5), 0.5),
    "one-hot target": ((0.5, 0.25, 0.25), (0.0, 1.0, 0.0), 0.25),
    "taken as they are": ((0.5, 0.5, 0.5), (0.25, 1.0, 0.75), 1.25),
    "nothing": ((0.0, 0.0, 0.0), (0.5, 0.25, 0.25), 0.0),
}


@combinations
def test_rates_by_hand(step_case):
    """The sum of the smaller entries, in the dtype of the arithmetic."""
    backend, dtype = step_case
    draft, target, needed = zip(*RATES.values(), strict=True)
    rows = backend.array(draft, dtype), backend.array(target, dtype)
    before = [bits(backend, array) for array in rows]
    rate = acceptance_rate(*rows)
    assert_like(rate, rows[0], dtype=backend.dtype(ARITHMETIC[dtype]), shape=(len(RATES),))
    assert_values(backend, rate, needed)
    assert_values(backend, acceptance_rate(*rows[::-1]), needed)
    assert [bits(backend, array) for array in rows] == before


@pytest.mark.parametrize("size", [1, 1_000, 50_000])
@pytest.mark.parametrize(
    "library", [Backend.NUMPY, Backend.TORCH, Backend.JAX], ids=lambda b: b.name.lower()
)
def test_the_rate_of_real_rows(library, size):
    """On long rows it is 1 - TV, up to the rounding of the library's own sum."""
    random = np.random.default_rng(size)
    draft, target = random.dirichlet(np.ones(size), (2, 3)).astype(np.float32).astype(float)
    needed = [
        math.fsum(np.minimum(*pair).tolist()) for pair in zip(draft, target, strict=True)
    ]
    with library.context():
        rate = acceptance_rate(
            library.array(draft, "float32"), library.array(target, "float32")
        )
        assert_values(library, rate, needed, within=64 * EPSILON["float32"])
    # The negative control: the largest entries instead are far off.
    assert size == 1 or np.maximum(draft, target).sum(-1).min() > 1.1


@pytest.mark.parametrize("shape", [(), (0,), (2, 3), (2, 0)])
def test_rates_of_any_leading_axes(shape):
    """Any leading axes, also none and empty ones."""
    for backend in (Backend.NUMPY, Backend.STRICT, Backend.TORCH):
        rows = backend.array(np.full((*shape, 4), 0.25), "float64")
        rate = acceptance_rate(rows, rows)
        assert_like(rate, rows, shape=shape)
        assert_values(backend, rate, np.ones(shape))


@pytest.mark.parametrize("name", ["draft_probs", "target_probs"])
def test_a_rate_of_nan_is_nan(backend, name):
    """NaN in either row shows, at any place, and leaves the other requests alone."""
    dtype = backend.dtypes[-1]
    for size in (3, 5_000):
        for place in (0, size // 2, size - 1):
            rows = np.full((2, 2, size), 1 / size)
            rows[int(name == "target_probs"), 1, place] = math.nan
            draft, target = (backend.array(row, dtype) for row in rows)
            rate = backend.host(acceptance_rate(draft_probs=draft, target_probs=target))
            assert np.isnan(rate[1])
            assert rate[0] == pytest.approx(1, rel=1e-5)


def test_the_rate_has_a_gradient():
    """It can be a loss: the gradient reaches the smaller entries."""
    draft = torch.tensor([0.75, 0.0, 0.25], requires_grad=True)
    target = torch.tensor([0.25, 0.25, 0.5], requires_grad=True)
    acceptance_rate(draft, target).backward()
    assert draft.grad.tolist() == [0.0, 1.0, 1.0]
    assert target.grad.tolist() == [1.0, 0.0, 0.0]


# --- expected_tokens ------------------------------------------------------------------

BY_HAND = [
    (0.0, 0, 1.0),
    (0.0, 5, 1.0),
    (0.5, 0, 1.0),
    (0.5, 1, 1.5),
    (0.5, 3, 1.875),
    (0.75, 2, 2.3125),
    (1.0, 0, 1.0),
    (1.0, 7, 8.0),
]


@pytest.mark.parametrize("rate,length,needed", BY_HAND)
def test_expected_tokens_of_a_number(rate, length, needed):
    """By hand: a geometric sum, and K + 1 exactly where the rate is 1."""
    found = expected_tokens(rate, length)
    assert type(found) is float
    assert found == needed


@pytest.mark.parametrize("rate", [0, 1])
def test_a_whole_rate_gives_a_float(rate):
    """A rate of 0 or 1 as an integer is a rate, too."""
    found = expected_tokens(rate, 3)
    assert type(found) is float
    assert found == 1 + 3 * rate


def test_expected_tokens_of_arrays(backend):
    """An array of rates gives an array of its library, dtype and shape."""
    for dtype in (d for d in backend.dtypes if "16" not in d):
        for length in (0, 2):
            rates = backend.array([[0.0, 0.5], [0.75, 1.0]], dtype)
            found = expected_tokens(rates, length)
            assert_like(found, rates)
            needed = [[1.0] * 2] * 2 if length == 0 else [[1.0, 1.75], [2.3125, 3.0]]
            assert_values(backend, found, needed)


@given(st.fractions(0, 1, max_denominator=100), st.integers(0, 20))
def test_expected_tokens_are_the_geometric_sum(rate, length):
    """Within rounding of the exact sum, and of the quotient away from a rate of 1."""
    exact = sum(rate**i for i in range(length + 1))
    assert expected_tokens(rate, length) == pytest.approx(float(exact), rel=1e-14)
    if rate != 1:
        assert (1 - rate ** (length + 1)) / (1 - rate) == exact


def test_a_negative_length_is_refused():
    """The number of drafts cannot be negative."""
    with pytest.raises(ValueError, match="`draft_length` is -1; needed is a number of"):
        expected_tokens(0.5, -1)


def test_not_a_number_stays():
    """A rate of NaN gives NaN, not the length of a short text."""
    assert math.isnan(expected_tokens(math.nan, 2))
    assert math.isnan(expected_tokens(math.nan, 0))


# --- accepted_law ---------------------------------------------------------------------


def law_of(thresholds, *, rule):
    """Return the law of the number accepted: up to the first failure or last success."""
    law = {}
    for outcomes in range(2 ** len(thresholds)):
        coins = [bool(outcomes >> i & 1) for i in range(len(thresholds))]
        prob = math.prod(
            (h if coin else 1 - h for h, coin in zip(thresholds, coins, strict=True)),
            start=Fraction(1),
        )
        first = [*coins, False].index(False)
        last = max((i + 1 for i, coin in enumerate(coins) if coin), default=0)
        count = first if rule == "token" else last
        law[count] = law.get(count, 0) + prob
    return [law.get(count, Fraction(0)) for count in range(len(thresholds) + 1)]


def golden_laws(rule):
    """Yield the golden paths by length, with the law of the number accepted."""
    for length in sorted({len(path["x"]) for path in PATHS}):
        paths = [path for path in PATHS if len(path["x"]) == length]
        laws = [law_of(list(map(Fraction, path[f"{rule}_h"])), rule=rule) for path in paths]
        yield paths, laws


@both_rules
@combinations
def test_golden_laws(step_case, rule):
    """On the golden paths it is the law of their thresholds, within a few ulp."""
    backend, dtype = step_case
    for paths, laws in golden_laws(rule):
        draft = backend.array([floats(path["q"]) for path in paths], dtype)
        target = backend.array([floats(path["p"]) for path in paths], dtype)
        tokens = backend.array([path["x"] for path in paths], "int32")
        found = accepted_law(draft, target, tokens, rule=rule)
        wide = backend.dtype(ARITHMETIC[dtype])
        assert_like(found, draft, dtype=wide, shape=(len(paths), len(laws[0])))
        # Thirds are rounded when they are stored: everything else comes out.
        within = 8 * EPSILON[dtype]
        assert_values(backend, found, np.asarray(laws, dtype=float), within=within)
        sums = backend.host(found).sum(axis=-1)
        assert np.abs(sums - 1).max() <= 4 * EPSILON[ARITHMETIC[dtype]]


@pytest.mark.parametrize("name", GOLDEN["models"])
@both_rules
def test_the_laws_add_up_to_that_of_the_model(name, rule):
    """Weighted with the probability of their drafts they give the model's golden law."""
    model = GOLDEN["models"][name]
    weights = [float(Fraction(path["Q(x)"])) for path in model["paths"]]
    laws = accepted_law(
        np.asarray([floats(path["q"]) for path in model["paths"]]),
        np.asarray([floats(path["p"]) for path in model["paths"]]),
        np.asarray([path["x"] for path in model["paths"]]),
        rule=rule,
    )
    told = model["rules"][rule]
    needed = [float(Fraction(x)) for x in told["law_tau"]]
    found = np.asarray(weights) @ laws
    np.testing.assert_allclose(found, needed, atol=1e-15)
    expected = float(found @ np.arange(len(found)))
    assert expected == pytest.approx(float(Fraction(told["E_tau"])), rel=1e-15)


def test_the_golden_laws_tell_the_rules_apart():
    """The negative control: the law of the other rule is not within the tolerance."""
    # Those of one-hot drafts, K = 3, are the same for both.
    (_, one), (_, other) = (next(golden_laws(rule)) for rule in ("token", "block"))
    assert np.abs(np.asarray(one, dtype=float) - np.asarray(other, dtype=float)).max() > 0.1


@both_rules
def test_the_law_is_what_verify_chain_does(rule):
    """The coins of a fine grid are accepted as often as the law says."""
    steps = 60
    paths = [path for path in PATHS if len(path["x"]) == 2]
    side = (np.arange(steps) + 0.5) / steps
    coins = np.stack(np.meshgrid(side, side, [0.5], indexing="ij"), -1).reshape(-1, 3)
    for path in paths:
        rows = [np.asarray(floats(path[name])) for name in ("q", "p")]
        tokens = np.asarray(path["x"])
        many = [np.broadcast_to(row, (len(coins), *row.shape)) for row in (*rows, tokens)]
        accepted = verify_chain(*many, coins, rule=rule).num_accepted
        found = np.bincount(accepted, minlength=3) / len(coins)
        law = accepted_law(*rows, tokens, rule=rule)
        # A threshold may fall within a step, once for each coin.
        np.testing.assert_allclose(found, law, atol=2 / steps)


@both_rules
@pytest.mark.parametrize("size", [3, 5_000])
def test_drafts_without_a_law_are_one_hot(rule, size):
    """None for the draft gives the law of one-hot rows."""
    random = np.random.default_rng(size)
    target = random.dirichlet(np.ones(size), (20, 4))
    tokens = random.integers(0, size, (20, 3))
    target[:, :3] = (target[:, :3] + (tokens[..., None] == np.arange(size))) / 2
    rows = (tokens[..., None] == np.arange(size)).astype(float)
    for backend in (Backend.NUMPY, Backend.TORCH, Backend.STRICT):
        arrays = (
            backend.array(target, "float64"),
            backend.array(tokens, "int64"),
        )
        found = accepted_law(None, *arrays, rule=rule)
        needed = accepted_law(backend.array(rows, "float64"), *arrays, rule=rule)
        assert_values(backend, found, backend.host(needed), within=1e-12)


# The dyadic rows of g1: a path, its rows spoilt at (place, entry), and both laws.
DRAFT = ((0.75, 0.0, 0.25), (0.75, 0.0, 0.25))
TARGET = ((0.25, 0.25, 0.5),) * 3
NOTHING = (1.0, 0.0, 0.0)
EDGES = {
    "-1 at first": ((-1, 0), None, NOTHING, NOTHING),
    "-1 at second": ((0, -1), None, (2 / 3, 1 / 3, 0.0), (2 / 3, 1 / 3, 0.0)),
    "-1 at second and NaN": (
        (0, -1),
        ("draft", 1, 0),
        (2 / 3, 1 / 3, 0.0),
        (2 / 3, 1 / 3, 0.0),
    ),
    "nothing but -1": ((-1, -1), ("draft", 0, 0), NOTHING, NOTHING),
    "q = 0 < p": ((1, 2), None, (0.0, 0.0, 1.0), (0.0, 0.0, 1.0)),
    "an id behind -1": ((-1, 3), None, NOTHING, NOTHING),
    "an id at first": ((3, 0), None, (math.nan,) * 3, (math.nan,) * 3),
    "an id of -2 at second": (
        (0, -2),
        None,
        (2 / 3, math.nan, math.nan),
        (math.nan,) * 3,
    ),
    "NaN at a draft": ((0, 0), ("target", 0, 0), (math.nan,) * 3, (math.nan,) * 3),
    "inf at a draft": ((0, 0), ("inf", 0, 0), (math.nan,) * 3, (math.nan,) * 3),
    "NaN in the last row": (
        (0, 2),
        ("target", 2, 0),
        (2 / 3, 0, 1 / 3),
        (8 / 27, 1 / 27, 2 / 3),
    ),
}


@both_rules
def test_edges(backend, rule):
    """-1, q = 0, ids out of range and NaN; what is not read changes nothing."""
    dtype = backend.dtypes[-1]
    draft, target = (np.array([rows] * len(EDGES)) for rows in (DRAFT, TARGET))
    for i, (_, spoilt, _, _) in enumerate(EDGES.values()):
        if spoilt is not None:
            name, *place = spoilt
            rows = draft if name == "draft" else target
            rows[i, *place] = math.inf if name == "inf" else math.nan
    found = accepted_law(
        backend.array(draft, dtype),
        backend.array(target, dtype),
        backend.array([tokens for tokens, *_ in EDGES.values()], "int32"),
        rule=rule,
    )
    for (name, edge), law in zip(EDGES.items(), backend.host(found), strict=True):
        needed = edge[2 if rule == "token" else 3]
        np.testing.assert_allclose(law, needed, atol=1e-6, err_msg=name)


def test_a_sum_that_is_nan_shows(backend):
    """NaN beside the drafted entry leaves the token rule alone, and not the block rule."""
    for size in (3, 5_000):
        target = np.zeros((3, size))
        target[:, :3] = TARGET
        target[1, 1 if size == 3 else size // 2] = math.nan
        draft = np.zeros((2, size))
        draft[:, :3] = DRAFT
        arrays = (
            backend.array(draft, backend.dtypes[-1]),
            backend.array(target, backend.dtypes[-1]),
            backend.array([0, 2], "int32"),
        )
        law = backend.host(accepted_law(*arrays, rule="block"))
        assert np.isnan(law[:2]).all()
        law = accepted_law(*arrays, rule="token")
        assert_values(backend, law, (2 / 3, 0.0, 1 / 3), within=1e-6)


@both_rules
@combinations
def test_no_drafts(step_case, rule):
    """K = 0: nothing is accepted, for certain."""
    backend, dtype = step_case
    target = backend.array(np.full((4, 1, 3), 0.25), dtype)
    tokens = backend.array(np.zeros((4, 0)), "int32")
    for draft in (None, backend.array(np.zeros((4, 0, 3)), dtype)):
        law = accepted_law(draft, target, tokens, rule=rule)
        assert_like(law, target, dtype=backend.dtype(ARITHMETIC[dtype]), shape=(4, 1))
        assert_values(backend, law, np.ones((4, 1)))


@both_rules
@pytest.mark.parametrize("shape", [(), (0,), (2, 3), (2, 0)])
def test_laws_of_any_leading_axes(shape, rule):
    """Any leading axes, also none and empty ones."""
    for backend in (b for b in VALUED if not b.is_jax):
        dtype = backend.dtypes[-1]
        draft, target = (
            backend.array(np.broadcast_to(rows, (*shape, *np.shape(rows))), dtype)
            for rows in (DRAFT, TARGET)
        )
        tokens = backend.array(np.broadcast_to([0, 2], (*shape, 2)), "int32")
        law = accepted_law(draft, target, tokens, rule=rule)
        needed = (2 / 3, 0, 1 / 3) if rule == "token" else (8 / 27, 1 / 27, 2 / 3)
        assert_like(law, draft, shape=(*shape, 3))
        assert_values(backend, law, np.broadcast_to(needed, law.shape), within=1e-6)


def test_the_law_has_the_accepted_mean():
    """The mean of the law is the sum of the chances to get that far."""
    law = accepted_law(*map(np.asarray, (DRAFT, TARGET)), np.asarray([0, 2]))
    reached = [sum(law[i:]) for i in (1, 2)]
    assert float(law @ np.arange(3)) == pytest.approx(sum(reached))
    assert list(accumulate(law))[-1] == pytest.approx(1)


ROW = np.asarray(DRAFT)
LAW_ERRORS = {
    "unknown rule": ({"rule": "typical"}, ValueError, "'typical'.*'token', 'block'"),
    "K target rows": ({"target_probs": ROW}, ValueError, r"`target_probs` \(2, 3\)"),
    "tokens": (
        {"draft_tokens": np.asarray([0])},
        ValueError,
        r"`draft_tokens` has shape \(1,\); needed is \(2,\)",
    ),
    "unsigned tokens": (
        {"draft_tokens": np.asarray([0, 2], np.uint32)},
        TypeError,
        "`draft_tokens` has dtype uint32",
    ),
    "dtypes": (
        {"draft_probs": ROW.astype(np.float32)},
        TypeError,
        "`draft_probs` has dtype float32, `target_probs` float64",
    ),
    "libraries": (
        {"draft_tokens": torch.tensor([0, 2])},
        TypeError,
        "is a numpy array, `draft_tokens` a torch array",
    ),
}


@pytest.mark.parametrize("name", LAW_ERRORS)
def test_errors_of_the_law_name_the_argument(name):
    """Metadata is checked as by verify_chain."""
    changed, error, message = LAW_ERRORS[name]
    arguments = {
        "draft_probs": ROW,
        "target_probs": np.asarray(TARGET),
        "draft_tokens": np.asarray([0, 2]),
    }
    accepted_law(**arguments)
    with pytest.raises(error, match=message):
        accepted_law(**arguments | changed)


RATE_ERRORS = {
    "shapes": (ROW[:, :2], ValueError, r"`target_probs` \(2, 2\).*extend the smaller"),
    "broadcast": (ROW[:1], ValueError, r"`target_probs` \(1, 3\)"),
    "dtypes": (ROW.astype(np.float32), TypeError, "float64, `target_probs` float32"),
    "libraries": (torch.tensor(ROW), TypeError, "`target_probs` a torch array"),
    "a list": (ROW.tolist(), TypeError, "`target_probs` is of type list"),
}


@pytest.mark.parametrize("name", RATE_ERRORS)
def test_errors_of_the_rate_name_the_argument(name):
    """Metadata is checked as by the step."""
    target, error, message = RATE_ERRORS[name]
    acceptance_rate(ROW, ROW)
    with pytest.raises(error, match=message):
        acceptance_rate(ROW, target)
