"""Reports, and the commands that print them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from draftproof.cli import main
from draftproof.conformance import Check, NotConformingError, Report
from draftproof.conformance._models import MODELS
from draftproof.conformance._subject import CouldNotRunError, converter, find, to_host
from draftproof.conformance._variants import RIGHT
from draftproof.conformance._wrong import WRONG

PASSED = Check("some law", passed=True, cases=1000, p_value=0.4, detectable=0.03)
FAILED = Check("a [name] like markup", passed=False, cases=7, detail="off by [1]", ties=2)
GOOD = Report("here:subject", "sampler", "token", True, None, (PASSED,), {"tie": "rejects"})
BAD = replace(GOOD, conforms=False, fault="coin", checks=(PASSED, FAILED), snippet="x = 1")


def test_a_report_says_what_was_found():
    """The text has the verdict, the fault, each check, conventions and the snippet."""
    assert "here:subject, as sampler to rule 'token': conforms" in str(GOOD)
    assert "tie: rejects" in str(GOOD)
    text = str(BAD)
    for words in (
        "does not conform; suspected fault: coin",
        "a [name] like markup",
        "FAIL",
    ):
        assert words in text
    assert "off by [1]; 2 within rounding of a boundary" in text
    assert "\n  x = 1\n" in text


def test_a_snippet_is_not_wrapped():
    """It is there to be copied, however long its lines are."""
    line = "numbers = [" + ", ".join(["0.125"] * 60) + "]"
    assert f"\n  {line}\n" in str(replace(BAD, snippet=line))


def test_an_interrupted_report_claims_nothing():
    """What is known so far is neither a pass nor a failure."""
    report = replace(GOOD, conforms=False, complete=False)
    assert "not known; interrupted" in str(report)
    with pytest.raises(NotConformingError, match="interrupted"):
        report.assert_conforms()


def test_assert_conforms():
    """It passes in silence, or raises an AssertionError with the report."""
    GOOD.assert_conforms()
    with pytest.raises(AssertionError, match="suspected fault: coin"):
        BAD.assert_conforms()


def test_json_has_everything():
    """The JSON form names its schema and has every attribute."""
    read = json.loads(json.dumps(BAD.to_json()))
    assert read["schema"] == "draftproof-report-1"
    assert set(read) == {"schema", *Report.__dataclass_fields__}
    assert read["checks"][1]["ties"] == 2


SUBJECTS = """
import numpy as np
from draftproof import emitted_tokens, speculative_decode_step, verify_chain


def sampler(draft_probs, target_probs, draft_tokens, seed):
    uniforms = np.random.default_rng(seed).random(target_probs.shape[:-1])
    verdict = verify_chain(draft_probs, target_probs, draft_tokens, uniforms)
    return emitted_tokens(draft_tokens, verdict)


def wrong(draft_probs, target_probs, token):
    step = speculative_decode_step(draft_probs, target_probs, token)
    return step["accept_prob"] ** 2, step["residual"]


def broken(draft_probs, target_probs, token):
    raise RuntimeError("out of order")


number = 3
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory with a module of subjects."""
    (tmp_path / "subjects_of_a_test.py").write_text(SUBJECTS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    return tmp_path


def test_check_command_conforms(here, capsys):
    """Exit code 0, the report on the terminal and in a file."""
    options = ["--quick", "--rule", "token", "--json", "report.json"]
    assert main(["check", "subjects_of_a_test:sampler", *options]) == 0
    assert "conforms" in capsys.readouterr().out
    assert json.loads((here / "report.json").read_text())["conforms"]


def test_check_command_does_not_conform(here, capsys):
    """Exit code 1, with the name of the fault."""
    arguments = ["check", "subjects_of_a_test:wrong", "--kind", "step", "--quick"]
    assert main(arguments) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "suspected fault: ratio squared" in printed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "MODULE:FUNCTION is missing"),
        (["no_such_module:f"], "cannot be imported"),
        (["subjects_of_a_test:no_such"], "cannot be imported"),
        (["subjects_of_a_test:number"], "needed is something to call"),
        (["subjects_of_a_test"], "needed is MODULE:FUNCTION"),
        (["subjects_of_a_test:broken", "--kind", "step"], "out of order"),
        (
            ["subjects_of_a_test:wrong", "--kind", "step", "--rule", "token"],
            "--rule is for",
        ),
    ],
    ids=str,
)
def test_check_command_could_not_run(here, capsys, arguments, said):
    """Exit code 2, and one line that says why."""
    assert main(["check", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_find_takes_a_function_or_its_name():
    """A callable is itself; a name may have dots."""
    assert find(len) is len
    assert find("json:JSONEncoder.encode") is json.JSONEncoder.encode
    with pytest.raises(CouldNotRunError, match="needed is one of 'numpy'"):
        converter("tensorflow")


def test_arrays_come_back_to_the_host():
    """Whatever a subject returns is read as NumPy, or refused."""
    import torch

    assert to_host(torch.ones(2, dtype=torch.bfloat16)).tolist() == [1, 1]
    assert to_host([1, 2]).tolist() == [1, 2]
    with pytest.raises(CouldNotRunError, match="not an array"):
        to_host([np.ones(2), np.ones(3)])


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.name)
@pytest.mark.parametrize("rule", RIGHT.values(), ids=lambda rule: rule.name)
def test_right_rules_have_the_law_of_the_target(model, rule):
    """The kit's own form of the rules is lossless, exactly, and agrees with `exact`."""
    from draftproof import exact

    assert rule.joint_law(model) == model.target_law()
    name = rule.name.split()[0]
    for path, _ in model.paths():
        expected = exact.chain_thresholds(*path, rule=name)
        assert tuple(rule.thresholds(path)) == expected


@pytest.mark.parametrize("rule", WRONG.values(), ids=lambda rule: rule.name)
def test_wrong_rules_show_on_some_model(rule):
    """Each signature differs from the target by 0.06 or more, and from all others."""
    laws = {other.name: _laws(other) for other in WRONG.values()}
    away = [
        sum(abs(law.get(k, 0) - target.get(k, 0)) for k in {*law, *target}) / 2
        for law, target in zip(laws[rule.name], TARGETS, strict=True)
    ]
    assert max(away) >= 0.06
    assert sum(law == laws[rule.name] for law in laws.values()) == 1


TARGETS = [model.target_law() for model in MODELS.values()]


def _laws(rule):
    return [rule.joint_law(model) for model in MODELS.values()]
