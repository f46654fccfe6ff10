"""The step against the literal lines a user would write for it."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from draftproof import speculative_decode_step

SIZES = (2, 1_000, 128_256)


def literal_numpy(draft, target, token):
    """The formula, as one writes it in NumPy."""
    residual = np.maximum(target - draft, 0)
    total = residual.sum()
    if total > 0:
        residual = residual / total
    accept_prob = min(1.0, float(target[token] / draft[token]))
    return {"accept_prob": accept_prob, "residual": residual}


def literal_torch(draft, target, token):
    """The formula, as one writes it in PyTorch."""
    residual = torch.clamp(target - draft, min=0)
    total = residual.sum()
    if total > 0:
        residual = residual / total
    accept_prob = min(1.0, (target[token] / draft[token]).item())
    return {"accept_prob": accept_prob, "residual": residual}


def literal_jax(draft, target, token):
    """The formula, as one writes it in JAX without compiling it."""
    residual = jnp.maximum(target - draft, 0)
    total = residual.sum()
    residual = jnp.where(total > 0, residual / total, residual)
    accept_prob = float(jnp.minimum(1.0, target[token] / draft[token]))
    return {"accept_prob": accept_prob, "residual": residual}


def copy_numpy(draft, target, token):
    """One pass over a row, which nothing that returns a row can undercut."""
    np.copyto(draft, target)


LIBRARIES = {
    "numpy": (np.asarray, {"literal": literal_numpy, "one copyto": copy_numpy}),
    "torch": (torch.from_numpy, {"literal": literal_torch}),
    "jax": (jnp.asarray, {"literal": literal_jax}),
}
TURNS = range(5)
CASES = [
    (library, size, turn, who)
    for library, (_, others) in LIBRARIES.items()
    for size in SIZES
    for turn in TURNS
    for who in ("draftproof", *others)
]


@pytest.mark.parametrize(("library", "size", "turn", "who"), CASES)
def test_step(benchmark, library, size, turn, who):
    """Time one call on float32 rows, with all checks on; the rivals take turns."""
    convert, others = LIBRARIES[library]
    random = np.random.default_rng(0)
    draft, target = (convert(row) for row in random.dirichlet(np.ones(size), 2).astype("f"))
    step = {"draftproof": speculative_decode_step, **others}[who]
    benchmark.group = f"step, {library}, V = {size:,}, float32"

    def call():
        result = step(draft, target, 0)
        if library == "jax":
            result["residual"].block_until_ready()

    iterations = 100 if size < 10_000 else 5
    benchmark.pedantic(call, rounds=81, iterations=iterations, warmup_rounds=5)
