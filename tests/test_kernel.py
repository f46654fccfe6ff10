"""The private functions under the public ones, one by one, through NumPy: exact values.

Mutation testing asked for most of them (`docs/mutation.md`): what they pin down shows
seldom or nowhere in a public result of NumPy.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import NamedTuple

import array_api_compat.numpy
import numpy as np
import pytest
import torch

from backends import Backend
from draftproof import (
    Verdict,
    _chain,
    _next_token,
    _step,
    accept_residual,
    emitted_tokens,
    match_tokens,
    speculative_decode_step,
    verify_chain,
)
from draftproof._arithmetic import acceptance, normalised, overlap, positive_part
from draftproof._drafted import Decision, behind, fair, read_coins, read_drafted
from draftproof._draw import (
    BLOCK,
    _locate,
    _locate_in_row,
    blocks_of,
    draw_row,
    draw_tokens,
)
from draftproof._library import Library, NoValuesError
from draftproof._namespace import library_of
from draftproof._next_token import _rows_at, all_requests, each_request
from draftproof._token_rule import _decide_one, decide_token, decide_token_rows

NUMPY = library_of("array", np.zeros(1))
# NumPy arrays, treated as JAX's are: traced, so that nothing is compiled.
LIKE_JAX = Library(array_api_compat.numpy, "jax", traced=True)
NAN, INF = math.nan, math.inf
BELOW_ONE = 1 - 2.0**-53

either = pytest.mark.parametrize("library", [NUMPY, LIKE_JAX], ids=["numpy", "like-jax"])


def row(*numbers, dtype=np.float64):
    """Make a NumPy array of floats."""
    return np.asarray(numbers, dtype)


def spread(given, size):
    """Put the entries of short rows into rows of a size, far from one another."""
    wide = np.zeros((*np.shape(given)[:-1], size))
    wide[..., places(size)] = given
    return wide


def places(size):
    """Return where the four tokens of the short rows are in rows of a size."""
    return np.arange(4) * (size // 4)


# --- The kernel -----------------------------------------------------------------------


@either
def test_the_positive_part(library):
    """It is max(p - q, 0), +0.0 at ties, NaN where p or q is NaN or q infinite."""
    target = row(0.5, 0.25, 0.25, NAN, 0.5, INF, 0.5, INF)
    draft = row(0.25, 0.5, 0.25, 0.5, NAN, 0.5, INF, INF)
    before = target.tobytes(), draft.tobytes()
    with NUMPY.quiet():
        part = positive_part(library, target, draft)
    np.testing.assert_array_equal(part, [0.25, 0, 0, NAN, NAN, INF, NAN, NAN])
    assert not np.signbit(part[:3]).any()
    assert (target.tobytes(), draft.tobytes()) == before


@either
def test_the_positive_part_of_a_scaled_target(library):
    """The scale is of the target alone, one for each row."""
    target, draft = row((0.5, 1.0), (0.5, 1.0)), row((0.25, 0.25), (0.25, 0.25))
    part = positive_part(library, target, draft, row((0.5,), (1.0,)))
    assert part.tolist() == [[0, 0.25], [0.25, 0.75]]


@either
def test_the_overlap(library):
    """It is min(p, q), and NaN where either is."""
    target = row(0.5, 0.25, 0.125, NAN, 0.5, INF, 0.5)
    draft = row(0.25, 0.5, 0.125, 0.5, NAN, 0.5, INF)
    found = overlap(library, target, draft)
    np.testing.assert_array_equal(found, [0.25, 0.25, 0.125, NAN, NAN, 0.5, 0.5])


@pytest.mark.parametrize("function", [positive_part, overlap])
def test_no_maximum_under_jax(function):
    """XLA's fused maximum loses NaN, so JAX gets comparisons; the others, one operation."""
    target, draft = row(0.5, 0.25), row(0.25, 0.5)
    needed = function(NUMPY, target, draft).tolist()
    compares = SimpleNamespace(where=np.where)
    found = function(Library(compares, "jax", traced=True), target, draft)
    assert found.tolist() == needed
    selects = SimpleNamespace(maximum=np.maximum, minimum=np.minimum)
    found = function(Library(selects, "another", traced=False), target, draft)
    assert found.tolist() == needed


def test_into_the_target():
    """PyTorch may use up the target, if it is told to; NumPy never does."""
    draft = torch.tensor([0.25, 0.5])
    library = library_of("draft", draft)
    for into in (False, True):
        target = torch.tensor([0.5, 0.25])
        part = positive_part(library, target, draft, into_target=into)
        assert part.tolist() == [0.25, 0]
        assert (part.data_ptr() == target.data_ptr()) is into
    target = row(0.5, 0.25)
    part = positive_part(NUMPY, target, row(0.25, 0.5), into_target=True)
    assert part.tolist() == [0.25, 0]
    assert target.tolist() == [0.5, 0.25]


def test_normalised_rows():
    """A row is divided by its total; zeros stay, and a total that is not finite shows."""
    weights = row((1, 3), (0, 0), (NAN, 1), (INF, 1))
    with NUMPY.quiet():
        found = normalised(NUMPY, weights, row((4,), (0,), (NAN,), (INF,)))
    assert found.tolist()[:2] == [[0.25, 0.75], [0, 0]]
    assert np.isnan(found[2]).all()
    assert np.isnan(found[3, 0])


def test_the_acceptance():
    """It is min(1, p / q), its limit at q = 0, and NaN where an entry is not finite."""
    cases = {
        (0.5, 0.25): 0.5,
        (0.25, 0.5): 1,
        (0.5, 0.5): 1,
        (0.5, 0): 0,
        (0, 0.5): 1,
        (0, 0): 0,
        (5e-324, 1): 1,
        (NAN, 0.5): NAN,
        (0.5, NAN): NAN,
        (INF, 0.5): NAN,
        (0.5, INF): NAN,
        (0, INF): NAN,
        (-INF, 0.5): NAN,
    }
    draft, target = row(*cases).T
    with NUMPY.quiet():
        found = acceptance(NUMPY, draft, target)
    np.testing.assert_array_equal(found, [*cases.values()])


# --- The draw -------------------------------------------------------------------------


class Generous(Library):
    """NumPy, with block sums that are larger than what the entries add up to."""

    def block_sums(self, rows, length):
        """Return each sum and a half of it."""
        return super().block_sums(rows, length) * 1.5


GENEROUS = Generous(NUMPY.xp, "numpy", traced=False)

# Running sums, a level, weights, and the entry.
LOCATED = {
    "the first above": ((1, 2, 3, 4), 1.5, (1, 1, 1, 1), 1),
    "at the level is not above": ((1, 2, 3, 4), 2, (1, 1, 1, 1), 2),
    "the very first": ((1, 2, 3, 4), 0, (1, 1, 1, 1), 0),
    "above but without weight": ((1, 3, 2, 4), 2.5, (1, 0, 1, 1), 3),
    "a sum that falls": ((2, 1, 3, 4), 1.5, (1, 1, 1, 1), 0),
    "none above, the last": ((1, 2, 3, 4), 5, (1, 1, 1, 1), 3),
    "none above, the last with weight": ((1, 2, 3, 3), 5, (1, 1, 1, 0), 2),
    "none above, before zeros": ((1, 2, 2, 2), 5, (1, 1, 0, 0), 1),
    "none above, the only weight": ((1, 1, 1, 1), 5, (1, 0, 0, 0), 0),
    "above at the end only": ((0, 0, 0, 1), 0.5, (0, 0, 0, 1), 3),
}


@pytest.mark.parametrize("name", LOCATED)
def test_the_entry_at_a_level(name):
    """The first of positive weight above the level is found, else the last positive."""
    running, level, weights, entry = LOCATED[name]
    running, weights = row(*running), row(*weights)
    assert _locate_in_row(running, level, weights) == entry
    found = _locate(NUMPY, running, row(level), weights, np.arange(4))
    assert found.tolist() == [entry]


# Weights of a row of three blocks, a number, and the token that generous sums lead to.
BEYOND = {
    "the first block": ({0: 0.5, 3: 0.5, 700: 1}, 0.4375, 3),
    "the second block": ({0: 0.5, 600: 0.25, 700: 0.25, 1050: 1}, 0.46875, 700),
    "the last block": ({0: 1, 1030: 0.5, 1050: 0.5}, 0.9375, 1050),
    "the last entry": ({0: 1, 1030: 0.5, 1099: 0.5}, 0.9375, 1099),
    "within the first block": ({0: 0.5, 3: 0.5, 700: 1}, 0.125, 0),
}


@pytest.mark.parametrize("name", BEYOND)
def test_a_level_beyond_a_block(name):
    """Where a block's entries add up to less than its sum, its last one is drawn."""
    given, coin, token = BEYOND[name]
    weights = np.zeros(1_100)
    weights[list(given)] = list(given.values())
    assert draw_row(GENEROUS, weights, coin, weights) == token
    found, drawn = draw_tokens(GENEROUS, weights[None], row((coin,)))
    assert (found.tolist(), drawn.tolist()) == ([[token]], [[True]])


@pytest.mark.parametrize("size", [4, 1_100])
def test_drawing_from_one_row(size):
    """An empty row gives way to the other one; where nothing is legal it is -1."""
    empty, other = np.zeros(size), spread((0, 1, 1, 0), size)
    second, third = places(size)[1:3]
    assert draw_row(NUMPY, other, 0.0, empty) == second
    assert draw_row(NUMPY, empty, 0.0, other) == second
    assert draw_row(NUMPY, empty, 0.5, other) == third
    assert draw_row(NUMPY, empty, 0.5, empty) == -1
    assert draw_row(NUMPY, empty, 0.5, empty.copy()) == -1
    assert draw_row(NUMPY, other, BELOW_ONE, other) == third
    for coin in (1.0, -(2.0**-60), NAN, INF):
        assert draw_row(NUMPY, other, coin, other) == -1
    for value in (NAN, INF):
        assert draw_row(NUMPY, spread((value, 1, 0, 0), size), 0.5, other) == -1


@pytest.mark.parametrize("size", [4, 1_100])
def test_drawing_from_rows_with_a_fallback(size):
    """Empty rows and unused ones, whatever they hold, give way to the fallback."""
    weights = spread([(1, 1, 0, 0), (0, 0, 0, 0), (NAN, 1, 0, 0), (NAN, 1, 0, 0)], size)
    other = spread([(0, 0, 1, 1)] * 4, size)
    coins, unused = row((0.5,), (0.5,), (0.5,), (0.5,)), [[False], [False], [True], [False]]
    found, drawn = draw_tokens(
        NUMPY, weights, coins, blocks_of(NUMPY, other), np.asarray(unused)
    )
    assert drawn[:, 0].tolist() == [True, True, True, False]
    assert found[:3, 0].tolist() == places(size)[[1, 3, 3]].tolist()
    found, drawn = draw_tokens(NUMPY, weights[:2], coins[:2], blocks_of(NUMPY, other[:2]))
    assert drawn.all()
    assert found[:, 0].tolist() == places(size)[[1, 3]].tolist()


def test_blocks_of_rows():
    """A row of up to 512 entries is its own sums; the entries may come from elsewhere."""
    for size, count in ((BLOCK, BLOCK), (BLOCK + 1, 2)):
        rows = np.ones((2, size))
        sums, entries = blocks_of(NUMPY, rows)
        assert sums.shape == (2, count)
        assert entries(np.zeros((2, 3), int)).tolist() == [[1] * 3] * 2
        assert blocks_of(NUMPY, rows, len).entries is len


# --- The next token -------------------------------------------------------------------


class Request(NamedTuple):
    """What was decided of one request, a coin, and the token that it draws."""

    accepted: int
    coin: float
    token: int
    scale: float = 1.0
    absent: bool = False


DRAFT = ((0.5, 0.25, 0.25, 0), (0.5, 0.5, 0, 0))
TARGET = ((0.25, 0.25, 0.5, 0), (0.5, 0.5, 0, 0), (0, 0, 0.25, 0.75))
# The first target row sums to 4, the second to 6.
UNSCALED = ((1, 1, 2, 0), (4, 1, 1, 0), TARGET[2])

# Rows or None for drafts, the drafted tokens, and the requests.
NEXT = {
    "rejected": (DRAFT, TARGET, (0, 0), [Request(0, 0.0, 2), Request(0, BELOW_ONE, 2)]),
    "no residual": (DRAFT, TARGET, (0, 0), [Request(1, 0.25, 0), Request(1, 0.5, 1)]),
    "all accepted": (
        DRAFT,
        TARGET,
        (0, 0),
        [Request(2, 0.125, 2, absent=True), Request(2, 0.25, 3, absent=True)],
    ),
    "no draft": (DRAFT, TARGET, (-1, 0), [Request(0, 0.25, 1, absent=True)]),
    "scaled": (
        DRAFT,
        UNSCALED,
        (0, 0),
        [Request(0, 0.2, 1, scale=0.5), Request(0, 0.3, 2, scale=0.5)],
    ),
    "scaled, no residual": (DRAFT, TARGET, (0, 0), [Request(0, 0.25, 1, scale=0.5)]),
    "scaled, all accepted": (
        DRAFT,
        TARGET,
        (0, 0),
        [Request(2, 0.125, 2, scale=0.5, absent=True)],
    ),
    "sure": (None, TARGET, (2, 0), [Request(0, 0.25, 0), Request(0, 0.5, 1)]),
    "sure, the second": (None, TARGET, (2, 0), [Request(1, 0.0, 1)]),
    "sure, all accepted": (None, TARGET, (2, 0), [Request(2, 0.25, 3, absent=True)]),
    "sure, not scaled": (None, UNSCALED, (0, 0), [Request(1, 0.5, 0), Request(1, 0.75, 1)]),
    "sure, scaled": (
        None,
        UNSCALED,
        (0, 0),
        [Request(1, 0.4, 0, scale=0.5), Request(1, 0.5, 1, scale=0.5)],
    ),
}
finishes = pytest.mark.parametrize("finish", [all_requests, each_request])


def decided(requests, length):
    """Make the decision and the coins of requests, of shape (n, 1)."""
    accepted, coins, _, scales, absent = (
        np.asarray(part) for part in zip(*requests, strict=True)
    )
    scale = None if (scales == 1).all() else scales[:, None]
    place = np.minimum(accepted, length - 1)
    parts = (accepted, place, None, absent, np.ones(len(requests), bool))
    parts = (None if part is None else part[:, None] for part in parts)
    return Decision(*parts)._replace(scale=scale), coins[:, None]


@finishes
@pytest.mark.parametrize("size", [4, 1_100])
@pytest.mark.parametrize("name", NEXT)
def test_the_next_token(name, size, finish):
    """Both ways to finish draw the token that is worked out by hand."""
    draft, target, tokens, requests = NEXT[name]
    count = len(requests)
    decision, coins = decided(requests, len(tokens))
    found, drawn = finish(
        NUMPY,
        decision,
        None if draft is None else spread([draft] * count, size),
        spread([target] * count, size),
        np.where(row(*tokens) < 0, -1, places(size)[list(tokens)])[None].repeat(count, 0),
        coins,
    )
    assert drawn.tolist() == [[True]] * count
    assert found[:, 0].tolist() == [places(size)[request.token] for request in requests]


@finishes
@pytest.mark.parametrize("shape", [(), (6,), (2, 3), (3, 1, 2)])
def test_the_next_tokens_of_any_shape(shape, finish):
    """Requests with any leading axes draw what each of them draws alone."""
    random = np.random.default_rng(0)
    target = random.random((*shape, 3, 7))
    tokens = random.integers(0, 7, (*shape, 2)).astype(np.int32)
    accepted = random.integers(0, 3, (*shape, 1))
    flags = np.ones((*shape, 1), bool)
    decision = Decision(accepted, np.minimum(accepted, 1), None, accepted == 2, flags)
    coins = random.random((*shape, 1))
    for draft in (None, random.random((*shape, 2, 7)) / 2):
        found, drawn = finish(NUMPY, decision, draft, target, tokens, coins)
        assert found.shape == drawn.shape == (*shape, 1)
        assert drawn.all()
        for at in np.ndindex(shape):
            place = accepted[at][0]
            weights = target[at][place].copy()
            if place < 2 and draft is None:
                weights[tokens[at][place]] = 0
            elif place < 2:
                weights = np.maximum(weights - draft[at][place], 0)
            needed = np.cumsum(weights) > coins[at] * weights.sum()
            assert found[at] == needed.argmax()


@finishes
def test_the_scale_is_of_the_dtype_of_the_rows(finish):
    """0.7 is less in float32: then nothing is left of the residual, and p is drawn from."""
    scale = row((0.7,))
    draft = np.float32(0.7) * row((0.5, 1.0), dtype=np.float32)[None]
    target = row((0.5, 0.5), (1, 0), dtype=np.float32)[None]
    flags = np.asarray([[False]])
    decision = Decision(np.asarray([[0]]), np.asarray([[0]]), scale, flags, ~flags)
    tokens, coins = np.asarray([[0]]), row((0.75,))
    found, drawn = finish(NUMPY, decision, draft, target, tokens, coins)
    assert (found.tolist(), drawn.tolist()) == ([[1]], [[True]])


def test_request_by_request():
    """What was not verified or cannot be drawn is -1, in the dtype of the tokens."""
    requests = [Request(0, 0.5, 2), Request(0, 0.5, 2), Request(2, 0.5, -1, absent=True)]
    decision, coins = decided(requests, 2)
    decision.verified[0] = False
    target = spread([TARGET] * 3, 4)
    target[2, 2] = 0
    tokens = np.zeros((3, 2), np.int32)
    found, drawn = each_request(
        NUMPY, decision, spread([DRAFT] * 3, 4), target, tokens, coins
    )
    assert found.dtype == np.int32
    assert found.tolist() == [[-1], [2], [-1]]
    assert drawn.tolist() == [[False], [True], [False]]


@pytest.mark.parametrize("shape", [(), (2,), (2, 3)])
def test_rows_at_a_place(shape):
    """A copy of one row of each request, and its entries read from where it came from."""
    rows = np.random.default_rng(0).random((*shape, 3, 5))
    place = np.arange(math.prod(shape)).reshape((*shape, 1)) % 3
    taken, entries = _rows_at(NUMPY, rows, place)
    needed = np.take_along_axis(rows, place[..., None], axis=-2)[..., 0, :]
    assert taken.tolist() == needed.tolist()
    numbers = np.broadcast_to([4, 1], (*shape, 2))
    assert entries(numbers).tolist() == needed[..., [4, 1]].tolist()
    taken[...] = 0
    assert rows.all()


@pytest.mark.parametrize(
    "backend,shape,size,spent",
    [
        (Backend.TORCH, (2,), 513, True),
        (Backend.TORCH, (3,), 513, True),
        (Backend.TORCH, (1, 2), 513, True),
        (Backend.TORCH, (2, 1), 513, True),
        (Backend.TORCH, (2,), 512, False),
        (Backend.TORCH, (600,), 4, False),
        (Backend.TORCH, (1,), 513, False),
        (Backend.TORCH, (), 513, False),
        (Backend.NUMPY, (2,), 513, False),
    ],
)
def test_memory_is_used_again_for_many_long_rows_in_pytorch(
    monkeypatch, backend, shape, size, spent
):
    """Only there the target row becomes the residual, and the fallback is read in place."""
    seen = []

    def blocks(library, rows, entries=None):
        seen.append(entries is not None)
        return blocks_of(library, rows, entries)

    def part(*arguments, into_target=None):
        seen.append(into_target)
        return positive_part(*arguments, into_target=into_target)

    monkeypatch.setattr(_next_token, "blocks_of", blocks)
    monkeypatch.setattr(_next_token, "positive_part", part)
    target = np.full((*shape, 2, size), 1 / size)
    draft = target[..., :1, :].copy()
    draft[..., 0], draft[..., 1] = 0, 1
    arrays = (backend.array(array, "float64") for array in (draft, target))
    tokens = backend.array(np.ones((*shape, 1)), "int64")
    uniforms = backend.array(np.full((*shape, 2), BELOW_ONE), "float64")
    verdict = verify_chain(*arrays, tokens, uniforms)
    assert not backend.host(verdict.num_accepted).any()
    assert not backend.host(verdict.next_token).any()
    assert seen == [spent, spent]


# --- What is read, and what the coins decide --------------------------------------------


def test_fair_coins():
    """Those in [0, 1) are, also -0; NaN, infinity, 1 and what is below 0 are not."""
    coins = row(0, -0.0, 0.5, BELOW_ONE, 1, 2, -(2.0**-60), NAN, INF, -INF)
    assert fair(NUMPY, coins).tolist() == [True] * 4 + [False] * 6


@pytest.mark.parametrize(
    "uniforms,rows,needed",
    [
        ("float32", "float16", "float32"),
        ("float32", "float32", "float32"),
        ("float32", "float64", "float64"),
        ("float64", "float16", "float64"),
        ("float64", "float32", "float64"),
        ("float64", "float64", "float64"),
    ],
)
def test_the_dtype_of_the_coins(uniforms, rows, needed):
    """Coins are in the wider dtype of uniforms and rows, all but the last number."""
    coins = read_coins(NUMPY, row(0.25, 0.5, 0.75, dtype=uniforms), row(1, dtype=rows))
    assert coins.dtype == needed
    assert coins.tolist() == [0.25, 0.5]


def test_what_is_read_of_a_chain():
    """The entries at the tokens; no legal token is -1, beyond the end or not finite."""
    draft = row(*[(0.5, 0.25, 0.25)] * 4)
    target = row((0.25, 0.5, 0.25), (0.25, NAN, 0.25), *[(0.125, 0.25, 0.5)] * 3)
    tokens = np.asarray([1, 1, -1, 3])
    drafted = read_drafted(NUMPY, draft, target, tokens, np.float64)
    np.testing.assert_array_equal(drafted.target, [0.5, NAN, 0.125, 0.5])
    assert drafted.draft.tolist() == [0.25, 0.25, 0.5, 0.25]
    assert drafted.absent.tolist() == [False, False, True, False]
    assert drafted.legal.tolist() == [True, False, False, False]
    sure = read_drafted(NUMPY, None, target, tokens, np.float64)
    assert sure.draft.tolist() == [1] * 4
    assert sure.legal.tolist() == [True, False, False, False]
    for accepted, place, absent in (
        (0, 0, False),
        (2, 2, True),
        (3, 3, False),
        (4, 3, True),
    ):
        found = behind(NUMPY, drafted, np.asarray([accepted]))
        assert [part.tolist() for part in found] == [[place], [absent]]


# Tokens, coins, what is accepted, whether no draft is behind, and whether that is legal.
DECIDED = {
    "all": ((0, 1), (0.25, 0.5), (2, True, True)),
    "rejected": ((0, 0), (0.25, 0.5), (1, False, True)),
    "rejected at first": ((0, 1), (0.5, 0.0), (0, False, True)),
    "no draft": ((-1, 1), (0.0, 0.0), (0, True, True)),
    "no draft at second": ((0, -1), (0.0, NAN), (1, True, True)),
    "no token": ((0, 2), (0.0, 0.0), (1, False, False)),
    "no token at first": ((-2, 0), (0.0, 0.0), (0, False, False)),
    "no coin": ((0, 1), (0.0, 1.0), (1, False, False)),
    "no coin at first": ((0, 1), (-0.5, 0.0), (0, False, False)),
    "NaN in q": ((1, 1), (0.0, 0.0), (0, False, False)),
}


@pytest.mark.parametrize("name", DECIDED)
def test_the_token_rule_decides(name):
    """By the batch and entry by entry, the same by hand."""
    tokens, coins, needed = DECIDED[name]
    draft, target = row((0.5, NAN), (0.5, 0.5)), row((0.25, 0.75), (0.125, 0.875), (0, 1))
    assert _decide_one(draft, target, list(tokens), list(coins)) == needed
    arguments = draft, target, np.asarray(tokens), row(*coins, 0)
    for decide in (decide_token, decide_token_rows):
        decision = decide(NUMPY, *arguments)
        assert decision.scale is None
        found = decision.num_accepted, decision.absent, decision.verified
        assert tuple(part.item() for part in found) == needed
        assert {part.shape for part in found} == {(1,)}


# --- Which way is taken ---------------------------------------------------------------


@pytest.mark.parametrize("rule", ["token", "block"])
@pytest.mark.parametrize(
    "backend,size,long",
    [
        (Backend.NUMPY, 4_095, False),
        (Backend.NUMPY, 4_096, True),
        (Backend.STRICT, 4_096, False),
    ],
)
def test_long_rows_are_for_numpy_alone(monkeypatch, backend, size, long, rule):
    """From V = 4,096 on NumPy takes requests one by one; no other library does."""
    taken = []
    names = {
        False: ("decide_token", "all_requests"),
        True: ("decide_token_rows", "each_request"),
    }
    for name in (*names[False], *names[True]):
        function = getattr(_chain, name)

        def spy(*arguments, name=name, function=function):
            taken.append(name)
            return function(*arguments)

        monkeypatch.setattr(_chain, name, spy)
    row = np.full((1, 2, size), 1 / size)
    verify_chain(
        backend.array(row[:, :1], "float64"),
        backend.array(row, "float64"),
        backend.array([[0]], "int64"),
        backend.array([[0.5, 0.5]], "float64"),
        rule=rule,
    )
    assert taken == [*names[long]][rule == "block" :]


@pytest.mark.parametrize("rule", ["token", "block"])
@pytest.mark.parametrize("draft", [True, False])
def test_no_requests_of_long_rows(rule, draft):
    """A batch of none gives a verdict on none."""
    target = np.zeros((2, 0, 3, 4_096))
    rows = target[:, :, :2] if draft else None
    tokens, uniforms = np.zeros((2, 0, 2), np.int32), np.zeros((2, 0, 3))
    for part in verify_chain(rows, target, tokens, uniforms, rule=rule):
        assert (part.shape, part.dtype) == ((2, 0), np.int32)


class Compiling(Library):
    """NumPy as if it compiled: what is run is noted, and goes out of the way."""

    def run(self, core, *arrays):
        """Note the core, and run it."""
        self.ran.append(core)
        return core(self, *arrays)


def test_the_step_divides_where_it_is_compiled(monkeypatch):
    """Where a library compiles, the division is in the core, once, and only there."""
    library = Compiling(NUMPY.xp, "numpy", traced=False)
    draft, target = row(0.5, 0.25, 0.25), row(0.25, 0.375, 0.375)
    monkeypatch.setattr(_step, "library_of_rows", lambda *rows: library)
    monkeypatch.setattr(Compiling, "ran", [], raising=False)
    for library.compiles in (False, True):
        step = speculative_decode_step(draft, target, 0)
        assert step["accept_prob"] == 0.5
        assert step["residual"].tolist() == [0, 0.5, 0.5]
    assert library.ran == [_step._weigh, _step._weigh_and_divide]
    facts, residual, total = _step._weigh_and_divide(NUMPY, draft, draft, 1)
    assert [fact.item() for fact in facts] == [0.25, 0.25, 0]
    assert (residual.tolist(), total.tolist()) == ([0, 0, 0], [0])


def test_the_step_needs_values(monkeypatch):
    """What is traced, or turns out to hold no values, gets an error that says why."""

    def abstract(*_):
        raise NoValuesError

    rows = row(0.5, 0.5)
    without = Compiling(NUMPY.xp, "numpy", traced=False)
    monkeypatch.setattr(Compiling, "run", abstract)
    for library in (LIKE_JAX, without):
        monkeypatch.setattr(_step, "library_of_rows", lambda *_, library=library: library)
        with pytest.raises(TypeError, match="use accept_residual, which traces"):
            speculative_decode_step(rows, rows, 0)


# --- Matching -------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_matching_in_any_shape(shape):
    """Requests with any leading axes: the first of two drafts agrees, the second not."""
    drafts = np.broadcast_to(np.asarray([5, 7]), (*shape, 2))
    targets = np.broadcast_to(np.asarray([5, 6, 9]), (*shape, 3))
    verdict = match_tokens(drafts, targets)
    assert verdict.num_accepted.tolist() == np.full(shape, 1).tolist()
    assert verdict.next_token.tolist() == np.full(shape, 6).tolist()
    needed = np.broadcast_to(np.asarray([5, 6, -1]), (*shape, 3))
    assert emitted_tokens(drafts, verdict).tolist() == needed.tolist()


# --- Arguments of another library -------------------------------------------------------


def test_every_argument_is_looked_at():
    """An array of another library is refused by name, wherever it stands."""
    rows, tokens = row((0.5, 0.5)), np.asarray([0])
    other = Backend.STRICT.array([[0.5, 0.5]], "float64")
    with pytest.raises(TypeError, match="`target_probs` a array_api_strict array"):
        accept_residual(rows, other, tokens)
    verdict = Verdict(tokens, Backend.STRICT.array([0], "int64"))
    with pytest.raises(TypeError, match="`next_token` a array_api_strict array"):
        emitted_tokens(np.asarray([[0]]), verdict)
    chain = np.asarray([[[0.5, 0.5]] * 2]), tokens[None], row((0.5, 0.5))
    with pytest.raises(TypeError, match="`draft_probs` is a array_api_strict array"):
        verify_chain(Backend.STRICT.array([[[0.5, 0.5]]], "float64"), *chain)
    with pytest.raises(ValueError, match=r"as `target_probs` has shape \(1, 2, 2\)"):
        verify_chain(None, *chain[:2], chain[2][:, :1])
