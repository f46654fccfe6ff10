"""`apply_filters` against transformers' logits processors, on random logits.

Run by ``nox -s peers``. Prints how many rows were compared, and fails on a difference.
"""

from __future__ import annotations

import importlib.metadata
import sys

import torch

from draftproof import apply_filters

ROWS, SIZE = 200, 1_000
TEMPERATURES = (0.3, 1.0, 1.7)
TOP_K = (None, 1, 50, SIZE)
TOP_P = (None, 0.3, 0.9, 1.0)
MIN_P = (None, 0.01, 0.3)


def processed(logits, temperature, top_k, top_p, min_p):
    """Return the law that transformers samples from, in its order."""
    from transformers.generation.logits_process import (
        MinPLogitsWarper,
        TemperatureLogitsWarper,
        TopKLogitsWarper,
        TopPLogitsWarper,
    )

    warpers = [TemperatureLogitsWarper(temperature)]
    warpers += [TopKLogitsWarper(top_k)] if top_k is not None else []
    warpers += [TopPLogitsWarper(top_p)] if top_p is not None else []
    warpers += [MinPLogitsWarper(min_p)] if min_p is not None else []
    for warper in warpers:
        logits = warper(None, logits)
    return logits.softmax(-1)


def main():
    """Compare every combination; a token on the edge of top-p may fall either way."""
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(ROWS, SIZE, generator=generator)
    compared = edges = worst = 0
    for temperature in TEMPERATURES:
        for top_k in TOP_K:
            for top_p in TOP_P:
                for min_p in MIN_P:
                    options = (temperature, top_k, top_p, min_p)
                    names = ("temperature", "top_k", "top_p", "min_p")
                    ours = apply_filters(logits, **dict(zip(names, options, strict=True)))
                    theirs = processed(logits, *options)
                    same = ((ours > 0) == (theirs > 0)).all(-1)
                    compared, edges = compared + ROWS, edges + int((~same).sum())
                    away = (ours[same] - theirs[same]).abs().sum(-1) / 2
                    worst = max(worst, *away.tolist(), 0.0)
                    if not same.all():
                        print(dict(zip(names, options, strict=True)), int((~same).sum()))
    version = importlib.metadata.version("transformers")
    print(
        f"transformers {version}, logits processors: {compared:,} rows, {edges:,} with "
        f"another token at an edge, elsewhere within {worst:.1e} in total variation"
    )
    return 1 if edges > compared / 1000 or worst > 1e-6 else 0


if __name__ == "__main__":
    sys.exit(main())
