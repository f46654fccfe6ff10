"""`accept_residual`: the step on batches, its edges, its gradients."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assertions import assert_like, assert_values, bits
from backends import EVERY, Backend
from budgets import ACCEPT_PROB_ULP, ARITHMETIC, EPSILON, residual_budget
from draftproof import (
    AcceptResidual,
    accept_residual,
    acceptance_rate,
    speculative_decode_step,
)
from rows import Rows, flushed, stored
from strategies import KINDS, make_rows

combinations = pytest.mark.parametrize(
    "step_case", EVERY, indirect=True, ids=[f"{b.name.lower()}-{d}" for b, d in EVERY]
)


def batch(backend, pairs, tokens):
    """Make the three arrays of a batch of row pairs; tokens as wide as JAX has them."""
    dtype = pairs[0].dtype
    width = "int64" if backend is not Backend.JAX else "int32"
    return (
        backend.array([pair.draft for pair in pairs], dtype),
        backend.array([pair.target for pair in pairs], dtype),
        backend.array(tokens, width),
    )


@combinations
@given(data=st.data())
def test_batch_equals_loop(step_case, data):
    """Every row of a batch is what the step gives for it, within the budgets."""
    backend, dtype = step_case
    size = data.draw(st.sampled_from((1, 3, 129)))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=4, max_size=4))
    pairs = [make_rows(kind, size, dtype, random) for kind in kinds]
    tokens = [random.integers(size) for _ in pairs]
    arrays = batch(backend, pairs, tokens)
    before = [bits(backend, array) for array in arrays[:2]]
    accept_prob, residual = accept_residual(*arrays)
    assert [bits(backend, array) for array in arrays[:2]] == before
    assert_like(residual, arrays[0])
    assert_like(accept_prob, arrays[0], dtype=backend.dtype(ARITHMETIC[dtype]), shape=(4,))
    ulp = ACCEPT_PROB_ULP * EPSILON[ARITHMETIC[dtype]]
    for i, (pair, token) in enumerate(zip(pairs, tokens, strict=True)):
        seen = flushed(pair) if backend.value.flushes_subnormals else pair
        needed = seen.exact_residual()
        within = residual_budget(needed, dtype) + 2.0**-126 * backend.is_jax
        assert_values(backend, residual[i, ...], needed, within=within)
        if pair.draft[token]:
            one = speculative_decode_step(arrays[0][i, ...], arrays[1][i, ...], int(token))
            kept = float(pair.exact_accept_prob(int(token)))
            assert one["accept_prob"] == kept
            # XLA sees a subnormal entry as 0: then the ratio is its limit, 0 or 1.
            if seen == pair:
                tiny = 2.0**-148 if ARITHMETIC[dtype] == "float32" else 5e-324
                assert_values(backend, accept_prob[i, ...], kept, within=ulp * kept + tiny)


@combinations
def test_edges_of_the_acceptance(step_case):
    """A token that is absent, impossible, out of range or not finite, on each backend."""
    backend, dtype = step_case
    row = (0.5, 0.0, 0.5, 0.0)
    target = (0.25, 0.25, 0.5, 0.0)
    tokens = [0, 1, 2, 3, -1, 4, -2, 2**31 - 1]
    needed = [0.5, 1.0, 1.0, 0.0, 0.0, math.nan, math.nan, math.nan]
    arrays = batch(backend, [Rows(row, target, dtype)] * len(tokens), tokens)
    accept_prob, residual = accept_residual(*arrays)
    np.testing.assert_array_equal(backend.host(accept_prob), needed)
    # What a token is changes nothing about the residual.
    assert_values(backend, residual, [[0.0, 1.0, 0.0, 0.0]] * len(tokens))


@combinations
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_not_finite_rows_fail_closed(step_case, bad):
    """A row that is not finite gives no legal acceptance and no legal residual."""
    backend, dtype = step_case
    good = (0.5, 0.5)
    pairs = [Rows((bad, 0.5), good, dtype), Rows(good, (bad, 0.5), dtype)]
    accept_prob, residual = accept_residual(*batch(backend, pairs, [0, 0]))
    assert np.isnan(backend.host(accept_prob)).all()
    values = backend.host(residual)
    assert np.isnan(values[0]).any()
    # minus infinity in the target hides below the draft: that is check_probs' to find
    assert np.isnan(values[1]).any() or bad == -math.inf


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_not_finite_entries_of_long_rows_show(backend, bad):
    """One bad entry of thousands shows in the residual; XLA's fused maximum loses it."""
    dtype, size = backend.dtypes[-1], 4_099
    for place in (0, size // 2, size - 1):
        good, spoilt = np.full(size, 2.0**-12), np.full(size, 2.0**-12)
        spoilt[place] = bad
        for draft, target in ((good, spoilt), (spoilt, good)):
            pair = Rows(tuple(draft.tolist()), tuple(target.tolist()), dtype)
            residual = accept_residual(*batch(backend, [pair], [1])).residual
            assert np.isnan(backend.host(residual)).any()
            rate = backend.host(acceptance_rate(*batch(backend, [pair], [1])[:2]))
            assert np.isnan(rate) or bad == math.inf


def test_an_entry_that_is_not_read_does_not_spoil_the_acceptance(backend):
    """NaN beside the drafted entry leaves its acceptance alone; the residual shows it."""
    dtype = backend.dtypes[-1]
    pair = Rows((0.5, math.nan, 0.25), (0.25, 0.5, 0.25), dtype)
    accept_prob, residual = accept_residual(*batch(backend, [pair], [0]))
    assert_values(backend, accept_prob, [0.5])
    assert np.isnan(backend.host(residual)).any()


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3,), (2, 3), (2, 0), (2, 1, 3)])
def test_any_leading_axes(backend, shape):
    """Any number of equal leading axes, also none, also empty ones."""
    dtype = backend.dtypes[-1]
    count = math.prod(shape)
    random = np.random.default_rng(3)
    pairs = [make_rows("dyadic", 5, dtype, random) for _ in range(count)]
    draft = np.asarray([pair.draft for pair in pairs]).reshape(*shape, 5)
    target = np.asarray([pair.target for pair in pairs]).reshape(*shape, 5)
    tokens = random.integers(5, size=shape)
    arrays = (*(backend.array(row, dtype) for row in (draft, target)),)
    result = accept_residual(*arrays, backend.array(tokens, "int32"))
    assert isinstance(result, AcceptResidual)
    assert_like(result.accept_prob, arrays[0], shape=shape)
    assert_like(result.residual, arrays[0])
    needed = [pair.exact_residual() for pair in pairs]
    assert_values(backend, result.residual, np.reshape(needed, draft.shape), within=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_memory_layout_costs_no_digits(dtype):
    """A transposed batch is summed as precisely as a contiguous one."""
    random = np.random.default_rng(0)
    pairs = [make_rows("long tail", 30_011, dtype, random) for _ in range(2)]
    arrays = batch(Backend.NUMPY, pairs, [0, 1])
    turned = [np.asfortranarray(rows) for rows in arrays[:2]]
    strided = [np.repeat(rows, 2, axis=-1)[:, ::2] for rows in arrays[:2]]
    for draft, target in (arrays[:2], turned, strided):
        residual = accept_residual(draft, target, arrays[2]).residual
        for row, pair in zip(residual, pairs, strict=True):
            needed = pair.exact_residual()
            assert_values(Backend.NUMPY, row, needed, within=residual_budget(needed, dtype))


def test_the_memory_layout_would_cost_digits():
    """The negative control: summed down the columns, the rows leave the budget."""
    random = np.random.default_rng(0)
    pair = make_rows("long tail", 30_011, "float32", random)
    draft, target, _ = batch(Backend.NUMPY, [pair, pair], [0, 1])
    part = np.asfortranarray(np.maximum(target, draft) - draft)
    needed = pair.exact_residual()
    wrong = (part / part.sum(axis=-1, keepdims=True))[0]
    assert np.any(np.abs(wrong - needed) > residual_budget(needed, "float32"))


def analytic_gradient(draft, target, token, weights):
    """Differentiate ``accept_prob + weights @ residual`` by hand, away from ties."""
    draft, target, weights = map(np.asarray, (draft, target, weights))
    above = target > draft
    part = np.where(above, target - draft, 0)
    total = part.sum()
    by_part = np.where(above, (weights - weights @ part / total) / total, 0)
    by_target, by_draft = by_part.copy(), -by_part
    if target[token] < draft[token]:
        by_target[token] += 1 / draft[token]
        by_draft[token] -= target[token] / draft[token] ** 2
    return by_draft, by_target


GRADIENTS = {
    "rejected": ((0.5, 0.3, 0.2), (0.2, 0.45, 0.35), 0),
    "accepted": ((0.5, 0.3, 0.2), (0.2, 0.45, 0.35), 1),
    "zero draft entry": ((0.6, 0.0, 0.4), (0.3, 0.5, 0.2), 0),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_the_analytic_ones(name):
    """Autograd of PyTorch and of JAX agree with the derivative taken by hand."""
    draft, target, token = GRADIENTS[name]
    weights = (0.7, -1.3, 0.4)
    needed = analytic_gradient(draft, target, token, weights)

    rows = [
        torch.tensor(row, dtype=torch.float64, requires_grad=True)
        for row in (draft, target)
    ]
    result = accept_residual(*rows, torch.tensor(token))
    (
        result.accept_prob + result.residual @ torch.tensor(weights, dtype=torch.float64)
    ).backward()
    for row, by_hand in zip(rows, needed, strict=True):
        np.testing.assert_allclose(row.grad.numpy(), by_hand, rtol=1e-12)

    def loss(draft, target):
        result = accept_residual(draft, target, jnp.asarray(token))
        return result.accept_prob + result.residual @ jnp.asarray(weights)

    with Backend.JAX_X64.context():
        found = jax.grad(loss, argnums=(0, 1))(jnp.asarray(draft), jnp.asarray(target))
    for row, by_hand in zip(found, needed, strict=True):
        np.testing.assert_allclose(np.asarray(row), by_hand, rtol=1e-12)


@pytest.mark.parametrize(
    "pair",
    [
        ((0.5, 0.25, 0.25), (0.5, 0.25, 0.25)),
        ((0.5, 0.5, 0.0), (0.25, 0.5, 0.25)),
        ((0.0, 0.5, 0.5), (0.5, 0.5, 0.0)),
    ],
    ids=["equal", "tie", "zero"],
)
@pytest.mark.parametrize("token", [0, 1, 2, -1])
def test_gradients_are_finite_at_ties_and_zeros(pair, token):
    """No NaN comes out of the branch that was not taken."""
    rows = [torch.tensor(row, requires_grad=True) for row in pair]
    result = accept_residual(*rows, torch.tensor(token))
    (result.accept_prob + result.residual.sum()).backward()
    assert all(bool(torch.isfinite(row.grad).all()) for row in rows)

    def loss(draft, target):
        result = accept_residual(draft, target, jnp.asarray(token))
        return result.accept_prob + result.residual.sum()

    found = jax.grad(loss, argnums=(0, 1))(*map(jnp.asarray, pair))
    assert all(bool(jnp.isfinite(row).all()) for row in found)


ERRORS = {
    "uint8 tokens": (lambda q, t: (q, q, t.astype(np.uint8)), TypeError, "dtype uint8"),
    "uint64 tokens": (lambda q, t: (q, q, t.astype(np.uint64)), TypeError, "dtype uint64"),
    "int16 tokens": (lambda q, t: (q, q, t.astype(np.int16)), TypeError, "int32 or int64"),
    "float tokens": (lambda q, t: (q, q, t.astype(float)), TypeError, "dtype float64"),
    "int tokens": (lambda q, t: (q, q, 0), TypeError, "`draft_tokens` is of type int"),
    "token shape": (
        lambda q, t: (q, q, t[:1]),
        ValueError,
        r"`draft_tokens` has shape \(1,\); needed is \(2,\)",
    ),
    "tokens per entry": (lambda q, t: (q, q, q.astype(int)), ValueError, r"shape \(2, 2\)"),
    "broadcast": (
        lambda q, t: (q[:1], q, t),
        ValueError,
        r"`draft_probs` has shape \(1, 2\), `target_probs` \(2, 2\)",
    ),
    "no vocabulary": (lambda q, t: (q[:, :0], q[:, :0], t), ValueError, r"\(2, 0\)"),
    "libraries": (
        lambda q, t: (q, q, torch.tensor([0, 0])),
        TypeError,
        "`draft_probs` is a numpy array, `draft_tokens` a torch array",
    ),
    "dtypes": (
        lambda q, t: (q, q.astype(np.float32), t),
        TypeError,
        "`draft_probs` has dtype float64, `target_probs` float32",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_name_the_argument(name):
    """Metadata is checked: what is wrong is named with what came and what is needed."""
    arguments, error, message = ERRORS[name]
    row, tokens = np.asarray([[0.5, 0.5], [0.25, 0.75]]), np.asarray([0, 1])
    with pytest.raises(error, match=message):
        accept_residual(*arguments(row, tokens))


def test_tokens_must_be_where_the_rows_are():
    """Tokens on another device are refused by name."""
    rows = torch.full((2, 2), 0.5, device="meta")
    with pytest.raises(ValueError, match="`draft_tokens` is on cpu, `draft_probs` on meta"):
        accept_residual(rows, rows, torch.tensor([0, 1]))


def test_repeated_runs_with_dirty_memory_agree():
    """Nothing is read that was not written: the same call gives the same bits."""
    pair = stored((0.5, 0.25, 0.25), (0.25, 0.25, 0.5), "float32")
    arrays = batch(Backend.NUMPY, [pair] * 1_000, [0, -1] * 500)
    first = accept_residual(*arrays)
    np.full(10_000, np.nan)  # goes back to the allocator as it is
    second = accept_residual(*arrays)
    for one, other in zip(first, second, strict=True):
        assert one.tobytes() == other.tobytes()
