"""The demo: its models are laws, its loop is lossless, its text is the same anywhere."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
from rich.console import Console

from draftproof import Verdict, check_probs
from draftproof.demo import (
    BACKENDS,
    Call,
    Emitted,
    NGram,
    Plan,
    Run,
    decode,
    figures,
    read_words,
    show,
)


@pytest.fixture(scope="module")
def models():
    """A vocabulary, the learned text, a bigram drafter and a trigram target."""
    text = read_words()
    words = sorted(set(text))
    index = {word: token for token, word in enumerate(words)}
    learned = [index[word] for word in text]
    return words, learned, *(NGram(learned, len(words), order) for order in (2, 3))


def test_the_text_ships_with_python():
    """The corpus is what Python's help() is made of: tens of thousands of words."""
    words = read_words()
    assert len(words) > 50_000
    assert "statement" in words


def test_witten_bell_by_hand():
    """On a text of five words the law is the formula's, fraction by fraction."""
    model = NGram([0, 1, 0, 2, 0], 4, 2)
    unigram = (np.array([3, 1, 1, 0]) + 3 / 4) / (5 + 3)
    np.testing.assert_allclose(model.law([]), unigram, rtol=1e-6)
    bigram = (np.array([0, 1, 1, 0]) + 2 * unigram) / (2 + 2)
    np.testing.assert_allclose(model.law([1, 0]), bigram, rtol=1e-6)
    np.testing.assert_allclose(model.law([3]), unigram, rtol=1e-6)


def test_the_models_give_laws(models):
    """Rows are float32, positive everywhere and sum to 1."""
    _, learned, draft, target = models
    for end in (0, 1, 5, 1_000):
        rows = draft.law(learned[:end]), target.law(learned[:end])
        assert rows[0].dtype == np.float32
        check_probs(*rows, learned[end])


def test_the_target_is_the_stronger_model(models):
    """The trigram gives the text it has learned more probability than the bigram."""
    _, learned, draft, target = models
    ends = range(100, 2_100, 10)
    weak, strong = (
        sum(math.log(model.law(learned[:end])[learned[end]]) for end in ends)
        for model in (draft, target)
    )
    assert strong > weak + 100


@pytest.mark.parametrize("rule", ["token", "block"])
@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_the_same_text_on_every_backend(models, backend, rule):
    """The library the verification runs on changes nothing about the text."""
    _, learned, draft, target = models
    on_numpy, other = (
        decode(draft, target, learned[:3], Plan(120, 7, rule=rule, backend=name))
        for name in ("numpy", backend)
    )
    assert other.emitted == on_numpy.emitted
    assert [call.emitted for call in other.calls] == [c.emitted for c in on_numpy.calls]
    assert set(BACKENDS) == {"numpy", "torch", "jax"}


def test_another_plan_is_another_text(models):
    """The seed, the rule and the length of the drafts decide, and nothing else does."""
    _, learned, draft, target = models
    plan = Plan(30, 1)
    one, same, *others = (
        decode(draft, target, learned[:3], changed).emitted
        for changed in (
            plan,
            plan,
            plan._replace(seed=2),
            plan._replace(rule="block"),
            plan._replace(draft_length=1),
        )
    )
    assert one == same
    assert one not in others


class Markov(NGram):
    """A model whose law is a row of a matrix: that of the last token."""

    def __init__(self, laws):
        self.laws = np.asarray(laws, dtype=np.float32)

    def law(self, context):
        """Return the law."""
        return self.laws[context[-1]]


DRAFT = Markov([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.2, 0.1, 0.7]])
TARGET = Markov([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25], [0.4, 0.6, 0.0]])


def farthest(run, model):
    """Return how far what follows a token is from the model's rows, in deviations."""
    tokens = [0, *(one.token for one in run.emitted)]
    counts = np.zeros((3, 3))
    np.add.at(counts, (tokens[:-1], tokens[1:]), 1)
    seen = counts.sum(axis=1, keepdims=True)
    # An entry of zero allows no occurrence at all.
    spread = np.maximum(np.sqrt(seen * model.laws * (1 - model.laws)), 1e-3)
    return np.max(np.abs(counts - seen * model.laws) / spread)


@pytest.mark.parametrize("rule", ["token", "block"])
def test_the_emitted_text_has_the_law_of_the_target(rule):
    """What follows each token is distributed by the target, whatever is drafted."""
    run = decode(DRAFT, TARGET, [0], Plan(2_000, 0, 3, rule))
    assert farthest(run, TARGET) < 4
    # The negative control: the drafter's own rows are far outside.
    assert farthest(run, DRAFT) > 20
    assert abs(run.measured - run.expected(rule)) < 4 * run.standard_error


def from_the_target(draft_rows, target_rows, tokens, uniforms, *, rule):
    """Verify rightly, but draw what replaces a draft from the target's own row."""
    places = np.arange(tokens.size)
    ratios = target_rows[places, tokens] / draft_rows[places, tokens]
    accepted = int(np.argmin(np.append(uniforms[:-1] < ratios, False)))
    running = target_rows[accepted].cumsum()
    return Verdict(np.asarray(accepted), np.argmax(running > uniforms[-1] * running[-1]))


def one_place_late(draft_rows, target_rows, *others, rule):
    """Verify with the target's rows of the place behind."""
    return from_the_target(draft_rows, np.roll(target_rows, -1, axis=0), *others, rule=rule)


@pytest.mark.parametrize("wrong", [from_the_target, one_place_late])
def test_a_wrong_verification_shows_in_the_text(monkeypatch, wrong):
    """The negative control of the loop: either mistake is far outside."""
    monkeypatch.setattr("draftproof.demo._loop.verify_chain", wrong)
    monkeypatch.setattr("draftproof.demo._loop.figures", lambda *_: None)
    run = decode(DRAFT, TARGET, [0], Plan(2_000, 0, 3))
    assert farthest(run, TARGET) > 6


# The row behind the last draft is another one, and must not matter.
COINS = np.full((2, 2), 0.5), np.asarray([[0.25, 0.75], [0.25, 0.75], [1.0, 0.0]])


@pytest.mark.parametrize(
    ("tokens", "token_law", "block_law"),
    [
        ((0, 0), (1 / 2, 1 / 4, 1 / 4), (3 / 4, 0, 1 / 4)),
        ((0, 1), (1 / 2, 0, 1 / 2), (1 / 4, 0, 3 / 4)),
        ((1, 0), (0, 1 / 2, 1 / 2), (0, 1 / 2, 1 / 2)),
        ((1, 1), (0, 0, 1), (0, 0, 1)),
    ],
)
def test_the_figures_of_a_call_by_hand(tokens, token_law, block_law):
    """The draft tosses a fair coin, the target one with three heads in four.

    Tails, drafted first, has c = 1/2 and leaves nothing of the residual: the coin of
    the block rule fails there. Tails and heads together have c = 3/4.
    """
    call = figures(*COINS, np.asarray(tokens), 1)
    assert call.emitted == 2
    assert call.rate == 0.75
    np.testing.assert_allclose(call.laws["token"], token_law, atol=1e-15)
    np.testing.assert_allclose(call.laws["block"], block_law, atol=1e-15)


def test_the_gain_of_the_block_rule_by_hand():
    """Over the four drafts above the rules emit 2.3125 and 2.375 tokens a call."""
    drafts = [np.asarray(tokens) for tokens in ((0, 0), (0, 1), (1, 0), (1, 1))]
    run = Run("token", calls=[figures(*COINS, one, 1) for one in drafts])
    assert run.expected("token") == pytest.approx(2.3125)
    assert run.expected("block") == pytest.approx(2.375)
    assert run.acceptance_rate == 0.75
    assert run.measured == 2.0
    # Variances of the four laws: 11/16, 1, 1/4, 0.
    assert run.standard_error == pytest.approx(math.sqrt(31 / 16) / 4)


def test_the_text_is_cut_and_the_figures_are_not():
    """The last call may emit too much: its figures stand, its tokens are cut off."""
    run = decode(TARGET, TARGET, [0], Plan(10, 0, draft_length=6))
    assert len(run.emitted) == 10
    assert [call.emitted for call in run.calls] == [7, 7]
    assert [one.accepted for one in run.emitted] == [True] * 6 + [False] + [True] * 3
    assert (run.measured, run.expected("token"), run.standard_error) == (7, 7, 0)


def printed(run, color=None):
    """Return what `show` prints."""
    console = Console(
        file=io.StringIO(), width=80, color_system=color, force_terminal=color is not None
    )
    show(console, run, ["kept", "new"], seconds=0.5)
    return console.file.getvalue()


@pytest.fixture
def run():
    """Two calls of one draft each: laws (1/2, 1/2) and (1/4, 3/4) of the token rule."""
    even, odd = np.asarray([0.5, 0.5]), np.asarray([0.25, 0.75])
    calls = [
        Call(2, {"token": even, "block": odd}, 0.5),
        Call(1, {"token": odd, "block": odd}, 0.25),
    ]
    return Run("token", [Emitted(0, True), Emitted(1, False), Emitted(1, False)], calls)


@pytest.mark.parametrize("color", [None, "truecolor"])
def test_accepted_and_next_words_differ(run, color):
    """With colour and without."""
    text = printed(run, color)
    assert ("kept [new] [new]" in text) == (color is None)
    assert ("\x1b[32mkept" in text) == (color is not None)
    assert ("\x1b[1;4;35mnew" in text) == (color is not None)
    assert "1 accepted" in text
    assert "2 next words" in text


def test_what_is_printed_at_the_end(run):
    """The sums are right: 3/2 tokens, 13/8 expected, variance 1/4 + 3/16 of two calls."""
    text = printed(run)
    assert text.endswith(
        "measured        1.5000   tokens per target call, 2 calls\n"
        "expected        1.6250   given the drafts, rule token\n"
        "standard error  0.3307\n"
        "difference     -0.1250   -0.38 errors\n"
        "acceptance      0.3750   per place, mean of sum(min(p, q))\n"
        "token 1.62, block 1.75 tokens per call expected on these drafts\n"
    )


def test_without_error_there_is_no_difference_in_errors(run):
    """Where drafter and target agree everything is certain, and nothing is divided by 0."""
    sure = np.asarray([0.0, 1.0])
    run.calls = [Call(2, {"token": sure, "block": sure}, 1.0)]
    text = printed(run)
    assert "standard error  0.0000" in text
    assert "difference" not in text
