"""`verify_chain` emits the target's law: integrated exactly over all uniforms.

For rows of a few fractions a decision changes at finitely many values of each uniform.
They are worked out here with fractions; the array implementation is then asked in the
middle of every cell between them, in one batch, and weighted with the exact volume.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate, pairwise, product
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends import Backend
from draftproof import Verdict, draw, verify_chain

both_rules = pytest.mark.parametrize("rule", ["token", "block"])


class Models(NamedTuple):
    """Laws of the next token after each context, and the number of drafts.

    `stops` are the contexts at which no draft is made. A `sure` drafter has one-hot laws.
    """

    draft: dict
    target: dict
    length: int
    stops: frozenset = frozenset()
    sure: bool = False

    @property
    def size(self):
        """V, the size of the vocabulary."""
        return len(self.target[()])


class Path(NamedTuple):
    """A drafted path as it is verified, with its probability."""

    tokens: tuple
    draft: tuple
    target: tuple
    prob: Fraction


class Cells(NamedTuple):
    """Requests whose uniforms lie in the middle of the cells, and what they weigh."""

    paths: list
    uniforms: list
    volumes: list


def contexts(size, length):
    """Return all contexts of up to `length` tokens."""
    return [c for n in range(length + 1) for c in product(range(size), repeat=n)]


def law(*weights):
    """Return whole weights over their sum, or equal shares where they are all zero."""
    weights = weights if any(weights) else [1] * len(weights)
    return tuple(Fraction(weight, sum(weights)) for weight in weights)


@st.composite
def models(draw, *, sure=False):
    """Draw two models whose laws depend on every token before; zeros are frequent."""
    size, length = draw(st.sampled_from([(2, 1), (3, 1), (2, 2), (3, 2), (2, 3), (3, 3)]))
    places = contexts(size, length)
    if length == 1:
        # Short models are drawn number by number, so that they shrink.
        row = st.lists(st.integers(0, 4), min_size=size, max_size=size)
        tables = draw(st.tuples(*[st.tuples(row, row)] * len(places)))
    else:
        random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        smallest = draw(st.integers(0, 1))
        tables = random.integers(smallest, 5, (len(places), 2, size)).tolist()
    draft, target = (
        {place: law(*rows[i]) for place, rows in zip(places, tables, strict=True)}
        for i in range(2)
    )
    if sure:
        draft = {place: one_hot(size, row.index(max(row))) for place, row in draft.items()}
    return Models(draft, target, length, sure=sure)


@st.composite
def models_that_stop(draw):
    """Draw models with contexts at which no draft is made."""
    drawn = draw(models(sure=draw(st.booleans())))
    places = contexts(drawn.size, drawn.length - 1)
    return drawn._replace(stops=draw(st.frozensets(st.sampled_from(places))))


def one_hot(size, token):
    """Return the law of a token that is certain."""
    return law(*(v == token for v in range(size)))


def drafted_paths(pair):
    """Yield every path that can be drafted, with its rows; none behind a stop."""

    def extend(tokens, prob):
        if len(tokens) == pair.length or tokens in pair.stops:
            yield tokens, prob
            return
        for token, share in enumerate(pair.draft[tokens]):
            if share:
                yield from extend((*tokens, token), prob * share)

    nothing = (Fraction(0),) * pair.size
    for tokens, prob in extend((), Fraction(1)):
        places = [tokens[:i] for i in range(len(tokens) + 1)]
        missing = pair.length - len(tokens)
        yield Path(
            (*tokens, *(-1,) * missing),
            (*(pair.draft[place] for place in places[:-1]), *(nothing,) * missing),
            (*(pair.target[place] for place in places), *(nothing,) * missing),
            prob,
        )


# --- The rules, as fractions: what the uniforms are compared with ---------------------


def products(path, *, rule):
    """Return c_0, ..., c_n of the drafts that are there; 1 for the token rule."""
    scales = [Fraction(1)]
    for token, q, p in zip(path.tokens, path.draft, path.target, strict=False):
        if token != -1:
            # A drafted token has q > 0.
            scale = min(Fraction(1), scales[-1] * p[token] / q[token])
            scales.append(scale if rule == "block" else Fraction(1))
    return scales


def residual(path, place, scale):
    """Return the weights of the next token after `place` accepted ones."""
    target = path.target[place]
    drafted = place < len(path.tokens) and path.tokens[place] != -1
    draft = path.draft[place] if drafted else (Fraction(0),) * len(target)
    return tuple(
        max(scale * p - q, Fraction(0)) for p, q in zip(target, draft, strict=True)
    )


def thresholds(path, *, rule):
    """Return the thresholds of the coins of the drafts that are there."""
    scales = products(path, rule=rule)
    if rule == "token":
        drafts = zip(path.tokens, path.draft, path.target, strict=False)
        return [min(Fraction(1), p[x] / q[x]) for x, q, p in drafts if x != -1]
    sums = [sum(residual(path, i, scale)) for i, scale in enumerate(scales)]
    return [
        s / (s + 1 - c) if s + 1 - c else Fraction(1)
        for s, c in zip(sums[1:], scales[1:], strict=True)
    ]


def boundaries(path, *, rule):
    """Return where the draw of the next token may change, however many are accepted."""
    found = {Fraction(0), Fraction(1)}
    for place, scale in enumerate(products(path, rule=rule)):
        # With those of the target and of the token rule, where the wrong rules change.
        scaled = (residual(path, place, by) for by in {scale, Fraction(1)})
        for weights in (*scaled, path.target[place]):
            total = sum(weights)
            if total:
                found |= {share / total for share in accumulate(weights)}
    return found


def cells(paths, *, rule):
    """Cut the uniforms of every path into cells."""
    found = Cells([], [], [])
    for path in paths:
        axes = [{Fraction(0), h, Fraction(1)} for h in thresholds(path, rule=rule)]
        missing = len(path.tokens) - len(axes)
        axes += [{Fraction(0), Fraction(1)}] * missing
        axes.append(boundaries(path, rule=rule))
        for sides in product(*(pairwise(sorted(axis)) for axis in axes)):
            volume = Fraction(1)
            for low, high in sides:
                volume *= high - low
            found.paths.append(path)
            found.uniforms.append([float((low + high) / 2) for low, high in sides])
            found.volumes.append(volume)
    return found


# --- The law that comes out -----------------------------------------------------------


def verified(found, pair, *, rule, backend=Backend.NUMPY, verify=verify_chain):
    """Verify all cells in one call on a backend."""
    paths = found.paths

    def array(rows, length):
        shape = (len(paths), length, pair.size)
        return backend.array(np.asarray(rows, dtype=float).reshape(shape), "float64")

    draft = array([path.draft for path in paths], pair.length)
    verdict = verify(
        None if pair.sure else draft,
        array([path.target for path in paths], pair.length + 1),
        backend.array([path.tokens for path in paths], "int64"),
        backend.array(found.uniforms, "float64"),
        rule=rule,
    )
    return [backend.host(part).astype(int).tolist() for part in verdict]


def emitted_law(found, pair, verdict):
    """Return the joint law of K + 1 tokens: those emitted, completed by the target."""
    beginnings = {}
    for path, volume, accepted, token in zip(
        found.paths, found.volumes, *verdict, strict=True
    ):
        beginning = (*path.tokens[:accepted], token)
        beginnings[beginning] = beginnings.get(beginning, 0) + path.prob * volume
    return completed(beginnings, pair)


def completed(beginnings, pair):
    """Complete tokens with draws from the target, to K + 1 tokens."""
    out = {}
    for beginning, prob in beginnings.items():
        if len(beginning) > pair.length:
            out[beginning] = out.get(beginning, 0) + prob
            continue
        further = {
            (*beginning, token): prob * share
            for token, share in enumerate(pair.target[beginning])
            if share
        }
        for tokens, share in completed(further, pair).items():
            out[tokens] = out.get(tokens, 0) + share
    return out


def integrated(pair, *, rule, placed=lambda tokens: tokens, **how):
    """Return the law that comes out, and the target's own."""
    paths = [path._replace(tokens=placed(path.tokens)) for path in drafted_paths(pair)]
    found = cells(paths, rule=rule)
    verdict = verified(found, pair, rule=rule, **how)
    return emitted_law(found, pair, verdict), completed({(): Fraction(1)}, pair)


def distance(one, other):
    """Return the total variation distance of two laws."""
    return sum(abs(one.get(x, 0) - other.get(x, 0)) for x in {*one, *other}) / 2


# --- Lossless -------------------------------------------------------------------------


@both_rules
@given(pair=models())
def test_lossless(rule, pair):
    """What is emitted has exactly the joint law of the target."""
    found, needed = integrated(pair, rule=rule)
    assert found == needed


@both_rules
@given(pair=models(sure=True))
def test_lossless_for_drafts_without_a_law(rule, pair):
    """The same for a drafter that is certain of its token, passed as None."""
    found, needed = integrated(pair, rule=rule)
    assert found == needed


@both_rules
@given(pair=models_that_stop())
def test_lossless_where_no_draft_is_made(rule, pair):
    """The same where -1 is put by the place and the tokens before it."""
    found, needed = integrated(pair, rule=rule)
    assert found == needed


def markov(length, first, *after):
    """Make a model of a law at first, and one after each token."""
    size = len(first)
    return {
        place: law(*(after[place[-1]] if place and after else first))
        for place in contexts(size, length)
    }


FIXED: dict[str, Any] = {
    "m2": Models(
        markov(2, (0, 3, 1), (3, 0, 1), (0, 1, 1), (1, 3, 0)),
        markov(2, (0, 1, 1), (3, 1, 0), (1, 3, 0), (3, 1, 0)),
        2,
    ),
    "m3": Models(
        markov(3, (3, 0, 1), (0, 1, 1), (0, 1, 1), (2, 1, 1)),
        markov(3, (1, 0, 3), (1, 0, 3), (0, 1, 3), (1, 1, 2)),
        3,
    ),
    "sun": Models(markov(3, (2, 1)), markov(3, (1, 2)), 3),
}
FIXED["m3, with stops"] = FIXED["m3"]._replace(stops=frozenset({(0,), (2, 2)}))
FIXED["m3, no law"] = FIXED["m3"]._replace(
    draft=markov(3, (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0)), sure=True
)


@both_rules
@pytest.mark.parametrize("name", FIXED)
@pytest.mark.parametrize(
    "library",
    [Backend.TORCH, Backend.JAX_X64, Backend.STRICT],
    ids=lambda b: b.name.lower(),
)
def test_lossless_on_other_libraries(library, name, rule):
    """Fixed models come out exactly on the other libraries, too."""
    with library.context():
        found, needed = integrated(FIXED[name], rule=rule, backend=library)
    assert found == needed


@both_rules
def test_where_minus_one_may_not_come_from(rule):
    """-1 instead of a drawn token, because of the token, does not give the target's law."""
    pair = Models(markov(1, (1, 1)), markov(1, (1, 1)), 1)
    by_token = integrated(pair, rule=rule, placed=lambda x: (-1,) if x[0] == 0 else x)
    assert distance(*by_token) == Fraction(1, 4)
    for name in ("m2", "m3"):
        # As an engine would that masks a token out of the drafts.
        masked = integrated(
            FIXED[name],
            rule=rule,
            placed=lambda x: tuple(-1 if 2 in x[: i + 1] else t for i, t in enumerate(x)),
        )
        assert distance(*masked) > Fraction(1, 100)


# --- Negative controls ----------------------------------------------------------------


def replacing_from_the_target(draft, target, tokens, uniforms, *, rule):
    """Draw the replacement from p instead of the residual, the commonest mistake."""
    verdict = verify_chain(draft, target, tokens, uniforms, rule=rule)
    rows = np.take_along_axis(target, verdict.num_accepted[:, None, None], axis=1)[:, 0]
    return Verdict(verdict.num_accepted, draw(rows, uniforms[:, -1]))


def always_token(draft, target, tokens, uniforms, *, rule):
    """Count by the rule, but draw as the token rule would."""
    tau = verify_chain(draft, target, tokens, uniforms, rule=rule).num_accepted
    rows = np.take_along_axis(target, tau[:, None, None], axis=1)[:, 0]
    drafts = np.concatenate([draft, np.zeros_like(draft[:, :1])], axis=1)
    part = np.maximum(rows - np.take_along_axis(drafts, tau[:, None, None], 1)[:, 0], 0)
    empty = part.sum(-1, keepdims=True) == 0
    return Verdict(tau, draw(np.where(empty, rows, part), uniforms[:, -1]))


def one_less(draft, target, tokens, uniforms, *, rule):
    """Never believe the last draft."""
    tau, token = verify_chain(draft, target, tokens, uniforms, rule=rule)
    return Verdict(np.maximum(tau - 1, 0), token)


# Total variation of m2 and m3; the first line is known from enumerating the rule itself.
WRONG = {
    (replacing_from_the_target, "token"): (Fraction(5, 32), Fraction(1, 8)),
    (replacing_from_the_target, "block"): (None, None),
    (always_token, "block"): (Fraction(1, 16), Fraction(5, 128)),
    (one_less, "token"): (None, None),
    (one_less, "block"): (None, None),
}


@pytest.mark.parametrize(
    "verify,rule", WRONG, ids=lambda v: v if isinstance(v, str) else v.__name__
)
def test_wrong_verifiers_are_found(verify, rule):
    """The same integral shows that a wrong verifier loses the law, and by how much."""
    for name, needed in zip(("m2", "m3"), WRONG[verify, rule], strict=True):
        off = distance(*integrated(FIXED[name], rule=rule, verify=verify))
        assert off > Fraction(1, 100)
        if needed is not None:
            assert off == needed


def test_the_right_verifier_is_right_where_the_wrong_ones_are_not():
    """The draw of the token rule is right for the token rule: only its use is wrong."""
    found, needed = integrated(FIXED["m3"], rule="token", verify=always_token)
    assert found == needed


@both_rules
def test_a_coarser_integral_would_be_wrong(rule):
    """With a threshold forgotten the integral is not exact: the cells are all needed."""
    paths = list(drafted_paths(FIXED["m2"]))
    found = cells(paths, rule=rule)
    merged = Cells([], [], [])
    for path, uniforms, volume in zip(*found, strict=True):
        shifted = [0.999, *uniforms[1:]]  # as if the first coin had one cell
        merged.paths.append(path)
        merged.uniforms.append(shifted)
        merged.volumes.append(volume)
    verdict = verified(merged, FIXED["m2"], rule=rule)
    needed = completed({(): Fraction(1)}, FIXED["m2"])
    assert distance(emitted_law(merged, FIXED["m2"], verdict), needed) > Fraction(1, 100)
