"""The decoding loop: draft a chain, verify it, append what it emits."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from draftproof import draw, verify_chain
from draftproof.demo._figures import Emitted, Run, figures

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from draftproof.demo._models import NGram

__all__ = ["BACKENDS", "Backend", "Plan", "decode"]


class Backend(NamedTuple):
    """How to get a NumPy array into a library."""

    module: str
    package: str
    function: str

    def converter(self) -> Callable[[NDArray[Any]], Any]:
        """Import the library and return its conversion; ImportError if it is missing."""
        converter: Callable[[NDArray[Any]], Any]
        converter = getattr(import_module(self.module), self.function)
        return converter


BACKENDS = {
    "numpy": Backend("numpy", "numpy", "asarray"),
    "torch": Backend("torch", "torch", "from_numpy"),
    "jax": Backend("jax.numpy", "jax", "asarray"),
}


class Plan(NamedTuple):
    """What a run is to do.

    Attributes
    ----------
    tokens : int
        How many tokens to emit.
    seed : int
        Seed of the uniforms.
    draft_length : int
        K, how many tokens to draft for each call of the target; 1 or more.
    rule : {"token", "block"}
        The rule of acceptance.
    backend : {"numpy", "torch", "jax"}
        Where the verification runs.
    """

    tokens: int
    seed: int = 0
    draft_length: int = 4
    rule: str = "token"
    backend: str = "numpy"


def decode(draft: NGram, target: NGram, prompt: Sequence[int], plan: Plan) -> Run:
    """Generate tokens after `prompt` by speculative decoding.

    Models, drafts and uniforms are made on the host in NumPy, so the same seed gives
    the same text whatever library the verification runs on, unless a number that draws
    a token falls within rounding of a boundary: once in some 10,000 calls.

    Parameters
    ----------
    draft, target : NGram
        The model that proposes and the model that decides.
    prompt : sequence of int
        The words before the first one.
    plan : Plan
        How much to generate, and how.

    Returns
    -------
    Run
        The emitted tokens, and the figures of each call of the target.

    Raises
    ------
    ImportError
        If the library of the backend is not installed.
    """
    convert = BACKENDS[plan.backend].converter()
    random = np.random.default_rng(plan.seed)
    context, run = list(prompt), Run(plan.rule)
    while len(run.emitted) < plan.tokens:
        draft_rows, tokens = _propose(draft, context, random.random(plan.draft_length))
        target_rows = _score(target, context, tokens)
        # JAX has no float64 by default, and a float64 cast to float32 may become 1.
        uniforms = random.random(plan.draft_length + 1, dtype=np.float32)
        arrays = (convert(one) for one in (draft_rows, target_rows, tokens, uniforms))
        verdict = verify_chain(*arrays, rule=plan.rule)
        num_accepted = int(verdict.num_accepted)
        emitted = [
            Emitted(token, accepted=True) for token in tokens[:num_accepted].tolist()
        ]
        emitted.append(Emitted(int(verdict.next_token), accepted=False))
        context.extend(token for token, _ in emitted)
        run.emitted.extend(emitted)
        run.calls.append(figures(draft_rows, target_rows, tokens, num_accepted))
    del run.emitted[plan.tokens :]
    return run


def _propose(
    draft: NGram, context: Sequence[int], uniforms: NDArray[np.float64]
) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Draft a token with each uniform number; return the rows (K, V) and the tokens."""
    ahead, rows = list(context), []
    for uniform in uniforms:
        rows.append(draft.law(ahead))
        ahead.append(int(draw(rows[-1], np.asarray(uniform))))
    # int32 is what JAX has without x64.
    return np.stack(rows), np.asarray(ahead[len(context) :], dtype=np.int32)


def _score(
    target: NGram, context: Sequence[int], tokens: NDArray[np.int32]
) -> NDArray[np.float32]:
    """Return the target's rows at each drafted token and behind the last: (K + 1, V)."""
    ahead = [*context, *tokens.tolist()]
    ends = range(len(context), len(ahead) + 1)
    return np.stack([target.law(ahead[:end]) for end in ends])
