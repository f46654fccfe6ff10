"""`match_tokens` and `emitted_tokens`, and decoding by shared uniform numbers."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import accumulate, pairwise, product

import numpy as np
import pytest
import torch

from assertions import assert_like, bits
from backends import VALUED, Backend
from draftproof import Verdict, draw, emitted_tokens, match_tokens, verify_chain

# Drafted tokens, the target's, how many agree, and what is emitted.
MATCHES = {
    "all": ((5, 7, 9), (5, 7, 9, 3), 3, (5, 7, 9, 3)),
    "two": ((5, 7, 9), (5, 7, 8, 3), 2, (5, 7, 8, -1)),
    "none": ((5, 7, 9), (4, 7, 9, 3), 0, (4, -1, -1, -1)),
    "nothing behind the first other": ((5, 7, 9), (5, 6, 9, 3), 1, (5, 6, -1, -1)),
    "-1 at the end": ((5, 7, -1), (5, 7, 9, 3), 2, (5, 7, 9, -1)),
    "-1 in between": ((5, -1, 9), (5, 7, 9, 3), 1, (5, 7, -1, -1)),
    "-1 at first": ((-1, 7, 9), (5, 7, 9, 3), 0, (5, -1, -1, -1)),
    "-1 does not match -1": ((5, -1, -1), (5, -1, -1, -1), 1, (5, -1, -1, -1)),
    "all -1": ((-1, -1, -1), (-1, -1, -1, -1), 0, (-1, -1, -1, -1)),
    "token 0": ((0, 0, 0), (0, 0, 0, 0), 3, (0, 0, 0, 0)),
    "large ids": ((2**31 - 1, 0, 1), (2**31 - 1, 0, 0, 1), 2, (2**31 - 1, 0, 0, -1)),
}

both_rules = pytest.mark.parametrize("rule", ["token", "block"])
widths = pytest.mark.parametrize("width", ["int32", "int64"])


def has(backend, width):
    """Whether a backend has an integer dtype: JAX without x64 has no int64."""
    return not (backend is Backend.JAX and width == "int64")


@widths
def test_matches(backend, width):
    """The agreeing beginning is accepted, and what is emitted is the target's."""
    if not has(backend, width):
        return
    drafts, targets, accepted, emitted = zip(*MATCHES.values(), strict=True)
    arguments = backend.array(drafts, width), backend.array(targets, width)
    before = [bits(backend, array) for array in arguments]
    verdict = match_tokens(*arguments)
    assert type(verdict) is Verdict
    for part in verdict:
        assert_like(part, arguments[0], shape=(len(MATCHES),))
    assert backend.host(verdict.num_accepted).astype(int).tolist() == [*accepted]
    following = [row[n] for row, n in zip(targets, accepted, strict=True)]
    assert backend.host(verdict.next_token).astype(int).tolist() == following
    tokens = emitted_tokens(arguments[0], verdict)
    assert_like(tokens, arguments[0], shape=(len(MATCHES), 4))
    assert backend.host(tokens).astype(int).tolist() == [[*row] for row in emitted]
    assert [bits(backend, array) for array in arguments] == before


@pytest.mark.parametrize("fill", [-1, 0, -100, 7])
def test_what_stands_behind_the_emitted_tokens(backend, fill):
    """`fill` stands behind the next token and nowhere else, whatever its value."""
    tokens = backend.array([[1, 2, 3], [1, 2, 3], [7, 7, 7], [1, 2, 3]], "int32")
    verdict = Verdict(
        backend.array([0, 2, 3, 1], "int32"), backend.array([9, 7, 8, -1], "int32")
    )
    found = backend.host(emitted_tokens(tokens, verdict, fill=fill)).astype(int)
    needed = [[9, fill, fill, fill], [1, 2, 7, fill], [7, 7, 7, 8], [1, -1, fill, fill]]
    assert found.tolist() == needed


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0), (2, 3)])
@pytest.mark.parametrize("length", [0, 2])
def test_any_leading_axes(shape, length):
    """Any leading axes, also none and empty ones, and no drafts at all."""
    random = np.random.default_rng(0)
    drafts = random.integers(0, 2, (*shape, length))
    targets = random.integers(0, 2, (*shape, length + 1))
    for backend in (Backend.NUMPY, Backend.STRICT, Backend.TORCH, Backend.JAX):
        with backend.context():
            arguments = backend.array(drafts, "int32"), backend.array(targets, "int32")
            verdict = match_tokens(*arguments)
            tokens = emitted_tokens(arguments[0], verdict)
            for array, extra in ((*verdict, ()), (tokens, (length + 1,)))[1:]:
                assert_like(array, arguments[0], shape=(*shape, *extra))
            for part in verdict:
                assert_like(part, arguments[0], shape=shape)
            found = [backend.host(array) for array in (*verdict, tokens)]
        for at in np.ndindex(shape):
            same = [*(drafts[at] == targets[at][:length]), False]
            count = same.index(False)
            assert found[0][at] == count
            assert found[1][at] == targets[at][count]
            assert (found[2][at][: count + 1] == targets[at][: count + 1]).all()
            assert (found[2][at][count + 1 :] == -1).all()


# --- Greedy ---------------------------------------------------------------------------


def greedy(size, count=60, length=3):
    """Make logits with ties, their argmax, and drafts that agree often."""
    random = np.random.default_rng(size)
    logits = random.integers(0, 4, (count, length + 1, size))
    targets = logits.argmax(-1)
    other = random.integers(0, size, (count, length))
    drafts = np.where(random.random((count, length)) < 0.7, targets[:, :-1], other)
    drafts[::7, 1] = -1
    return drafts, targets, random.random((count, length + 1))


@both_rules
@pytest.mark.parametrize("sure", [False, True], ids=["rows", "None"])
@pytest.mark.parametrize(
    "backend,size",
    [(b, size) for b in VALUED for size in ((5,) if b.is_jax else (5, 5_000))],
    ids=lambda value: value.name.lower() if isinstance(value, Backend) else str(value),
)
def test_greedy_decoding_is_a_chain_of_one_hot_targets(backend, size, sure, rule):
    """The same verdict as verify_chain on one-hot target rows, whatever the coins."""
    drafts, targets, coins = greedy(size)
    dtype = backend.dtypes[-1]
    with backend.context():
        tokens = backend.array(drafts, "int32")
        rows = backend.array(targets[..., None] == np.arange(size), dtype)
        flat = np.full((*drafts.shape, size), 1 / size)
        uniforms = backend.array(coins, dtype)
        draft = None if sure else backend.array(flat, dtype)
        chain = verify_chain(draft, rows, tokens, uniforms, rule=rule)
        match = match_tokens(tokens, backend.array(targets, "int32"))
        found, needed = (
            np.stack([backend.host(part) for part in one]) for one in (chain, match)
        )
    np.testing.assert_array_equal(found, needed)
    assert set(found[0].tolist()) == {0, 1, 2, 3}


# --- Shared randomness ------------------------------------------------------------------

LENGTH = 2
SIZE = 3


def law(*weights):
    """Return whole weights over their sum."""
    return tuple(Fraction(weight, sum(weights)) for weight in weights)


# A target that depends on every token before.
TARGET = {
    place: law(1 + place.count(0), 2 * place.count(1), 1 + sum(place) % 3 + len(place))
    for n in range(LENGTH + 1)
    for place in product(range(SIZE), repeat=n)
}


def cells():
    """Cut the shared uniforms into cells of one decision: middles and volumes."""
    axes = []
    for n in range(LENGTH + 1):
        laws = [row for place, row in TARGET.items() if len(place) == n]
        edges = {Fraction(0)}.union(*(accumulate(row) for row in laws))
        axes.append(list(pairwise(sorted(edges))))
    sides = list(product(*axes))
    middles = [[float((low + high) / 2) for low, high in cell] for cell in sides]
    volumes = [math.prod(high - low for low, high in cell) for cell in sides]
    return np.asarray(middles), volumes


def rows_after(tokens):
    """Return the target's rows at every place of drafted tokens; any row behind -1."""
    places = [tuple(max(t, 0) for t in tokens[:i]) for i in range(LENGTH + 1)]
    return [[float(x) for x in TARGET[place]] for place in places]


def by_itself(uniforms):
    """Decode without any drafter: each token by the uniform of its place."""
    found = []
    for row in uniforms:
        tokens = ()
        for uniform in row:
            weights = np.asarray([float(x) for x in TARGET[tokens]])
            tokens = (*tokens, int(draw(weights, np.asarray(uniform))))
        found.append(tokens)
    return np.asarray(found)


def right(uniforms):
    """Propose what the target will say."""
    return by_itself(uniforms)[:, :LENGTH]


def constant(uniforms):
    """Propose the same token everywhere."""
    return np.full((len(uniforms), LENGTH), 1)


def flat(uniforms):
    """Draw from a flat law with the same uniforms."""
    return np.floor(uniforms[:, :LENGTH] * SIZE).astype(int)


def cautious(uniforms):
    """Propose one token, then nothing."""
    drafts = flat(uniforms)
    drafts[:, 1] = -1
    return drafts


def shy(uniforms):
    """Propose nothing."""
    return np.full((len(uniforms), LENGTH), -1)


def contrary(uniforms):
    """Propose what the target will not say."""
    return (right(uniforms) + 1) % SIZE


DRAFTERS = (right, constant, flat, cautious, shy, contrary)


def decoded(backend, drafts, uniforms):
    """Draw the target's token at every place, match, and return all that is emitted."""
    dtype = backend.dtypes[-1]
    rows = backend.array([rows_after(row) for row in drafts.tolist()], dtype)
    own = draw(rows, backend.array(uniforms, dtype))
    width = str(own.dtype).rpartition(".")[2]
    tokens = backend.array(drafts, width)
    verdict = match_tokens(tokens, own)
    emitted = backend.host(emitted_tokens(tokens, verdict)).astype(int)
    return backend.host(verdict.num_accepted).astype(int), emitted


@pytest.mark.parametrize("drafter", DRAFTERS, ids=lambda drafter: drafter.__name__)
def test_the_drafter_does_not_change_the_text(backend, drafter):
    """With uniforms that belong to the place the target's own tokens are emitted."""
    uniforms, _ = cells()
    own = by_itself(uniforms)
    accepted, emitted = decoded(backend, drafter(uniforms), uniforms)
    behind = np.arange(LENGTH + 1) > accepted[:, None]
    np.testing.assert_array_equal(emitted, np.where(behind, -1, own))
    if drafter is right:
        assert (accepted == LENGTH).all()
    if drafter in (shy, contrary):
        assert (accepted == 0).all()


def test_the_text_has_the_law_of_the_target():
    """Integrated over all cells, what every drafter leads to has the target's law."""
    uniforms, volumes = cells()
    assert sum(volumes) == 1
    found = {}
    for tokens, volume in zip(by_itself(uniforms).tolist(), volumes, strict=True):
        found[tuple(tokens)] = found.get(tuple(tokens), 0) + volume
    needed = {
        tokens: math.prod(TARGET[tokens[:i]][t] for i, t in enumerate(tokens))
        for tokens in product(range(SIZE), repeat=LENGTH + 1)
    }
    assert found == {tokens: prob for tokens, prob in needed.items() if prob}


def test_uniforms_of_the_call_would_change_the_text():
    """The negative control: numbers that do not belong to the place lose the invariance."""
    uniforms, _ = cells()
    own = by_itself(uniforms)
    accepted, emitted = decoded(Backend.NUMPY, flat(uniforms), uniforms[:, ::-1])
    behind = np.arange(LENGTH + 1) > accepted[:, None]
    assert (emitted != np.where(behind, -1, own)).any()


# --- Errors ---------------------------------------------------------------------------

TOKENS, OWN = np.asarray([[1, 2], [3, 4]]), np.asarray([[1, 2, 5], [3, 5, 6]])
VERDICT = Verdict(np.asarray([2, 1]), np.asarray([5, 5]))
ERRORS = {
    "K target tokens": (
        lambda: match_tokens(TOKENS, OWN[:, :2]),
        ValueError,
        r"`target_tokens` has shape \(2, 2\); needed is \(2, 3\)",
    ),
    "other requests": (
        lambda: match_tokens(TOKENS, OWN[:1]),
        ValueError,
        r"`target_tokens` has shape \(1, 3\)",
    ),
    "no axis": (
        lambda: match_tokens(TOKENS[0, 0, ...], OWN),
        ValueError,
        r"`draft_tokens` has shape \(\)",
    ),
    "float tokens": (
        lambda: match_tokens(TOKENS * 1.0, OWN),
        TypeError,
        "`draft_tokens` has dtype float64; needed is int32 or int64",
    ),
    "unsigned tokens": (
        lambda: match_tokens(TOKENS.astype(np.uint64), OWN.astype(np.uint64)),
        TypeError,
        "`draft_tokens` has dtype uint64",
    ),
    "two widths": (
        lambda: match_tokens(TOKENS, OWN.astype(np.int32)),
        TypeError,
        "`target_tokens` has dtype int32, `draft_tokens` int64",
    ),
    "two libraries": (
        lambda: match_tokens(TOKENS, torch.tensor(OWN)),
        TypeError,
        "`draft_tokens` is a numpy array, `target_tokens` a torch array",
    ),
    "a list": (
        lambda: match_tokens(TOKENS.tolist(), OWN),
        TypeError,
        "`draft_tokens` is of type list",
    ),
    "two places": (
        lambda: match_tokens(torch.tensor(TOKENS), torch.tensor(OWN, device="meta")),
        ValueError,
        "`target_tokens` is on meta, `draft_tokens` on cpu",
    ),
    "a verdict on others": (
        lambda: emitted_tokens(TOKENS, Verdict(*(part[:1] for part in VERDICT))),
        ValueError,
        r"`num_accepted` has shape \(1,\); needed is \(2,\)",
    ),
    "a verdict of tokens": (
        lambda: emitted_tokens(TOKENS, VERDICT._replace(next_token=OWN)),
        ValueError,
        r"`next_token` has shape \(2, 3\)",
    ),
    "a verdict of another width": (
        lambda: emitted_tokens(
            TOKENS, VERDICT._replace(next_token=VERDICT.next_token.astype(np.int32))
        ),
        TypeError,
        "`next_token` has dtype int32, `draft_tokens` int64",
    ),
    "a verdict of another library": (
        lambda: emitted_tokens(TOKENS, Verdict(*map(torch.tensor, VERDICT))),
        TypeError,
        "`draft_tokens` is a numpy array, `num_accepted` a torch array",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_name_the_argument(name):
    """Metadata is checked: what is wrong is named with what came and what is needed."""
    call, error, message = ERRORS[name]
    with pytest.raises(error, match=message):
        call()
    assert match_tokens(TOKENS, OWN).num_accepted.tolist() == [2, 1]
    assert emitted_tokens(TOKENS, VERDICT).tolist() == [[1, 2, 5], [3, 5, -1]]
