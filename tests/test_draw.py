"""`draw`: its edges, running sums that misbehave, and the law it realises."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
import torch

from assertions import assert_like, bits
from backends import EVERY, Backend
from draftproof import _draw, draw, verify_chain
from draftproof._library import Library
from draftproof._namespace import library_of

SIZES = (1, 511, 512, 513, 1024, 5000)
LARGE = 262_144
# Some numbers are exact in float16, and distances from 1 in float32.
BELOW_ONE = {"float32": 1 - 2.0**-24, "float64": 1 - 2.0**-53}

combinations = pytest.mark.parametrize(
    "step_case", EVERY, indirect=True, ids=[f"{b.name.lower()}-{d}" for b, d in EVERY]
)


def drawn(backend, weights, uniforms, dtype=None, by=None):
    """Draw on a backend from NumPy arrays; return a NumPy array."""
    weights = backend.array(weights, dtype or backend.dtypes[-1])
    tokens = draw(weights, backend.array(uniforms, by or backend.dtypes[-1]))
    default = backend.xp.asarray([0]) if not backend.is_torch else torch.tensor([0])
    assert_like(tokens, weights, dtype=default.dtype, shape=np.shape(uniforms))
    return backend.host(tokens).astype(int)


# --- Edges ----------------------------------------------------------------------------

# Weights, a uniform number and the token.
ROWS = {
    "at 0": ((1, 2, 1, 0), 0.0, 0),
    "at 0 behind zeros": ((0, 0, 3, 1), 0.0, 2),
    "at -0": ((0, 1, 1, 2), -0.0, 1),
    "below a boundary": ((1, 1, 2, 0), 0.25 - 2.0**-26, 0),
    "at a boundary": ((1, 1, 2, 0), 0.25, 1),
    "at the boundary behind a zero": ((1, 0, 1, 2), 0.25, 2),
    "at the end": ((1, 2, 0, 1), BELOW_ONE["float32"], 3),
    "at the end before zeros": ((1, 2, 1, 0), BELOW_ONE["float32"], 2),
    "one token": ((0, 0, 0.5, 0), 0.5, 2),
    "not normalised": ((8, 8, 16, 32), 0.25, 2),
    "nothing to draw": ((0, 0, 0, 0), 0.5, -1),
    "nothing to draw at 0": ((0, 0, 0, 0), 0.0, -1),
    "NaN": ((1, math.nan, 1, 1), 0.0, -1),
    "NaN at first": ((math.nan, 1, 1, 1), 0.5, -1),
    "NaN at last": ((1, 1, 1, math.nan), 0.0, -1),
    "inf": ((1, 1, math.inf, 1), 0.0, -1),
    "inf and -inf": ((1, -math.inf, math.inf, 1), 0.0, -1),
    "-inf": ((1, 1, 1, -math.inf), 0.0, -1),
    "a coin of NaN": ((1, 1, 1, 1), math.nan, -1),
    "a coin of 1": ((1, 1, 1, 1), 1.0, -1),
    "a coin of inf": ((1, 1, 1, 1), math.inf, -1),
    "a coin of -inf": ((1, 1, 1, 1), -math.inf, -1),
    "a coin below 0": ((1, 1, 1, 1), -(2.0**-30), -1),
}


@pytest.mark.parametrize("size", [4, 2_000])
@combinations
def test_edges(step_case, size):
    """Boundaries, zeros and what is not finite, on each backend and dtype."""
    backend, dtype = step_case
    places = np.asarray([0, 1, 2, 3]) * (size // 4)
    weights = np.zeros((len(ROWS), size))
    weights[:, places] = [row for row, _, _ in ROWS.values()]
    uniforms = [uniform for _, uniform, _ in ROWS.values()]
    found = drawn(backend, weights, uniforms, dtype).tolist()
    for (name, (_, _, token)), tokens in zip(ROWS.items(), found, strict=True):
        assert tokens == (places[token] if token >= 0 else -1), name


@pytest.mark.parametrize("by", ["float32", "float64"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "library", [Backend.NUMPY, Backend.STRICT, Backend.TORCH], ids=lambda b: b.name.lower()
)
def test_zero_weights_are_never_drawn(library, size, by):
    """Wherever the numbers fall, the token has weight; the first and last can be had."""
    random = np.random.default_rng(size)
    row = random.random(size) * (random.random(size) < 0.5)
    row[random.integers(size)] = 1.0
    edges = np.cumsum(row) / row.sum()
    near = np.concatenate([edges - 1e-7, edges, edges + 1e-7])
    uniforms = np.asarray([0.0, BELOW_ONE[by], *random.choice(near, 60)])
    uniforms = np.clip(uniforms.astype(by).astype(float), 0, BELOW_ONE[by])
    rows = np.broadcast_to(row, (uniforms.size, size))
    for dtype in ("float32", "float64"):
        tokens = drawn(library, rows, uniforms, dtype, by)
        assert (row[tokens] > 0).all()
        assert tokens[0] == np.flatnonzero(row)[0]
        assert tokens[1] == np.flatnonzero(row)[-1]
        # Where a number is not near a boundary it is clear what is drawn.
        clear = np.abs(edges[:, None] - uniforms).min(0) > 1e-6
        needed = np.searchsorted(edges, uniforms, side="right")
        np.testing.assert_array_equal(tokens[clear], needed[clear])


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0), (2, 3)])
def test_any_leading_axes(shape):
    """Any leading axes, also none and empty ones, in the library's default integer."""
    for backend in (Backend.NUMPY, Backend.STRICT, Backend.TORCH):
        for size in (3, 1_000):
            uniforms = np.random.default_rng(0).random(shape)
            rows = np.ones((*shape, size))
            tokens = drawn(backend, rows, uniforms)
            np.testing.assert_array_equal(tokens, np.floor(uniforms * size))


def test_inputs_stay_and_layouts_work():
    """Nothing is written to; read-only, turned and strided rows draw the same."""
    random = np.random.default_rng(0)
    for size in (5, 1_500):
        weights, uniforms = random.random((20, size)), random.random(20)
        needed = draw(weights, uniforms)
        wide = np.repeat(weights, 2, axis=-1)
        frozen = weights.copy()
        frozen.flags.writeable = False
        before = bits(Backend.NUMPY, frozen)
        for rows in (np.asfortranarray(weights), wide[:, ::2], frozen):
            np.testing.assert_array_equal(draw(rows, uniforms), needed)
        assert bits(Backend.NUMPY, frozen) == before
        turned = torch.tensor(weights.T.copy()).T
        found = draw(turned.requires_grad_(), torch.tensor(uniforms))
        np.testing.assert_array_equal(found.numpy(), needed)


ERRORS = {
    "uniforms per entry": (lambda w, u: (w, w), ValueError, r"`uniforms` has shape \(2, 3"),
    "one uniform": (lambda w, u: (w, u[:1]), ValueError, r"\(1,\); needed is \(2,\)"),
    "no vocabulary": (
        lambda w, u: (w[:, :0], u),
        ValueError,
        r"`weights` has shape \(2, 0",
    ),
    "no axis": (lambda w, u: (w[0, 0, ...], u), ValueError, r"`weights` has shape \(\)"),
    "integer weights": (lambda w, u: (w.astype(int), u), TypeError, "`weights` has dtype"),
    "half uniforms": (
        lambda w, u: (w, u.astype(np.float16)),
        TypeError,
        "`uniforms` has dtype float16; needed is float32 or float64",
    ),
    "a float": (lambda w, u: (w, 0.5), TypeError, "`uniforms` is of type float"),
    "libraries": (
        lambda w, u: (w, torch.tensor(u)),
        TypeError,
        "`weights` is a numpy array, `uniforms` a torch array",
    ),
    "places": (
        lambda w, u: (torch.tensor(w), torch.tensor(u, device="meta")),
        ValueError,
        "`uniforms` is on meta, `weights` on cpu",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_name_the_argument(name):
    """Metadata is checked: what is wrong is named with what came and what is needed."""
    change, error, message = ERRORS[name]
    weights, uniforms = np.ones((2, 3)), np.asarray([0.25, 0.5])
    draw(weights, uniforms)
    with pytest.raises(error, match=message):
        draw(*change(weights, uniforms))


# --- Running sums that misbehave --------------------------------------------------------


def wavering(seed):
    """Make a running sum that sometimes falls, and rises at entries of weight zero."""
    random = np.random.default_rng(seed)

    def running_sum(library, rows):
        sums = np.cumsum(np.asarray(rows, np.float64), axis=-1)
        steps = random.choice([-2e-3, 0.0, 1e-3, 2e-3], sums.shape)
        return sums + steps * np.abs(sums[..., -1:])

    return running_sum


def plainly(weights, uniforms):
    """Draw by the first running sum above the level, the negative control."""
    rows = np.broadcast_to(weights, (*np.shape(uniforms), weights.shape[-1]))
    running = Library.running_sum(None, rows)
    above = running > uniforms[..., None] * running[..., -1:]
    return above.argmax(-1)


def trial(size, seed):
    """Make a row with zeros, some of them at its ends, and numbers to draw with."""
    random = np.random.default_rng(seed)
    row = random.random(size) * (random.random(size) < 0.3)
    row[random.integers(size)] = 0.5
    if size > 2:
        row[0] = row[-1] = 0.0
    row[size // 2] += 0.125
    row[512:1024] = 0.0  # a block without weight, and maybe the last
    row[size // 3] += 0.125
    return row, np.asarray([0.0, BELOW_ONE["float64"], *random.random(200)])


@pytest.mark.parametrize("size", SIZES)
def test_a_running_sum_that_is_not_monotone(monkeypatch, size):
    """A scan that falls, and rises at zeros, never leads to a token that cannot be."""
    for seed in range(5):
        row, uniforms = trial(size, seed)
        monkeypatch.setattr(Library, "running_sum", wavering(seed))
        tokens = draw(np.broadcast_to(row, (uniforms.size, size)), uniforms)
        assert (tokens >= 0).all()
        assert (tokens < size).all()
        assert (row[tokens] > 0).all()
        # The same in the loop over long rows that verify_chain has for NumPy.
        rows = np.broadcast_to(row, (uniforms.size, 1, size))
        nothing = np.zeros((uniforms.size, 0), int)
        tokens = verify_chain(None, rows, nothing, uniforms[:, None]).next_token
        assert (tokens >= 0).all()
        assert (row[tokens] > 0).all()


def test_it_would_mislead_a_plain_draw(monkeypatch):
    """The negative control: of the same sums the first above the level is illegal."""
    illegal = 0
    for size in SIZES[1:]:
        row, uniforms = trial(size, 0)
        monkeypatch.setattr(Library, "running_sum", wavering(0))
        illegal += int((row[plainly(row, uniforms)] == 0).sum())
    assert illegal > 100


# --- The law it realises ----------------------------------------------------------------


SINGLE = pytest.mark.parametrize(
    "library",
    [Backend.NUMPY, Backend.TORCH, Backend.JAX, Backend.JAX_X64],
    ids=lambda backend: backend.name.lower(),
)
KINDS = pytest.mark.parametrize("kind", ["flat", "Zipf", "peaked"])


@functools.cache
def large_row(kind):
    """Make float32 weights over a large vocabulary."""
    random = np.random.default_rng(0)
    if kind == "flat":
        weights = np.exp(0.1 * random.standard_normal(LARGE))
    elif kind == "Zipf":
        weights = 1.0 / (1 + random.permutation(LARGE))
    else:
        weights = np.full(LARGE, 0.1 / LARGE)
        weights[random.integers(LARGE)] = 1
    return (weights / weights.sum()).astype(np.float32)


def sums_of_blocks(library, weights):
    """Return the running sums that the draw uses: over the blocks, and in each block."""
    running = library.running_sum(library.block_sums(weights, _draw.BLOCK))
    blocks = library.ops.reshape(weights, (-1, _draw.BLOCK))
    return running, library.running_sum(blocks)


def boundaries(backend, weights):
    """Return the uniform numbers, as reals, at which the draw leaves each token."""
    array = backend.array(weights, "float32")
    library = library_of("weights", array)
    running, within = map(backend.host, library.run(sums_of_blocks, array))
    assert running.dtype == within.dtype == np.float64
    # A scan may fall: a token ends where the level has passed all sums before, too.
    ends = np.maximum.accumulate(running)
    starts = np.concatenate([[0.0], ends[:-1]])
    befores = np.concatenate([[0.0], running[:-1]])
    tokens = np.maximum.accumulate(within, axis=-1) + befores[:, None]
    tokens = np.clip(tokens, starts[:, None], ends[:, None])
    tokens[:, -1] = ends  # where nothing is above the level, the last of the block
    return np.minimum(tokens.ravel() / running[-1], 1.0)


def shares(weights):
    """Return the exact law of float32 weights: their sum in float64 is off by 1e-12."""
    return weights.astype(float) / weights.sum(dtype=float)


def distance(weights, ends):
    """Return the total variation distance of a law from that with these boundaries."""
    return np.abs(np.diff(ends, prepend=0.0) - shares(weights)).sum() / 2


def on_grid(ends):
    """Return the boundaries that remain if a uniform number is a multiple of 2**-24."""
    return np.ceil(ends * 2.0**24) / 2.0**24


@KINDS
@SINGLE
def test_the_realised_law(library, kind):
    """With real numbers the law is within the contract, and no real token is lost."""
    weights = large_row(kind)
    with library.context():
        ends = boundaries(library, weights)
    off = distance(weights, ends)
    print(f"{library.name} {kind}: TV {off:.1e}")
    assert off <= (2e-5 if library is Backend.JAX else 1e-6)
    seen = shares(weights) > 2.0**-22
    assert (np.diff(ends, prepend=0.0)[seen] > 0).all()
    assert (np.diff(on_grid(ends), prepend=0.0)[seen] > 0).all()


def test_a_running_sum_in_single_precision_leaves_the_law():
    """The negative control: one float32 running sum is off by a hundred times as much."""
    weights = large_row("flat")
    running = np.cumsum(weights, dtype=np.float32)
    off = distance(weights, running / float(running[-1]))
    print(f"running float32 sum, flat: TV {off:.1e}")
    assert off > 1e-4


@KINDS
@SINGLE
def test_the_draw_switches_at_these_boundaries(library, kind):
    """Just below and above 200 boundaries it draws the tokens on their two sides."""
    weights = large_row(kind)
    random = np.random.default_rng(1)
    single = library is Backend.JAX
    # Two steps of the numbers there are; the rounding of the level takes up to one.
    step = 2 * 2.0**-24 if single else 2.0**-46
    with library.context():
        ends = boundaries(library, weights)
        row = library.array(weights, "float32")

        def at(uniform):
            by = "float32" if single else "float64"
            return int(draw(row, library.array(uniform, by)))

        wide = np.diff(ends, prepend=0.0) > 3 * step
        chosen = random.choice(np.flatnonzero(wide[:-1] | wide[1:]), 200)
        for token in chosen.tolist():
            if not step < ends[token] < 1 - step:
                continue
            below, above = at(ends[token] - step), at(ends[token] + step)
            assert below <= token < above
            assert below == token or not wide[token]
        middles = ends - np.diff(ends, prepend=0.0) / 2
        for token in random.choice(np.flatnonzero(wide), 100).tolist():
            assert at(middles[token]) == token


@KINDS
def test_the_law_over_all_single_precision_numbers(kind):
    """A float32 number alone costs 3e-3, as much as with a running float32 sum."""
    weights = large_row(kind)
    running = np.cumsum(weights, dtype=np.float32)
    ours = distance(weights, on_grid(boundaries(Backend.NUMPY, weights)))
    theirs = distance(weights, on_grid(running / float(running[-1])))
    exact = distance(weights, on_grid(np.cumsum(shares(weights))))
    print(f"all 2**24 uniforms, {kind}: TV {ours:.2e}, of exact boundaries {exact:.2e}")
    print(f"of one running float32 sum {theirs:.2e}")
    assert abs(ours - exact) <= 2e-5
    assert ours < 1.5 * theirs
    if kind == "flat":
        assert 2e-3 < ours < 4e-3
