"""`verify_chain`: golden vectors, public faults, each edge of the policy, its cost."""

from __future__ import annotations

import gc
import json
import math
import tracemalloc
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from assertions import assert_like
from backends import EVERY, VALUED, Backend
from draftproof import Verdict, emitted_tokens, verify_chain

DATA = Path(__file__).parent / "data"
GOLDEN = json.loads((DATA / "golden.json").read_text(encoding="utf-8"))
FAULTS = json.loads((DATA / "fault-cases.json").read_text(encoding="utf-8"))
# Decimal ties, exact in the doubles they were found with.
TIES = [("A01", ".2"), ("A02", ".4")]

# Long enough for the blocks of the draw, and for the loop over requests in NumPy.
LONG = 5_000
BELOW_ONE = 1 - 2.0**-24
BELOW_HALF = 0.5 - 2.0**-25

both_rules = pytest.mark.parametrize("rule", ["token", "block"])
combinations = pytest.mark.parametrize(
    "step_case", EVERY, indirect=True, ids=[f"{b.name.lower()}-{d}" for b, d in EVERY]
)
# JAX compiles each shape anew: short rows are enough there.
long_and_short = pytest.mark.parametrize(
    "library,size",
    [
        (Backend.NUMPY, 7),
        (Backend.NUMPY, LONG),
        (Backend.TORCH, 7),
        (Backend.TORCH, LONG),
        (Backend.JAX, 7),
    ],
    ids=["numpy-short", "numpy-long", "torch-short", "torch-long", "jax-short"],
)
eager = pytest.mark.parametrize(
    "library", [Backend.NUMPY, Backend.TORCH], ids=["numpy", "torch"]
)


class Chains(NamedTuple):
    """A batch of requests as NumPy arrays: the first four arguments."""

    draft: Any
    target: Any
    tokens: Any
    uniforms: Any

    def on(self, backend, dtype, *, width="int32"):
        """Make the arrays of a backend; the uniforms in its widest dtype."""
        return (
            None if self.draft is None else backend.array(self.draft, dtype),
            backend.array(self.target, dtype),
            backend.array(self.tokens, width),
            backend.array(self.uniforms, backend.dtypes[-1]),
        )


def random_chains(shape, length, size, seed=0):
    """Draw chains that float32 stores exactly, of which some drafts are accepted."""
    random = np.random.default_rng(seed)
    target = random.dirichlet(np.ones(size), (*shape, length + 1))
    draft = (
        target[..., :length, :] + random.dirichlet(np.ones(size), (*shape, length))
    ) / 2
    share = random.random((*shape, length, 1))
    tokens = (np.cumsum(draft, axis=-1) > share * draft.sum(-1, keepdims=True)).argmax(-1)
    uniforms = random.random((*shape, length + 1))
    single = (array.astype(np.float32).astype(float) for array in (draft, target, uniforms))
    draft, target, uniforms = single
    return Chains(draft, target, tokens, np.minimum(uniforms, BELOW_ONE))


def decisions(backend, verdict):
    """Return what was decided as a NumPy array of pairs."""
    pair = (backend.host(verdict.num_accepted), backend.host(verdict.next_token))
    return np.stack(pair, axis=-1).astype(int)


def decide(backend, dtype, chains, *, rule):
    """Verify the chains on a backend; return pairs, their type and shape checked."""
    arguments = chains.on(backend, dtype)
    verdict = verify_chain(*arguments, rule=rule)
    assert type(verdict) is Verdict
    for part in verdict:
        assert_like(part, arguments[2], shape=np.shape(chains.tokens)[:-1])
    return decisions(backend, verdict)


# --- Vectors from outside -----------------------------------------------------------


def numbers(rows, size):
    """Return rows of fractions as floats, with tokens of probability 0 up to a size."""
    return [[float(Fraction(x)) for x in row] + [0.0] * (size - len(row)) for row in rows]


def by_length(items, backend, *, length_of):
    """Yield groups of equal rule and length; for JAX, which compiles each, padded ones."""

    def key(item):
        return item["rule"], -1 if backend.is_jax else length_of(item)

    for (rule, _), group in groupby(sorted(items, key=key), key):
        members = list(group)
        yield rule, members, max(map(length_of, members))


def padded(length, tokens, draft, target, uniforms, size):
    """Make the rows of one request, with -1 and rows of zeros up to a length."""
    missing = length - len(tokens)
    nothing = [[0.0] * size] * missing
    return (
        [*numbers(draft, size), *nothing],
        [*numbers(target, size), *nothing],
        [*tokens, *[-1] * missing],
        [*uniforms[:-1], *["0"] * missing, uniforms[-1]],
    )


def as_chains(requests, length, size):
    """Stack the rows of requests of one length."""
    draft, target, tokens, uniforms = zip(*requests, strict=True)
    return Chains(
        np.reshape(np.asarray(draft, float), (len(tokens), length, size)),
        np.asarray(target),
        np.reshape(tokens, (len(tokens), length)),
        np.asarray(numbers(uniforms, length + 1)),
    )


def golden_batches(backend):
    """Yield the golden vectors by length, as one batch, with what is to come out."""
    paths = {
        (name, *path["x"]): path
        for name, told in GOLDEN["models"].items()
        for path in told["paths"]
    }
    for rule, vectors, length in by_length(
        GOLDEN["vectors"], backend, length_of=lambda vector: len(vector["x"])
    ):
        found = [paths[v["model"], *v["x"]] for v in vectors]
        requests = [
            padded(length, v["x"], path["q"], path["p"], v["u"], 3)
            for v, path in zip(vectors, found, strict=True)
        ]
        needed = [(v["tau"], v["next"]) for v in vectors]
        yield rule, as_chains(requests, length, 3), needed


@combinations
def test_golden_vectors(step_case):
    """All decisions that were made with exact fractions come out, whatever the dtype."""
    count = 0
    for rule, chains, needed in golden_batches(step_case[0]):
        np.testing.assert_array_equal(decide(*step_case, chains, rule=rule), needed)
        count += len(needed)
    assert count == len(GOLDEN["vectors"]) >= 276


def fault_batches(backend):
    """Yield the public faults by length: drafts, rule and what must be emitted."""
    tied = "float64" in backend.dtypes
    cases = [
        case
        for case in FAULTS
        if tied or not {(case["id"], case["v"]), (case["id"], *case["u"])} & {*TIES}
    ]

    for rule, group, length in by_length(
        cases, backend, length_of=lambda case: len(case["t"])
    ):
        requests = [
            padded(length, case["t"], case["Q"], case["P"], [*case["u"], case["v"]], 8)
            for case in group
        ]
        yield rule, as_chains(requests, length, 8), group


def test_public_faults(backend):
    """Each fault with given uniforms is decided and emitted rightly."""
    for rule, chains, cases in fault_batches(backend):
        arguments = chains.on(backend, backend.dtypes[-1])
        verdict = verify_chain(*arguments, rule=rule)
        emitted = backend.host(emitted_tokens(arguments[2], verdict)).astype(int)
        for case, row in zip(cases, emitted.tolist(), strict=True):
            padding = [-1] * (len(row) - len(case["emitted"]))
            assert row == [*case["emitted"], *padding], case
        accepted = backend.host(verdict.num_accepted).tolist()
        assert accepted == [case["n_acc"] for case in cases]


# --- The policy: each edge once, for both rules --------------------------------------

# p / q at token 0 is 1/2 at the first place and 0 at the second, where the residual is
# token 1. The thresholds of both rules are (1/2, 0) for tokens 0, 0; for 0, 1 they are
# (1/2, 1), since token 1 has q = 0 < p there.
DRAFT = ((0.5, 0.5, 0.0), (1.0, 0.0, 0.0))
TARGET = ((0.25, 0.25, 0.5), (0.0, 1.0, 0.0), (0.25, 0.25, 0.5))
VALUES = {"NaN": math.nan, "inf": math.inf, "-inf": -math.inf}
COINS = VALUES | {"1": 1.0, "-2**-24": -(2.0**-24), "2": 2.0}
OUTSIDE = {"V": LONG, "-2": -2, "int32": 2**31 - 1}  # for a short row, too


class Edge(NamedTuple):
    """One request and the verdicts of both rules: `(num_accepted, next_token)`."""

    tokens: tuple
    uniforms: tuple
    by_token: tuple
    by_block: tuple
    draft: tuple = DRAFT
    target: tuple = TARGET


def both(tokens, uniforms, verdict, **rows):
    """Make an edge on which the rules agree."""
    return Edge(tokens, uniforms, verdict, verdict, **rows)


def spoilt(rows, place, entry, value):
    """Return the rows with one entry replaced."""
    rows = np.array(rows)
    rows[place, entry] = value
    return rows


# Unlike the residual, the target row of the second place has token 0.
OTHER = (TARGET[0], (0.5, 0.5, 0.0), TARGET[2])
# Half of the draft everywhere: a rejection leaves no residual.
HALVED = ((0.25, 0.25, 0.0), *TARGET[1:])
# The second is half of the draft as well: there S = 0 and c = 1.
EVEN = (DRAFT[0], DRAFT[0])
SHRINKING = (DRAFT[0], HALVED[0], TARGET[2])
# Not laws: the first sums to 1/2, the last to 4.
UNSCALED = ((0.125, 0.125, 0.25), TARGET[1], (1.0, 1.0, 2.0))

EDGES = {
    "below the tie": both((0, 0), (BELOW_HALF, 0.0, 0.0), (1, 1)),
    "at the tie": both((0, 0), (0.5, 0.0, 0.0), (0, 2)),
    "p = 0 and a coin of 0": both((0, 0), (0.0, 0.0, 0.0), (1, 1)),
    "a coin of -0": both((0, 0), (-0.0, -0.0, -0.0), (1, 1)),
    "q = 0 < p": both((0, 1), (0.25, BELOW_ONE, 0.0), (2, 0)),
    "q = 0 < p at first": both((2, 0), (BELOW_ONE, 0.0, 0.0), (1, 1)),
    "q = 0 = p": both((0, 2), (0.25, 0.0, 0.0), (1, 1)),
    "a failure that a later success overrides": Edge(
        (0, 1), (0.75, 0.75, 0.0), (0, 2), (2, 0)
    ),
    "the draw at a boundary": both((0, 1), (0.0, 0.0, 0.25), (2, 1)),
    "the draw below a boundary": both((0, 1), (0.0, 0.0, BELOW_HALF / 2), (2, 0)),
    "the draw at the end": both((0, 1), (0.0, 0.0, BELOW_ONE), (2, 2)),
    "no residual, below": both((0, 0), (0.75, 0.0, BELOW_HALF), (0, 0), target=HALVED),
    "no residual, above": both((0, 0), (0.75, 0.0, 0.5), (0, 1), target=HALVED),
    "0 / 0 is 1": both((0, 0), (0.5, 0.75, 0.5), (1, 1), draft=EVEN, target=SHRINKING),
    "-1 at first": both((-1, 0), (0.0, 0.0, 0.25), (0, 1)),
    "nothing behind -1": both((-1, 1), (0.0, 0.0, 0.0), (0, 0)),
    "-1 at second": both((0, -1), (0.25, 0.0, 0.25), (1, 0), target=OTHER),
    "-1 at second, rejected before": both((0, -1), (0.5, 0.0, 0.0), (0, 2), target=OTHER),
    "-1 and what is never read": both(
        (0, -1),
        (0.25, math.nan, 0.25),
        (1, 0),
        draft=(DRAFT[0], (math.nan,) * 3),
        target=(*OTHER[:2], (math.nan,) * 3),
    ),
    "-1 at first and what is never read": both(
        (-1, -1),
        (math.nan, math.inf, 0.25),
        (0, 1),
        draft=((math.nan,) * 3, (math.inf,) * 3),
        target=(TARGET[0], (math.nan,) * 3, (math.inf,) * 3),
    ),
    "rows as they are: rejected": both((0, 0), (0.375, 0, 0), (0, 2), target=UNSCALED),
    "rows as they are: accepted": both(
        (0, 0), (BELOW_HALF / 2, 0, 0), (1, 1), target=UNSCALED
    ),
    "rows as they are: drawn": both((0, 1), (0, 0, 0.25), (2, 1), target=UNSCALED),
}
for name, token in OUTSIDE.items():
    EDGES |= {
        f"id {name} at first": both((token, 0), (0.0, 0.0, 0.0), (0, -1)),
        f"id {name} at second": Edge((0, token), (0.25, 0.0, 0.0), (1, -1), (0, -1)),
        f"id {name} behind a failure": Edge((0, token), (0.5, 0.0, 0.0), (0, 2), (0, -1)),
        f"id {name} behind -1": both((-1, token), (0.0, 0.0, 0.25), (0, 1)),
    }
for name, coin in COINS.items():
    EDGES |= {
        f"coin {name} at first": both((0, 0), (coin, 0.0, 0.0), (0, -1)),
        f"coin {name} at second": Edge((0, 0), (0.25, coin, 0.0), (1, -1), (0, -1)),
        f"coin {name} behind a failure": Edge((0, 0), (0.5, coin, 0.0), (0, 2), (0, -1)),
        f"coin {name} behind -1": both((-1, 0), (0.0, coin, 0.25), (0, 1)),
        f"coin {name} for the draw": both((0, 0), (0.5, 0.0, coin), (0, -1)),
    }
for name, value in VALUES.items():
    # Token 1 is drafted nowhere below: an entry that is read with its whole row only.
    EDGES |= {
        f"{name} in q at the first draft": both(
            (0, 0), (0.25, 0.0, 0.0), (0, -1), draft=spoilt(DRAFT, 0, 0, value)
        ),
        f"{name} in p at the first draft": both(
            (0, 0), (0.25, 0.0, 0.0), (0, -1), target=spoilt(TARGET, 0, 0, value)
        ),
        f"{name} in q at the second draft": Edge(
            (0, 0), (0.25, 0, 0), (1, -1), (0, -1), draft=spoilt(DRAFT, 1, 0, value)
        ),
        f"{name} in p at the second draft": Edge(
            (0, 0), (0.25, 0, 0), (1, -1), (0, -1), target=spoilt(TARGET, 1, 0, value)
        ),
        f"{name} in q behind a failure": Edge(
            (0, 0), (0.5, 0, 0), (0, 2), (0, -1), draft=spoilt(DRAFT, 1, 0, value)
        ),
        f"{name} in q of the next token": both(
            (0, 0), (0.5, 0.0, 0.0), (0, -1), draft=spoilt(DRAFT, 0, 1, value)
        ),
        f"{name} in q of an accepted draft": both(
            (0, 0), (0.25, 0.0, 0.0), (1, 1), draft=spoilt(DRAFT, 0, 1, value)
        ),
        f"{name} in p of an accepted draft": both(
            (0, 0), (0.25, 0.0, 0.0), (1, 1), target=spoilt(TARGET, 0, 1, value)
        ),
        f"{name} in q of a sum S": Edge(
            (0, 0), (0.5, 0.0, 0.0), (0, 2), (0, -1), draft=spoilt(DRAFT, 1, 1, value)
        ),
        f"{name} in a bonus row not reached": both(
            (0, 0), (0.25, 0.0, 0.0), (1, 1), target=spoilt(TARGET, 2, 0, value)
        ),
    }
    if value != -math.inf:  # which hides below the draft: check_probs finds it
        EDGES |= {
            f"{name} in p of the next token": both(
                (0, 0), (0.5, 0.0, 0.0), (0, -1), target=spoilt(TARGET, 0, 1, value)
            ),
            f"{name} in p of a sum S": Edge(
                (0, 0), (0.5, 0, 0), (0, 2), (0, -1), target=spoilt(TARGET, 1, 1, value)
            ),
        }

# What the draw reads is not known to be bad before the number accepted is decided.
LATE_EDGES = {
    "NaN in the bonus row": Edge(
        (0, 1), (0, 0, 0.5), (2, -1), (0, -1), target=spoilt(TARGET, 2, 0, math.nan)
    ),
    "inf in the bonus row": Edge(
        (0, 1), (0, 0, 0.5), (2, -1), (0, -1), target=spoilt(TARGET, 2, 0, math.inf)
    ),
    "a coin of NaN for the draw": Edge((0, 1), (0.0, 0.0, math.nan), (2, -1), (0, -1)),
    "a coin of 1 for the draw": Edge((0, 1), (0.0, 0.0, 1.0), (2, -1), (0, -1)),
}

# Rows for drafts without a law: thresholds (1/2, 1/2), of the block rule (1/3, 1/4).
SURE = ((0.25, 0.25, 0.5), (0.5, 0.25, 0.25), TARGET[2])
SURE_EDGES = {
    "below the tie": Edge((2, 0), (0.25, BELOW_HALF, 0.0), (2, 0), (1, 1)),
    "at the tie": Edge((2, 0), (0.25, 0.5, 0.0), (1, 1), (1, 1)),
    "at the tie at first": both((2, 0), (0.5, 0.25, 0.5), (0, 1)),
    "block below its tie": Edge((2, 0), (0.75, BELOW_HALF / 2, 0.0), (0, 0), (2, 0)),
    "p = 0 and a coin of 0": Edge(
        (2, 1), (0, 0, 0), (1, 0), (1, 0), target=spoilt(SURE, 1, 1, 0.0)
    ),
    "p = 1": both(
        (2, 0), (BELOW_ONE,) * 3, (2, 2), target=((0, 0, 1.0), (1.0, 0, 0), SURE[2])
    ),
    "-1 at first": both((-1, 0), (0.0, 0.0, 0.5), (0, 2), target=SURE),
    "-1 at second": both((2, -1), (0.25, 0.0, 0.0), (1, 0), target=SURE),
    "-1 and NaN": both(
        (2, -1),
        (0.25, math.nan, 0),
        (1, 0),
        target=(*SURE[:2], (math.nan,) * 3),
    ),
    "NaN in p at a draft": Edge(
        (2, 0), (0.25, 0, 0), (1, -1), (0, -1), target=spoilt(SURE, 1, 0, math.nan)
    ),
    "NaN in p of the next token": both(
        (2, 0), (0.5, 0.5, 0.0), (0, -1), target=spoilt(SURE, 0, 1, math.nan)
    ),
    "coin NaN": Edge((2, 0), (0.25, math.nan, 0.0), (1, -1), (0, -1)),
}
for name, token in OUTSIDE.items():
    SURE_EDGES |= {
        f"id {name} at first": both((token, 0), (0.0, 0.0, 0.0), (0, -1)),
        f"id {name} at second": Edge((2, token), (0.25, 0, 0), (1, -1), (0, -1)),
        f"id {name} behind -1": both((-1, token), (0.0, 0.0, 0.5), (0, 2)),
    }


def spread(edges, size, *, sure=False):
    """Make a batch of edges; in a long row the three tokens lie in different blocks."""
    places = np.asarray([0, 1, 2] if size == 3 else [0, size // 2, size - 1])

    def rows(given):
        wide = np.zeros((*np.shape(given)[:-1], size))
        wide[..., places] = given
        return wide

    tokens = np.asarray([edge.tokens for edge in edges])
    inside = (tokens >= 0) & (tokens < 3)
    targets = [SURE if sure and e.target is TARGET else e.target for e in edges]
    return Chains(
        None if sure else rows([edge.draft for edge in edges]),
        rows(targets),
        np.where(inside, places[tokens * inside], tokens),
        np.asarray([edge.uniforms for edge in edges]),
    ), places


def assert_edges(backend, dtype, edges, size, *, rule, sure=False):
    """Assert the verdict on each edge, by name."""
    chains, places = spread(list(edges.values()), size, sure=sure)
    pairs = decide(backend, dtype, chains, rule=rule).tolist()
    found = dict(zip(edges, map(tuple, pairs), strict=True))
    needed = {name: getattr(edge, f"by_{rule}") for name, edge in edges.items()}
    needed = {
        name: (tau, int(places[token]) if token >= 0 else -1)
        for name, (tau, token) in needed.items()
    }
    wrong = {
        name: f"{found[name]}, needed {needed[name]}"
        for name in edges
        if found[name] != needed[name]
    }
    assert not wrong


@both_rules
@pytest.mark.parametrize(
    "step_case",
    # JAX compiles for each dtype, and does with the half types what it does with float32.
    [(b, d) for b, d in EVERY if not (b.is_jax and "16" in d)],
    indirect=True,
    ids=lambda value: f"{value[0].name.lower()}-{value[1]}",
)
def test_edges(step_case, rule):
    """Each edge is decided as the policy says, on each backend and dtype."""
    assert_edges(*step_case, EDGES, 3, rule=rule)


@both_rules
@pytest.mark.parametrize(
    "library", [b for b in VALUED if b is not Backend.JAX_X64], ids=lambda b: b.name.lower()
)
def test_edges_of_long_rows(library, rule):
    """The same edges, where rows are drawn from block by block."""
    with library.context():
        assert_edges(library, library.dtypes[-1], EDGES, LONG, rule=rule)


@both_rules
def test_edges_of_drafts_without_a_law(backend, rule):
    """Drafts without rows have the same edges."""
    for size in (3,) if backend.is_jax else (3, LONG):
        assert_edges(backend, backend.dtypes[-1], SURE_EDGES, size, rule=rule, sure=True)


@both_rules
@pytest.mark.parametrize("size", [3, LONG])
@eager
def test_edges_of_the_draw(library, rule, size):
    """What only the draw reads fails closed: the block rule accepts nothing."""
    assert_edges(library, "float64", LATE_EDGES, size, rule=rule)


def test_a_threshold_of_two_small_numbers(backend):
    """S / (S + (1 - c)) is 1/2 where S = 1 - c is half an epsilon: S + 1 would be 1."""
    dtype = backend.dtypes[-1]
    small = 2.0**-53 if dtype == "float64" else 2.0**-24
    chains = Chains(
        np.asarray([[(0.5, 0.5, 0), (0.5, 0, 0.5)]] * 2),
        np.asarray([[(0.5 - small / 2, 0.5, 0), (0.5, small, 0), (0, 0, 1)]] * 2),
        np.asarray([(0, 2)] * 2),
        np.asarray([(0.25, 0.0, 0.0), (0.75, 0.0, 0.0)]),
    )
    pairs = decide(backend, dtype, chains, rule="block")
    assert pairs[:, 0].tolist() == [1, 0]


def test_edges_tell_the_rules_and_the_entries_apart():
    """The negative control: without the spoilt entry, coin or id the verdict differs."""
    for name, edge in EDGES.items():
        if edge.by_block[1] == -1:
            tokens = [0 if t in OUTSIDE.values() else t for t in edge.tokens]
            coins = [u if 0 <= u < 1 else 0.0 for u in edge.uniforms]
            whole = edge._replace(tokens=tokens, uniforms=coins, draft=DRAFT, target=TARGET)
            chains, _ = spread([whole], 3)
            pair = decide(Backend.NUMPY, "float64", chains, rule="block")
            assert pair[0, 1] >= 0, name


# --- Shapes -------------------------------------------------------------------------

SHAPES = [(), (0,), (1,), (3,), (2, 3), (2, 0), (2, 1, 3)]
SHAPED = [
    (backend, shape)
    for backend in VALUED
    if backend is not Backend.JAX_X64
    for shape in ([(), (2, 0)] if backend.is_jax else SHAPES)
]


@both_rules
@pytest.mark.parametrize(
    "library,shape", SHAPED, ids=[f"{b.name.lower()}-{s}" for b, s in SHAPED]
)
def test_any_leading_axes(library, shape, rule):
    """Any number of equal leading axes, also none, also empty ones."""
    chains = random_chains(shape, 2, 3, seed=5)
    with library.context():
        pairs = decide(library, library.dtypes[-1], chains, rule=rule)
    assert pairs.shape == (*shape, 2)
    flat = [np.reshape(array, (-1, *array.shape[len(shape) :])) for array in chains]
    for i, pair in enumerate(pairs.reshape(-1, 2).tolist()):
        one = Chains(*(array[i] for array in flat))
        assert decide(Backend.NUMPY, "float64", one, rule=rule).tolist() == pair


@both_rules
def test_no_drafts(backend, rule):
    """K = 0: nothing to accept, and the next token is drawn from the only row."""
    uniforms = np.asarray([[0.25], [0.5], [0.0], [1.0]])
    target = np.asarray([[TARGET[0]], [TARGET[1]], [[0.0] * 3], [TARGET[0]]])
    for draft in (np.zeros((4, 0, 3)), None):
        chains = Chains(draft, target, np.zeros((4, 0)), uniforms)
        pairs = decide(backend, backend.dtypes[-1], chains, rule=rule)
        assert pairs.tolist() == [[0, 1], [0, 1], [0, -1], [0, -1]]


@both_rules
@long_and_short
def test_a_batch_is_a_loop_and_padding_is_shortness(library, size, rule):
    """A ragged request in a batch is that request alone: first n coins and the last."""
    count, length = 40, 3
    chains = random_chains((count,), length, size, seed=size)
    random = np.random.default_rng(1)
    lengths = random.integers(0, length + 1, count)
    for i, n in enumerate(lengths):
        chains.tokens[i, n : n + 1] = -1
        chains.tokens[i, n + 1 :] = random.integers(-2, 2 * size, max(length - n - 1, 0))
        chains.draft[i, n:] = chains.target[i, n + 1 :] = math.nan
        chains.uniforms[i, n:-1] = math.nan
    with library.context():
        pairs = decide(library, "float32", chains, rule=rule)
        for i, n in enumerate(lengths):
            alone = Chains(
                chains.draft[i, :n],
                chains.target[i, : n + 1],
                chains.tokens[i, :n],
                np.concatenate([chains.uniforms[i, :n], chains.uniforms[i, -1:]]),
            )
            one = decide(library, "float32", alone, rule=rule)
            assert one.tolist() == pairs[i].tolist()
    assert set(pairs[:, 0].tolist()) == {0, 1, 2, 3}
    assert pairs[:, 1].min() >= 0


@both_rules
@pytest.mark.parametrize("length", [0, 2])
def test_long_rows_decide_alike(length, rule):
    """The loop over long rows in NumPy decides like the operations on whole batches."""
    chains = random_chains((100,), length, LONG, seed=9)
    chains.tokens[::5, length - 1 :] = -1
    for rows in (chains, chains._replace(draft=None)):
        found = [
            decide(library, "float64", rows, rule=rule)
            for library in (Backend.NUMPY, Backend.TORCH, Backend.STRICT)
        ]
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(found[0], found[2])
        # Every tenth of the vocabulary is drawn from.
        assert len(set((found[0][:, 1] * 10 // LONG).tolist())) == 10


@both_rules
@long_and_short
def test_drafts_without_a_law_are_one_hot(library, size, rule):
    """None for the draft decides like one-hot rows at the tokens, request by request."""
    count = 2_000 if size == 7 else 200
    _, target, tokens, uniforms = random_chains((count,), 3, size, seed=size)
    rows = np.zeros(target[:, :-1].shape)
    np.put_along_axis(rows, tokens[..., None], 1.0, axis=-1)
    # As likely as not, or in a long row none would be accepted.
    target[:, :-1] = (target[:, :-1] + rows) / 2
    chains = Chains(None, target, tokens, uniforms)
    dtype = library.dtypes[-1]
    with library.context():
        found = decide(library, dtype, chains, rule=rule)
        needed = decide(library, dtype, chains._replace(draft=rows), rule=rule)
        np.testing.assert_array_equal(found, needed)
        # The negative control: the rows of another token decide otherwise.
        other = chains._replace(draft=np.roll(rows, 1, axis=-1))
        assert (decide(library, dtype, other, rule=rule) != needed).any()
    assert set(found[:, 0].tolist()) == {0, 1, 2, 3}


@both_rules
@eager
def test_half_precision_is_widened(library, rule):
    """Rows in a half type decide like the same numbers in float32."""
    chains = random_chains((300,), 2, 7, seed=3)
    for dtype in ("float16", "bfloat16"):
        draft, target, tokens, uniforms = chains.on(library, dtype)
        verdict = verify_chain(draft, target, tokens, uniforms, rule=rule)
        same = Chains(library.host(draft), library.host(target), *chains[2:])
        needed = decide(library, "float32", same, rule=rule)
        np.testing.assert_array_equal(decisions(library, verdict), needed)


@both_rules
@pytest.mark.parametrize("size", [7, LONG])
@pytest.mark.parametrize(
    "library", [Backend.NUMPY, Backend.STRICT, Backend.TORCH], ids=lambda b: b.name.lower()
)
def test_uniforms_of_either_dtype(library, size, rule):
    """The same numbers as float32 and as float64 decide alike."""
    chains = random_chains((40,), 2, size, seed=8)
    for dtype in ("float32", "float64"):
        *rows, uniforms = chains.on(library, dtype)
        needed = decisions(library, verify_chain(*rows, uniforms, rule=rule))
        single = library.array(chains.uniforms, "float32")
        found = decisions(library, verify_chain(*rows, single, rule=rule))
        np.testing.assert_array_equal(found, needed)


@both_rules
def test_the_verdict_has_the_dtype_of_the_tokens(backend, rule):
    """Both parts are int64 for int64 tokens; `decide` looks at int32 ones everywhere."""
    if backend is Backend.JAX:
        return  # there is no int64 without x64
    for size in (3,) if backend.is_jax else (3, LONG):
        chains = random_chains((2,), 2, size)
        for draft in (chains.draft, None):
            rows = chains._replace(draft=draft)
            arguments = rows.on(backend, backend.dtypes[-1], width="int64")
            for part in verify_chain(*arguments, rule=rule):
                assert_like(part, arguments[2], dtype=backend.dtype("int64"), shape=(2,))


# --- Inputs -------------------------------------------------------------------------


@both_rules
@pytest.mark.parametrize(
    "backend",
    [backend for backend in VALUED if not backend.is_jax],
    ids=lambda backend: backend.name.lower(),
)
def test_inputs_are_not_written_to(backend, rule):
    """The bits of all arguments stay, also where a row is used as it is."""
    for size in (3, LONG):
        for draft in (0, None):
            chains = random_chains((12,), 2, size, seed=2)
            chains.tokens[::3, 1] = -1
            chains = chains._replace(draft=None) if draft is None else chains
            arguments = [a for a in chains.on(backend, backend.dtypes[-1]) if a is not None]
            before = [backend.host(array).tobytes() for array in arguments]
            head = (None,) if draft is None else ()
            verify_chain(*head, *arguments, rule=rule)
            assert [backend.host(array).tobytes() for array in arguments] == before


def layouts(xp, array):
    """Yield the array in layouts of memory: turned, strided, reversed and read-only."""
    axes = tuple(range(array.ndim))[::-1]
    if xp is torch:
        yield array.permute(axes).contiguous().permute(axes)
        yield torch.stack([array, array], -1)[..., 0]
        return
    yield np.asfortranarray(array)
    yield np.stack([array, array], -1)[..., 0]
    yield np.ascontiguousarray(array[..., ::-1])[..., ::-1]
    array = array.copy()
    array.flags.writeable = False
    yield array


@both_rules
@pytest.mark.parametrize("size", [3, LONG])
@eager
def test_the_memory_layout_does_not_matter(library, size, rule):
    """Turned, strided, reversed and read-only arrays decide like contiguous ones."""
    arguments = random_chains((30,), 2, size, seed=4).on(library, "float64")
    needed = decisions(library, verify_chain(*arguments, rule=rule))
    for moved in zip(*(layouts(library.xp, a) for a in arguments), strict=True):
        found = decisions(library, verify_chain(*moved, rule=rule))
        np.testing.assert_array_equal(found, needed)


@both_rules
@pytest.mark.parametrize("size", [3, LONG])
@eager
def test_aliased_rows(library, size, rule):
    """The draft may be a view of the target, and one row may stand for many."""
    chains = random_chains((30,), 2, size, seed=6)
    _, target, tokens, uniforms = chains.on(library, "float64")
    verdict = verify_chain(target[:, :2], target, tokens, uniforms, rule=rule)
    assert (library.host(verdict.num_accepted) == 2).all()
    one = library.xp.broadcast_to(target[:1], target.shape)
    found = verify_chain(one[:, :2], one, tokens, uniforms, rule=rule)
    assert (library.host(found.num_accepted) == 2).all()
    rows = chains.target[:1].repeat(30, 0)
    alone = Chains(rows[:, :2], rows, chains.tokens, chains.uniforms)
    needed = decide(library, "float64", alone, rule=rule)
    np.testing.assert_array_equal(decisions(library, found), needed)


@both_rules
@pytest.mark.parametrize("size", [3, LONG])
def test_rows_that_require_gradients(size, rule):
    """Rows straight out of a model in training decide like detached ones."""
    arguments = random_chains((30,), 2, size, seed=7).on(Backend.TORCH, "float32")
    needed = verify_chain(*arguments, rule=rule)
    rows = [array.clone().requires_grad_() for array in arguments[:2]]
    logits = [row * 1 for row in rows]
    for draft, target in (rows, logits):
        found = verify_chain(draft, target, *arguments[2:], rule=rule)
        assert all(map(torch.equal, found, needed))
    without = verify_chain(None, *arguments[1:], rule=rule)
    found = verify_chain(None, logits[1], *arguments[2:], rule=rule)
    assert all(map(torch.equal, found, without))


# --- Errors -------------------------------------------------------------------------

ERRORS = {
    "unknown rule": ({"rule": "typical"}, ValueError, "'typical'.*'token', 'block'"),
    "K target rows": (
        {"target_probs": lambda a: a[:, :2]},
        ValueError,
        r"`draft_probs` has shape \(2, 2, 3\), `target_probs` \(2, 2, 3\); needed",
    ),
    "one target row": (
        {"draft_probs": None, "target_probs": lambda a: a[0, 0]},
        ValueError,
        r"`target_probs` has shape \(3,\); needed is \(..., K \+ 1, V\)",
    ),
    "no target row": (
        {"draft_probs": None, "target_probs": lambda a: a[:, :0]},
        ValueError,
        r"`target_probs` has shape \(2, 0, 3\)",
    ),
    "no vocabulary": ({"target_probs": lambda a: a[..., :0]}, ValueError, r"\(2, 3, 0\)"),
    "vocabularies": (
        {"draft_probs": lambda a: a[..., :2]},
        ValueError,
        r"`draft_probs` has shape \(2, 2, 2\)",
    ),
    "broadcast": ({"draft_probs": lambda a: a[:1]}, ValueError, r"\(1, 2, 3\)"),
    "tokens": (
        {"draft_tokens": lambda a: a[:, :1]},
        ValueError,
        r"`draft_tokens` has shape \(2, 1\); needed is \(2, 2\)",
    ),
    "K uniforms": (
        {"uniforms": lambda a: a[:, :2]},
        ValueError,
        r"`uniforms` has shape \(2, 2\); needed is \(2, 3\)",
    ),
    "uint32 tokens": (
        {"draft_tokens": lambda a: a.astype(np.uint32)},
        TypeError,
        "`draft_tokens` has dtype uint32",
    ),
    "float tokens": (
        {"draft_tokens": lambda a: a.astype(float)},
        TypeError,
        "`draft_tokens` has dtype float64; needed is int32 or int64",
    ),
    "half uniforms": (
        {"uniforms": lambda a: a.astype(np.float16)},
        TypeError,
        "`uniforms` has dtype float16; needed is float32 or float64",
    ),
    "integer uniforms": (
        {"uniforms": lambda a: a.astype(int)},
        TypeError,
        "`uniforms` has dtype int64",
    ),
    "integer rows": (
        {"target_probs": lambda a: a.astype(int)},
        TypeError,
        "`target_probs` has dtype int64",
    ),
    "longdouble rows": (
        {"draft_probs": lambda a: a.astype(np.longdouble)},
        TypeError,
        "`draft_probs` has dtype",
    ),
    "two dtypes": (
        {"draft_probs": lambda a: a.astype(np.float32)},
        TypeError,
        "`draft_probs` has dtype float32, `target_probs` float64",
    ),
    "a list": (
        {"uniforms": lambda a: a.tolist()},
        TypeError,
        "`uniforms` is of type list",
    ),
    "two libraries": (
        {"uniforms": torch.tensor},
        TypeError,
        "is a numpy array, `uniforms` a torch array",
    ),
    "two libraries without a draft": (
        {"draft_probs": None, "draft_tokens": torch.tensor},
        TypeError,
        "`target_probs` is a numpy array, `draft_tokens` a torch array",
    ),
}


@both_rules
@pytest.mark.parametrize("name", ERRORS)
def test_errors_name_the_argument(name, rule):
    """Metadata is checked: what is wrong is named with what came and what is needed."""
    changes, error, message = ERRORS[name]
    names = ("draft_probs", "target_probs", "draft_tokens", "uniforms")
    arguments = dict(
        zip(names, random_chains((2,), 2, 3).on(Backend.NUMPY, "float64"), strict=True)
    )
    verify_chain(**arguments, rule=rule)
    for changed, change in changes.items():
        was = arguments.get(changed)
        arguments[changed] = change(was) if callable(change) else change
    with pytest.raises(error, match=message):
        verify_chain(**{"rule": rule} | arguments)


@pytest.mark.parametrize("name", ["draft_probs", "draft_tokens", "uniforms"])
def test_everything_must_be_in_one_place(name):
    """An argument on another device is refused by name."""
    names = ("draft_probs", "target_probs", "draft_tokens", "uniforms")
    arrays = random_chains((2,), 2, 3).on(Backend.TORCH, "float64")
    arguments = dict(zip(names, arrays, strict=True))
    arguments[name] = arguments[name].to("meta")
    with pytest.raises(ValueError, match=f"`{name}` is on meta, `.*` on cpu"):
        verify_chain(**arguments)


# --- Cost ---------------------------------------------------------------------------


def peak(call, *arguments, **options):
    """Return the bytes that a call allocates at most beyond its arguments."""
    call(*arguments, **options)
    gc.collect()
    tracemalloc.start()
    try:
        call(*arguments, **options)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def all_rows_at_once(draft, target, tokens, uniforms, *, rule):
    """Verify by making the residuals of all places, as many engines do."""
    part = np.maximum(target[:, :-1] - draft, 0)
    residual = part / part.sum(-1, keepdims=True)
    return residual[:, 0].argmax(-1)


def costly_chains(length, size=50_000, count=4):
    """Make long float32 rows of which the last places are reached, one and no draft."""
    random = np.random.default_rng(length)
    target = random.random((count, length + 1, size), dtype=np.float32)
    target /= target.sum(-1, keepdims=True)
    draft = target[:, :-1] * np.float32(0.5) + np.roll(target[:, :-1], 1, -1) * np.float32(
        0.5
    )
    tokens = draft.argmax(-1)
    uniforms = np.full((count, length + 1), 0.25, dtype=np.float32)
    uniforms[0], tokens[1, 1:] = BELOW_ONE, -1
    return draft, target, tokens, uniforms


@both_rules
@pytest.mark.parametrize("with_draft", [True, False])
def test_the_memory_of_a_call(with_draft, rule):
    """Temporaries stay below 6 rows a request, however long the chain."""
    row = 4 * 50_000 * 4
    peaks = {}
    for length in (2, 8):
        draft, *others = costly_chains(length)
        peaks[length] = peak(
            verify_chain, draft if with_draft else None, *others, rule=rule
        )
        assert peaks[length] < 6 * row
    assert abs(peaks[8] - peaks[2]) < row / 4
    print(f"{rule}: {peaks[2] / row:.2f} and {peaks[8] / row:.2f} rows a request")


def test_the_memory_of_a_wasteful_call():
    """The negative control: the residuals of all places need more, the more places."""
    row = 4 * 50_000 * 4
    peaks = [peak(all_rows_at_once, *costly_chains(k), rule="token") for k in (2, 8)]
    assert peaks[1] > 6 * row
    assert peaks[1] - peaks[0] > row / 4
