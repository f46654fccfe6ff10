"""`speculative_decode_step` on every backend: properties, examples, errors."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assertions import assert_values
from backends import EVERY, Backend
from budgets import EPSILON, last_place, residual_budget
from draftproof import speculative_decode_step
from draftproof._library import Library, _compiled
from draftproof._namespace import library_of
from draftproof._step import _weigh_and_divide
from properties import EXAMPLES, PROPERTIES, Case
from rows import Rows, stored
from strategies import make_rows, rows

SIZES = (50_257, 128_256, 151_936, 262_144)
LONG_ROWS = [(size, "float32") for size in SIZES] + [(50_257, "half"), (151_936, "half")]


@functools.cache
def long_rows(size: int, family: str) -> Rows:
    """Make a flat and a peaked row whose values every dtype of the family stores.

    Then one exact reference, which takes seconds, serves them all. For float32 and
    float64 these are any float32 numbers; the half types share multiples of 2**-24
    with 8 bits.
    """
    random = np.random.default_rng(size)
    rows = []
    for exponent in (0.7, 1.1):
        weights = 1.0 / (1 + random.permutation(size)) ** exponent
        row = stored(weights / weights.sum(), weights, "float32").draft
        if family == "half":
            row = np.round(np.asarray(stored(row, row, "bfloat16").draft) * 2**24) / 2**24
        rows.append(tuple(np.asarray(row).tolist()))
    return Rows(*rows, "float32")


combinations = pytest.mark.parametrize(
    "step_case", EVERY, indirect=True, ids=[f"{b.name.lower()}-{d}" for b, d in EVERY]
)


@combinations
@given(data=st.data())
def test_properties(step_case, data):
    """Every property of a step holds on drawn rows, on every backend and dtype."""
    backend, dtype = step_case
    pair = data.draw(rows(backend, dtype))
    if not pair.draftable:
        return
    case = Case(backend, pair, data.draw(st.sampled_from(pair.draftable)))
    for holds in PROPERTIES:
        holds(speculative_decode_step, case)


@combinations
def test_worked_examples(step_case):
    """The worked examples come out to the last bit; XLA may divide by a reciprocal."""
    backend, dtype = step_case
    for draft, target, token, accept_prob, residual in EXAMPLES:
        pair = stored(draft, target, dtype)
        result = Case(backend, pair, token).run(speculative_decode_step)
        assert result["accept_prob"] == accept_prob
        ulp = EPSILON[dtype] if backend.is_jax else 0.0
        assert_values(backend, result["residual"], residual, within=ulp)


@pytest.mark.parametrize(("size", "family"), LONG_ROWS)
def test_vocabularies_of_real_models(backend, size, family, worst_errors):
    """At the sizes of real vocabularies, every dtype stays within its budget."""
    pair = long_rows(size, family)
    needed = pair.exact_residual()
    for dtype in (
        name for name in backend.dtypes if (name[-2:] == "16") == (family == "half")
    ):
        draft, target = backend.array(pair.draft, dtype), backend.array(pair.target, dtype)
        result = speculative_decode_step(draft, target, 7)
        assert result["accept_prob"] == float(pair.exact_accept_prob(7))
        within = residual_budget(needed, dtype)
        assert_values(backend, result["residual"], needed, within=within)
        error = np.abs(backend.host(result["residual"]) - needed)
        units = float(np.max(error / last_place(needed, dtype)))
        key = f"{dtype:9} {backend.name.lower()}"
        worst_errors[key] = max(units, worst_errors.get(key, 0.0))


@combinations
def test_a_token_in_any_form(step_case):
    """Python and NumPy integers and 0-d arrays of the library mean the same token."""
    backend, dtype = step_case
    pair = stored((0.5, 0.25, 0.25), (0.25, 0.25, 0.5), dtype)
    tokens = [0, np.int64(0), np.uint8(0)]
    tokens += [backend.array(0, name) for name in ("int32", "uint8")]
    if not backend.is_jax or backend is Backend.JAX_X64:
        tokens.append(backend.array(0, "int64"))
    for token in tokens:
        result = speculative_decode_step(*Case(backend, pair, 0).arrays(), token)
        assert result["accept_prob"] == 0.5


def test_arguments_by_keyword():
    """All three arguments may be named, which is how not to swap the first two."""
    draft, target = np.asarray([0.8, 0.2]), np.asarray([0.4, 0.6])
    result = speculative_decode_step(
        target_probs=target, draft_probs=draft, drafted_token=0
    )
    assert result["accept_prob"] == 0.5


def views(array):
    """Yield the same row in every layout NumPy knows."""
    wide = np.full(2 * array.size, 9.0, dtype=array.dtype)
    wide[::2] = array
    yield "strided", wide[::2]
    yield "reversed", array[::-1].copy()[::-1]
    yield "column", np.asfortranarray(np.stack([array, array + 1]))[0]
    frozen = array.copy()
    frozen.flags.writeable = False
    yield "read-only", frozen


@pytest.mark.parametrize("size", [3, 5_001])
def test_memory_layout_does_not_matter(size):
    """Strided, reversed and read-only rows give what a contiguous copy gives."""
    pair = make_rows("not dyadic", size, "float64", np.random.default_rng(1))
    draft, target = np.asarray(pair.draft), np.asarray(pair.target)
    needed = speculative_decode_step(draft, target, 0)
    for (name, one), (_, other) in zip(views(draft), views(target), strict=True):
        result = speculative_decode_step(one, other, 0)
        assert result["accept_prob"] == needed["accept_prob"], name
        assert result["residual"].tolist() == needed["residual"].tolist(), name


@combinations
def test_one_array_for_both_rows(step_case):
    """``draft is target`` works: always kept, and nothing to replace it with."""
    backend, dtype = step_case
    row = backend.array([0.5, 0.25, 0.25], dtype)
    result = speculative_decode_step(row, row, 1)
    assert result["accept_prob"] == 1.0
    assert_values(backend, result["residual"], [0.0, 0.0, 0.0])
    assert_values(backend, row, [0.5, 0.25, 0.25])


@combinations
def test_rows_are_not_renormalised(step_case):
    """Rows are taken as they are: what they sum to is the caller's business."""
    backend, dtype = step_case
    draft, target = ([0.5, 0.25], [0.125, 0.5])
    result = speculative_decode_step(
        backend.array(draft, dtype), backend.array(target, dtype), 0
    )
    assert result["accept_prob"] == 0.25
    assert_values(backend, result["residual"], [0.0, 1.0])


def test_the_residual_stays_in_the_autograd_graph():
    """PyTorch rows that require a gradient get one, and reading them does not warn."""
    draft = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64, requires_grad=True)
    target = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64, requires_grad=True)
    result = speculative_decode_step(draft, target, 0)
    assert result["accept_prob"] == 0.4
    result["residual"][2].backward()
    assert bool(torch.isfinite(draft.grad).all() & torch.isfinite(target.grad).all())


def test_numpy_error_state_does_not_matter():
    """`numpy.seterr` decides neither whether a call works nor what it returns."""
    tiny = np.asarray([5e-324, 1.0]), np.asarray([1.0, 1e-320])
    with np.errstate(all="raise"):
        result = speculative_decode_step(*tiny, 0)
    assert result["accept_prob"] == 1.0
    assert result["residual"].tolist() == [1.0, 0.0]


def test_one_transfer_per_call(monkeypatch):
    """Off the host, the three numbers a call must see are read in one transfer."""
    reads = []
    read = Library.read
    monkeypatch.setattr(Library, "read", lambda *a: reads.append(a[1]) or read(*a))
    with Backend.JAX.context():
        row = Backend.JAX.array([0.5, 0.5], "float32")
        speculative_decode_step(row, row, 0)
    assert len(reads) == 1
    assert reads[0].shape == (3,)


def test_eager_jax_compiles_once_per_shape():
    """A loop over tokens traces the core once, not once per token."""
    with Backend.JAX.context():
        row = Backend.JAX.array(np.full(16, 1 / 16), "float32")
        speculative_decode_step(row, row, 0)
        compiled = _compiled(_weigh_and_divide, library_of("row", row))
        before = compiled._cache_size()
        for token in range(1, 16):
            speculative_decode_step(row, row, token)
        assert compiled._cache_size() == before


ERRORS = {
    "list": (lambda q, p: ([0.5, 0.5], p, 0), TypeError, "`draft_probs` is of type list"),
    "None": (lambda q, p: (q, None, 0), TypeError, "`target_probs` is of type NoneType"),
    "masked": (lambda q, p: (np.ma.asarray(q), p, 0), TypeError, "masked array"),
    "libraries": (
        lambda q, p: (q, torch.tensor([0.5, 0.5]), 0),
        TypeError,
        "`draft_probs` is a numpy array, `target_probs` a torch array",
    ),
    "dtypes": (
        lambda q, p: (q, p.astype(np.float32), 0),
        TypeError,
        "`draft_probs` has dtype float64, `target_probs` float32",
    ),
    "integers": (
        lambda q, p: (q.astype(int), p.astype(int), 0),
        TypeError,
        "`draft_probs` has dtype int64; needed is float16, bfloat16, float32 or float64",
    ),
    "complex": (lambda q, p: (q, p + 0j, 0), TypeError, "`target_probs` has dtype complex"),
    "longdouble": (
        lambda q, p: (q.astype(np.longdouble), p.astype(np.longdouble), 0),
        TypeError,
        "`draft_probs` has dtype float128",
    ),
    "float8": (
        lambda q, p: (q.astype(ml_dtypes.float8_e4m3), p.astype(ml_dtypes.float8_e4m3), 0),
        TypeError,
        "`draft_probs` has dtype float8_e4m3",
    ),
    "byte order": (
        lambda q, p: (q.astype(">f8"), p.astype(">f8"), 0),
        TypeError,
        "`draft_probs` has dtype >f8; .* native byte order",
    ),
    "shapes": (
        lambda q, p: (q, np.ones(3) / 3, 0),
        ValueError,
        r"`draft_probs` has shape \(2,\), `target_probs` \(3,\)",
    ),
    "scalar": (lambda q, p: (q[0], p[0], 0), ValueError, r"`draft_probs` has shape \(\)"),
    "empty": (
        lambda q, p: (q[:0], p[:0], 0),
        ValueError,
        r"`draft_probs` has shape \(0,\)",
    ),
    "batch": (
        lambda q, p: (q[None], p[None], 0),
        ValueError,
        r"have shape \(1, 2\); .* use accept_residual",
    ),
    "token too large": (lambda q, p: (q, p, 2), IndexError, "`drafted_token` is 2; .* < 2"),
    "token negative": (lambda q, p: (q, p, -1), IndexError, "`drafted_token` is -1"),
    "token float": (
        lambda q, p: (q, p, 0.0),
        TypeError,
        "`drafted_token` is 0.0, of type float",
    ),
    "token None": (lambda q, p: (q, p, None), TypeError, "`drafted_token` is None"),
    "token bool": (lambda q, p: (q, p, True), TypeError, "`drafted_token` is True"),
    "token numpy bool": (lambda q, p: (q, p, np.True_), TypeError, "has dtype bool"),
    "token numpy float": (
        lambda q, p: (q, p, np.float64(0)),
        TypeError,
        "has dtype float64",
    ),
    "token bool array": (
        lambda q, p: (q, p, np.asarray(True)),
        TypeError,
        "has dtype bool",
    ),
    "token (1,)": (
        lambda q, p: (q, p, np.asarray([0])),
        ValueError,
        r"`drafted_token` has shape \(1,\); .* pass drafted_token\[0\]",
    ),
    "token (2,)": (
        lambda q, p: (q, p, np.asarray([0, 1])),
        ValueError,
        r"`drafted_token` has shape \(2,\); needed is one token, an integer or",
    ),
    "token of another library": (
        lambda q, p: (q, p, torch.tensor(0)),
        TypeError,
        "`drafted_token` is a torch array, `draft_probs` a numpy array",
    ),
    "not drawn": (
        lambda q, p: (np.asarray([0.0, 1.0]), p, 0),
        ValueError,
        r"`draft_probs\[0\]` is 0.0, so `drafted_token` = 0 cannot have been drawn",
    ),
    "negative draft": (
        lambda q, p: (np.asarray([-0.5, 1.5]), p, 0),
        ValueError,
        r"`draft_probs\[0\]` is -0.5",
    ),
    "negative target": (
        lambda q, p: (q, np.asarray([-0.5, 1.5]), 0),
        ValueError,
        r"`target_probs\[0\]` is -0.5",
    ),
    "NaN in draft": (
        lambda q, p: (np.asarray([0.5, np.nan]), p, 0),
        ValueError,
        r"`draft_probs\[1\]` is nan",
    ),
    "NaN in target": (
        lambda q, p: (q, np.asarray([np.nan, 0.5]), 1),
        ValueError,
        r"`target_probs\[0\]` is nan",
    ),
    "infinite draft": (
        lambda q, p: (np.asarray([0.5, np.inf]), p, 0),
        ValueError,
        r"`draft_probs\[1\]` is inf",
    ),
    "infinite target": (
        lambda q, p: (q, np.asarray([0.5, np.inf]), 0),
        ValueError,
        r"`target_probs\[1\]` is inf",
    ),
    "minus infinity in draft": (
        lambda q, p: (np.asarray([0.5, -np.inf]), p, 0),
        ValueError,
        r"`draft_probs\[1\]` is -inf",
    ),
    "overflow": (
        lambda q, p: (q, np.asarray([1e308, 1.7e308]), 0),
        ValueError,
        "overflows; needed are probabilities",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_name_the_argument(name):
    """Each misuse raises an error that names the argument, what came, what is needed."""
    arguments, error, message = ERRORS[name]
    with pytest.raises(error, match=message):
        speculative_decode_step(
            *arguments(np.asarray([0.5, 0.5]), np.asarray([0.25, 0.75]))
        )


@combinations
def test_values_are_refused_on_every_backend(step_case):
    """NaN, infinity and a token that cannot have been drawn are refused everywhere."""
    backend, dtype = step_case
    good, zero = [0.5, 0.5], [0.0, 1.0]
    for bad in (math.nan, math.inf, -math.inf):
        with pytest.raises(ValueError, match=r"`draft_probs\[1\]` is -?(nan|inf)"):
            Case(backend, Rows((0.5, bad), tuple(good), dtype), 0).run(
                speculative_decode_step
            )
    for bad in (math.nan, math.inf):
        with pytest.raises(ValueError, match=r"`target_probs\[1\]` is (nan|inf)"):
            Case(backend, Rows(tuple(good), (0.5, bad), dtype), 0).run(
                speculative_decode_step
            )
    with pytest.raises(ValueError, match="cannot have been drawn"):
        Case(backend, Rows(tuple(zero), tuple(good), dtype), 0).run(speculative_decode_step)


def test_devices_must_agree():
    """Rows on two devices are refused, before PyTorch is asked for the impossible."""
    here, there = torch.tensor([0.5, 0.5]), torch.tensor([0.5, 0.5], device="meta")
    with pytest.raises(ValueError, match="`draft_probs` is on cpu, `target_probs` on meta"):
        speculative_decode_step(here, there, 0)


def test_abstract_arrays_get_a_type_error_that_says_what_to_use():
    """Under jit, vmap and on the meta device the error points to `accept_residual`."""
    row = jnp.asarray([0.5, 0.5])
    calls = {
        "jit": lambda: jax.jit(speculative_decode_step)(row, row, 0),
        "jit of the token": lambda: jax.jit(
            lambda token: speculative_decode_step(row, row, token)
        )(0),
        "vmap": lambda: jax.vmap(lambda q: speculative_decode_step(q, q, 0))(row[None]),
        "torch.vmap": lambda: torch.vmap(lambda q: speculative_decode_step(q, q, 0))(
            torch.ones(2, 2)
        ),
        "torch.vmap of the token": lambda: torch.vmap(
            lambda t: speculative_decode_step(torch.ones(2), torch.ones(2), t)
        )(torch.zeros(2, dtype=torch.int64)),
        "meta": lambda: speculative_decode_step(*[torch.ones(2, device="meta")] * 2, 0),
        "meta token": lambda: speculative_decode_step(
            *[torch.ones(2, device="meta")] * 2,
            torch.zeros((), dtype=torch.int64, device="meta"),
        ),
    }
    for name, call in calls.items():
        with pytest.raises(TypeError, match="use accept_residual"):
            pytest.fail(f"{name} returned {call()}")
