"""The demo: its models are laws, its loop is lossless, its text is the same anywhere."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
from rich.console import Console

from draftproof import check_probs
from draftproof.demo import BACKENDS, Emitted, NGram, Run, decode, read_words, show
from draftproof.demo._loop import _draw


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


@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_the_same_text_on_every_backend(models, backend):
    """The library the step runs on changes nothing about the text."""
    _, learned, draft, target = models
    on_numpy, other = (
        decode(draft, target, learned[:3], tokens=120, seed=7, backend=name)
        for name in ("numpy", backend)
    )
    assert other.emitted == on_numpy.emitted
    assert set(BACKENDS) == {"numpy", "torch", "jax"}


def test_another_seed_is_another_text(models):
    """The seed decides, and nothing else does."""
    _, learned, draft, target = models
    one, same, other = (
        decode(draft, target, learned[:3], tokens=30, seed=seed).emitted
        for seed in (1, 1, 2)
    )
    assert one == same != other


class Fixed(NGram):
    """A model with one law for every context."""

    def __init__(self, law):
        self.fixed = np.asarray(law, dtype=np.float32)

    def law(self, context):
        """Return the law."""
        return self.fixed


def test_the_emitted_text_has_the_law_of_the_target():
    """Over many tokens the frequencies are the target's, whatever the drafter thinks."""
    draft, target = Fixed([0.7, 0.2, 0.1, 0.0]), Fixed([0.1, 0.2, 0.3, 0.4])
    run = decode(draft, target, [], tokens=20_000, seed=0)
    counts = np.bincount([one.token for one in run.emitted], minlength=4)
    spread = np.sqrt(20_000 * target.fixed * (1 - target.fixed))
    assert np.all(np.abs(counts - 20_000 * target.fixed) < 5 * spread)
    # The negative control: the drafter's own law is far outside.
    assert np.any(np.abs(counts - 20_000 * draft.fixed) > 50 * spread)
    assert run.predicted_rate == pytest.approx(0.4)
    assert abs(run.measured_rate - 0.4) < 5 * run.standard_error
    assert run.standard_error == pytest.approx(math.sqrt(0.4 * 0.6 / 20_000))


@pytest.mark.parametrize(
    ("uniform", "token"), [(0.0, 1), (0.49, 1), (0.5, 3), (1 - 2.0**-53, 3)]
)
def test_draws_never_give_what_is_impossible(uniform, token):
    """The edges of the unit interval give entries of positive weight."""
    assert _draw(np.asarray([0, 0.5, 0, 0.5, 0], dtype=np.float32), uniform) == token


@pytest.mark.parametrize("color", [None, "truecolor"])
def test_what_is_printed(color):
    """Accepted and replaced words differ, with colour and without; the sums are right."""
    console = Console(
        file=io.StringIO(), width=80, color_system=color, force_terminal=color is not None
    )
    run = Run([Emitted(0, True), Emitted(1, False)], [0.5, 0.25])
    show(console, run, ["kept", "new"], seconds=0.5)
    printed = console.file.getvalue()
    assert ("kept [new]" in printed) == (color is None)
    assert ("\x1b[32mkept" in printed) == (color is not None)
    assert "1 accepted" in printed
    assert "measured acceptance   0.5000" in printed
    assert "predicted acceptance  0.3750" in printed
    assert "standard error        0.3307" in printed
    assert "difference           +0.1250   +0.38 errors" in printed
