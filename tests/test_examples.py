"""The runnable examples: what they print, and that what they decode is right."""

from __future__ import annotations

import ast
import importlib.util
import io
import tokenize
from functools import partial
from pathlib import Path

import jax
import numpy as np
import pytest
import torch
from scipy.stats import chi2, chisquare

EXAMPLES = Path(__file__).parent.parent / "docs" / "examples"


def load(name):
    """Import an example by its path, a module of its own each time."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# JAX: the whole loop under jit.


@pytest.fixture(scope="module")
def loop():
    """The example in JAX, compiled without optimisation: that takes a third of the time."""
    module = load("jax_while_loop")
    quick = {"compiler_options": {"xla_backend_optimization_level": 0}}
    fixed = ("max_draft", "new")
    module.decode = jax.jit(module.decode.__wrapped__, static_argnames=fixed, **quick)
    module.weights = module.initialise(0)
    module.rows = jax.jit(jax.vmap(partial(module.logits, module.weights)), **quick)
    return module


def laws_of(loop, texts, heat=1.0):
    """Return the laws of the model behind each token of the texts, in float64."""
    padded = np.full((64, 32), -1, np.int32)  # one shape, compiled once
    padded[: len(texts), : len(texts[0])] = texts
    rows = np.asarray(loop.rows(padded), np.float64)
    weights = np.exp(heat * rows[: len(texts), : len(texts[0])])
    return weights / weights.sum(-1, keepdims=True)


def test_the_loop_of_jax_is_the_same_alone(loop, capsys):
    """A request of the ragged batch decodes alone, without padding, to the same tokens."""
    loop.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert lines[-1] == "request 1 alone gets the same: True"
    assert float(lines[0].split()[2]) > 1.5  # tokens per call: drafts are accepted


def test_greedy_decoding_in_jax_is_plain_decoding(loop):
    """Each token of the greedy request is the most likely one behind those before it."""
    start, new = [5, 1], 24
    batch = loop.Requests(
        jax.random.split(jax.random.key(1), 4),
        np.asarray([[*start, -1, -1], [7, -1, -1, -1], [3, 2, 9, 4], [5, 1, 8, -1]]),
        np.asarray([4, 2, 3, 4]),
        np.asarray([0.0, 0.0, 1.0, 1.0]),
    )
    tokens, calls = loop.decode(loop.weights, batch, 4, new)
    texts = [[*start, *tokens[0].tolist()], [*start, *tokens[2].tolist()]]
    plain = laws_of(loop, texts).argmax(-1)
    assert texts[0][2:] == plain[0, 1:-1].tolist()
    assert calls[0] < new  # and in fewer calls
    assert texts[1][2:] != plain[1, 1:-1].tolist()


def test_the_loop_of_jax_has_the_law_of_the_model(loop):
    """Pairs of first tokens are as frequent as the model says; another law is seen."""
    count, prompt = 4096, np.asarray([5, 1])
    batch = loop.Requests(
        jax.random.split(jax.random.key(2), count),
        np.tile(prompt, (count, 1)),
        np.full(count, 2),
        np.ones(count),
    )
    tokens = np.asarray(loop.decode(loop.weights, batch, 2, 2)[0])
    size = loop.VOCABULARY
    texts = [[5, 1, token] for token in range(size)]

    def p_value(heat):
        laws = laws_of(loop, texts, heat)
        law = (laws[0, 1][:, None] * laws[:, 2]).ravel()
        bins = np.minimum((64 * law.cumsum()).astype(int), 63)  # about as likely each
        seen = np.bincount(bins[tokens[:, 0] * size + tokens[:, 1]], minlength=64)
        expected = count * np.bincount(bins, law, 64)
        used = expected > 0
        assert expected[used].min() > 5
        return chisquare(seen[used], expected[used]).pvalue

    assert p_value(1.0) > 1e-3
    assert p_value(1.1) < 1e-6  # the law of another temperature


# NumPy: thirty lines.


def test_the_loop_of_numpy_runs(capsys):
    """It prints words, and how many of them a call brings."""
    load("numpy_ngrams").main(calls=3)
    text, figure = capsys.readouterr().out.splitlines()
    assert len(text.split()) >= 5
    assert figure.endswith("words per call of the target")
    assert 1 <= float(figure.split()[0]) <= 5


def test_the_loop_of_numpy_has_thirty_lines():
    """Docstrings, comments and imports not counted."""
    source = (EXAMPLES / "numpy_ngrams.py").read_text(encoding="utf-8")
    words = (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING)
    found = tokenize.generate_tokens(io.StringIO(source).readline)
    lines = {token.start[0] for token in found if token.type in words}
    for node in ast.walk(ast.parse(source)):
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if text or isinstance(node, ast.Import | ast.ImportFrom):
            lines -= set(range(node.lineno, node.end_lineno + 1))
    assert len(lines) == 30


def test_the_loop_of_numpy_has_the_law_of_the_trigrams():
    """What follows each pair of words does so as often as the trigram model says."""
    example = load("numpy_ngrams")
    learned = np.random.default_rng(0).choice(3, 60, p=[0.6, 0.3, 0.1]).tolist()
    draft, target = (
        partial(example.law, example.read(learned, order), 3, order) for order in (2, 3)
    )
    text = example.decode(draft, target, [0, 0], 700, np.random.default_rng(1))
    seen = np.zeros((3, 3, 3))
    np.add.at(seen, (text[:-2], text[1:-1], text[2:]), 1)

    def p_value(model):
        laws = np.asarray([[model([a, b]) for b in range(3)] for a in range(3)])
        expected = seen.sum(-1, keepdims=True) * laws
        return chi2.sf(((seen - expected) ** 2 / expected).sum(), 9 * 2)

    assert p_value(target) > 1e-3
    assert p_value(draft) < 1e-9


# PyTorch: a sampler with a seed for each request.

ONES, PI = 0xFFFFFFFF, (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)
KNOWN = [  # of Random123, the authors' own library
    ((0,) * 4, (0,) * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ((ONES,) * 4, (ONES,) * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (PI, (0xA4093822, 0x299F31D0), "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


@pytest.fixture
def engine():
    """The example in PyTorch."""
    return load("torch_sampler")


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_philox_gives_the_known_answers(engine, counter, key, answer):
    """The words are those of Random123, from integers and from tensors."""
    numbers = engine.philox(counter, key)
    assert " ".join(f"{word:08x}" for word in numbers) == answer
    tensors = engine.philox(*([torch.tensor([w]) for w in part] for part in (counter, key)))
    assert tuple(int(word) for word in tensors) == numbers


@pytest.mark.parametrize(("word", "number"), [(0, 0.0), (ONES, 1 - 2**-53)])
def test_uniforms_lie_below_one(engine, monkeypatch, word, number):
    """The least and the largest words give 0 and the last number below 1."""
    monkeypatch.setattr(engine, "philox", lambda counter, key: (torch.tensor(word),) * 4)
    assert engine.uniforms(torch.tensor(1), torch.tensor(2), 3, 4).item() == number


def test_each_number_has_a_counter_of_its_own(engine):
    """Seeds, positions, columns and streams all matter, also beyond 32 bits."""
    wide = torch.tensor([-1, 0, 1, 2**32, 2**40 + 1])
    numbers = engine.uniforms(
        wide[:, None, None, None],
        wide[1:, None, None],
        torch.arange(5)[:, None],
        torch.arange(4),
    )
    assert numbers.dtype == torch.float64
    assert numbers.unique().numel() == 5 * 4 * 5 * 4
    many = engine.uniforms(torch.tensor(0), torch.arange(50_000), 0, 0)
    assert chisquare(torch.histc(many, 100, 0, 1)).pvalue > 1e-3


def batch_of(engine, size, length=4, vocabulary=20):
    """Return the inputs of a batch of requests, and their filters."""
    random = torch.Generator().manual_seed(0)
    draft = torch.randn(size, length, vocabulary, generator=random)
    target = torch.randn(size, length + 1, vocabulary, generator=random)
    target[:, :-1] = draft + target[:, :-1] / 4
    tokens = draft.argmax(-1)
    positions = torch.randint(100, (size,), generator=random)
    seeds = engine.request_seeds(3, torch.arange(size))
    filters = [
        {"temperature": i % 3 / 2, "top_k": 5 + i, "min_p": 0.01} for i in range(size)
    ]
    return (draft, target, tokens, seeds, positions), filters


def test_a_request_gets_the_same_tokens_anywhere(engine):
    """Alone, in a batch, in another order, with drafts padded or not, and again."""
    inputs, filters = batch_of(engine, 8)
    inputs[2][::2, 2:] = -1
    tokens, accepted = engine.SpeculativeSampler(filters, 4)(*inputs)
    assert len(set(accepted.tolist())) > 2
    again, _ = engine.SpeculativeSampler(filters, 4)(*inputs)
    assert torch.equal(again, tokens)
    order = torch.tensor([5, 0, 7, 2, 1, 6, 4, 3])
    moved = engine.SpeculativeSampler([filters[i] for i in order], 4)
    assert torch.equal(moved(*(part[order] for part in inputs))[0], tokens[order])
    for row in range(8):
        draft, target, drafted, *place = (part[row, None] for part in inputs)
        length = 4 if row % 2 else 2
        alone = engine.SpeculativeSampler([filters[row]], length)
        rest = draft[:, :length], target[:, : length + 1], drafted[:, :length]
        assert alone(*rest, *place)[0].tolist() == tokens[row, None, : length + 1].tolist()
    other = engine.SpeculativeSampler(filters, 4)(*inputs[:3], inputs[3] + 1, inputs[4])
    assert not torch.equal(other[0], tokens)


def test_fault_e06_the_batch_has_no_effect(engine, monkeypatch):
    """The two requests of fault E06 get their tokens alone, together and swapped."""
    draft = torch.tensor([[[0.6, 0.4]], [[0.5, 0.5]]]).log()
    target = torch.tensor([[[0.2, 0.8], [0.5, 0.5]], [[0.9, 0.1], [0.5, 0.5]]]).log()
    drafts, zeros = torch.zeros(2, 1, dtype=torch.int64), torch.zeros(2, dtype=torch.int64)

    def emitted(requests, seeds):
        sampler = engine.SpeculativeSampler([{}] * len(requests), 1)
        arrays = (part[requests] for part in (draft, target, drafts))
        return sampler(*arrays, seeds[requests], zeros[requests])[0].tolist()

    def consistent(seeds):
        a, b = emitted([0], seeds)[0], emitted([1], seeds)[0]
        return emitted([0, 1], seeds) == [a, b] and emitted([1, 0], seeds) == [b, a]

    assert all(consistent(engine.request_seeds(n, torch.arange(2))) for n in range(20))
    numbers = torch.tensor([0.5, 0.3], dtype=torch.float64)
    monkeypatch.setattr(engine, "uniforms", lambda seeds, *_: numbers.expand(len(seeds), 2))
    assert emitted([1, 0], zeros) == [[0, 0], [1, -1]]


def test_fault_e10_requests_of_one_seed_get_noise_of_their_own(engine):
    """Two equal requests both accept in a quarter of the cases, not in a half."""
    count = 4000
    zeros = torch.zeros(2, dtype=torch.int64)
    given = torch.arange(count)[:, None].expand(-1, 2)
    seeds = engine.request_seeds(given, torch.arange(2).expand(count, 2))
    sampler = engine.SpeculativeSampler([{}] * 2 * count, 1)

    def both_accept(seeds):
        size = 2 * count
        draft = torch.tensor([1.0, 0.0]).log().expand(size, 1, 2)
        target = torch.zeros(size, 2, 2)
        place = zeros.repeat(count)
        accepted = sampler(draft, target, place[:, None], seeds.reshape(-1), place)[1]
        return (accepted.reshape(count, 2).sum(-1) == 2).double().mean().item()

    assert abs(both_accept(seeds) - 0.25) < 0.03
    assert abs(both_accept(given) - 0.5) < 0.03  # one seed for both


def test_the_sampler_compiles_and_needs_no_values(engine):
    """There is no graph break, and on the meta device no value to look at."""
    inputs, filters = batch_of(engine, 3)
    sampler = engine.SpeculativeSampler(filters, 4)
    compiled = torch.compile(sampler.__call__, fullgraph=True, backend="eager")
    for one, other in zip(
        compiled(None, *inputs[1:]), sampler(None, *inputs[1:]), strict=True
    ):
        assert torch.equal(one, other)
    sampler = engine.SpeculativeSampler(filters, 4, device="meta")
    tokens, accepted = sampler(*(part.to("meta") for part in inputs))
    assert tokens.is_meta
    assert (tokens.shape, accepted.shape) == ((3, 5), (3,))


def test_the_sampler_fails_closed(engine):
    """A request whose target is NaN gets -1; the others get what they get without it."""
    inputs, filters = batch_of(engine, 3)
    sampler = engine.SpeculativeSampler(filters, 4)
    right, _ = sampler(*inputs)
    inputs[1][1] = torch.nan
    tokens, accepted = sampler(*inputs)
    assert tokens[1].tolist() == [-1] * 5
    assert accepted[1] == 0
    assert torch.equal(tokens[::2], right[::2])


def subject(engine, rule="token"):
    """Return the sampler and the drafter of the example as the kit calls them."""

    def make(logits, seed, length):
        seeds = engine.request_seeds(seed, torch.arange(len(logits)))
        sampler = engine.SpeculativeSampler([{}] * len(logits), length, rule=rule)
        return sampler, (seeds, torch.zeros_like(seeds))

    def sampler(draft_probs, target_probs, drafted, seed):
        made, place = make(target_probs, seed, drafted.shape[1])
        return made(draft_probs.log(), target_probs.log(), drafted, *place)[0]

    def drafter(draft_probs, column, seed):
        made, place = make(draft_probs, seed, 8)
        return made.propose(draft_probs.log(), *place, column)

    return sampler, drafter


def test_the_sampler_conforms(engine):
    """The kit finds its law right, drafts of its own included."""
    from draftproof.conformance import check_sampler

    sampler, drafter = subject(engine)
    report = check_sampler(sampler, rule="token", xp="torch", drafter=drafter, quick=True)
    assert report.conforms, report


def test_noise_that_drafts_and_coins_share_is_found(engine):
    """The streams are needed: with one for both the kit finds the fault."""
    from draftproof.conformance import check_sampler

    engine.DRAFTS = engine.COINS
    sampler, drafter = subject(engine)
    report = check_sampler(sampler, rule="token", xp="torch", drafter=drafter, detect=0.1)
    assert report.fault == "uniform shared between draft and coin"


def test_the_engine_runs(engine, capsys):
    """Each request decodes in the batch as it does alone."""
    engine.main(calls=6)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert all(line.endswith("same alone: True") for line in lines[::2])
