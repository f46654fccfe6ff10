"""`check_probs`: what it passes, what it refuses, and what it does not look at."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from backends import EVERY
from draftproof import check_probs
from draftproof._values import default_tolerance

combinations = pytest.mark.parametrize(
    "step_case", EVERY, indirect=True, ids=[f"{b.name.lower()}-{d}" for b, d in EVERY]
)

ROW, TARGET = (0.5, 0.25, 0.25), (0.25, 0.25, 0.5)


@combinations
def test_good_rows_pass_in_every_form(step_case):
    """One row, a batch, a chain of K and K + 1 rows, one-hot drafts, no tokens."""
    backend, dtype = step_case
    row, target = backend.array(ROW, dtype), backend.array(TARGET, dtype)
    chain = backend.array([[ROW, ROW], [ROW, ROW]], dtype)
    longer = backend.array([[TARGET] * 3] * 2, dtype)
    check_probs(row, target)
    check_probs(row, target, 2)
    check_probs(row, target, np.int64(2))
    check_probs(row, target, backend.array(2, "int32"))
    check_probs(chain, longer[:, :2, ...], backend.array([[0, 1], [2, -1]], "int32"))
    check_probs(chain, longer, backend.array([[0, 1], [2, -1]], "int32"))
    check_probs(None, longer, backend.array([[0, 1], [2, -1]], "int32"))
    check_probs(None, longer)
    check_probs(None, target, 1)


@combinations
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, -0.25])
def test_a_bad_entry_is_named(step_case, bad):
    """Argument, row, entry and value of what is no probability."""
    backend, dtype = step_case
    good = [[ROW] * 2] * 2
    for name in ("draft_probs", "target_probs"):
        rows = np.array(good)
        rows[1, 0, 2] = bad
        arguments = {"draft_probs": good, "target_probs": good, name: rows}
        arrays = {key: backend.array(value, dtype) for key, value in arguments.items()}
        with pytest.raises(ValueError, match=rf"`{name}\[1, 0, 2\]` is {bad}; needed"):
            check_probs(**arrays)


@combinations
def test_a_bad_sum_is_named(step_case):
    """Argument, row, sum and tolerance of a row that is no law."""
    backend, dtype = step_case
    rows = np.array([[ROW] * 2] * 2)
    rows[0, 1] = (0.5, 0.25, 0.125)
    with pytest.raises(ValueError, match=r"`target_probs\[0, 1\]` sums to 0.875, not to 1"):
        check_probs(None, backend.array(rows, dtype))


def test_tokens_are_checked(backend):
    """A token must be in range and have been possible; the message says which."""
    rows = backend.array([(0.5, 0.5, 0.0)] * 2, backend.dtypes[-1])
    with pytest.raises(
        ValueError, match=r"`draft_tokens\[1\]` is 2, which has probability 0"
    ):
        check_probs(rows, rows, backend.array([0, 2], "int32"))
    for token in (3, -2):
        with pytest.raises(IndexError, match=rf"`draft_tokens\[1\]` is {token}; needed"):
            check_probs(rows, rows, backend.array([0, token], "int32"))
        with pytest.raises(IndexError, match=rf"`draft_tokens` is {token}; needed"):
            check_probs(rows[0, ...], rows[0, ...], token)
        with pytest.raises(IndexError, match=rf"`draft_tokens\[0\]` is {token}; needed"):
            check_probs(None, rows, backend.array([token, 0], "int32"))


def test_rows_that_no_rule_reads_may_hold_anything(backend):
    """Behind the first -1 of a chain only one target row is read."""
    dtype = backend.dtypes[-1]
    junk = (math.nan,) * 3
    draft = backend.array([[ROW, junk, junk]], dtype)
    target = backend.array([[TARGET, TARGET, junk, junk]], dtype)
    tokens = backend.array([[0, -1, 7]], "int32")
    check_probs(draft, target, tokens)
    with pytest.raises(ValueError, match=r"`draft_probs\[0, 1, 0\]` is nan"):
        check_probs(draft, target, backend.array([[0, 0, 0]], "int32"))
    with pytest.raises(ValueError, match=r"`target_probs\[0, 1, 0\]` is nan"):
        check_probs(draft, backend.array([[TARGET, junk, junk, junk]], dtype), tokens)


def test_rows_of_one_step_are_read_whatever_stands_before_them(backend):
    """Equal numbers of rows are no chain: -1 in one says nothing about the next."""
    dtype = backend.dtypes[-1]
    draft = backend.array([(math.nan,) * 3, (0.5, 0.5, 0.5)], dtype)
    target = backend.array([TARGET, TARGET], dtype)
    with pytest.raises(ValueError, match=r"`draft_probs\[1\]` sums to 1.5"):
        check_probs(draft, target, backend.array([-1, 0], "int32"))


@given(
    st.sampled_from(("float16", "bfloat16", "float32")), st.integers(1, 3_000), st.data()
)
def test_softmax_rows_pass_and_lost_mass_does_not(dtype, size, data):
    """What PyTorch's softmax gives passes in every dtype; ten tolerances less does not."""
    seed = data.draw(st.integers(0, 2**32 - 1))
    logits = torch.from_numpy(np.random.default_rng(seed).normal(0, 4, size))
    row = torch.softmax(logits.to(getattr(torch, dtype)), -1)
    check_probs(row, row)
    lost = 1 - 10 * default_tolerance(dtype, size)
    with pytest.raises(ValueError, match="`draft_probs` sums to"):
        check_probs(row * lost, row)


@pytest.mark.parametrize("size", [32_000, 262_144])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("spread", [0.0, 1.0, 6.0], ids=["flat", "wide", "peaked"])
def test_softmax_rows_of_real_sizes_pass(size, dtype, spread):
    """The default tolerance leaves room for the softmax of a real vocabulary."""
    logits = torch.from_numpy(np.random.default_rng(0).normal(0, 1, size) * spread)
    row = torch.softmax(logits.to(getattr(torch, dtype)), -1)
    check_probs(row, row)


def test_the_tolerance_can_be_given():
    """float32 rows stored as float64 need the tolerance of what they were."""
    row = np.asarray([0.1, 0.2, 0.7], dtype=np.float32).astype(np.float64)
    with pytest.raises(ValueError, match="not to 1 within"):
        check_probs(row, row)
    check_probs(row, row, tolerance=1e-6)


SHAPES = {
    "two rows more": ((1, 3), (3, 3), None, r"`draft_probs` has shape \(1, 3\)"),
    "vocabularies": ((2, 3), (2, 4), None, r"`target_probs` \(2, 4\); needed are equal"),
    "chain of rows": ((3,), (2, 3), None, r"`draft_probs` has shape \(3,\)"),
    "tokens": ((2, 3), (2, 3), (3,), r"`draft_tokens` has shape \(3,\); needed is \(2,\)"),
    "tokens without drafts": (None, (2, 3), (4,), r"`draft_tokens` has shape \(4,\)"),
    "no vocabulary": (None, (2, 0), None, r"`target_probs` has shape \(2, 0\)"),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_that_fit_no_rule_are_named(name):
    """Shapes must be those of one step, a batch, or a chain."""
    draft, target, tokens, message = SHAPES[name]
    draft = None if draft is None else np.full(draft, 1 / 3)
    tokens = None if tokens is None else np.zeros(tokens, dtype=np.int64)
    with pytest.raises(ValueError, match=message):
        check_probs(draft, np.full(target, 1 / 3), tokens)


def test_wrong_kinds_are_named():
    """Dtype, library and tracing are checked before any value."""
    row = np.asarray(ROW)
    with pytest.raises(TypeError, match="`draft_probs` has dtype int64"):
        check_probs(np.asarray([1, 0]), row)
    with pytest.raises(TypeError, match="`draft_probs` has dtype float64, `target_probs`"):
        check_probs(row, row.astype(np.float32))
    with pytest.raises(TypeError, match="a torch array, `target_probs` a numpy array"):
        check_probs(row, row, torch.tensor(0))
    with pytest.raises(TypeError, match="`draft_tokens` has dtype uint8"):
        check_probs(row, row, np.asarray(0, dtype=np.uint8))
    with pytest.raises(TypeError, match="outside jit and vmap"):
        jax.jit(check_probs)(jnp.asarray(ROW), jnp.asarray(TARGET))
    with pytest.raises(ValueError, match="`draft_probs` is on cpu, `target_probs` on meta"):
        check_probs(torch.tensor(ROW), torch.tensor(TARGET, device="meta"))


def test_empty_batches_pass():
    """There is nothing wrong with no rows."""
    rows = np.zeros((0, 2, 3))
    check_probs(rows, rows, np.zeros((0, 2), dtype=np.int64))
    check_probs(rows, np.zeros((0, 3, 3)), np.zeros((0, 2), dtype=np.int64))
