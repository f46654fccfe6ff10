"""The checks of samplers and drafters: what conforms passes, what does not is named."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import gammaln, xlogy
from scipy.stats import chi2, kstest

from draftproof import draw, emitted_tokens, verify_chain
from draftproof.conformance import CouldNotRunError, NotConformingError
from draftproof.conformance import _plan as plan
from draftproof.conformance._adapters import (
    flat,
    from_logits,
    from_verdict,
    one_at_a_time,
)
from draftproof.conformance._call import replaying
from draftproof.conformance._counts import Case
from draftproof.conformance._diagnose import explained_drafts
from draftproof.conformance._draft import check_draft
from draftproof.conformance._models import MODELS
from draftproof.conformance._replay import replay, replay_draft
from draftproof.conformance._sampler import check_sampler
from draftproof.conformance._shared_noise import SHARED, raced
from draftproof.conformance._statistics import (
    detectable,
    fit,
    independence,
    sample_size,
)
from draftproof.conformance._variants import RIGHT

# Few requests: what is wrong here is wrong by more than this.
FAST = {"detect": 0.1}


def small_batches(monkeypatch, size):
    """Let batches have another size than the kit's."""
    for module in ("_plan", "_sampling", "_drawing"):
        monkeypatch.setattr(f"draftproof.conformance.{module}.BATCH", size)


@pytest.fixture(autouse=True)
def batches(monkeypatch):
    """Draw no more than the tests need."""
    small_batches(monkeypatch, 2048)


def right(draft, target, tokens, seed, rule="token"):
    """Our own verifier, with uniforms of the seed."""
    uniforms = np.random.default_rng(seed).random(target.shape[:-1])
    return emitted_tokens(tokens, verify_chain(draft, target, tokens, uniforms, rule=rule))


def right_block(draft, target, tokens, seed):
    """Our own verifier by blocks."""
    return right(draft, target, tokens, seed, rule="block")


def picked(rng, weights):
    """Draw from rows of weights; from anything where they are zero."""
    ends = (weights + 1e-300).cumsum(-1)
    return (rng.random(len(weights))[:, None] * ends[:, -1:] >= ends).sum(-1)


def at(rows, tokens):
    """Return the entries of rows at tokens, 0 where there is none."""
    found = np.take_along_axis(rows, np.maximum(tokens, 0)[..., None], -1)[..., 0]
    return np.where(tokens < 0, 0, found)


def written(draft, target, tokens, accepted, token):
    """Return the accepted drafts, a token and padding."""
    places = np.arange(target.shape[1])
    drafts = np.concatenate([tokens, tokens[:, :1]], axis=1)
    kept = np.where(places < accepted[:, None], drafts, -1)
    return np.where(places == accepted[:, None], token[:, None], kept)


def chain(*, success=None, counted=None, weights=None, last=None):
    """Put a sampler together from the right parts and wrong ones, in plain NumPy."""

    def sampler(draft, target, tokens, seed):
        rng = np.random.default_rng(seed)
        q, p = at(draft, tokens), at(target[:, :-1], tokens)
        coins = rng.random(tokens.shape)
        good = coins * q < p if success is None else success(coins, p, q)
        good &= tokens >= 0
        run = good.cumprod(1).sum(1) if counted is None else counted(good)
        rows = np.arange(len(tokens))
        behind = np.concatenate([draft, 0 * draft[:, :1]], axis=1)
        part = target - behind
        none = np.append(tokens, -np.ones((len(tokens), 1), int), 1) < 0
        part = np.where(none[..., None], target, part)
        left = np.maximum(part, 0) if weights is None else weights(target, behind)
        left[:, -1] = target[:, -1] if last is None else last(target, behind)
        return written(draft, target, tokens, run, picked(rng, left[rows, run]))

    return sampler


def exact_match(draft, target, tokens, seed):
    """Draw the target's own tokens and compare: lossless, and no rule by name."""
    rng = np.random.default_rng(seed)
    own = np.stack([picked(rng, target[:, i]) for i in range(target.shape[1])], axis=1)
    run = (own[:, :-1] == tokens).cumprod(1).sum(1)
    return written(draft, target, tokens, run, own[np.arange(len(own)), run])


def last_success(good):
    """Accept up to the last success, whatever failed before."""
    return (
        good.shape[1] - good[:, ::-1].argmax(1) * good.any(1) - good.shape[1] * ~good.any(1)
    )


def pointed(target, draft):
    """The residual of a one-hot draft, wherever the draft is."""
    return target * (draft != draft.max(-1, keepdims=True))


WRONG = {
    "everything accepted": chain(success=lambda u, p, q: u < 2),
    "accepted without a coin": chain(success=lambda u, p, q: p >= q),
    "accepted with the target's probability": chain(success=lambda u, p, q: u < p),
    "lenient acceptance": chain(success=lambda u, p, q: u * q < 2 * p),
    "ratio the other way round": chain(success=lambda u, p, q: u * p < q),
    "replacement from the target": chain(weights=lambda p, q: p.copy()),
    "replacement from the draft": chain(weights=lambda p, q: q.copy()),
    "residual without its sign": chain(weights=lambda p, q: abs(p - q)),
    "residual the other way round": chain(weights=lambda p, q: np.maximum(q - p, 0)),
    "softmax of the residual": chain(weights=lambda p, q: np.exp(np.maximum(p - q, 0))),
    "later success after a failure": chain(counted=last_success),
    "all successes counted": chain(counted=lambda good: good.sum(1)),
    "bonus row off by one": chain(last=lambda p, q: p[:, -2]),
    "bonus token from a residual": chain(last=lambda p, q: np.maximum(p - q, 0)[:, -2]),
}
"""By the name that a report should give them; requests of unequal length apart."""


@pytest.mark.parametrize("fault", WRONG)
def test_wrong_samplers_are_named(fault):
    """Every one is rejected, by losslessness alone, and named by the law it follows."""
    report = check_sampler(WRONG[fault], ragged=False, **FAST)
    assert not report.conforms
    assert report.fault == fault
    with pytest.raises(NotConformingError, match=re.escape(fault)):
        report.assert_conforms()


@pytest.mark.parametrize("rule", [None, "token", "block"])
def test_right_samplers_conform(rule):
    """Our verifier conforms by its rule and without one, and so does the test's own."""
    sampler = right_block if rule == "block" else right
    report = check_sampler(sampler, rule=rule, detect=0.05)
    assert report.conforms, report
    assert report.conventions["same seed again"] == "same tokens"
    assert rule == "block" or check_sampler(chain(), rule=rule, **FAST).conforms


def test_each_rule_is_told_from_the_other():
    """Lossless samplers fail where another rule was asked for, and are named by theirs."""
    assert check_sampler(right, rule="block", **FAST).fault == "token rule"
    assert check_sampler(right_block, rule="token", **FAST).fault == "block rule"
    assert check_sampler(exact_match, **FAST).conforms
    assert check_sampler(exact_match, rule="token", **FAST).fault == "exact match"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_torch(dtype):
    """PyTorch's arrays, in every dtype."""
    torch = pytest.importorskip("torch")

    def sampler(draft, target, tokens, seed):
        assert target.dtype == getattr(torch, dtype)
        generator = torch.Generator().manual_seed(seed)
        uniforms = torch.rand(target.shape[:-1], generator=generator, dtype=torch.float64)
        return emitted_tokens(tokens, verify_chain(draft, target, tokens, uniforms))

    assert check_sampler(sampler, rule="token", xp="torch", dtype=dtype, **FAST).conforms


def test_jax(monkeypatch):
    """JAX's arrays, on one model for the sake of compilations."""
    jax = pytest.importorskip("jax")
    monkeypatch.setattr(plan, "MODELS", {"three drafts": MODELS["three drafts"]})

    def sampler(draft, target, tokens, seed):
        uniforms = jax.random.uniform(jax.random.key(seed), target.shape[:-1])
        return emitted_tokens(tokens, verify_chain(draft, target, tokens, uniforms))

    report = check_sampler(sampler, rule="token", xp="jax", **FAST)
    assert report.conforms, report


def test_drafts_without_a_law():
    """One-hot drafts come as None; a rule that takes their law for the draws' fails."""
    assert check_sampler(right, rule="token", one_hot=True, **FAST).conforms
    assert check_sampler(right_block, rule="block", one_hot=True, **FAST).conforms

    def replaced(draft, target, tokens, seed):
        points = np.eye(target.shape[-1])[tokens]
        return WRONG["replacement from the target"](points, target, tokens, seed)

    report = check_sampler(replaced, one_hot=True, ragged=False, **FAST)
    assert report.fault == "replacement from the target"


def noise(seed, place, rows, stream=0):
    """Exponential times of a place."""
    return np.random.default_rng([seed, place, stream]).exponential(size=rows.shape)


def winner(times, rows):
    """The token that has the least time over its probability."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(rows > 0, times / rows, np.inf).argmin(-1)


def racing_drafter(draft, place, seed):
    """Draft by a race."""
    return winner(noise(seed, place, draft), draft)


def racing(stream):
    """Return the token rule with a race for the replacement, and which noise it has."""

    def sampler(draft, target, tokens, seed):
        coins = np.random.default_rng(seed).random(tokens.shape)
        good = coins * at(draft, tokens) < at(target[:, :-1], tokens)
        run = good.cumprod(1).sum(1)
        behind = np.concatenate([draft, 0 * draft[:, :1]], axis=1)
        left = np.maximum(target - behind, 0)
        places = range(target.shape[1])
        drawn = [winner(noise(seed, i, left[:, i], stream), left[:, i]) for i in places]
        token = np.stack(drawn, axis=1)[np.arange(len(run)), run]
        return written(draft, target, tokens, run, token)

    return sampler


def test_noise_shared_with_the_drafter():
    """It shows only with the engine's own drafter, and has a law of its own."""
    options = {"ragged": False, "rule": "token", **FAST}
    assert check_sampler(racing(0), **options).conforms
    assert check_sampler(racing(1), drafter=racing_drafter, **options).conforms
    report = check_sampler(racing(0), drafter=racing_drafter, **options)
    assert report.fault == "noise shared between draft and replacement"


def test_the_law_of_shared_noise():
    """The numbers that were measured for the public bug, and laws that sum to one."""
    target = tuple(Fraction(n, 10) for n in (1, 2, 3, 4))
    draft = tuple(Fraction(n, 10) for n in (6, 1, 2, 1))
    weights = tuple(max(p - q, Fraction(0)) for p, q in zip(target, draft, strict=True))
    after = raced(draft, weights, 0)
    law = [min(p, q) + w / 2 for p, q, w in zip(target, draft, after, strict=True)]
    assert np.allclose([float(p) for p in law], (0.0998, 0.1886, 0.2627, 0.4488), atol=4e-4)
    for variant in SHARED.values():
        for model in MODELS.values():
            for path, _ in model.paths():
                assert sum(variant.outcomes(path).values()) == 1


def test_drafters_of_another_law():
    """Argmax drafts are told from draws."""
    report = check_sampler(
        right, drafter=lambda rows, place, seed: rows.argmax(-1), ragged=False, **FAST
    )
    assert report.fault == "argmax drafts with a dense draft law"
    assert explained_drafts([]) is not None


def shared_noise(draft, target, tokens, seed):
    """Use the noise of the first request for all."""
    uniforms = np.random.default_rng(seed).random(target.shape[1])
    uniforms = np.tile(uniforms, (len(tokens), 1))
    return emitted_tokens(tokens, verify_chain(draft, target, tokens, uniforms))


def paired_noise(draft, target, tokens, seed):
    """Use the noise of a request for the next as well."""
    uniforms = np.random.default_rng(seed).random(target.shape[:-1])[::2].repeat(2, 0)
    uniforms = uniforms[: len(tokens)]
    return emitted_tokens(tokens, verify_chain(draft, target, tokens, uniforms))


def buffer_not_cleared(draft, target, tokens, seed):
    """Leave rejected drafts where they were."""
    emitted = right(draft, target, tokens, seed)
    old = np.append(tokens, -np.ones((len(tokens), 1), int), axis=1)
    return np.where(emitted < 0, old, emitted)


def padding_accepted(draft, target, tokens, seed):
    """Take padding for the token 0."""
    return right(draft + 1e-9, target, np.maximum(tokens, 0), seed)


ENGINES = {
    "same noise for every request": shared_noise,
    "noise correlated between requests": paired_noise,
    "seed ignored": lambda draft, target, tokens, seed: right(draft, target, tokens, 7),
    "rejected drafts left behind the replacement": buffer_not_cleared,
    "padding counted as accepted": padding_accepted,
    "id outside the vocabulary": lambda *arrays: right(*arrays) * 7,
    "nothing emitted": lambda *arrays: 0 * right(*arrays) - 1,
    None: lambda *arrays: right(*arrays)[:, :-1],
}


@pytest.mark.parametrize("fault", ENGINES)
def test_faults_of_engines_are_named(fault):
    """What a batch shows before any law does."""
    report = check_sampler(ENGINES[fault], **FAST)
    assert not report.conforms
    assert report.fault == fault


def test_conventions_are_reported():
    """Seeds that do not replay and arguments that are written to are no faults."""
    generator = np.random.default_rng(5)

    def sampler(draft, target, tokens, seed):
        emitted = right(draft, target, tokens, generator.integers(2**31))
        target[:] = 0
        return emitted

    report = check_sampler(sampler, **FAST)
    assert report.conforms
    assert report.conventions["same seed again"] == "other tokens"
    assert report.conventions["arguments"] == "written to"


def test_requests_of_unequal_length_can_be_left_out():
    """A sampler that refuses them fails, unless they are left out."""

    def sampler(draft, target, tokens, seed):
        if (tokens < 0).any():
            raise NotImplementedError("padding")
        return right(draft, target, tokens, seed)

    report = check_sampler(sampler, **FAST)
    assert "ragged=False" in report.checks[-1].detail
    assert check_sampler(sampler, ragged=False, **FAST).conforms


def softmax(logits):
    """Probabilities of logits."""
    weights = np.exp(logits - logits.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


def filtered(kept):
    """Return probabilities, with those that are not kept gone."""
    return lambda probs: (rows := probs * kept(probs)) / rows.sum(1, keepdims=True)


def ranks(probs):
    """The rank of each token, 0 for the likeliest."""
    return (-probs).argsort(1).argsort(1)


def mass_before(probs):
    """The probability of all that are likelier."""
    ordered = -np.sort(-probs, axis=1)
    return np.take_along_axis(ordered.cumsum(1) - ordered, ranks(probs), axis=1)


top_k = filtered(lambda probs: ranks(probs) < 20)
top_p = filtered(lambda probs: mass_before(probs) < 0.8)
min_p = filtered(lambda probs: probs >= 0.1 * probs.max(1, keepdims=True))


def drafting(drawn, handed):
    """Return a drafter that draws from one law and hands over another."""

    def drafter(logits, seed):
        uniforms = np.random.default_rng(seed).random(len(logits))
        return draw(drawn(logits), uniforms), handed(logits)

    return drafter


def hot(logits):
    """Probabilities at a temperature of 1.4."""
    return softmax(logits / 1.4)


def after_softmax(kept):
    """Return the probabilities of logits through a filter."""
    return lambda logits: kept(softmax(logits))


def argmax(logits):
    """One-hot rows at the likeliest token."""
    return np.eye(logits.shape[1])[logits.argmax(1)]


DRAFTERS = {
    "top-k filter missing from the law": drafting(after_softmax(top_k), softmax),
    "top-p filter missing from the law": drafting(after_softmax(top_p), softmax),
    "min-p filter missing from the law": drafting(after_softmax(min_p), softmax),
    "filter missing from the draw": drafting(softmax, after_softmax(top_k)),
    "temperature missing from the law": drafting(hot, softmax),
    "temperature missing from the draw": drafting(softmax, hot),
    "another temperature": drafting(lambda logits: softmax(2 * logits), hot),
    "softmax applied twice to the law": drafting(softmax, after_softmax(softmax)),
    "argmax draw with a dense law": drafting(argmax, softmax),
    "uniform draw": drafting(lambda logits: (logits > -np.inf) / 1.0, softmax),
    "law of the request before": drafting(softmax, lambda x: np.roll(softmax(x), 1, 0)),
    "law of the request behind": drafting(softmax, lambda x: np.roll(softmax(x), -1, 0)),
    "seed ignored": lambda x, seed: drafting(softmax, softmax)(x, 3),
    "id outside the vocabulary": lambda x, seed: (x.argmax(1) + 9, softmax(x)),
    None: lambda x, seed: (x.argmax(1), x),
}


@pytest.mark.parametrize("fault", DRAFTERS)
def test_wrong_drafters_are_named(fault):
    """Every one is rejected, and named by what its draws fit."""
    report = check_draft(DRAFTERS[fault], size=32, detect=0.08)
    assert not report.conforms
    assert report.fault == fault


@pytest.mark.parametrize("law", [softmax, hot, after_softmax(top_p), argmax])
def test_right_drafters_conform(law):
    """The law that is handed over is the law of the draw, filtered or one-hot."""
    report = check_draft(drafting(law, law), size=32, detect=0.08)
    assert report.conforms, report


def test_p_values_are_uniform():
    """Under the law, for joint counts and by groups; a law that is off is not fitted."""
    rng = np.random.default_rng(1)
    case = Case(MODELS["four tokens"])
    law = case.target_law
    drawn = rng.multinomial(30_000, law, size=1000)
    assert kstest([fit([(n, law)]).p_value for n in drawn], "uniform").pvalue > 1e-3
    outcomes = case.outcome_laws(RIGHT["block"])[case.draft_law > 0]
    drawn = rng.multinomial(3000, outcomes, size=(300, len(outcomes)))
    found = [fit(zip(n, outcomes, strict=True)).p_value for n in drawn]
    assert kstest(found, "uniform").pvalue > 1e-3
    # The negative control.
    off = 0.95 * law + 0.05 * np.eye(len(law))[law.argmax()]
    found = [fit([(n, law)]).p_value for n in rng.multinomial(30_000, off, size=200)]
    assert kstest(found, "uniform").pvalue < 1e-9


def test_the_tail_is_chi_square_s_as_far_out_as_it_is_used():
    """At 1e-7, by importance sampling: draws from a mixture around the law, weighted."""
    rng = np.random.default_rng(2)
    law = Case(MODELS["four tokens"]).target_law
    law = law[law > 0]
    size, alpha, freedom = 16384, 1e-7, len(law) - 1
    spread = size / (chi2.isf(alpha, freedom) / freedom - 1)
    drawn = rng.multinomial(size, rng.dirichlet(spread * law, 4000))
    mixed = gammaln(spread) - gammaln(spread + size)
    mixed += (gammaln(spread * law + drawn) - gammaln(spread * law)).sum(1)
    weights = np.exp(xlogy(drawn, law).sum(1) - mixed)
    hit = np.asarray([fit([(counts, law)]).p_value < alpha for counts in drawn])
    assert 0.8 < (weights * hit).mean() / alpha < 1.3


def test_sample_sizes_have_their_power():
    """As many as are planned see what is planned, as often as is planned."""
    rng = np.random.default_rng(3)
    law = np.full(20, 0.05)
    off = law + 0.1 * 2 * np.resize([1, -1], 20) / 20
    rates = {"false_alarm": 1e-4, "power": 0.9}
    size = sample_size(19, 0.1, **rates)
    drawn = rng.multinomial(size, off, size=1000)
    seen = np.mean([fit([(n, law)]).p_value < 1e-4 for n in drawn])
    assert abs(seen - 0.9) < 0.035
    assert detectable(19, size, **rates) == pytest.approx(0.1, rel=1e-3)
    assert sample_size(19, 0.1, **rates, least=1e-4) == 250_000
    assert detectable(0, 100, **rates) == 1


def test_thin_cells_are_put_together_and_impossible_ones_are_not():
    """Thin cells cost degrees of freedom; what cannot come has the p-value 0."""
    law = np.asarray([0.5, 0.498, 0.001, 0.001, 0.0])
    counts = np.asarray([500, 498, 1, 1, 0])
    assert fit([(counts, law)]).freedom == 1
    assert fit([(counts + np.asarray([0, 0, 0, -1, 1]), law)]).p_value == 0
    assert fit([(np.asarray([3, 2]), np.asarray([0.5, 0.5]))]).p_value == 1
    assert fit([(100 * counts, law)]).freedom == 3


def test_independence_has_uniform_p_values():
    """Of independent outcomes, however rare some are; dependent ones are seen."""
    rng = np.random.default_rng(4)
    law = np.outer(*[[0.6, 0.3, 0.09, 0.01]] * 2).ravel()
    tables = rng.multinomial(8192, law, size=1000).reshape(-1, 4, 4).astype(float)
    found = [independence(table)[0] for table in tables]
    assert kstest(found, "uniform").pvalue > 1e-3
    assert independence(tables[0] + np.diag([99.0] * 4))[0] < 1e-6
    assert independence(np.asarray([[5.0, 1.0], [1.0, 5.0]])) == (1.0, 0)


def test_interruptions_report_what_is_known():
    """Ctrl-C in a call ends the check, not the program."""
    done = []

    def impatient(draft, target, tokens, seed):
        if len(done) > 8:
            raise KeyboardInterrupt
        return right(draft, target, tokens, seed)

    def told(*step):
        done.append(step)

    report = check_sampler(impatient, quick=True, progress=told)
    assert not report.complete
    assert not report.conforms
    assert all(check.passed for check in report.checks)
    assert any(check.name.startswith("law of the tokens") for check in report.checks)
    assert "interrupted" in str(report)
    assert done[0] == (1, done[0][1], "equal requests")
    done.clear()
    drafter = drafting(softmax, softmax)

    def impatient_drafter(logits, seed):
        if len(done) > 4:
            raise KeyboardInterrupt
        return drafter(logits, seed)

    report = check_draft(impatient_drafter, quick=True, progress=told)
    assert not report.complete
    assert not report.conforms
    assert all(check.passed for check in report.checks)


def one(draft, target, tokens, seed):
    """Return the first drafts and the seed's last digit, without padding."""
    assert target.shape == (len(tokens) + 1, 3)
    assert draft is None or draft.shape == (len(tokens), 3)
    return [*tokens.tolist(), seed % 3]


def test_adapters_compose():
    """Single requests, flat rows, logits and verdicts reach their functions and back."""
    rows = np.full((2, 3, 3), 1 / 3)
    tokens = np.asarray([[1, 2], [2, -1]])
    seeds = np.random.default_rng(9).integers(2**31, size=2) % 3
    needed = [[1, 2, seeds[0]], [2, seeds[1], -1]]
    batched = one_at_a_time(one)
    assert batched(rows[:, 1:], rows, tokens, 9).tolist() == needed
    assert batched(None, rows, tokens, 9).tolist() == needed

    def logits(draft, target, tokens, lengths, seed):
        assert draft.shape == (3, 3)
        assert np.allclose(target, np.log(1 / 3))
        assert tokens.tolist() == [1, 2, 2]
        assert lengths.tolist() == [2, 1]
        return np.asarray([2, 0]), np.asarray([0, -1])

    adapted = from_verdict(flat(from_logits(logits)))
    assert adapted(rows[:, 1:], rows, tokens, 9).tolist() == [[1, 2, 0], [-2, -1, -1]]
    verdict = one_at_a_time(from_verdict(lambda *arrays: (0, arrays[2].size)))
    assert verdict(None, rows, tokens, 0).tolist() == [[2, -1, -1], [1, -1, -1]]
    assert "one_at_a_time(one)" in batched.__qualname__
    narrow = flat(lambda *arrays: np.zeros((2, 2), int))
    assert narrow(None, rows, tokens, 0).tolist() == [[0, 0, -1]] * 2


def test_adapted_samplers_are_checked(monkeypatch):
    """Of any form, the right one conforms."""
    small_batches(monkeypatch, 256)
    monkeypatch.setattr(plan, "MODELS", {"three tokens": MODELS["three tokens"]})

    def single(draft, target, tokens, seed):
        uniforms = np.random.default_rng(seed).random(len(target))
        return verify_chain(np.exp(draft), np.exp(target), tokens, uniforms)

    subject = one_at_a_time(from_verdict(from_logits(single)))
    report = check_sampler(subject, rule="token", detect=0.2)
    assert report.conforms, report
    assert "one_at_a_time(from_verdict(from_logits(" in report.subject


def test_what_cannot_run_says_why():
    """A subject that raises, or is none, ends the check with a message."""
    with pytest.raises(CouldNotRunError, match="ZeroDivisionError"):
        check_sampler(lambda *arrays: 1 / 0)
    with pytest.raises(CouldNotRunError, match="cannot be imported"):
        check_sampler("draftproof:nothing")
    with pytest.raises(CouldNotRunError, match="drafter returned"):
        check_sampler(right, drafter=lambda rows, place, seed: rows, **FAST)
    with pytest.raises(CouldNotRunError, match="needed is"):
        check_draft(lambda logits, seed: logits)
    with pytest.raises(ValueError, match="`rule` is 'tree'"):
        check_sampler(right, rule="tree")
    with pytest.raises(ValueError, match="`power` is 1"):
        check_sampler(right, power=1)
    with pytest.raises(ValueError, match="`size` is 2"):
        check_draft(drafting(softmax, softmax), size=2)


@pytest.mark.parametrize("rule", [None, "token"])
def test_snippets_show_the_failure(rule):
    """The lines of a report run as they are, but for what has no name to import."""
    sampler = WRONG["replacement from the target"]
    report = check_sampler(sampler, rule=rule, ragged=False, **FAST)
    shown = []
    code = re.sub(r"sampler = \.\.\..*", "", report.snippet)
    exec(code, {"sampler": sampler, "print": shown.append})
    assert any("expected" in line for line in shown)
    report = check_sampler(ENGINES["id outside the vocabulary"], **FAST)
    code = re.sub(r"sampler = \.\.\..*", "", report.snippet)
    exec(code, {"sampler": lambda *arrays: right(*arrays) * 7, "print": shown.append})
    assert "padding -1" in shown[-1]
    assert list(replay(right, "two tokens", 3, rule="token", size=100))
    shown = list(replay_draft(DRAFTERS["uniform draw"], "even", 3))
    assert len(shown) == 65


def test_snippets_import_what_has_a_name():
    """A function of a module is imported, a method through its class."""
    lines = replaying("replay", {"sampler": "a.b:c.d", "drafter": "e:f"}, {"seed": 3})
    assert "from a.b import c\nsampler = c.d\nfrom e import f as drafter" in lines
    assert "drafter = ...  # e:<lambda>" in replaying(
        "replay", {"drafter": "e:<lambda>"}, {}
    )
