"""Samplers made of verifiers, with random numbers of their own."""

from __future__ import annotations

from functools import update_wrapper
from typing import TYPE_CHECKING, Any

import numpy as np

from draftproof.conformance.broken import (
    _acceptance,
    _block,
    _bookkeeping,
    _replacement,
)
from draftproof.conformance.broken._batch import batch_of
from draftproof.conformance.broken._broken import SAMPLERS, VERIFIERS, Broken, entered
from draftproof.conformance.broken._right import emitted, uniforms_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from draftproof.conformance.broken._batch import Array, Batch
    from draftproof.conformance.broken._broken import Register, Subject

__all__ = ["sampler_of", "sampling"]


def sampler_of(verifier: Subject) -> Subject:
    """Return a sampler that draws uniforms from its seed, and verifies with them."""

    def sampler(draft_probs: Any, target_probs: Any, draft_tokens: Any, seed: int) -> Array:
        uniforms = uniforms_for(seed, draft_tokens)
        verdict = verifier(draft_probs, target_probs, draft_tokens, uniforms)
        batch = batch_of(draft_probs, target_probs, draft_tokens, uniforms)
        return emitted(batch, verdict)

    return sampler


def sampling(
    fault: str | None, catalogue: dict[str, Broken] = SAMPLERS, rule: str | None = "token"
) -> Register:
    """Return a decorator for a function of a batch and a seed that emits tokens."""

    def register(emit: Callable[[Batch, int], Array]) -> Subject:
        def sampler(
            draft_probs: Any, target_probs: Any, draft_tokens: Any, seed: int
        ) -> Array:
            uniforms = uniforms_for(seed, draft_tokens)
            with np.errstate(all="ignore"):
                batch = batch_of(draft_probs, target_probs, draft_tokens, uniforms)
                return emit(batch, seed)

        return entered(catalogue, fault, rule)(update_wrapper(sampler, emit))

    return register


_UNSEEN = [
    "inclusive_test",
    "undefined_ratio_accepted",
    "clamp_to_a_tiny_number",
    "uniforms_rounded_to_one",
    "edge_in_the_bin_before",
    "last_bin_off_the_end",
    "ratio_in_half_precision",
    "epsilon_in_the_denominator",
    "epsilon_in_the_divisor",
    "residual_in_three_bits",
    "nan_dropped",
    "nan_row_gives_token_zero",
    "target_overwritten",
    "residual_for_a_placeholder",
    "no_draft_rows_taken_for_uniform_ones",
    "sure_draft_can_be_drawn_again",
    "accepted_less_one",
    "bonus_counted_as_accepted",
    "shortest_of_the_batch",
    "strides_ignored",
    "block_of_one_coin",
]
"""What random numbers hardly hit, or what happens on other inputs than drawn drafts."""

_NAMED = {
    "bonus_dropped": "token rule without the bonus token",
    "noise_shared_between_requests": "same noise for every request",
    "residual_of_the_first_row": None,  # which three drafts tell apart
}
"""Names that emitted tokens give to what has none by single decisions."""


for _module in (_acceptance, _replacement, _bookkeeping, _block):
    for _name in [name for name in vars(_module) if name in VERIFIERS]:
        if _name not in _UNSEEN:
            _known = VERIFIERS[_name]
            SAMPLERS[_name] = _known._replace(
                subject=update_wrapper(sampler_of(_known.subject), _known.subject),
                fault=_NAMED.get(_name, _known.fault),
                noted=None,
            )
