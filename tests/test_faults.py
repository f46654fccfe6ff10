"""Kinds of fault that were made in public: each is a test, named by its number.

The numbers are those of the project's list of public bug reports; `fault-cases.json`
holds those cases that are a decision with given uniforms.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from assertions import assert_like, assert_values
from backends import EVERY, Backend
from draftproof import accept_residual, check_probs, exact, speculative_decode_step

CASES = json.loads((Path(__file__).parent / "data" / "fault-cases.json").read_text())
TOKEN_CASES = [case for case in CASES if case["rule"] == "token"]
# Decimal ties, exact in the doubles they were found with and nowhere else.
TIES = [("A01", ".2"), ("A02", ".4")]


def row(backend, values, dtype=None):
    """Make a row in the widest dtype of a backend."""
    dtype = dtype or backend.dtypes[-1]
    values = [float(Fraction(value)) for value in values]
    return backend.array(rounded(values, dtype), dtype)


def rounded(values, dtype):
    """Round to float32 in NumPy where the backend has no float64."""
    return np.asarray(values, dtype="float64" if dtype == "float64" else "float32")


def draw(weights, uniform):
    """Return the first entry whose running sum exceeds the share of the uniform."""
    running = np.cumsum(weights)
    return int(np.argmax((running > uniform * running[-1]) & (weights > 0)))


def decode(backend, case):
    """Verify a chain with one step per token, as a decoding loop would."""
    final = float(Fraction(case["v"]))
    emitted = []
    for i, (token, uniform) in enumerate(zip(case["t"], case["u"], strict=True)):
        step = speculative_decode_step(
            row(backend, case["Q"][i]), row(backend, case["P"][i]), token
        )
        if not float(Fraction(uniform)) < step["accept_prob"]:
            return [*emitted, draw(backend.host(step["residual"]), final)]
        emitted.append(token)
    return [*emitted, draw(backend.host(row(backend, case["P"][len(emitted)])), final)]


@pytest.mark.parametrize(
    "case",
    TOKEN_CASES,
    ids=lambda case: f"{case['id']}-u{''.join(case['u'][:1])}-v{case['v']}",
)
def test_a_chain_of_steps_decides_rightly(backend, case):
    """Each case with given uniforms comes out right, on every backend."""
    tie = (case["id"], case["v"]) in TIES or (case["id"], *case["u"]) in TIES
    if tie and "float64" not in backend.dtypes:
        return  # in float32 it is no tie
    emitted = decode(backend, case)
    assert emitted == case["emitted"]
    assert len(emitted) == case["n_acc"] + 1


def law(backend, draft, target):
    """Sum accept-then-residual over every draft, as the emitted law."""
    emitted = np.zeros(len(target))
    for token, prob in enumerate(draft):
        if prob:
            step = speculative_decode_step(row(backend, draft), row(backend, target), token)
            emitted[token] += prob * step["accept_prob"]
            emitted += prob * (1 - step["accept_prob"]) * backend.host(step["residual"])
    return emitted


LAWS = {
    "A02 uniform hard-wired": ([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]),
    "A07 accept iff p >= q": ([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]),
    "A13 beam search is one-hot": ([1, 0, 0], [0.3, 0.5, 0.2]),
    "A14 argmax draft is one-hot": ([1, 0, 0], [0.2, 0.5, 0.3]),
    "B01 softmax of the residual": ([0.6, 0.3, 0.1], [0.1, 0.6, 0.3]),
    "B02 replacement from p": ([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]),
    "B03 point-mass residual": ([0.6, 0.3, 0.1], [0.1, 0.4, 0.5]),
}


@pytest.mark.parametrize("name", LAWS)
def test_the_emitted_law_is_the_target(backend, name):
    """Where the fault shows in the law, the law is right."""
    draft, target = LAWS[name]
    np.testing.assert_allclose(law(backend, draft, target), target, atol=3e-7)


RESIDUALS = {
    "A06": ([0.1, 0.8, 0.1], [0.6, 0.3, 0.1], 1, 0.375, [1, 0, 0]),
    "A13": ([1, 0, 0], [0.3, 0.5, 0.2], 0, 0.3, [0, 5 / 7, 2 / 7]),
    "A14": ([1, 0, 0], [0.2, 0.5, 0.3], 0, 0.2, [0, 5 / 8, 3 / 8]),
    "A15": ([1, 0, 0], [0, 1, 0], 0, 0.0, [0, 1, 0]),
    "B01": ([0.6, 0.3, 0.1], [0.1, 0.6, 0.3], 0, 1 / 6, [0, 0.6, 0.4]),
    "B03": ([0.6, 0.3, 0.1], [0.1, 0.4, 0.5], 0, 1 / 6, [0, 0.2, 0.8]),
    "B04": ([0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0], 0, 1.0, [0, 0, 0, 0]),
    "G09": (
        [0.2] * 5 + [0],
        [0.1, 0.2, 0.3, 0.2, 0.1, 0.1],
        0,
        0.5,
        [0, 0, 0.5, 0, 0, 0.5],
    ),
    "G13": (
        [0.3] + [0.1] * 7,
        [0.05, 0.05, 0.1, 0.1, 0.2, 0.2, 0.2, 0.1],
        0,
        1 / 6,
        [0, 0, 0, 0, 1 / 3, 1 / 3, 1 / 3, 0],
    ),
    "J01": ([1, 0, 0], [0.5, 0.3, 0.2], 0, 0.5, [0, 0.6, 0.4]),
}


@pytest.mark.parametrize("name", RESIDUALS)
def test_acceptance_and_residual(backend, name):
    """Acceptance probability and residual of the listed rows."""
    draft, target, token, accept_prob, residual = RESIDUALS[name]
    step = speculative_decode_step(row(backend, draft), row(backend, target), token)
    assert step["accept_prob"] == pytest.approx(accept_prob, rel=3e-7)
    assert_values(backend, step["residual"], residual, within=3e-7)
    for value, needed in zip(backend.host(step["residual"]), residual, strict=True):
        assert (value == 0) == (needed == 0) or name == "G09"  # .2 - .2 as decimals


def test_a01_zero_probability_is_never_accepted(backend):
    """A01: 0 < 0 is false, so even a coin of exactly 0 rejects; ids 0, 3 are impossible."""
    draft, target = row(backend, [0.5, 0.5, 0, 0]), row(backend, [0, 0.6, 0.4, 0])
    step = speculative_decode_step(draft, target, 0)
    assert not step["accept_prob"] > 0.0
    assert backend.host(step["residual"])[[0, 3]].tolist() == [0.0, 0.0]


def test_a10_a_zero_over_zero_ratio_is_an_error(backend):
    """A10: a token with q = 0 cannot be a draw; batched, 0 or 1 and never NaN."""
    draft, target = row(backend, [0, 1]), row(backend, [0, 1])
    with pytest.raises(ValueError, match="cannot have been drawn"):
        speculative_decode_step(draft, target, 0)
    batch = accept_residual(draft, target, backend.array(0, "int32"))
    assert float(backend.host(batch.accept_prob)) == 0.0


@pytest.mark.parametrize("name", ["draft_probs", "target_probs"])
def test_b06_b07_nan_rows_are_reported(backend, name):
    """B06, B07: a row of NaN raises and never turns into a legal-looking id."""
    rows = {"draft_probs": row(backend, [0.5] * 2), "target_probs": row(backend, [0.5] * 2)}
    rows[name] = backend.array([math.nan] * 2, backend.dtypes[-1])
    with pytest.raises(ValueError, match=rf"`{name}\[0\]` is nan"):
        speculative_decode_step(**rows, drafted_token=0)
    batch = accept_residual(**rows, draft_tokens=backend.array(0, "int32"))
    assert np.isnan(backend.host(batch.accept_prob))
    assert np.isnan(backend.host(batch.residual)).all()


def test_b09_each_row_has_its_own_residual(backend):
    """B09: the residual of a position comes from that position's rows."""
    draft = row(backend, ["0.6", "0.3", "0.1", "0.5", "0.3", "0.2"])
    target = row(backend, ["0.7", "0.2", "0.1", "0.1", "0.2", "0.7"])
    draft, target = (backend.xp.reshape(rows, (2, 3)) for rows in (draft, target))
    batch = accept_residual(draft, target, backend.array([0, 0], "int32"))
    assert_values(backend, batch.residual, [[1, 0, 0], [0, 0, 1]], within=3e-7)


SOFTMAX = {
    "F01 +inf": [0.0, math.inf, 0.0],
    "F01 NaN": [0.0, math.nan, 0.0],
    "F02 all -inf": [-math.inf] * 3,
    "F03 all -inf": [-math.inf] * 3,
}


@pytest.mark.parametrize("name", SOFTMAX)
def test_f01_f02_f03_a_failed_softmax_is_reported(name):
    """F01-F03: what a softmax makes of a bad row is refused, not decoded."""
    bad = torch.softmax(torch.tensor(SOFTMAX[name]), -1)
    good = torch.full((3,), 1 / 3)
    for rows in ((bad, good), (good, bad)):
        with pytest.raises(ValueError, match="is nan"):
            speculative_decode_step(*rows, 0)
        with pytest.raises(ValueError, match="is nan"):
            check_probs(*rows)


def test_f01_a_masked_logit_is_legal():
    """F01: one logit of -inf is a token of probability 0, nothing more."""
    masked = torch.softmax(torch.tensor([0.0, -math.inf, 0.0]), -1)
    assert masked.tolist() == [0.5, 0.0, 0.5]
    step = speculative_decode_step(masked, masked, 0)
    assert step["accept_prob"] == 1.0


def test_g01_placeholders_are_no_drafts(backend):
    """G01: -1 is no index: the step refuses it, batched it is never accepted."""
    draft, target = row(backend, [0.2, 0.2, 0.6]), row(backend, [0.1, 0.2, 0.7])
    with pytest.raises(IndexError, match="`drafted_token` is -1"):
        speculative_decode_step(draft, target, -1)
    batch = accept_residual(draft, target, backend.array(-1, "int32"))
    assert float(backend.host(batch.accept_prob)) == 0.0


def test_g04_gather_is_by_row(backend):
    """G04: one entry for each row, not each row for each entry; one row stays one."""
    rows = backend.xp.reshape(row(backend, [0.7, 0.2, 0.1, 0.1, 0.2, 0.7]), (2, 3))
    flat = backend.xp.reshape(row(backend, [0.5, 0.25, 0.25] * 2), (2, 3))
    found = accept_residual(flat, rows, backend.array([2, 0], "int32")).accept_prob
    assert_values(backend, found, [0.4, 0.2], within=3e-7)
    one = accept_residual(flat[:1, ...], rows[:1, ...], backend.array([2], "int32"))
    assert tuple(one.accept_prob.shape) == (1,)


def test_g05_an_empty_batch_is_a_batch(backend):
    """G05: no request at all gives no verdicts and no error."""
    dtype = backend.dtypes[-1]
    rows = backend.array(np.zeros((0, 3, 5)), dtype)
    result = accept_residual(rows, rows, backend.array(np.zeros((0, 3)), "int32"))
    assert tuple(result.accept_prob.shape) == (0, 3)
    assert tuple(result.residual.shape) == (0, 3, 5)


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_g06_strides_are_respected(library):
    """G06: a strided view, a transposed one and a row repeated with stride 0."""
    xp = {"numpy": np, "torch": torch}[library]
    strided = xp.asarray([0.1, 9, 0.2, 9, 0.7, 9])[::2]
    copy = xp.asarray([0.1, 0.2, 0.7])
    draft = xp.asarray([0.5, 0.25, 0.25])
    same = [speculative_decode_step(draft, rows, 0) for rows in (strided, copy)]
    assert same[0]["accept_prob"] == same[1]["accept_prob"] == pytest.approx(0.2)
    assert same[0]["residual"].tolist() == same[1]["residual"].tolist()
    tall = xp.stack([draft, copy], 1)
    turned = xp.stack([draft, copy], 0)
    wide = xp.broadcast_to(draft, (2, 3))
    tokens = xp.asarray([0, 1])
    for rows in (tall.T, turned):
        found = accept_residual(wide, rows, tokens)
        assert found.accept_prob.tolist() == pytest.approx([1.0, 0.8])


def test_g08_ids_out_of_range_are_the_same_error_everywhere(backend):
    """G08: no clamping, no wrapping: an error, and batched a NaN that accepts nothing."""
    draft = row(backend, [0.1, 0.2, 0.7])
    for token in (3, -1, -4, 2**31 - 1):
        with pytest.raises(IndexError, match=f"`drafted_token` is {token}"):
            speculative_decode_step(draft, draft, token)
    found = accept_residual(
        *(backend.xp.stack([draft] * 3),) * 2, backend.array([3, -2, 2**31 - 1], "int32")
    )
    assert np.isnan(backend.host(found.accept_prob)).all()


def test_g09_different_vocabularies_are_refused(backend):
    """G09: a shorter draft vocabulary has to be extended with zeros by the caller."""
    with pytest.raises(ValueError, match="extend the smaller with zeros"):
        speculative_decode_step(row(backend, [0.2] * 5), row(backend, [0.2] * 6), 0)


def test_g11_mapped_ids_are_the_target_vocabulary(backend):
    """G11: the draft row in target ids; an unmapped one has q = 0 there."""
    target = row(backend, [0.125] * 8)
    mapped = row(backend, [0.4, 0, 0.3, 0.2, 0, 0, 0.1, 0])
    assert speculative_decode_step(mapped, target, 6)["accept_prob"] == 1.0
    with pytest.raises(ValueError, match="cannot have been drawn"):
        speculative_decode_step(row(backend, [0.4, 0.3, 0.2, 0.1, 0, 0, 0, 0]), target, 6)


@pytest.mark.parametrize(
    "step_case", EVERY, indirect=True, ids=[f"{b.name.lower()}-{d}" for b, d in EVERY]
)
def test_i01_i02_i05_i11_the_dtype_stays(step_case):
    """I01, I02, I05, I11: nothing in between widens the result, on any library."""
    backend, dtype = step_case
    rows = backend.array([0.5, 0.5], dtype), backend.array([0.25, 0.75], dtype)
    step = speculative_decode_step(*rows, np.int64(0))
    assert_like(step["residual"], rows[0])
    batch = accept_residual(*rows, backend.array(0, "int32"))
    assert_like(batch.residual, rows[0])


@pytest.mark.parametrize("other", [np.float32(0.3), [0.3, 0.7], (0.3, 0.7), 0.3])
def test_i03_scalars_and_lists_are_no_rows(other):
    """I03: a NumPy scalar, a list or a float next to a tensor is refused by name."""
    with pytest.raises(
        TypeError, match="`target_probs` is (a numpy array|of type)|`draft_p"
    ):
        speculative_decode_step(torch.tensor([0.5, 0.5]), other, 0)


def test_i04_token_dtypes_give_the_same(backend):
    """I04: int32, int64 and uint8 tokens mean the same in the step."""
    draft, target = row(backend, [0.5, 0.5]), row(backend, [0.25, 0.75])
    names = ["int32", "uint8"] if backend is Backend.JAX else ["int32", "int64", "uint8"]
    found = {
        name: speculative_decode_step(draft, target, backend.array(0, name))["accept_prob"]
        for name in names
    }
    assert set(found.values()) == {0.5}


def test_i07_new_arrays_are_made_where_the_rows_are():
    """I07: on the meta device nothing may be made on the CPU in passing."""
    rows = torch.full((2, 3), 1 / 3, device="meta")
    tokens = torch.zeros(2, dtype=torch.int32, device="meta")
    result = accept_residual(rows, rows, tokens)
    assert result.accept_prob.device.type == result.residual.device.type == "meta"


def test_i12_the_tolerance_of_sums_scales():
    """I12: a float32 row that is off by its rounding passes, one that lacks mass not."""
    good = np.asarray([0.1, 0.2, 0.7], dtype=np.float32)
    check_probs(good, good, 0)
    bad = np.asarray([0.5, 0.4], dtype=np.float32)
    with pytest.raises(ValueError, match="`target_probs` sums to 0.9"):
        check_probs(np.asarray([0.5, 0.5], dtype=np.float32), bad)


def test_j01_j05_read_only_rows_work_and_stay():
    """J01, J05: rows that cannot be written to are all the step needs."""
    target = np.asarray(jnp.asarray([0.5, 0.3, 0.2]))
    assert not target.flags.writeable
    draft = np.asarray([1, 0, 0], dtype=np.float32)
    draft.flags.writeable = False
    before = target.tobytes()
    step = speculative_decode_step(draft, target, 0)
    assert step["accept_prob"] == 0.5
    assert step["residual"].tolist() == pytest.approx([0, 0.6, 0.4])
    assert target.tobytes() == before


def test_the_laws_hold_exactly_too():
    """The exact reference emits the target on the same rows, with ``==``."""
    for draft, target in LAWS.values():
        rows = [[Fraction(str(prob)) for prob in row] for row in (draft, target)]
        assert exact.reconstruct(*rows) == tuple(rows[1])
