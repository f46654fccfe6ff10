"""The kit's negative controls really are wrong, its positive ones are not."""

from __future__ import annotations

import functools
import itertools
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from draftproof import exact
from draftproof.conformance._models import MODELS
from draftproof.conformance._self_test import Judged, controls, judged, table
from draftproof.conformance.broken import (
    DRAFTERS,
    RIGHT_DRAFTERS,
    RIGHT_SAMPLERS,
    RIGHT_STEPS,
    RIGHT_VERIFIERS,
    SAMPLERS,
    STEPS,
    VERIFIERS,
)

NAN = float("nan")
BELOW_ONE = 1 - 2.0**-53

# Draft rows, target rows and tokens beside the models': equal rows, no draft rows, no
# drafts, a token that could not be drawn, rows that are not numbers.
THIRD, EVEN = [0.25, 0.5, 0.25], [0.5, 0.5, 0]
SPECIAL = (
    ([EVEN, THIRD], [EVEN, THIRD, EVEN], [1, 2]),
    (None, [THIRD, EVEN, THIRD], [1, 0]),
    (None, [THIRD, EVEN, THIRD], [0, 2]),
    ([THIRD, THIRD], [[0, 0.25, 0.75], EVEN, THIRD], [1, -1]),
    ([THIRD, THIRD], [[0.25, 0, 0.75], EVEN, THIRD], [-1, -1]),
    ([EVEN, THIRD], [EVEN, THIRD, THIRD], [2, 1]),
    ([[NAN, 0.5, 0.5], THIRD], [EVEN, THIRD, THIRD], [2, 1]),
    ([EVEN, EVEN], [[NAN] * 3, THIRD, THIRD], [0, 1]),
)


def paths(length):
    """Yield rows and tokens to verify, those without draft rows last."""
    for model in MODELS.values():
        if model.draft_length == length:
            for path, _ in model.paths():
                yield path.draft, path.target, path.tokens
    yield from SPECIAL if length == 2 else ()


def reference(draft, target, tokens, uniforms, rule):
    """Return the exact verdict; no token where the rows are not numbers."""
    try:
        verdict = exact.verify_chain(draft, target, tokens, uniforms, rule=rule)
    except ValueError:
        return None
    return verdict.num_accepted, verdict.next_token


@functools.cache
def cases(rule):
    """Return batches of one shape, and of each request what the reference decides."""
    rng = np.random.default_rng(7)
    groups = {}
    for length in (2, 3):
        some = [
            *itertools.product((0, BELOW_ONE), repeat=length + 1),
            *rng.random((24, length + 1)).tolist(),
        ]
        for path in paths(length):
            for uniforms in (*some, *near_thresholds(*path, rule)):
                row = (*path, uniforms)
                key = (length, len(path[1][0]), path[0] is None)
                groups.setdefault(key, []).append((*row, reference(*row, rule)))
    return [list(zip(*shuffled(rng, rows), strict=True)) for rows in groups.values()]


def shuffled(rng, rows):
    """Return rows in random order, so that neighbours differ."""
    return [rows[i] for i in rng.permutation(len(rows))]


def near_thresholds(draft, target, tokens, rule):
    """Yield uniforms that are all a little to one side of the thresholds."""
    try:
        limits = exact.chain_thresholds(draft, target, tokens, rule=rule)
    except ValueError:
        return
    for factor in (1 - 2.0**-12, 1 + 2.0**-12):
        yield [*(min(float(limit) * factor, BELOW_ONE) for limit in limits), 0.5]


def disagrees(verifier, rule):
    """Whether a verifier decides otherwise than the reference, or writes to its inputs."""
    for *parts, verdicts in cases(rule):
        none = parts[0][0] is None
        given = [None if none else np.array(parts[0], float), np.array(parts[1], float)]
        given += [np.array(parts[2]), np.array(parts[3])]
        before = [None if part is None else part.copy() for part in given]
        accepted, token = verifier(*given)
        for old, new in zip(before, given, strict=True):
            if old is not None and not np.array_equal(old, new, equal_nan=True):
                return True
        for found, verdict in zip(zip(accepted, token, strict=True), verdicts, strict=True):
            if (found != verdict) if verdict else (found[1] != -1):
                return True
    return False


@pytest.mark.parametrize("name", VERIFIERS)
def test_a_wrong_verifier_decides_otherwise_than_the_reference(name):
    """On some small chain, with some uniforms."""
    assert disagrees(VERIFIERS[name].subject, VERIFIERS[name].rule)


@pytest.mark.parametrize("name", RIGHT_VERIFIERS)
def test_a_right_verifier_decides_as_the_reference(name):
    """On every small chain, with all uniforms."""
    assert not disagrees(RIGHT_VERIFIERS[name].subject, RIGHT_VERIFIERS[name].rule)


REQUESTS = 16_000


class Drafted:
    """Requests with drafts of a model, and the law of what they should be completed to."""

    def __init__(self, model):
        self.model, self.rng = model, np.random.default_rng(11)
        self.size, length = model.size, model.draft_length
        contexts = [()] + [(0,) * (n - 1) for n in range(1, length + 1)]
        rows = [
            [
                [
                    [float(x) for x in row_of((*context, last) if n else ())]
                    for last in range(self.size)
                ]
                for n, context in enumerate(contexts)
            ]
            for row_of in (model.draft_row, model.target_row)
        ]
        self.draft_rows, self.target_rows = np.array(rows)
        self.tokens = np.full((REQUESTS, length), -1)
        self.complete(self.tokens, self.draft_rows)
        before = np.pad(self.tokens, ((0, 0), (1, 0)))
        places = np.arange(length + 1)
        self.target = self.target_rows[places, before]
        self.draft = self.draft_rows[places[:-1], before[:, :-1]]
        self.law = np.zeros((self.size,) * (length + 1))
        for tokens, prob in model.target_law().items():
            self.law[tokens] = prob

    def complete(self, tokens, rows):
        """Draw what is -1 from rows by place and last token."""
        last = np.zeros(len(tokens), int)
        for place, column in enumerate(tokens.T):
            ends = rows[place, last].cumsum(axis=1)
            drawn = (ends <= self.rng.random((len(tokens), 1))).sum(axis=1)
            column[:] = np.where(column < 0, drawn, column)
            last = column

    def emitted(self, sampler, seed=5):
        """Return what a sampler emits."""
        return sampler(self.draft.copy(), self.target.copy(), self.tokens.copy(), seed)

    def distance(self, emitted):
        """Return the total variation of completed tokens to the law, by its expectation."""
        tokens = emitted.copy()
        self.complete(tokens, self.target_rows)
        flat = np.ravel_multi_index(tuple(tokens.T), self.law.shape)
        seen = np.bincount(flat, minlength=self.law.size) / len(tokens)
        law = self.law.ravel()
        expected = np.sqrt(law * (1 - law) * 2 / np.pi / len(tokens)).sum() / 2
        return abs(seen - law).sum() / 2 / expected


drafted = functools.cache(lambda name: Drafted(MODELS[name]))


def ill_formed(sampler):
    """Whether padded requests get more tokens than they can, or padding before tokens."""
    one = drafted("three tokens")
    tokens = one.tokens.copy()
    tokens[::2, 1:] = tokens[::3] = -1
    emitted = sampler(one.draft.copy(), one.target.copy(), tokens, 5)
    gaps = (emitted[:, :-1] < 0) & (emitted[:, 1:] >= 0)
    many = (emitted >= 0).sum(axis=1) > (tokens >= 0).sum(axis=1) + 1
    invented = (emitted[:, 1:] >= 0) & (emitted[:, :-1] != tokens)
    return gaps.any() or many.any() or invented.any()


def misbehaves(sampler):
    """Whether what a sampler emits cannot come of a sampler with seeds of its own."""
    one = drafted("three tokens")
    emitted = one.emitted(sampler)
    count = (emitted >= 0).sum(axis=1)
    accepted = np.arange(one.tokens.shape[1]) < count[:, None] - 1
    same = emitted[(one.tokens == one.tokens[0]).all(axis=1)]
    return (
        (emitted[:, 0] < 0).any()
        or not (emitted[:, -1] >= 0).any()
        or (accepted & (emitted[:, :-1] != one.tokens)).any()
        or not (emitted == one.emitted(sampler)).all()
        or (emitted == one.emitted(sampler, 6)).all()
        or len(np.unique(same, axis=0)) == 1
    )


def distances(sampler):
    """Yield how far a sampler is off on each model."""
    for name in ("four tokens", "three tokens", "three drafts", "two tokens"):
        one = drafted(name)
        yield one.distance(one.emitted(sampler))


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_wrong_sampler_misses_the_law(name):
    """By three times what chance does, on some model; or it breaks the form."""
    sampler = SAMPLERS[name].subject
    assert (
        any(far > 3 for far in distances(sampler))
        or misbehaves(sampler)
        or ill_formed(sampler)
    )


@pytest.mark.parametrize("name", RIGHT_SAMPLERS)
def test_a_right_sampler_keeps_to_the_law(name):
    """On every model, within twice what chance does."""
    sampler = RIGHT_SAMPLERS[name].subject
    assert not misbehaves(sampler)
    assert not ill_formed(sampler)
    assert max(distances(sampler)) < 2


@functools.cache
def logits():
    """Return requests of six kinds in random order, and which kind each is."""
    rng = np.random.default_rng(3)
    kinds = rng.integers(0, 6, 24_000)
    return rng.normal(0, 1.5, (6, 5))[kinds], kinds


def far_off(drafter):
    """Whether the tokens of a drafter do not come from the rows that it returns."""
    rows, kinds = logits()
    tokens, probs = drafter(rows.copy(), 5)
    if not ((tokens >= 0) & (tokens < 5)).all() or (probs < 0).any():
        return True
    own = probs[np.arange(len(tokens)), tokens]
    again, other = (drafter(rows.copy(), seed)[0] for seed in (5, 6))
    certain = (probs.max(axis=1) == 1).all()
    if (again != tokens).any() or ((other == tokens).all() and not certain):
        return True
    for kind in range(6):
        here = kinds == kind
        seen = np.bincount(tokens[here], minlength=5) - probs[here].sum(axis=0)
        spread = (probs[here] * (1 - probs[here])).sum(axis=0) + 1e-9
        if (abs(seen) > 5 * np.sqrt(spread)).any():
            return True
    return own.min() == 0 or abs(probs.sum(axis=1) - 1).max() > 1e-9


@pytest.mark.parametrize("name", DRAFTERS)
def test_a_wrong_drafter_does_not_draw_from_its_rows(name):
    """By five standard deviations for some token; or its rows are none."""
    assert far_off(DRAFTERS[name].subject)


@pytest.mark.parametrize("name", RIGHT_DRAFTERS)
def test_a_right_drafter_draws_from_its_rows(name):
    """Every token as often as they say."""
    assert not far_off(RIGHT_DRAFTERS[name].subject)


def step_differs(step):
    """Whether a step is off by more than rounding, on some pair of rows."""
    rng = np.random.default_rng(2)
    pairs = [*rng.dirichlet(np.ones(4), (8, 2)), (np.full(4, 0.25),) * 2]
    pairs.append((np.array([0.5, 0.5, 0, 0]), np.array([0, 0.25, 0.75, 0])))
    for draft, target in pairs:
        for token in np.flatnonzero(draft):
            found = step(draft.copy(), target.copy(), token)
            accept, law = exact.speculative_decode_step(draft, target, int(token)).values()
            off = [abs(found["accept_prob"] - float(accept))]
            off += abs(found["residual"] - np.array(law, float)).tolist()
            if max(off) > 1e-12:
                return True
    return False


@pytest.mark.parametrize("name", STEPS)
def test_a_wrong_step_is_off(name):
    """On some pair of rows."""
    assert step_differs(STEPS[name].subject)


@pytest.mark.parametrize("name", RIGHT_STEPS)
def test_a_right_step_is_not(name):
    """On any pair of rows."""
    assert not step_differs(RIGHT_STEPS[name].subject)


# A drafter takes a second, as does a verifier that is wrong and has no name for it.
FEW_DRAFTERS = (
    *("greedy_one_hot", "argmax_with_softmax_probs", "raw_probs_of_a_top_k_draw"),
    *("id_behind_the_last_token", "seed_ignored_in_drafts"),
)
QUICK = [
    control
    for control in controls()
    if control.kind == "step"
    or (control.kind == "draft" and control.name in FEW_DRAFTERS)
    or (control.kind != "draft" and (control.subject.fault or not control.wrong))
]
REST = [control for control in controls(quick=False) if control not in QUICK]


def label(control):
    """Return the name of a control in a test's name."""
    return f"{control.kind} {control.name}"


@pytest.mark.parametrize("control", QUICK, ids=label)
def test_the_kit_judges(control):
    """It rejects what is wrong and names the fault, and lets pass what is right."""
    result = judged(control)
    assert result.ok, result


@pytest.mark.parametrize("control", REST, ids=label)
def test_the_kit_judges_the_rest(control):
    """So it does those whose fault has no name, and samplers made of verifiers."""
    result = judged(control)
    assert result.ok, result


def test_the_self_test_prints_a_table():
    """With a line for each control, and what was expected where it is not found."""
    text = StringIO()
    results = [
        Judged("one_thing", "step", True, "a fault", "a fault", True),
        Judged("another", "draft", False, None, "a fault", False),
    ]
    Console(file=text, width=100).print(table(results))
    assert "one thing" in text.getvalue()
    assert "expected: a fault" in text.getvalue()
    assert "1 of 2 controls" in text.getvalue()
