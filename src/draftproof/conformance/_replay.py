"""One batch of a sampler again, printed: what the snippets of reports call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from draftproof.conformance._call import Caller
from draftproof.conformance._counts import Case, Counts, stream
from draftproof.conformance._draft_counts import ROWS, draft_misfit, rows_of_logits
from draftproof.conformance._drawing import Drafter
from draftproof.conformance._models import MODELS
from draftproof.conformance._plan import BATCH
from draftproof.conformance._structure import misfit
from draftproof.conformance._subject import converter, find
from draftproof.conformance._variants import RIGHT

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["replay", "replay_draft"]


def replay(
    sampler: Any,
    model: str,
    seed: int,
    *,
    rule: str | None = None,
    drafter: Any = None,
    **options: Any,
) -> Iterator[str]:
    """Yield lines of what a sampler does with one batch, next to what is right.

    Parameters
    ----------
    sampler, drafter
        As in `check_sampler`.
    model
        A name in ``MODELS``.
    seed
        The seed of the batch.
    rule
        None for sequences of K + 1 tokens, else the outcomes after each path.
    **options
        ``xp``, ``dtype``, ``one_hot`` as in `check_sampler`; ``size`` of the batch.
    """
    case = Case(MODELS[model], one_hot=options.get("one_hot", False))
    convert = converter(options.get("xp", "numpy"))
    caller = Caller(find(sampler), drafter, convert, options.get("dtype", "float32"))
    rng = stream(seed)
    tokens = caller.drafted(case, rng, options.get("size", BATCH), seed)
    emitted = caller.emitted(case, tokens, seed)
    length, size = case.shape
    wrong = misfit(tokens, emitted, size)
    if wrong is not None:
        yield wrong.detail
        return
    counts = Counts(case)
    counts.add(rng, tokens, emitted)
    seen, expected = counts.sequences, case.target_law * counts.size
    shape: tuple[int, ...] = (size,) * (length + 1)
    yield "tokens" if rule is None else "drafts, number accepted, next token"
    if rule is not None:
        laws = case.outcome_laws(RIGHT[rule])
        seen = counts.outcomes
        expected = laws * seen.sum(1, keepdims=True)
        shape = (*(size,) * length, length + 1, size)
    for place in np.ndindex(shape):
        came, right = seen.reshape(shape)[place], expected.reshape(shape)[place]
        if came or right:
            yield f"{place}: {came:,} times, {right:,.1f} expected"


def replay_draft(drafter: Any, row: str, seed: int, **options: Any) -> Iterator[str]:
    """Yield lines of what a drafter draws for one row of logits, next to its law.

    Parameters
    ----------
    drafter
        As in `check_draft`.
    row
        A name in ``ROWS``.
    seed
        The seed of the batch.
    **options
        ``xp``, ``dtype``, ``size`` as in `check_draft`.
    """
    convert = converter(options.get("xp", "numpy"))
    caller = Drafter(find(drafter), convert, options.get("dtype", "float32"))
    logits = rows_of_logits(options.get("size", 64))[ROWS.index(row)]
    tokens, probs = caller.drawn(np.tile(logits, (BATCH, 1)), seed)
    wrong = draft_misfit(tokens, probs, (BATCH, len(logits)))
    if wrong is not None:
        yield wrong.detail
        return
    yield "token"
    seen = np.bincount(tokens, minlength=len(logits))
    for token, (came, right) in enumerate(zip(seen, probs.sum(0), strict=True)):
        yield f"{token}: {came:,} times, {right:,.1f} expected"
