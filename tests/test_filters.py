"""Filters of logits: against the definition in plain Python, and on every library."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from backends import VALUED, Backend
from draftproof import apply_filters

SIZE = 9


def reference(logits, temperature=1.0, top_k=None, top_p=None, min_p=None):
    """Filter one row by the definition, in the order of the docstring."""
    best = max(logits)
    if temperature == 0:
        first = logits.index(best)
        return [float(v == first) for v in range(len(logits))]
    weights = [math.exp((logit - best) / temperature) for logit in logits]
    kept = set(range(len(logits)))
    if top_k is not None:
        least = sorted(logits, reverse=True)[min(top_k, len(logits)) - 1]
        kept = {v for v in kept if logits[v] >= least}
    if top_p is not None:
        total = sum(weights[v] for v in kept)
        before = {v: sum(weights[w] for w in kept if weights[w] > weights[v]) for v in kept}
        kept = {v for v in kept if before[v] < top_p * total}
    if min_p is not None:
        kept = {v for v in kept if weights[v] >= min_p}
    total = sum(weights[v] for v in kept)
    return [weights[v] / total if v in kept else 0.0 for v in range(len(logits))]


FILTERS = [
    {},
    {"temperature": 0.5},
    {"temperature": 0},
    {"top_k": 3},
    {"top_k": 1},
    {"top_k": 100},
    {"top_p": 0.7},
    {"top_p": 1.0},
    {"min_p": 0.2},
    {"min_p": 0.0},
    {"temperature": 2.0, "top_k": 6, "top_p": 0.8, "min_p": 0.3},
    {"temperature": 0.3, "top_k": 4, "top_p": 0.95},
]


# JAX compiles every combination anew: it has the one that has everything.
CASES = [
    pytest.param(backend, options, id=f"{backend.name.lower()} {options}")
    for backend in VALUED
    for options in (FILTERS[-2:-1] if backend.is_jax else FILTERS)
]


@pytest.mark.parametrize(("backend", "options"), CASES)
def test_filters_are_their_definition(backend, options):
    """Kept tokens and probabilities are those of the definition."""
    logits = np.random.default_rng(0).normal(size=(5, SIZE)).astype(np.float32)
    dtype = "float64" if backend is Backend.JAX_X64 else "float32"
    with backend.context():
        found = backend.host(apply_filters(backend.array(logits, dtype), **options))
    expected = [reference(row, **options) for row in logits.astype(float).tolist()]
    assert ((found > 0) == (np.asarray(expected) > 0)).all()
    np.testing.assert_allclose(found, expected, rtol=3e-6)


def test_numbers_of_requests_are_those_of_single_calls():
    """An array of numbers filters each row as a call with its number does."""
    logits = np.random.default_rng(1).normal(size=(4, SIZE))
    options = {
        "temperature": np.asarray([0.0, 0.5, 1.0, 3.0]),
        "top_k": np.asarray([SIZE, 2, 5, 1]),
        "top_p": np.asarray([0.5, 1.0, 0.6, 0.9]),
        "min_p": np.asarray([0.0, 0.3, 0.0, 1.0]),
    }
    together = apply_filters(logits, **options)
    for i, row in enumerate(logits):
        alone = apply_filters(row, **{name: one[i].item() for name, one in options.items()})
        np.testing.assert_array_equal(together[i], alone)


def test_the_order_matters_where_min_p_meets_top_p():
    """Three tokens stay in this order; min_p first would leave two."""
    logits = np.log([0.5, 0.3, 0.15, 0.05])
    assert (apply_filters(logits, top_p=0.82, min_p=0.2) > 0).sum() == 3
    with np.errstate(divide="ignore"):
        first = np.log(apply_filters(logits, min_p=0.2))
    assert (apply_filters(first, top_p=0.82) > 0).sum() == 2


def test_equal_tokens_stay_or_go_together():
    """A tie at the edge is not decided by a sort; greedy takes the lowest index."""
    logits = np.asarray([1.0, 2.0, 1.0, 0.0, 2.0])
    assert (apply_filters(logits, top_k=1) == [0, 0.5, 0, 0, 0.5]).all()
    assert (apply_filters(logits, top_k=3) > 0).tolist() == [True] * 3 + [False, True]
    assert apply_filters(logits, temperature=0).tolist() == [0, 1, 0, 0, 0]


@pytest.mark.parametrize(
    ("logits", "options", "expected"),
    [
        ([1, 3, 2], {"temperature": 1e-6}, [0, 1, 0]),  # faults D06: no overflow
        ([1, 3, 2], {"temperature": 0}, [0, 1, 0]),
        ([0, -np.inf, 0], {}, [0.5, 0, 0.5]),  # F01
        ([0, -np.inf, 0], {"top_k": 3, "top_p": 1.0, "min_p": 0.0}, [0.5, 0, 0.5]),
        ([0, np.inf, 0], {}, [np.nan] * 3),
        ([0, np.nan, 0], {"temperature": 0}, [np.nan] * 3),
        ([-np.inf] * 3, {"top_p": 0.5}, [np.nan] * 3),  # F02
    ],
)
def test_edges(logits, options, expected):
    """Small temperatures, masked tokens, and what cannot be a law."""
    for dtype in ("float16", "float32", "float64"):
        found = apply_filters(np.asarray(logits, dtype), **options)
        assert found.dtype == ("float64" if dtype == "float64" else "float32")
        np.testing.assert_array_equal(found, np.asarray(expected, found.dtype))


def test_top_p_of_one_leaves_every_token():
    """Also those whose share of the mass is lost in a sum."""
    found = apply_filters(np.asarray([0.0, -50.0, -100.0]), top_p=1.0)
    assert (found > 0).all()


def test_order_of_temperature_and_top_p():
    """Public fault D08: temperature first keeps one token, temperature last two."""
    logits = np.asarray([2, 1, 0.5, 0])
    assert apply_filters(logits, temperature=0.5, top_p=0.75).tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"temperature": -1.0}, ValueError, "`temperature` is -1.0; needed is at least 0"),
        ({"temperature": math.nan}, ValueError, "`temperature` is nan"),
        ({"temperature": math.inf}, ValueError, "`temperature` is inf"),
        ({"temperature": "hot"}, TypeError, "`temperature` is 'hot'"),
        ({"top_k": 0}, ValueError, "`top_k` is 0; needed is an integer of at least 1"),
        ({"top_k": 2.5}, TypeError, "`top_k` is 2.5"),
        ({"top_k": np.ones(2)}, TypeError, "`top_k` has dtype float64"),
        ({"top_p": 0.0}, ValueError, "`top_p` is 0.0; needed is greater than 0"),
        ({"top_p": 1.5}, ValueError, "`top_p` is 1.5"),
        ({"min_p": -0.1}, ValueError, "`min_p` is -0.1"),
        ({"min_p": np.ones(3)}, ValueError, "`min_p` has shape (3,)"),
        ({"top_p": np.ones(2, int)}, TypeError, "`top_p` has dtype int64"),
    ],
    ids=str,
)
def test_errors(options, error, said):
    """A number out of its range, or an array that does not fit, is named."""
    with pytest.raises(error, match=re.escape(said)):
        apply_filters(np.zeros((2, 4)), **options)


@pytest.mark.parametrize(
    ("name", "number"),
    [("temperature", -1.0), ("top_k", 0), ("top_p", 0.0), ("top_p", 2.0), ("min_p", -1.0)],
)
def test_bad_numbers_in_arrays_give_nan(name, number):
    """Values of arrays are not looked at: the request fails closed, the other does not."""
    good = {"temperature": 1.0, "top_k": 2, "top_p": 0.9, "min_p": 0.1}[name]
    found = apply_filters(np.zeros((2, 4)), **{name: np.asarray([number, good])})
    assert np.isnan(found[0]).all()
    assert found[1].sum() == 1
