"""What samplers of other projects do at a tie, at zeros and with NaN."""

from __future__ import annotations

import math
from contextlib import ExitStack
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np
import torch

from draftproof.conformance._subject import converter, to_host

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = {
    "tie, `u = p/q`": ([0.5, 0.25, 0.125, 0.125], [0.25] * 4, 0.5),
    "`p = 0`, `u = 0`": ([0.5, 0.25, 0.125, 0.125], [0, 0.5, 0.25, 0.25], 0.0),
    "`q = 0 < p`": ([0, 0.5, 0.25, 0.25], [0.25] * 4, 0.5),
    "`q = p = 0`": ([0, 0.5, 0.25, 0.25], [0, 0.25, 0.25, 0.5], 0.5),
    "residual of zeros": ([0.5, 0.25, 0.25, 0.25], [0.25] * 4, 0.75),
    "NaN in `q`": ([math.nan, 0.25, 0.25, 0.25], [0.25] * 4, 0.5),
    "NaN in `p`": ([0.25] * 4, [math.nan, 0.25, 0.25, 0.25], 0.5),
}
"""One draft row, one target row and a coin; the draft is token 0."""

DEGENERATE = "residual of zeros", "NaN in `q`", "NaN in `p`"
EDGE_TITLES = (
    f"| package | function | {' | '.join(ROWS)} |",
    f"| --- | --- |{' --- |' * len(ROWS)}",
)


def edge(peer: Any, subject: Callable[..., Any]) -> list[str]:
    """Return what a peer does where rules leave it open."""
    cells = []
    for name, (draft, target, coin) in ROWS.items():
        if peer.normalises and name == "residual of zeros":
            cells.append("cannot come")
        elif peer.one_hot and name != "`p = 0`, `u = 0`":
            cells.append("")
        else:
            given = None if peer.one_hot else draft
            seeds = range(8 if name in DEGENERATE else 1)
            found = [decided(peer, subject, given, target, coin, seed) for seed in seeds]
            cells.append(told(found, tokens=name in DEGENERATE))
    return cells


def told(found: list[tuple[str, Any]], *, tokens: bool) -> str:
    """Return what was found, with its tokens where the rule does not say which."""
    words = {word for word, _ in found}
    emitted = sorted({token for _, token in found if token is not None})
    if len(words) > 1 or not tokens or not emitted or "accepts" in words:
        return " or ".join(sorted(words))
    return f"{words.pop()}, emits {' or '.join(map(str, emitted))}"


def decided(peer, subject, draft, target, coin, seed) -> tuple[str, int | None]:
    """Return what becomes of token 0, for a coin that all generators give."""
    convert = converter(peer.xp)
    rows = [np.asarray(draft)[None, None] if draft else None, np.asarray([[target] * 2])]
    arrays = [None if r is None else convert(r.astype(np.float32)) for r in rows]
    arrays.append(convert(np.zeros((1, 1), np.int32)))
    try:
        if peer.kind == "verifier":
            uniforms = convert(np.asarray([[coin, (seed + 0.5) / 8]], np.float32))
            accepted, token = (int(part[0]) for part in subject(*arrays, uniforms))
        else:
            with coins(coin):
                tokens = to_host(subject(*arrays, seed))[0]
            accepted, token = int((tokens != -1).sum()) - 1, int(tokens[tokens != -1][-1])
    except Exception as error:  # noqa: BLE001 - what it raises is what is asked
        return f"raises `{type(error).__name__}`", None
    return "accepts" if accepted else "rejects", token


def coins(coin: float) -> ExitStack:
    """Let uniform numbers be this one, in PyTorch and in JAX."""
    import jax

    def like(array, **_):
        return torch.full_like(array, coin)

    def uniform(_, shape=(), **__):
        return jax.numpy.full(shape, coin, jax.numpy.float32)

    def rand(*shape, dtype=torch.float32, **_):
        shape = shape[0] if shape and not isinstance(shape[0], int) else shape
        return torch.full(tuple(shape), coin, dtype=dtype)

    stack = ExitStack()
    stack.enter_context(mock.patch.object(torch, "rand_like", like))
    stack.enter_context(mock.patch.object(torch, "rand", rand))
    stack.enter_context(mock.patch.object(jax.random, "uniform", uniform))
    stack.enter_context(jax.disable_jit())
    return stack


STEPS = 4000


def without_adapter() -> list[str]:
    """Return the law of the first token of steps that draft for themselves.

    An adapter of ours replaces their drafts; here nothing is replaced.
    """
    from seqspecdecod.capped_hsd import capped_hsd_step
    from seqspecdecod.standard_sd import standard_speculative_step

    steps = standard_speculative_step, capped_hsd_step
    names = " | ".join(f"`{step.__name__}`" for step in steps)
    lines = [f"| drafts | {names} |", "| --- |" + " --- |" * len(steps)]
    torch.manual_seed(0)
    for count in (1, 2, 3):
        shares = [first_token(step, (0.75, 0.25), (0.25, 0.75), count) for step in steps]
        told = " | ".join(f"{share:.3f}, {1 - share:.3f}" for share in shares)
        lines.append(f"| {count} | {told} |")
    return lines


def first_token(step, draft, target, count) -> float:
    """Return how often the first of a step's tokens is 0, for the same rows everywhere."""

    def model(row):
        logits = torch.tensor(row).log()
        return lambda ids: SimpleNamespace(logits=logits.expand(1, ids.shape[1], len(row)))

    models = model(draft), model(target)
    prompt = torch.zeros((1, 1), dtype=torch.long)
    steps = (step(*models, prompt, count, 1.0, 1.0) for _ in range(STEPS))
    return sum(int(tokens[0, 1]) == 0 for tokens, *_ in steps) / STEPS
