"""The golden vectors: made anew, checked for form, replayed by this library and others."""

from __future__ import annotations

import copy
import functools
import itertools
import json
import math
import re
import shutil
import subprocess
from collections import defaultdict
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from backends import NUMPY_DTYPES, Backend
from budgets import residual_budget
from draftproof import (
    accept_residual,
    draw,
    match_tokens,
    speculative_decode_step,
    verify_chain,
)
from draftproof.conformance import vectors
from draftproof.conformance.vectors._numbers import FORMATS, nearest

PACKAGED = files("draftproof.conformance.vectors") / "draftproof-vectors.json"
DOCUMENT, SCHEMA = vectors.load(), vectors.schema()
REPLAYER = Path(__file__).parent.parent / "docs" / "replay.cpp"

array_libraries = pytest.mark.parametrize(
    "library",
    [Backend.NUMPY, Backend.STRICT, Backend.TORCH],
    ids=lambda backend: backend.name.lower(),
)


def groups(*types):
    """Yield the groups of some types."""
    return (group for group in DOCUMENT["groups"] if group["type"] in types)


def every_case():
    """Yield each case with its group."""
    return ((group, case) for group in DOCUMENT["groups"] for case in group["tests"])


def made(rule):
    """Return rows that are described by a rule."""
    size, modulus = rule["size"], rule["modulus"]
    rows = [[(a * v + b) % modulus for v in range(size)] for a, b in rule["rows"]]
    return (2 * np.asarray(rows, float) + 1) / (size * modulus)


def numbers(told):
    """Return a number, a row or rows as float64, which stores all of them."""
    if "rule" in told:
        return made(told["rule"])
    return np.vectorize(float.fromhex, otypes=[float])(np.asarray(told["hex"], object))


# --- The file ------------------------------------------------------------------------


def test_the_packaged_file_is_what_exact_makes(tmp_path):
    """Byte for byte."""
    vectors.write(tmp_path / "vectors.json")
    assert (tmp_path / "vectors.json").read_bytes() == PACKAGED.read_bytes()


def faults_of(value, schema, where="document"):
    """Yield where a value departs from a schema: the part of JSON Schema it is made of."""
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    unknown = schema.keys() - {
        *("$schema", "title", "description", "$defs", "type", "const", "enum", "pattern"),
        *("minimum", "items", "required", "properties", "additionalProperties", "oneOf"),
    }
    assert not unknown, f"{unknown} in the schema, which this validator does not know"
    kinds = {
        "object": dict,
        "array": list,
        "string": str,
        "integer": int,
        "null": type(None),
    }
    if "type" in schema and type(value) is not kinds[schema["type"]]:
        yield f"{where}: {value!r:.60} is no {schema['type']}"
        return
    if "oneOf" in schema:
        tried = [list(faults_of(value, one, where)) for one in schema["oneOf"]]
        if tried.count([]) != 1:
            yield min(tried, key=len)[0] if [] not in tried else f"{where}: fits twice"
    if "const" in schema and value != schema["const"]:
        yield f"{where}: {value!r:.60} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: {value!r:.60} is none of {schema['enum']}"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{where}: {value!r:.60} does not match {schema['pattern']}"
    if value is not None and "minimum" in schema and value < schema["minimum"]:
        yield f"{where}: {value!r} is below {schema['minimum']}"
    yield from faults_of_parts(value, schema, where)


def faults_of_parts(value, schema, where):
    """Yield the faults of the items of a list, or of the fields of an object."""
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from faults_of(item, schema.get("items", {}), f"{where}[{i}]")
    if isinstance(value, dict):
        yield from (
            f"{where}: no {k!r}" for k in schema.get("required", []) if k not in value
        )
        for name, item in value.items():
            one = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            if one is False:
                yield f"{where}: {name!r} is not known"
            elif one:
                yield from faults_of(item, one, f"{where}.{name}")


def test_the_file_is_of_its_schema():
    """And names it; and every flag is explained, and used."""
    assert (PACKAGED.parent / DOCUMENT["schema"]).is_file()
    assert list(faults_of(DOCUMENT, SCHEMA)) == []
    flags = {flag for _, case in every_case() for flag in case["flags"]}
    assert flags == DOCUMENT["notes"].keys()
    ids = [case["id"] for _, case in every_case()]
    assert ids == list(range(1, DOCUMENT["number_of_cases"] + 1))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda document: document.pop("version"),
        lambda document: document.update(schema="another.json"),
        lambda document: document.update(extra=1),
        lambda document: document["notes"]["Padding"].update(kind="rumour"),
        lambda document: document["groups"][0].pop("dtypes"),
        lambda document: document["groups"][0].update(type="tree"),
        lambda document: document["groups"][0]["tests"][0].update(id="1"),
        lambda document: document["groups"][-1]["tests"][0].update(result="fine"),
        lambda document: document["groups"][0]["draft_probs"]["exact"].append("0.5"),
        lambda document: document["groups"][0]["draft_probs"]["hex"].append("0.5"),
        lambda document: document["groups"][-1]["tests"][0]["outcomes"][0].update(
            next_token=-2
        ),
    ],
    ids=itertools.count(),
)
def test_the_schema_rejects_other_forms(spoil):
    """The negative control of the schema, and of its validator."""
    document = {**copy.copy(DOCUMENT), "notes": copy.deepcopy(DOCUMENT["notes"])}
    ends = [DOCUMENT["groups"][0], DOCUMENT["groups"][-1]]
    document["groups"] = copy.deepcopy(ends)
    assert not list(faults_of(document, SCHEMA))
    spoil(document)
    assert list(faults_of(document, SCHEMA))


def test_results_fit_their_outcomes():
    """One outcome if valid or invalid, several different ones if acceptable."""
    for _, case in every_case():
        told = [{**outcome, "convention": None} for outcome in case["outcomes"]]
        several = case["result"] == "acceptable"
        assert (len(told) > 1) is several, case["id"]
        assert all("convention" in o for o in case["outcomes"]) is (
            case["result"] != "valid"
        )
        refused = case["outcomes"][0].get("convention") == "refused"
        assert refused is (case["result"] == "invalid")
        if "margin" in case:
            assert (case["margin"] is None) is refused
            assert (case["margin"] == "0") is ("inclusive" in str(case["outcomes"]))


def test_numbers_are_the_same_in_both_notations():
    """Inputs are quotients of doubles, and stored exactly by the formats of their group."""
    checked = 0
    for group in DOCUMENT["groups"]:
        rows = [
            group[k] for k in ("draft_probs", "target_probs", "weights") if group.get(k)
        ]
        uniforms = [case["uniforms"] for case in group["tests"] if "uniforms" in case]
        for told in (*rows, *uniforms):
            if "rule" in told:
                continue
            exact = np.ravel(np.asarray(told["exact"], object))
            for rational, value in zip(exact, numbers(told).ravel(), strict=True):
                if rational in ("nan", "inf"):
                    assert str(value) == rational
                else:
                    assert Fraction(rational) == Fraction(value)
                    numerator, _, denominator = rational.partition("/")
                    assert float(numerator) / float(denominator or 1) == value
                checked += 1
        for dtype in group.get("dtypes", ()):
            for told in rows:
                values = numbers(told)
                stored = values.astype(NUMPY_DTYPES[dtype]).astype(float)
                np.testing.assert_array_equal(stored, values)
    assert checked > 5_000


def test_rounding_by_hand_is_that_of_the_libraries():
    """Also ties, subnormal numbers, and what rounds up to the next power of two."""
    random = np.random.default_rng(0)
    doubles = [
        *random.random(200),
        1 / 3,
        1 - 2**-12,
        1 + 2**-11,
        1 + 3 * 2**-11,
        3 * 2**-25,
    ]
    doubles += [
        *(2.0 ** random.integers(-160, 0, 200) * random.random(200)),
        2**-24,
        2**-25,
    ]
    for dtype, number in itertools.product(FORMATS, doubles):
        stored = float(np.asarray(number).astype(NUMPY_DTYPES[dtype]))
        assert nearest(Fraction(float(number)), dtype) == Fraction(stored)


# --- Replayed by this library --------------------------------------------------------


def chain_of(group):
    """Return the rows and tokens of a group."""
    draft = group["draft_probs"] and numbers(group["draft_probs"])
    target = numbers(group["target_probs"])
    length = len(group["draft_tokens"])
    if draft is not None:
        draft = draft.reshape(length, group["size"])
    return draft, target, group["draft_tokens"]


def batches(dtype, uniform_dtype):
    """Yield chains of equal rule and shape with their cases: what makes one call."""
    found = defaultdict(list)
    for group in groups("chain"):
        if dtype not in group["dtypes"]:
            continue
        draft, target, tokens = chain_of(group)
        key = group["rule"], draft is None, *target.shape
        for case in group["tests"]:
            if uniform_dtype in case["uniform_dtypes"]:
                row = (draft, target, tokens, numbers(case["uniforms"]))
                found[key].append((case, row))
    for (rule, one_hot, length, _), members in found.items():
        cases, rows = zip(*members, strict=True)
        draft, target, tokens, uniforms = zip(*rows, strict=True)
        draft = None if one_hot else np.stack(draft)
        tokens = np.reshape(tokens, (len(cases), length - 1))
        yield rule, cases, (draft, np.stack(target), tokens, np.stack(uniforms))


def pairs(case):
    """Return the outcomes of a chain or a draw as pairs, the library's own first."""
    return [(told["num_accepted"], told["next_token"]) for told in case["outcomes"]]


def assert_own(case, found, rule):
    """Assert the library's own outcome, or any where products are rounded to a tie."""
    rounded = rule == "block" and "CoinTie" in case["flags"]
    needed = pairs(case) if rounded else pairs(case)[:1]
    assert found in needed, (
        f"case {case['id']}: {found}, needed {needed}; {case['comment']}"
    )


def replay_chains(backend, dtype, uniform_dtype, *, only=lambda shape: True):
    """Replay all chains on a backend; return how many."""
    count = 0
    for rule, cases, (draft, target, tokens, uniforms) in batches(dtype, uniform_dtype):
        if not only(target.shape[1:]):
            continue
        verdict = verify_chain(
            None if draft is None else backend.array(draft, dtype),
            backend.array(target, dtype),
            backend.array(tokens, "int32"),
            backend.array(uniforms, uniform_dtype),
            rule=rule,
        )
        found = zip(
            *(backend.host(part).astype(int).tolist() for part in verdict), strict=True
        )
        for case, pair in zip(cases, found, strict=True):
            assert_own(case, pair, rule)
        count += len(cases)
    return count


@pytest.mark.parametrize("uniform_dtype", ["float32", "float64"])
@array_libraries
def test_chains(library, uniform_dtype):
    """Each dtype replays its chains, with uniforms of both dtypes."""
    for dtype in library.dtypes:
        assert replay_chains(library, dtype, uniform_dtype) > 900


def test_chains_on_jax():
    """The chains of two drafts and three tokens, whose shape JAX compiles once a rule."""
    with Backend.JAX.context():
        shape = (3, 3)
        count = replay_chains(Backend.JAX, "float32", "float32", only=shape.__eq__)
    assert count > 500


@array_libraries
def test_draws(library):
    """Each dtype draws what is needed."""
    for group in groups("draw"):
        weights = numbers(group["weights"])[0]
        for dtype in {*library.dtypes} & {*group["dtypes"]}:
            row = library.array(weights, dtype)
            for case in group["tests"]:
                uniform = numbers(case["uniforms"])[0]
                for width in case["uniform_dtypes"]:
                    token = int(library.host(draw(row, library.array(uniform, width))))
                    assert_own(case, (0, token), "token")


@array_libraries
def test_steps(library):
    """The acceptance is the very double; the residual is within its budget."""
    for group in groups("step"):
        rows = numbers(group["draft_probs"]), numbers(group["target_probs"])
        for dtype in {*library.dtypes} & {*group["dtypes"]}:
            arrays = [library.array(row, dtype) for row in rows]
            for case in group["tests"]:
                assert_step(library, dtype, arrays, case)


def assert_step(backend, dtype, arrays, case):
    """Assert one step, or that it is refused."""
    conventions = [told.get("convention") for told in case["outcomes"]]
    if "refused" in conventions:
        with pytest.raises((ValueError, IndexError)):
            speculative_decode_step(*arrays, case["drafted_token"])
        return
    step = speculative_decode_step(*arrays, case["drafted_token"])
    told = case["outcomes"][0]
    assert step["accept_prob"].hex() == numbers(told["accept_prob"]).item().hex()
    needed = numbers(told["residual"])
    off = np.abs(backend.host(step["residual"]) - needed)
    assert (off <= residual_budget(needed, dtype)).all(), case["id"]


def test_steps_in_a_batch():
    """Where a step raises for a token that was never drawn, a batch gives the limit."""
    found = [
        (*map(numbers, (g["draft_probs"], g["target_probs"])), case)
        for g in groups("step")
        for case in g["tests"]
        if g["size"] == 3 and case["result"] != "invalid"
    ]
    draft, target, cases = zip(*found, strict=True)
    tokens = np.asarray([case["drafted_token"] for case in cases])
    accept, residual = accept_residual(np.stack(draft), np.stack(target), tokens)
    for case, prob, row in zip(cases, accept, residual, strict=True):
        told = case["outcomes"][0]
        assert math.isclose(prob, numbers(told["accept_prob"]), rel_tol=2**-52)
        needed = numbers(told["residual"])
        assert (np.abs(row - needed) <= residual_budget(needed, "float64")).all()


@array_libraries
def test_matches(library):
    """Tokens are compared up to the first difference."""
    for group in groups("match"):
        for case in group["tests"]:
            tokens = case["draft_tokens"], case["target_tokens"]
            verdict = match_tokens(*(library.array(part, "int64") for part in tokens))
            assert_own(case, tuple(int(library.host(part)) for part in verdict), "token")


# --- Replayed by others --------------------------------------------------------------


class Plain:
    """The formulas as they stand, in doubles and lists; each mistake replaces a part."""

    def drafted(self, tokens):
        """Return how many drafts there are."""
        return (*tokens, -1).index(-1)

    def legal(self, token, size):
        """Whether a token is in the vocabulary."""
        return 0 <= token < size

    def fair(self, uniform):
        """Whether a uniform is one."""
        return 0 <= uniform < 1

    def finite(self, number):
        """Whether a number can be computed with."""
        return math.isfinite(number)

    def succeeds(self, coin, part, whole):
        """Whether a coin is below ``part / whole``."""
        return coin * whole < part

    def stops(self, *, block):
        """Whether nothing is accepted behind a failure."""
        return not block

    def capped(self, ratio):
        """Return the product of ratios that goes on."""
        return min(1.0, ratio)

    def scaled(self, scale):
        """Return the factor of the target row in the residual."""
        return scale

    def bonus(self, target, draft, accepted):
        """Return the weights where no draft was rejected."""
        return target[accepted]

    def excess(self, scale, target, draft):
        """Return ``max(scale * target - draft, 0)``, NaN kept."""
        parts = (scale * p - q for p, q in zip(target, draft, strict=True))
        return [0.0 if -math.inf < part <= 0 else part for part in parts]

    def residual(self, scale, target, draft):
        """Return the weights after a rejection."""
        weights = self.excess(self.scaled(scale), target, draft)
        return weights if any(weights) else target

    def verify(self, rule, draft, target, tokens, uniforms):
        """Return how many tokens are accepted, and the next one."""
        block, size, n = rule == "block", len(target[0]), self.drafted(tokens)
        accepted, scale, product = 0, 1.0, 1.0
        for i in range(n):
            refused = (0 if block else accepted), -1
            if not (self.legal(tokens[i], size) and self.fair(uniforms[i])):
                return refused
            part, whole = target[i][tokens[i]], draft[i][tokens[i]]
            if not (self.finite(part) and self.finite(whole)):
                return refused
            if block:
                ratio = product * part / whole if whole else float(product * part > 0)
                part = product = self.capped(ratio)
                if i + 1 < n:
                    part = sum(self.excess(product, target[i + 1], draft[i + 1]))
                whole = part + (1 - product)
                if not self.finite(part):
                    return refused
            if self.succeeds(uniforms[i], part, whole) or (block and whole == 0):
                accepted, scale = i + 1, product
            elif self.stops(block=block):
                break
        if accepted == n:
            weights = self.bonus(target, draft, accepted)
        else:
            weights = self.residual(scale, target[accepted], draft[accepted])
        token = self.draw(weights, uniforms[-1])
        return (0 if block and token < 0 else accepted), token

    def draw(self, weights, uniform):
        """Return the first token whose cumulative weight exceeds the uniform's share."""
        total, reached = sum(weights), 0.0
        if not (self.fair(uniform) and self.finite(total) and total):
            return -1
        for token, weight in enumerate(weights):
            reached += weight
            if weight > 0 and reached > uniform * total:
                return token
        return max(token for token, weight in enumerate(weights) if weight > 0)


class DrawsInclusively(Plain):
    """The first cumulative weight that reaches the uniform, of a search from the left."""

    def draw(self, weights, uniform):
        """Draw token 0 at u = 0, whatever its weight."""
        token = super().draw(weights, uniform)
        running = np.cumsum(weights)
        return int(np.searchsorted(running, uniform * running[-1])) if token >= 0 else -1


MISTAKES = {
    "draws the first that reaches": DrawsInclusively,
    **{
        name: type("Mistaken", (Plain,), replaced)
        for name, replaced in {
            "accepts at u = p / q": {
                "succeeds": lambda _, u, part, whole: u * whole <= part
            },
            "stops the block rule at a failure": {"stops": lambda _, block: True},
            "goes on after a failure": {"stops": lambda _, block: False},
            "does not cap the ratio": {"capped": lambda _, ratio: ratio},
            "does not scale the residual": {"scaled": lambda _, scale: 1.0},
            "draws from the target": {"residual": lambda _, scale, target, draft: target},
            "takes the bonus one row too early": {
                "bonus": lambda _, target, draft, n: target[max(n - 1, 0)]
            },
            "sees a draft behind the last one": {
                "bonus": lambda self, target, draft, n: self.residual(
                    1.0,
                    target[n],
                    draft[min(n, len(draft) - 1)] if len(draft) else [0.0] * 9,
                )
            },
            "skips -1": {
                "drafted": lambda _, tokens: len(tokens),
                "legal": lambda _, token, size: -1 <= token < size,
            },
            "lets ids wrap around": {"legal": lambda _, token, size: -size <= token < size},
            "trusts NaN and infinity": {"finite": lambda _, number: True},
            "trusts the uniforms": {"fair": lambda _, uniform: True},
        }.items()
    },
}


@functools.cache
def plain_cases():
    """Return rule, rows, tokens, uniforms and case of all chains and draws, as lists."""
    found = []
    for group in groups("chain", "draw"):
        rule, draft, tokens = "token", np.empty((0, 1)), []
        if group["type"] == "draw":
            target = numbers(group["weights"])
        else:
            rule, (draft, target, tokens) = group["rule"], chain_of(group)
        if draft is None:
            draft = np.eye(group["size"])[np.maximum(tokens, 0)]
        chain = rule, draft.tolist(), target.tolist(), tokens
        found += [(*chain, numbers(c["uniforms"]).tolist(), c) for c in group["tests"]]
    return found


def failures(replayer):
    """Return the cases of chains and draws that a replayer gets wrong, or fails at."""
    wrong = []
    for *arguments, case in plain_cases():
        try:
            right = replayer.verify(*arguments) in pairs(case)
        except (ValueError, IndexError, OverflowError):
            right = case["result"] == "invalid"
        if not right:
            wrong.append(case)
    return wrong


def test_a_plain_replayer():
    """Doubles and the formulas as they stand are enough to replay all cases."""
    assert [case["id"] for case in failures(Plain())] == []


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_replayer_with_a_mistake(mistake):
    """The negative control: each mistake fails, and not at acceptable cases alone."""
    wrong = failures(MISTAKES[mistake]())
    assert any(case["result"] != "acceptable" for case in wrong)
    print(f"{mistake}: {len(wrong)} cases")


@pytest.fixture(scope="module")
def replayers(tmp_path_factory):
    """The C++ replayer, right and with a mistake, compiled at the same time."""
    compiler = shutil.which("g++") or shutil.which("clang++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler: none of g++, clang++, c++ is found")
    folder = tmp_path_factory.mktemp("replay")
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror"]
    found = SimpleNamespace(right=folder / "right", inclusive=folder / "inclusive")
    running = [
        subprocess.Popen([compiler, *flags, *more, str(REPLAYER), "-o", str(program)])
        for program, more in ((found.right, []), (found.inclusive, ["-DINCLUSIVE"]))
    ]
    assert [process.wait() for process in running] == [0, 0]
    return found


def replay(program):
    """Run a replayer on the packaged file; return its exit code and lines."""
    done = subprocess.run(
        [program, str(PACKAGED)], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout.splitlines()


def test_cpp_replays_the_vectors(replayers):
    """Steps, chains and draws, in double and float."""
    code, lines = replay(replayers.right)
    assert (code, lines[:-1]) == (0, [])
    cases = sum(len(group["tests"]) for group in groups("step", "chain", "draw"))
    assert int(lines[-1].split()[0]) > 1.5 * cases


def test_cpp_finds_a_mistake(replayers):
    """The negative control: an inclusive test accepts what has p = 0."""
    code, lines = replay(replayers.inclusive)
    assert code == 1
    failed = {int(line.split()[1]) for line in lines[:-1]}
    flagged = {
        case["id"]
        for _, case in every_case()
        if {"ZeroTargetProbability", "ZeroUniform"} <= {*case["flags"]}
    }
    assert flagged
    assert flagged <= failed


def test_the_cpp_reader_knows_enough_json():
    """It reads no escapes: so no string of the file has one."""
    assert "\\" not in PACKAGED.read_text(encoding="ascii")
    assert json.dumps(DOCUMENT).count('"') % 2 == 0


def test_vectors_command(tmp_path, capsys):
    """The file is written, and is the packaged one; a bad path is an error."""
    from draftproof.cli import main

    assert main(["vectors", "--out", str(tmp_path / "v.json")]) == 0
    assert json.loads((tmp_path / "v.json").read_text()) == vectors.load()
    assert main(["vectors", "--out", str(tmp_path / "none" / "v.json")]) == 2
    assert "draftproof vectors:" in capsys.readouterr().err
