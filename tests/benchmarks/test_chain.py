"""Chains, V = 128,256: against what transformers does, and against reading the rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers.generation.utils import _speculative_sampling

from draftproof import verify_chain

SIZE = 128_256
SHAPES = ((1, 5), (32, 4))  # requests, drafts
TURNS = range(4)


class GivenProbs:
    """Stands for logits whose softmax is known, so that its time is not measured."""

    def __init__(self, probs):
        self.probs, self.shape = probs, probs.shape

    def softmax(self, dim):
        """Return the probabilities."""
        return self.probs


@pytest.fixture(scope="module", params=SHAPES, ids=lambda shape: "B{}-K{}".format(*shape))
def chain(request):
    """Rows, tokens and uniforms as NumPy arrays, and the same memory as tensors."""
    requests, length = request.param
    random = np.random.default_rng(0)
    draft, target = (
        random.random((requests, rows, SIZE), dtype=np.float32)
        for rows in (length, length + 1)
    )
    draft /= draft.sum(-1, keepdims=True)
    target /= target.sum(-1, keepdims=True)
    tokens = random.integers(SIZE, size=(requests, length))
    arrays = (draft, target, tokens, random.random((requests, length + 1)))
    return request.param, arrays, tuple(map(torch.from_numpy, arrays))


def numpy_sums(draft, target, num_accepted):
    """One numpy.sum of each row that has to be read: nothing can do with less."""
    for at, place in enumerate(num_accepted):
        target[at, place].sum()
        if place < draft.shape[1]:
            draft[at, place].sum()


def all_rows(draft, target):
    """Residuals of all rows, then multinomial, as engines have done it."""
    residual = torch.clamp(target[:, :-1] - draft, min=0)
    residual /= residual.sum(-1, keepdim=True)
    return torch.multinomial(residual.reshape(-1, SIZE), 1)


def run(benchmark, group, call, *, long=False):
    """Time a call in a group."""
    benchmark.group = group
    benchmark.pedantic(
        call, rounds=5 if long else 60, iterations=1 if long else 5, warmup_rounds=2
    )


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("who", ["draftproof", "block rule", "sum of rows"])
def test_numpy(benchmark, chain, who, turn):
    """The loop over views, against reading the rows that it needs once."""
    (requests, length), (draft, target, tokens, uniforms), _ = chain
    num_accepted = verify_chain(draft, target, tokens, uniforms).num_accepted
    call = {
        "draftproof": lambda: verify_chain(draft, target, tokens, uniforms),
        "block rule": lambda: verify_chain(draft, target, tokens, uniforms, rule="block"),
        "sum of rows": lambda: numpy_sums(draft, target, num_accepted),
    }[who]
    run(benchmark, f"chain, numpy, B = {requests}, K = {length}", call)


# The first import of PyTorch's own compiler warns of its parts.
@pytest.mark.filterwarnings("ignore:.torch.jit.script_method:DeprecationWarning")
@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("who", ["draftproof", "compiled", "transformers", "all rows"])
def test_torch(benchmark, chain, who, turn):
    """Eager and compiled, against transformers' function and all rows at once."""
    (requests, length), _, (draft, target, tokens, uniforms) = chain
    if who == "transformers" and requests > 1:
        pytest.skip("transformers verifies one request at a time")
    given = GivenProbs(draft), length, GivenProbs(target)
    compiled = torch.compile(verify_chain, fullgraph=True) if who == "compiled" else None
    call = {
        "draftproof": lambda: verify_chain(draft, target, tokens, uniforms),
        "compiled": lambda: compiled(draft, target, tokens, uniforms),
        "transformers": lambda: _speculative_sampling(tokens, *given),
        "all rows": lambda: all_rows(draft, target),
    }[who]
    group = f"chain, torch, B = {requests}, K = {length}"
    run(benchmark, group, call, long=who == "all rows")
