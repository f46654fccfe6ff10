"""The exact rules for chains: golden vectors, laws by enumeration, and wrong rules."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import accumulate, pairwise, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftproof import exact

DATA = Path(__file__).parent / "data"
GOLDEN = json.loads((DATA / "golden.json").read_text(encoding="utf-8"))
FAULTS = json.loads((DATA / "fault-cases.json").read_text(encoding="utf-8"))
RULES = ("token", "block")
TINY = Fraction(1, 10**40)

both_rules = pytest.mark.parametrize("rule", RULES)


class Models(NamedTuple):
    """A draft and a target model, and how many tokens are drafted."""

    draft: object
    target: object
    length: int


def row(text):
    """Read a row of fractions."""
    return tuple(Fraction(number) for number in text.split())


def markov(first, *after):
    """Make a model of the first token's law, and of laws after each token."""
    first, after = row(first), [row(law) for law in after]
    return lambda context: after[context[-1]] if after and context else first


MODELS = {
    "sun": Models(markov("2/3 1/3"), markov("1/3 2/3"), 2),
    "g1": Models(markov("3/4 0 1/4"), markov("1/4 1/4 1/2"), 2),
    "m2": Models(
        markov("0 3/4 1/4", "3/4 0 1/4", "0 1/2 1/2", "1/4 3/4 0"),
        markov("0 1/2 1/2", "3/4 1/4 0", "1/4 3/4 0", "3/4 1/4 0"),
        2,
    ),
    "m3": Models(
        markov("3/4 0 1/4", "0 1/2 1/2", "0 1/2 1/2", "1/2 1/4 1/4"),
        markov("1/4 0 3/4", "1/4 0 3/4", "0 1/4 3/4", "1/4 1/4 1/2"),
        3,
    ),
    "onehot": Models(markov("1 0 0"), markov("1/2 1/4 1/4"), 3),
    "equal": Models(markov("1/4 1/4 1/2"), markov("1/4 1/4 1/2"), 2),
    "disjoint": Models(markov("1 0 0"), markov("0 1/2 1/2"), 2),
}
PATHS = [(name, path) for name, told in GOLDEN["models"].items() for path in told["paths"]]


@st.composite
def models(draw, sizes=(1, 2, 3), lengths=(0, 1, 2, 3)):
    """Draw two models whose laws depend on every token before; zeros are frequent."""
    size, length = draw(st.sampled_from(sizes)), draw(st.sampled_from(lengths))
    contexts = [c for n in range(length + 1) for c in product(range(size), repeat=n)]
    count = len(contexts) * size
    weights = st.lists(st.integers(0, 4), min_size=count, max_size=count)

    def model(flat):
        rows = [flat[i : i + size] for i in range(0, count, size)]
        laws = [r if any(r) else [1] * size for r in rows]
        table = dict(zip(contexts, (shares(law) for law in laws), strict=True))
        return lambda context: table[context]

    return Models(model(draw(weights)), model(draw(weights)), length)


@st.composite
def paths(draw, **kinds):
    """Draw one drafted path with its rows, as a chain's first three arguments."""
    drawn = draw(models(**kinds))
    size = len(drawn.target(()))
    tokens = tuple(draw(st.integers(0, size - 1)) for _ in range(drawn.length))
    return rows_along(drawn, tokens)


def shares(weights):
    """Return whole weights over their sum."""
    return tuple(Fraction(weight, sum(weights)) for weight in weights)


def rows_along(models, tokens):
    """Return the rows along a path, and the path."""
    contexts = [tokens[:i] for i in range(len(tokens) + 1)]
    draft = [models.draft(context) for context in contexts[:-1]]
    return draft, [models.target(context) for context in contexts], tokens


def spelled_out_law(models, outcomes, placed=lambda tokens: tokens):
    """Return the joint law of a rule, one draw after the other.

    `outcomes` is the rule, `placed` puts -1 into the drafted path.
    """
    law = {}

    def emit(tokens, prob):
        if len(tokens) > models.length:
            law[tokens] = law.get(tokens, 0) + prob
            return
        for token, share in enumerate(models.target(tokens)):
            if share:
                emit((*tokens, token), prob * share)

    def draft(tokens, prob):
        if len(tokens) < models.length:
            for token, share in enumerate(models.draft(tokens)):
                if share:
                    draft((*tokens, token), prob * share)
            return
        rows = rows_along(models, tokens)[:2]
        for share, accepted, next_law in outcomes(*rows, placed(tokens)):
            for token, replacing in enumerate(next_law):
                if share * replacing:
                    emit((*tokens[:accepted], token), prob * share * replacing)

    draft((), Fraction(1))
    return law


def by(rule):
    """Return the outcomes of a rule, as a function of a path."""
    return lambda *path: exact.chain_outcomes(*path, rule=rule)


def target_of(models):
    """Return the law that is to come out."""
    return exact.target_law(models.target, models.length + 1)


def distance(law, other):
    """Return the total variation distance of two laws."""
    return sum(abs(law.get(x, 0) - other.get(x, 0)) for x in {*law, *other}) / 2


# --- The golden vectors -----------------------------------------------------------


@pytest.mark.parametrize(
    "name,path", PATHS, ids=lambda v: v if isinstance(v, str) else str(v["x"])
)
def test_a_golden_path(name, path):
    """Rows, thresholds and all outcomes of a path are the golden ones."""
    draft, target, tokens = rows_along(MODELS[name], tuple(path["x"]))
    assert draft == [tuple(map(Fraction, law)) for law in path["q"]]
    assert target == [tuple(map(Fraction, law)) for law in path["p"]]
    for rule in RULES:
        given_rows = path["q"], path["p"], tokens
        thresholds = exact.chain_thresholds(*given_rows, rule=rule)
        assert thresholds == tuple(map(Fraction, path[f"{rule}_h"]))
        outcomes = exact.chain_outcomes(*given_rows, rule=rule)
        assert {tuple(outcome) for outcome in outcomes} == {
            (Fraction(prob), accepted, tuple(map(Fraction, law)))
            for prob, accepted, law in path[f"{rule}_outcomes"]
        }
        accepted = [outcome.num_accepted for outcome in outcomes]
        assert accepted == sorted(accepted, reverse=True)
        assert sum(outcome.probability for outcome in outcomes) == 1
    scales = [Fraction(c) for c in path["block_c"]]
    assert scales == spelled_out_scales(draft, target, tokens)
    assert exact.chain_thresholds(draft, target, tokens, rule="block")[-1:] == (scales[-1],)


@both_rules
@pytest.mark.parametrize("name", GOLDEN["models"])
def test_a_golden_law(name, rule):
    """The joint law, and the law and mean of the number accepted, are the golden ones."""
    models, told = MODELS[name], GOLDEN["models"][name]
    emitted = {tuple(map(int, x)): Fraction(p) for x, p in told["target_law_K+1"].items()}
    assert emitted == target_of(models)
    assert emitted == exact.joint_law(*models, rule=rule)
    law = accepted_over_all_paths(models, rule)
    assert law == [Fraction(prob) for prob in told["rules"][rule]["law_tau"]]
    expected = exact.expected_accepted(*models, rule=rule)
    assert expected == Fraction(told["rules"][rule]["E_tau"])
    assert expected == sum(i * prob for i, prob in enumerate(law))
    assert expected <= Fraction(told["upper_bound_E_tau"])


def accepted_over_all_paths(models, rule):
    """Return the law of the number accepted, over everything that can be drafted."""
    law = [Fraction(0)] * (models.length + 1)
    for tokens, prob in exact.target_law(models.draft, models.length).items():
        on_path = exact.accepted_law(*rows_along(models, tokens), rule=rule)
        law = [mass + prob * share for mass, share in zip(law, on_path, strict=True)]
    return law


def test_the_worked_model_of_three_drafts():
    """A model whose laws depend on the token before: 33/32 by tokens, 77/64 by blocks."""
    m3 = MODELS["m3"]
    assert accepted_over_all_paths(m3, "token") == list(row("1/2 3/16 3/32 7/32"))
    assert accepted_over_all_paths(m3, "block") == list(row("1/2 1/8 3/64 21/64"))
    assert exact.expected_accepted(*m3) == Fraction(33, 32)
    assert exact.expected_accepted(*m3, rule="block") == Fraction(77, 64)


def test_the_two_token_example():
    """Two drafts of the paper's example: 10/9 accepted by tokens, 11/9 by blocks."""
    sun = MODELS["sun"]
    assert exact.expected_accepted(*sun) == Fraction(10, 9)
    assert exact.expected_accepted(*sun, rule="block") == Fraction(11, 9)


def decided(vector, **changes):
    """Decide a golden vector."""
    vector = vector | changes
    rows = rows_along(MODELS[vector["model"]], tuple(vector["x"]))
    return exact.verify_chain(*rows, vector["u"], rule=vector["rule"])


def test_the_golden_decisions():
    """Every decision with given uniforms is the golden one, and none is a tie."""
    assert len(GOLDEN["vectors"]) > 250
    for vector in GOLDEN["vectors"]:
        verdict = decided(vector)
        assert verdict[:2] == (vector["tau"], vector["next"])
        assert verdict.margin > 0


def test_the_golden_decisions_tell_the_rules_apart():
    """The negative control: the other rule decides some of them otherwise."""
    other = {"token": "block", "block": "token"}
    wrong = [
        vector["model"]
        for vector in GOLDEN["vectors"]
        if decided(vector, rule=other[vector["rule"]])[:2]
        != (vector["tau"], vector["next"])
    ]
    assert {"sun", "g1", "m2"} <= set(wrong)


@pytest.mark.parametrize(
    "case", FAULTS, ids=lambda case: f"{case['id']}-u{''.join(case['u'][:1])}-v{case['v']}"
)
def test_a_public_fault_is_decided_rightly(case):
    """Cases from public bug reports come out right; their decimals are read exactly."""
    uniforms = [*case["u"], case["v"]]
    verdict = exact.verify_chain(
        case["Q"], case["P"], case["t"], uniforms, rule=case["rule"]
    )
    assert verdict.num_accepted == case["n_acc"]
    assert [*case["t"][: verdict.num_accepted], verdict.next_token] == case["emitted"]


def test_a_decimal_tie_is_a_tie():
    """A coin that prints like its threshold is equal to it only if read as a decimal."""
    path = [[".5", ".3", ".2"]], [[".2", ".3", ".5"], ["1", "0", "0"]], [0]
    tie = exact.verify_chain(*path, [".4", ".5"])
    assert tie[::2] == (0, 0)
    read = exact.verify_chain(*path, [0.4 - 2**-54, ".5"])
    assert read.num_accepted == 1
    assert 0 < read.margin < 1e-15


# --- Laws by enumeration ----------------------------------------------------------


@both_rules
@given(models=models())
def test_both_rules_are_lossless(rule, models):
    """The joint law of what is emitted is the target's, with ``==``."""
    law = exact.joint_law(*models, rule=rule)
    assert law == target_of(models)
    assert sum(law.values()) == 1


@both_rules
@given(models=models())
def test_the_joint_law_by_the_definition(rule, models):
    """The same law with every draw spelled out."""
    assert exact.joint_law(*models, rule=rule) == spelled_out_law(models, by(rule))


@given(models())
def test_block_never_accepts_less(models):
    """Blocks accept at least as many tokens as the token rule, and both have their sums."""
    token = exact.expected_accepted(*models)
    block = exact.expected_accepted(*models, rule="block")
    assert token <= block
    assert (token, block) == closed_forms(models)


def closed_forms(models):
    """Return ``sum(prod(min(p, q)))`` and the sum of ``m = min(m * p, Q)``."""
    sums = [Fraction(0), Fraction(0)]
    level = {(): (Fraction(1),) * 3}
    for _ in range(models.length):
        level = {
            (*context, token): (least * min(p, q), min(mass * p, drafted * q), drafted * q)
            for context, (least, mass, drafted) in level.items()
            for token, (p, q) in enumerate(
                zip(models.target(context), models.draft(context), strict=True)
            )
        }
        sums[0] += sum(least for least, _, _ in level.values())
        sums[1] += sum(mass for _, mass, _ in level.values())
    return tuple(sums)


def test_block_accepts_more_somewhere():
    """The negative control: on three of the worked models it is strictly more."""
    for name in ("sun", "g1", "m2"):
        models = MODELS[name]
        token = exact.expected_accepted(*models)
        assert token < exact.expected_accepted(*models, rule="block")


@both_rules
@given(path=paths(lengths=(0, 1, 2)))
def test_decisions_have_the_law_of_the_outcomes(rule, path):
    """The volume of the uniforms that decide so is the probability of the outcome."""
    outcomes = exact.chain_outcomes(*path, rule=rule)
    wanted = {
        (accepted, token): prob * share
        for prob, accepted, law in outcomes
        for token, share in enumerate(law)
        if share
    }
    edges = [{0, h, 1} for h in exact.chain_thresholds(*path, rule=rule)]
    edges.append({0, 1}.union(*(accumulate(law) for _, _, law in outcomes)))
    volumes = {}
    for cell in product(*(pairwise(sorted(cuts)) for cuts in edges)):
        corner, middle = [low for low, _ in cell], [sum(ends) / 2 for ends in cell]
        verdict = exact.verify_chain(*path, corner, rule=rule)
        decision = verdict[:2]
        assert decision == exact.verify_chain(*path, map(Fraction, middle), rule=rule)[:2]
        volume = math.prod(high - low for low, high in cell)
        volumes[decision] = volumes.get(decision, 0) + volume
    assert volumes == wanted


@both_rules
@given(path=paths(lengths=(1, 2, 3)), data=st.data())
def test_the_margin_is_the_way_to_another_decision(rule, path, data):
    """Nearer than the margin no uniform changes the decision, and beyond it one does."""
    grid = st.integers(0, 59).map(lambda i: Fraction(i, 60))
    uniforms = data.draw(st.lists(grid, min_size=len(path[1]), max_size=len(path[1])))
    *decision, margin = exact.verify_chain(*path, uniforms, rule=rule)
    assert 0 <= margin <= 1

    def changed(way):
        for i, sign in product(range(len(uniforms)), (-1, 1)):
            moved = [*uniforms]
            moved[i] += sign * way
            if 0 <= moved[i] < 1:
                yield [*exact.verify_chain(*path, moved, rule=rule)[:2]] != decision

    assert margin == 0 or not any(changed(margin - TINY))
    assert margin == 1 or any(changed(margin + TINY))


def test_the_margin_of_a_decision():
    """Only coins that matter count, and neither 0 nor 1 is an edge."""
    rows = [row("2/3 1/3")] * 2, [row("1/3 2/3")] * 3
    # Token rule: the first coin failed, so the second, a tie, was not looked at.
    assert exact.verify_chain(*rows, [0, 0], ["3/4", "1/2", "1/2"]).margin == Fraction(1, 4)
    # Block rule: thresholds 0 and 1/4; the second coin succeeded, the first is idle.
    assert exact.chain_thresholds(*rows, [0, 0], rule="block") == row("0 1/4")
    verdict = exact.verify_chain(*rows, [0, 0], [0, "1/8", "9/10"], rule="block")
    assert verdict == (2, 1, Fraction(1, 8))
    # An impossible token is clearly rejected by a coin of 0, a likely one accepted by any.
    assert exact.verify_chain([[1, 0]], [[0, 1]] * 2, [0], [0, 0]) == (0, 1, 1)
    assert exact.verify_chain([[1, 0]], [[1, 0]] * 2, [0], ["0.999", 0]) == (1, 0, 1)
    # The bracket of the next token, from both sides.
    assert exact.verify_chain([], [[1, 2, 1]], [], ["0.3"]).margin == Fraction(1, 20)
    assert exact.verify_chain([], [[1, 2, 1]], [], ["0.7"]).margin == Fraction(1, 20)
    assert exact.verify_chain([], [[1, 2, 1]], [], ["1/4"]) == (0, 1, 0)


# --- Wrong rules ------------------------------------------------------------------


def spelled_out_scales(draft, target, tokens):
    """Return the block rule's multipliers of the target rows."""
    scales = [Fraction(1)]
    for q, p, token in zip(draft, target, tokens, strict=False):
        scales.append(min(Fraction(1), scales[-1] * p[token] / q[token]))
    return scales


def residual(scale, target, draft):
    """Return the residual, or the target row if there is none."""
    weights = [max(scale * p - q, 0) for p, q in zip(target, draft, strict=True)]
    total = sum(weights)
    return tuple(weight / total for weight in weights) if total else target


def replacing(rule, law):
    """Return a rule's outcomes with another law of the next token."""

    def outcomes(draft, target, tokens):
        padded = [*draft, (Fraction(0),) * len(target[0])]
        for outcome in exact.chain_outcomes(draft, target, tokens, rule=rule):
            n = outcome.num_accepted
            yield outcome._replace(law=law(target, padded, n))

    return outcomes


def block_until_failure(draft, target, tokens):
    """Compare with the block rule's thresholds, but stop at the first failure."""
    thresholds = exact.chain_thresholds(draft, target, tokens, rule="block")
    scales = spelled_out_scales(draft, target, tokens)
    padded = [*draft, (Fraction(0),) * len(target[0])]
    reached = Fraction(1)
    for n, threshold in enumerate((*thresholds, 0)):
        yield reached * (1 - threshold), n, residual(scales[n], target[n], padded[n])
        reached *= threshold


def bonus_too_early(target, draft, n):
    """Take the bonus token from the row before its own."""
    last = len(target) - 1
    return target[last - 1] if n == last else residual(1, target[n], draft[n])


WRONG = {
    "reject_from_p": replacing("token", lambda target, draft, n: target[n]),
    "block_token_residual": replacing(
        "block", lambda target, draft, n: residual(1, target[n], draft[n])
    ),
    "block_first_fail": block_until_failure,
    "bonus_wrong_row": replacing("token", bonus_too_early),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", GOLDEN["models"])
def test_a_wrong_rule_is_as_far_off_as_told(name, wrong):
    """Each wrong rule has the golden distance from the target, so it is caught on m2."""
    models = MODELS[name]
    off = distance(spelled_out_law(models, WRONG[wrong]), target_of(models))
    assert off == Fraction(GOLDEN["models"][name]["wrong_variants_TV"][wrong])
    assert off > 0 or name != "m2"


def test_one_example_is_blind_to_two_wrong_rules():
    """The two-token example cannot tell two wrong rules from right ones."""
    sun = MODELS["sun"]
    blind = [w for w in WRONG if spelled_out_law(sun, WRONG[w]) == target_of(sun)]
    assert blind == ["block_token_residual", "bonus_wrong_row"]


# --- Drafts that are certain, and positions without a draft -----------------------


@given(paths())
def test_no_draft_rows_mean_one_hot_rows(path):
    """None for the draft rows is the rows that are 1 at the tokens."""
    _, target, tokens = path
    rows = [tuple(int(v == token) for v in range(len(target[0]))) for token in tokens]
    for rule in RULES:
        outcomes = exact.chain_outcomes(None, target, tokens, rule=rule)
        assert outcomes == exact.chain_outcomes(rows, target, tokens, rule=rule)
        thresholds = exact.chain_thresholds(None, target, tokens, rule=rule)
        assert thresholds == exact.chain_thresholds(rows, target, tokens, rule=rule)
    token = exact.chain_outcomes(None, target, tokens)
    assert token == exact.chain_outcomes(None, target, tokens, rule="block")


@both_rules
@given(models=models(), data=st.data())
def test_drafters_that_look_up_are_lossless(rule, models, data):
    """A draft model may return a token, or -1 to stop, by what it has seen so far."""
    size = len(models.target(()))
    contexts = [c for n in range(models.length) for c in product(range(size), repeat=n)]
    found = {context: data.draw(st.integers(-1, size - 1)) for context in contexts}
    law = exact.joint_law(found.get, models.target, models.length, rule=rule, one_hot=True)
    assert law == target_of(models)
    if -1 not in found.values():
        rows = {c: tuple(int(v == t) for v in range(size)) for c, t in found.items()}
        assert law == exact.joint_law(rows.get, *models[1:], rule=rule)


@pytest.mark.parametrize("name", ["sun", "g1", "m2", "m3"])
def test_drawn_drafts_may_pass_as_certain_but_not_certain_ones_as_drawn(name):
    """Without its rows a drawn draft costs acceptance; invented rows cost the law."""
    models = MODELS[name]
    as_certain = spelled_out_law(models, lambda _, *path: exact.chain_outcomes(None, *path))
    assert as_certain == target_of(models)

    def likeliest(tokens):
        law = models.draft(tokens)
        return tuple(int(token == law.index(max(law))) for token in range(len(law)))

    def as_drawn(_, target, tokens):
        rows = rows_along(models, tokens)[0]
        return exact.chain_outcomes(rows, target, tokens)

    certain = models._replace(draft=likeliest)
    assert spelled_out_law(certain, as_drawn) != target_of(models)


@both_rules
@given(models=models(lengths=(1, 2, 3)), data=st.data())
def test_no_draft_by_position_is_lossless(rule, models, data):
    """Positions may go without a draft, by their number or by the tokens before."""
    stop = data.draw(st.integers(0, models.length - 1))
    token = data.draw(st.integers(0, 2))

    def by_position(tokens):
        return (*tokens[:stop], *[-1] * (models.length - stop))

    def by_token_before(tokens):
        stops = [i for i in range(1, len(tokens)) if tokens[i - 1] == token]
        return tuple(-1 if i in stops else x for i, x in enumerate(tokens))

    for placed in (by_position, by_token_before):
        assert spelled_out_law(models, by(rule), placed) == target_of(models)


@both_rules
@pytest.mark.parametrize("name", ["sun", "g1", "m2"])
def test_no_draft_by_the_drawn_token_is_biased(name, rule):
    """The counter-example: to take out a token because it was drawn biases the law."""
    models = MODELS[name]

    def by_drawn_token(tokens):
        return tuple(-1 if token == 1 else token for token in tokens)

    drafts_it = any(1 in x for x in exact.target_law(models.draft, models.length))
    law = spelled_out_law(models, by(rule), by_drawn_token)
    assert (law != target_of(models)) == drafts_it
    assert drafts_it == (name != "g1")


@both_rules
def test_rows_without_a_draft_are_not_read(rule):
    """From the first -1 on only the target row there and the last uniform are read."""
    path = [row("2/3 1/3")], [row("1/3 2/3"), row("1/4 3/4")], [0]
    for nothing in ([math.nan] * 2, None, [1, 2, 3]):
        padded = (
            [*path[0], nothing, nothing],
            [*path[1], nothing, nothing],
            [0, -1, 7],
        )
        thresholds = exact.chain_thresholds(*padded, rule=rule)
        assert thresholds == (*exact.chain_thresholds(*path, rule=rule), 0, 0)
        law = exact.accepted_law(*padded, rule=rule)
        assert law == (*exact.accepted_law(*path, rule=rule), 0, 0)
        outcomes = exact.chain_outcomes(*padded, rule=rule)
        assert outcomes == exact.chain_outcomes(*path, rule=rule)
        coins = ["1/4", math.nan, 2]
        verdict = exact.verify_chain(*padded, [*coins, "1/8"], rule=rule)
        assert verdict == exact.verify_chain(*path, ["1/4", "1/8"], rule=rule)
        assert verdict[:2] == (1, 0)


@both_rules
def test_no_draft_at_all(rule):
    """With -1 first, or no position at all, the next token is drawn from the target."""
    target = [row("1/4 3/4")]
    for rows in (
        ([], target, []),
        (None, target, []),
        (None, [*target, None], [-1]),
        ([[math.nan, 0]], [*target, None], [-1]),
    ):
        assert exact.chain_outcomes(*rows, rule=rule) == ((1, 0, target[0]),)
    assert exact.verify_chain([], target, [], ["1/2"], rule=rule) == (0, 1, Fraction(1, 4))
    assert exact.chain_thresholds([], target, [], rule=rule) == ()
    assert exact.accepted_law([], target, [], rule=rule) == (1,)
    assert exact.expected_accepted(*MODELS["m2"][:2], 0, rule=rule) == 0


@both_rules
def test_one_word(rule):
    """A vocabulary of one token is always accepted."""
    rows = [[1]] * 2, [[1]] * 3, [0, 0]
    assert exact.chain_thresholds(*rows, rule=rule) == (1, 1)
    assert exact.chain_outcomes(*rows, rule=rule) == ((1, 2, (1,)),)
    assert exact.verify_chain(*rows, ["0.99", 0, 0], rule=rule) == (2, 0, 1)


# --- Edges ------------------------------------------------------------------------


def test_tokens_that_cannot_have_been_drawn():
    """A draft probability of 0 counts as below any target, unless that is 0 as well."""
    draft = [row("0 1/4 3/4")] * 2
    target = [row("1/2 0 1/2")] * 3
    assert exact.chain_thresholds(draft, target, [0, 0]) == (1, 1)
    assert exact.chain_thresholds(draft, target, [1, 0]) == (0, 1)
    # A scale of 2/3 comes back to 1; a scale of 0 stays.
    assert exact.chain_thresholds(draft, target, [2, 0], rule="block")[-1] == 1
    assert exact.chain_thresholds(draft, target, [1, 0], rule="block") == (0, 0)
    assert exact.chain_thresholds(draft, target, [1, 2], rule="block") == (0, 0)
    impossible = [row("0 1/2 1/2")] * 2
    assert exact.chain_thresholds(impossible[:1], impossible, [0]) == (0,)


@pytest.mark.parametrize("uniform", [0, "1/2", Fraction(2**53 - 1, 2**53)])
def test_a_token_of_weight_zero_is_never_emitted(uniform):
    """Neither by a coin of 0, nor by any final uniform."""
    rows = [row("1/2 1/2 0 0")], [row("0 1/3 2/3 0")] * 2
    accepted, token, _ = exact.verify_chain(*rows, [0], [0, uniform])
    assert (accepted, token) == (0, 2)
    accepted, token, _ = exact.verify_chain(*rows, [1], [0, uniform])
    assert accepted == 1
    assert token in (1, 2)


def test_without_a_residual_the_target_is_drawn_from():
    """A rejection that leaves nothing over, which unequal sums allow, draws from p."""
    outcomes = exact.chain_outcomes([[1, 0]], [["1/2", 0], ["1/4", "3/4"]], [0])
    assert outcomes == ((Fraction(1, 2), 1, row("1/4 3/4")), (Fraction(1, 2), 0, (1, 0)))


def test_zero_over_zero_is_one():
    """Where the next laws are equal and nothing is lost, the block threshold is 1."""
    rows = [row("1/2 1/2")] * 2, [row("1/2 1/2")] * 3
    assert exact.chain_thresholds(*rows, [0, 0], rule="block") == (1, 1)


def test_numpy_arrays_are_read():
    """Arrays of floats are chains of exact numbers."""
    draft, target = np.float32([[0.8, 0.2]]), np.float32([[0.4, 0.6]] * 2)
    verdict = exact.verify_chain(draft, target, np.int64([0]), np.float32([0.25, 0.5]))
    assert verdict[:2] == (1, 1)
    assert type(verdict.num_accepted) is type(verdict.next_token) is int


HALVES = [row("1/2 1/2")] * 2
GOOD = {"draft": HALVES[:1], "target": HALVES, "tokens": [0], "uniforms": [0, 0]}
ERRORS = {
    "NaN": ({"draft": [[math.nan, 1]]}, ValueError, r"`draft_probs\[0\]\[0\]`.*NaN"),
    "negative": (
        {"target": [[2, -1], [1, 0]]},
        ValueError,
        r"`target_probs\[0\]\[1\]` is -1",
    ),
    "no row": ({"draft": [None]}, TypeError, r"`draft_probs\[0\]` is None"),
    "no rows": ({"target": 3}, TypeError, "`target_probs` is 3; needed is something"),
    "rows": ({"draft": HALVES}, ValueError, "`draft_probs` has 2 rows; needed are 1"),
    "bonus": (
        {"target": HALVES[:1]},
        ValueError,
        "`target_probs` has 1 rows; needed are 2",
    ),
    "size": ({"draft": [[1]]}, ValueError, r"`draft_probs\[0\]` has 1 entries, `target"),
    "ragged": ({"target": [[1], [1, 0]]}, ValueError, r"`target_probs\[1\]` has 2 entries"),
    "empty": ({"target": [[], []]}, ValueError, r"`target_probs\[0\]` is empty"),
    "zero": ({"target": [[0, 1], [0, 0]]}, ValueError, r"`target_probs\[1\]` has no pos"),
    "token": ({"tokens": [2]}, IndexError, r"`draft_tokens\[0\]` is 2; .* < 2, or -1"),
    "below": ({"tokens": [-2]}, IndexError, r"`draft_tokens\[0\]` is -2"),
    "float": ({"tokens": [0.0]}, TypeError, r"`draft_tokens\[0\]` is 0.0"),
    "bool": ({"tokens": [True]}, TypeError, r"`draft_tokens\[0\]` is True"),
    "count": ({"uniforms": [0]}, ValueError, "`uniforms` has 1 entries; needed are 2"),
    "one": ({"uniforms": [0, 1]}, ValueError, r"`uniforms\[1\]` is 1; needed is 0 <="),
    "coin": ({"uniforms": ["-1/2", 0]}, ValueError, r"`uniforms\[0\]` is '-1/2'"),
    "NaN coin": ({"uniforms": [math.nan, 0]}, ValueError, r"`uniforms\[0\]`: .*NaN"),
    "no coin": ({"uniforms": [None, 0]}, TypeError, r"`uniforms\[0\]`: None of type"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_name_the_argument(name):
    """Each misuse raises an error that names the argument and what came."""
    exact.verify_chain(*GOOD.values())
    changed, error, message = ERRORS[name]
    with pytest.raises(error, match=message):
        exact.verify_chain(*(GOOD | changed).values())


LAW_ERRORS = {
    "no law": (
        {"draft": lambda _: ["1/2", 0]},
        ValueError,
        r"`draft_model\(\(\)\)` sums to 1/2",
    ),
    "target": ({"target": lambda _: [1, 1]}, ValueError, r"`target_model\(.*\)` sums to 2"),
    "number": ({"target": lambda _: ["x"]}, ValueError, r"`target_model\(\(\)\)\[0\]`"),
    "None": ({"draft": lambda _: None}, TypeError, r"`draft_model\(\(\)\)` is None"),
    "length": ({"length": -1}, ValueError, "`draft_length` is -1; needed is at least 0"),
    "float": ({"length": 1.0}, TypeError, "`draft_length` is 1.0; needed is an integer"),
}


@pytest.mark.parametrize("name", LAW_ERRORS)
def test_errors_name_the_model(name):
    """A model that returns no law is named, with the tokens it was asked about."""
    changed, error, message = LAW_ERRORS[name]
    arguments = (MODELS["m2"]._asdict() | changed).values()
    for function in (exact.joint_law, exact.expected_accepted):
        with pytest.raises(error, match=message):
            function(*arguments)


def test_errors_of_certain_drafts():
    """A looked-up token outside the vocabulary is named; so is one that is none."""
    target = MODELS["m2"].target
    with pytest.raises(IndexError, match=r"`draft_model\(\(2,\)\)` is 3; needed is 0 <="):
        exact.joint_law(lambda tokens: 2 + len(tokens), target, 2, one_hot=True)
    with pytest.raises(TypeError, match=r"`draft_model\(\(\)\)` is \('1', 0\)"):
        exact.joint_law(lambda _: ("1", 0), target, 2, one_hot=True)
    with pytest.raises(ValueError, match="`length` is -1"):
        exact.target_law(target, -1)


def test_an_unknown_rule_is_answered_with_the_rules():
    """Whatever takes a rule lists the rules there are."""
    path, message = list(GOOD.values())[:3], "`rule` is 'blok'; .* 'token', 'block'"
    for function, arguments in [
        (exact.chain_thresholds, path),
        (exact.chain_outcomes, path),
        (exact.accepted_law, path),
        (exact.verify_chain, [*path, [0, 0]]),
        (exact.joint_law, MODELS["m2"]),
        (exact.expected_accepted, MODELS["m2"]),
    ]:
        function(*arguments, rule="block")
        with pytest.raises(ValueError, match=message):
            function(*arguments, rule="blok")
        with pytest.raises(TypeError, match="positional"):
            function(*arguments, "block")  # the rule is told by its name


def test_public_names_are_sorted_and_documented():
    """What is public is listed once, in order, and has a docstring."""
    assert exact.__all__ == sorted(set(exact.__all__))
    assert all(getattr(exact, name).__doc__ for name in exact.__all__)
