"""The conformance kit on steps, and on verifiers that are handed their uniforms."""

from __future__ import annotations

import contextlib
from functools import partial
from unittest import mock

import numpy as np
import pytest

from draftproof import speculative_decode_step, verify_chain
from draftproof.conformance import CouldNotRunError, NotConformingError
from draftproof.conformance._models import MODELS
from draftproof.conformance._step import check_step
from draftproof.conformance._verifier import check_verifier

verifier = partial(check_verifier, quick=True, progress=False)
step = partial(check_step, quick=True, progress=False)

token_rule = partial(verify_chain, rule="token")
block_rule = partial(verify_chain, rule="block")


# --- A verifier as somebody would write it, to be taken apart --------------------------


def pick(weights, uniforms, *, inclusive=False):
    """Draw from weights; the inclusive one never draws a weight of zero, though."""
    ends = np.cumsum(weights, axis=-1)
    level = uniforms[:, None] * ends[:, -1:]
    reached = (ends >= level) & (weights > 0) if inclusive else ends > level
    return reached.argmax(axis=-1)


def rest(p, q):
    """The residual, not normalised; where it is zero, the target."""
    weights = np.maximum(p - q, 0)
    return np.where(weights.any(axis=-1, keepdims=True), weights, p)


RIGHT = {
    "accept": lambda u, p, q: u * q < p,
    "count": lambda good: np.cumprod(good, axis=1).sum(axis=1),
    "replace": rest,
    "bonus": -1,
    "draw": pick,
    "coin": lambda u, n: u[:, -1],
}


def variation(**parts):
    """A verifier of the token rule with parts exchanged for others."""
    use = RIGHT | parts

    def verify(draft, target, tokens, uniforms):
        rows, length = np.arange(len(tokens)), tokens.shape[1]
        q = np.take_along_axis(draft, tokens[..., None], -1)[..., 0]
        p = np.take_along_axis(target[:, :-1], tokens[..., None], -1)[..., 0]
        n = use["count"](use["accept"](uniforms[:, :-1], p, q))
        at = np.minimum(n, length - 1)
        replacement = use["replace"](target[rows, at], draft[rows, at])
        weights = np.where((n == length)[:, None], target[:, use["bonus"]], replacement)
        return n, use["draw"](weights, use["coin"](uniforms, n))

    return verify


plain = variation()


def soft(p, q):
    """The softmax of the residual, not normalised."""
    return np.exp(np.maximum(p - q, 0))


def best(p, q):
    """A one-hot row at the largest entry of the residual."""
    return np.eye(p.shape[-1])[(p - q).argmax(axis=-1)]


def from_the_left(weights, uniforms):
    """Draw with `searchsorted` and its default side, which a uniform of 0 gets past."""
    rows = zip(np.cumsum(weights, axis=-1), uniforms, strict=True)
    return np.asarray([np.searchsorted(row, u * row[-1]) for row, u in rows])


def normalised_twice(draft, target, tokens, uniforms):
    """Write to the target rows while verifying: they end up as residuals."""
    result = verify_chain(draft, target.copy(), tokens, uniforms)
    if draft is not None and draft.shape[1]:
        np.maximum(target[:, :-1] - draft, 0, out=target[:, :-1])
    return result


def by_target_rows_behind(draft, target, tokens, uniforms):
    """Compare with the target one place later."""
    return plain(draft, np.roll(target, -1, axis=1), tokens, uniforms)


WRONG = {
    "replacement from the target": variation(replace=lambda p, q: p),
    "softmax of the residual": variation(replace=soft),
    "residual without its sign": variation(replace=lambda p, q: abs(p - q)),
    "replacement by argmax": variation(replace=best),
    "replacement from the draft": variation(replace=lambda p, q: q),
    "everything accepted": variation(accept=lambda u, p, q: u >= 0),
    "accepted without a coin": variation(accept=lambda u, p, q: p >= q),
    "ratio squared": variation(accept=lambda u, p, q: u < (p / q) ** 2),
    "lenient acceptance": variation(accept=lambda u, p, q: u * q < 2 * p),
    "coin the other way round": variation(accept=lambda u, p, q: u >= np.minimum(p / q, 1)),
    "accepted with the target's probability": variation(accept=lambda u, p, q: u < p),
    "bonus row off by one": variation(bonus=-2),
    "all successes counted": variation(count=lambda good: good.sum(axis=1)),
    "coin reused for the replacement": variation(coin=lambda u, n: u[np.arange(len(u)), n]),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_verifiers_are_named(name):
    """A verifier with a fault is rejected under the name of the fault, with any rule."""
    report = verifier(WRONG[name])
    assert not report.conforms
    assert report.fault == name
    assert any("such as tokens" in check.detail for check in report.checks)


@pytest.mark.parametrize(
    "subject,failed",
    [
        (normalised_twice, "inputs are not written to"),
        (by_target_rows_behind, "every cell, three tokens"),
        # Inclusive, so that a coin of 0 accepts what the target forbids.
        (variation(accept=lambda u, p, q: u <= p / q), "nothing of probability 0"),
        (
            variation(draw=from_the_left),
            "nothing of probability 0",
        ),
        (lambda *a: tuple(part.astype(float) for part in verify_chain(*a)), "shape and"),
        (lambda *a: tuple(part[:, None] for part in verify_chain(*a)), "shape and dtype"),
        (lambda *a: (verify_chain(*a)[0][:1], verify_chain(*a)[1]), "shape and dtype"),
    ],
)
def test_wrong_verifiers_without_a_name_are_rejected(subject, failed):
    """So are those whose fault has no name, by the check that is about it."""
    report = verifier(subject)
    assert not report.conforms
    bad = [check.name for check in report.checks if not check.passed]
    assert any(name.startswith(failed) for name in bad)


def test_a_request_that_depends_on_its_batch_is_found():
    """A verifier that is wrong alone is not right in a batch."""

    def first_for_all(draft, target, tokens, uniforms):
        found = verify_chain(draft, target, tokens, uniforms)
        return (found[0], found[1]) if len(tokens) > 1 else (found[0] * 0, found[1])

    report = verifier(first_for_all, rule="token")
    assert [c.name for c in report.checks if not c.passed] == ["alone as in a batch"]


def test_the_fault_is_named_by_its_law_where_the_draw_is_another():
    """The other end of the cumulative sum first: no decision is the named fault's own."""

    def backwards(weights, uniforms):
        return weights.shape[-1] - 1 - pick(weights[:, ::-1], uniforms)

    assert verifier(variation(draw=backwards)).conforms
    subject = variation(draw=backwards, replace=lambda p, q: p)
    assert verifier(subject).fault == "replacement from the target"


def test_nothing_wrong_is_said_of_padding_that_is_not_supported():
    """An index from the end is a convention, and so are None drafts and no drafts."""
    report = verifier(plain, rule="token")
    assert report.conforms
    assert report.conventions["token -1"].startswith("accepted, as an index from the end")
    assert report.conventions["None drafts"] == "not supported, raises AttributeError"
    assert report.conventions["tie, u = p/q"] == "rejects"
    assert report.conventions["token V"] == "raises IndexError"


# --- Right ones ------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["token", "block"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_our_own_verifier_conforms(rule, dtype):
    """Both rules, found out as well as demanded; each is not the other."""
    subject = partial(verify_chain, rule=rule)
    report = verifier(subject, dtype=dtype)
    report.assert_conforms()
    assert report.conventions["rule"] == rule
    assert report.conventions["token -1"] == "no draft"
    assert report.conventions["rows behind -1"] == "not read"
    assert report.conventions["residual of zeros"] == "the target"
    assert report.conventions["tie of the draw"] == "the token above the edge"
    if dtype == "float64":
        assert verifier(subject, rule=rule).conforms
        other = verifier(subject, rule="block" if rule == "token" else "token")
        assert not other.conforms
        assert other.fault is None
        assert other.conventions["rule"] == rule


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_our_own_verifier_conforms_in_pytorch(dtype):
    """The same in PyTorch, which has a dtype that NumPy lacks."""
    assert verifier(verify_chain, rule="token", xp="torch", dtype=dtype).conforms


def test_our_own_verifier_conforms_in_jax():
    """JAX without 64 bits has int32 and float32; one model, for every shape is compiled."""
    one = {"four tokens": MODELS["four tokens"]}
    with mock.patch.dict(MODELS, one, clear=True):
        assert verifier(verify_chain, rule="token", xp="jax", dtype="float32").conforms


def test_ties_are_a_convention():
    """An inclusive verifier conforms if it never lets a token of probability 0 through."""

    def inclusive(u, p, q):
        return (p > 0) & (u * q <= p)

    subject = variation(accept=inclusive, draw=partial(pick, inclusive=True))
    report = verifier(subject, rule="token")
    assert report.conforms
    assert report.conventions["tie, u = p/q"] == "accepts"
    assert report.conventions["tie of the draw"] == "the token below it"


def exact_match(draft, target, tokens, uniforms):
    """Draw a target token at each place and accept the drafts that match."""
    count, length = uniforms.shape
    rows = target.reshape(count * length, -1)
    drawn = pick(rows, uniforms.reshape(-1)).reshape(count, length)
    n = np.cumprod(drawn[:, :-1] == tokens, axis=1).sum(axis=1)
    return n, drawn[np.arange(count), n]


def mirrored(draft, target, tokens, uniforms):
    """Use uniforms in (0, 1] backwards."""
    return verify_chain(draft, target, tokens, (1 - uniforms).clip(0, 1 - 2.0**-53))


@pytest.mark.parametrize("subject", [exact_match, mirrored])
def test_other_mappings_conform_where_no_rule_is_asked_for(subject):
    """Their law is proven on refined cells; a rule that is asked for is not followed."""
    report = verifier(subject)
    report.assert_conforms()
    assert report.conventions["rule"] == "another mapping from uniforms to tokens"
    assert not verifier(subject, rule="token").conforms


# --- Steps -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "xp,dtype",
    [
        ("numpy", "float64"),
        ("numpy", "float32"),
        ("numpy", "float16"),
        ("torch", "bfloat16"),
        ("jax", "float32"),
    ],
)
def test_our_own_step_conforms(xp, dtype):
    """On all libraries and in all dtypes."""
    report = step(speculative_decode_step, xp=xp, dtype=dtype)
    report.assert_conforms()
    assert report.conventions["q = 0, p > 0"] == "raises ValueError"
    assert report.conventions["residual of zeros"] == "zeros"


def a_step(accept=lambda p, q, t: min(1, p[t] / q[t]), residual=rest, *, scaled=True):
    """Make a step of parts, returned as a pair."""

    def made(draft, target, token):
        weights = residual(target, draft)
        return accept(target, draft, token), weights / weights.sum() if scaled else weights

    return made


WRONG_STEPS = {
    "replacement from the target": a_step(residual=lambda p, q: p),
    "residual not normalised": a_step(scaled=False),
    "softmax of the residual": a_step(residual=soft),
    "residual without its sign": a_step(residual=lambda p, q: abs(p - q)),
    "ratio not capped at 1": a_step(lambda p, q, t: p[t] / q[t]),
    "ratio of the target's maximum": a_step(lambda p, q, t: min(1, p.max() / q[t])),
    "ratio squared": a_step(lambda p, q, t: min(1, p[t] / q[t]) ** 2),
    "accepted without a coin": a_step(lambda p, q, t: float(p[t] >= q[t])),
    "epsilon in the denominator": a_step(lambda p, q, t: min(1, p[t] / (q[t] + 1e-10))),
    "draft and target swapped": lambda q, p, t: a_step()(p, q, t),
}


def test_a_right_step_conforms():
    """The parts make a right step, which falls back to the target."""
    report = step(a_step())
    report.assert_conforms()
    assert report.conventions["residual of zeros"] == "the target"


@pytest.mark.parametrize("name", WRONG_STEPS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_wrong_steps_are_named(name, dtype):
    """A step with a fault is rejected under its name; 1e-10 is nothing in float32."""
    report = step(WRONG_STEPS[name], dtype=dtype)
    if dtype == "float32" and name == "epsilon in the denominator":
        assert report.conforms
        return
    assert not report.conforms
    assert report.fault == name


def test_a_step_that_writes_to_its_inputs_is_found():
    """The draft row is changed in place."""

    def writing(draft, target, token):
        result = speculative_decode_step(draft.copy(), target, token)
        draft /= 2
        return result

    report = step(writing)
    assert [c.name for c in report.checks if not c.passed] == ["inputs are not written to"]


# --- Snippets, errors, interruptions ---------------------------------------------------


def from_the_target(draft, target, tokens, uniforms):
    """Draw replacements from the target: found by its name."""
    return WRONG["replacement from the target"](draft, target, tokens, uniforms)


def inexact(draft, target, tokens, uniforms):
    """Verify short rows rightly, and long ones in half precision."""
    if target.shape[-1] > 100:
        draft, target = (part.astype(np.float16) for part in (draft, target))
    return verify_chain(draft, target, tokens, uniforms)


@pytest.mark.parametrize("subject", [from_the_target, inexact])
@pytest.mark.parametrize("xp", ["numpy", "torch"])
def test_the_snippet_shows_the_failure_again(subject, xp):
    """It runs, and its assertion fails for the subject and holds for a right one."""
    called = subject
    if xp == "torch":

        def called(*arrays):
            return subject(*(None if a is None else a.numpy() for a in arrays))

    report = verifier(called, xp=xp, dtype="float32")
    assert not report.conforms
    with pytest.raises(AssertionError):
        exec(report.snippet, {"subject": called})
    lines = [line for line in report.snippet.splitlines() if " as subject" not in line]
    kept = [line for line in lines if not line.startswith(("from", "subject ="))]
    exec("\n".join(kept), {"subject": verify_chain})


def test_the_snippet_of_a_step_shows_the_failure_again():
    """The same for steps."""
    report = step(WRONG_STEPS["softmax of the residual"])
    with pytest.raises(AssertionError):
        exec(report.snippet, {"subject": WRONG_STEPS["softmax of the residual"]})
    exec(report.snippet, {"subject": a_step()})


def test_subjects_are_found_by_their_name():
    """As the command line does; the snippet of a failure imports them."""
    report = verifier("draftproof:verify_chain", rule="block")
    assert report.subject == "draftproof:verify_chain"
    assert "from draftproof import verify_chain" in report.snippet
    with pytest.raises(NotConformingError, match="draftproof:verify_chain"):
        report.assert_conforms()


def test_what_cannot_run_says_why():
    """An exception on ordinary input, or no pair, is no verdict."""

    def raising(*arrays):
        raise RuntimeError("no kernel image")

    with pytest.raises(CouldNotRunError, match="RuntimeError .*no kernel image") as caught:
        verifier(raising)
    assert isinstance(caught.value.__cause__, RuntimeError)
    with pytest.raises(CouldNotRunError, match="needed is a pair"):
        verifier(lambda *a: 1)
    with pytest.raises(CouldNotRunError, match="no kernel image"):
        step(raising)
    with pytest.raises(CouldNotRunError, match="accept_prob"):
        step(lambda *a: {"accept": 1})
    with pytest.raises(ValueError, match="`rule` is 'tree'"):
        verifier(verify_chain, rule="tree")
    with pytest.raises(ValueError, match="`dtype` is 'float8'"):
        step(speculative_decode_step, dtype="float8")


@pytest.mark.parametrize("after", [0, 3, 12])
def test_an_interruption_leaves_a_report(after):
    """What was found so far is kept, and it is no verdict of conformance."""
    calls = iter(range(after))

    def interrupted(*arrays):
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return verify_chain(*arrays)

    report = verifier(interrupted)
    assert not report.complete
    assert not report.conforms
    assert "interrupted" in str(report)
    assert all(check.passed for check in report.checks)
    if after == 12:
        assert report.checks[0].name == "every cell, two tokens"


def test_progress_is_told():
    """Every step of the way is told, by number and in words."""
    told = []
    check_step(
        speculative_decode_step, quick=True, progress=lambda *step: told.append(step)
    )
    assert [done for done, _, _ in told] == list(range(1, told[0][1] + 1))
    with contextlib.suppress(KeyboardInterrupt):
        check_verifier(verify_chain, quick=True, progress=lambda *step: told.append(step))
    assert told[-1][0] == told[-1][1]
