"""Verifiers whose arithmetic is right, on wrong arguments or with a wrong report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from draftproof.conformance.broken._batch import batch_of, row
from draftproof.conformance.broken._broken import VERIFIERS, entered, noted, verifying
from draftproof.conformance.broken._right import verify

if TYPE_CHECKING:
    from draftproof.conformance.broken._batch import Batch
    from draftproof.conformance.broken._right import Verdict

__all__: list[str] = []


@verifying("draft and target swapped")
def draft_and_target_swapped(batch: Batch) -> Verdict:
    """Take the draft for the target and the target for the draft (D13)."""
    real, former = batch.drafted[:, :, None], batch.target[:, :-1]
    target = batch.target.copy()
    target[:, :-1] = np.where(real, batch.draft, former)
    return verify(batch._replace(draft=np.where(real, former, 0), target=target))


@verifying(None)
def bonus_dropped(batch: Batch) -> Verdict:
    """Emit no token after all drafts were accepted (C02)."""
    accepted, token = verify(batch)
    return accepted, np.where(accepted == batch.tokens.shape[1], -1, token)


@verifying(None)
def bonus_counted_as_accepted(batch: Batch) -> Verdict:
    """Report how many tokens are emitted as how many were accepted (C01, C03)."""
    accepted, token = verify(batch)
    return accepted + 1, token


@verifying(None)
def accepted_less_one(batch: Batch) -> Verdict:
    """Take one off for a bonus token that was not emitted; -1 after none (C06)."""
    accepted, token = verify(batch)
    return accepted - (accepted < batch.tokens.shape[1]), token


@noted(VERIFIERS, "token -1")
@verifying(None)
def padding_counted(batch: Batch) -> Verdict:
    """Count padding as accepted: its rows of zeros pass the test (C03)."""
    accepted, token = verify(batch)
    behind = np.arange(batch.tokens.shape[1]) >= accepted[:, None]
    return accepted + (behind & ~batch.drafted).sum(axis=1), token


@noted(VERIFIERS, "token -1")
@entered(VERIFIERS, None)
def placeholder_read_as_the_last_token(
    draft_probs: Any, target_probs: Any, draft_tokens: Any, uniforms: Any
) -> Verdict:
    """Use -1 as an index, which is the last token of the vocabulary (G01)."""
    tokens = np.asarray(draft_tokens) % np.shape(target_probs)[-1]
    with np.errstate(all="ignore"):
        return verify(batch_of(draft_probs, target_probs, tokens, uniforms))


@entered(VERIFIERS, None)
def token_zero_for_no_draft(
    draft_probs: Any, target_probs: Any, draft_tokens: Any, uniforms: Any
) -> Verdict:
    """Take the zeros of a buffer that no draft was written to for drafts (C06)."""
    tokens = np.maximum(np.asarray(draft_tokens), 0)
    with np.errstate(all="ignore"):
        return verify(batch_of(draft_probs, target_probs, tokens, uniforms))


@entered(VERIFIERS, None)
def no_draft_rows_taken_for_uniform_ones(
    draft_probs: Any, target_probs: Any, draft_tokens: Any, uniforms: Any
) -> Verdict:
    """Fill in draft rows that were not given with 1 / V, though drafts were sure (J04)."""
    size = np.shape(target_probs)[-1]
    if draft_probs is None:
        draft_probs = np.full((*np.shape(draft_tokens), size), 1 / size)
    with np.errstate(all="ignore"):
        return verify(batch_of(draft_probs, target_probs, draft_tokens, uniforms))


@entered(VERIFIERS, None)
def sure_draft_can_be_drawn_again(
    draft_probs: Any, target_probs: Any, draft_tokens: Any, uniforms: Any
) -> Verdict:
    """Draw from p, not from p without the draft, where no draft rows are given (B03)."""
    batch = batch_of(draft_probs, target_probs, draft_tokens, uniforms)
    with np.errstate(all="ignore"):
        if draft_probs is not None:
            return verify(batch)
        return verify(batch, weigh=lambda batch, n: row(batch.target, n))


@entered(VERIFIERS, None)
def target_overwritten(
    draft_probs: Any, target_probs: Any, draft_tokens: Any, uniforms: Any
) -> Verdict:
    """Decide rightly, and leave 0 at the drafted tokens in the caller's rows (J01)."""
    with np.errstate(all="ignore"):
        verdict = verify(batch_of(draft_probs, target_probs, draft_tokens, uniforms))
    ids = np.maximum(np.asarray(draft_tokens), 0)[..., None]
    np.put_along_axis(target_probs[:, :-1], ids, 0, axis=-1)
    return verdict


@noted(VERIFIERS, "NaN in the draft row")
@verifying(None)
def nan_dropped(batch: Batch) -> Verdict:
    """Take NaN in a draft row for 0, as a maximum that drops NaN does (B06)."""
    return verify(batch._replace(draft=np.nan_to_num(batch.draft)))


@noted(VERIFIERS, "NaN in the target row")
@verifying(None)
def nan_row_gives_token_zero(batch: Batch) -> Verdict:
    """Make an ordinary token of a row of NaN, the first (B07, F03)."""
    accepted, token = verify(batch)
    return accepted, np.where(np.isnan(row(batch.target, accepted)).any(-1), 0, token)


@verifying("coin reused for the replacement")
def coin_reused(batch: Batch) -> Verdict:
    """Draw the replacement with the coin that rejected the draft (E01)."""
    accepted, _ = verify(batch)
    uniforms = batch.uniforms.copy()
    kept = batch.all_accepted(accepted)
    uniforms[:, -1] = np.where(kept, uniforms[:, -1], row(uniforms, accepted))
    return verify(batch._replace(uniforms=uniforms))


@verifying(None)
def one_coin_for_all_places(batch: Batch) -> Verdict:
    """Test every draft of a request with its first coin (E01)."""
    uniforms = batch.uniforms.copy()
    uniforms[:, 1:-1] = uniforms[:, :1]
    return verify(batch._replace(uniforms=uniforms))


@verifying(None)
def first_coin_draws_the_replacement(batch: Batch) -> Verdict:
    """Draw the next token with the first coin, whichever one rejected (E01)."""
    uniforms = batch.uniforms.copy()
    uniforms[:, -1] = uniforms[:, 0]
    return verify(batch._replace(uniforms=uniforms))


@verifying(None)
def noise_shared_between_requests(batch: Batch) -> Verdict:
    """Use the uniforms of the first request for all of them (E10)."""
    shared = np.broadcast_to(batch.uniforms[:1], batch.uniforms.shape)
    return verify(batch._replace(uniforms=shared))


@verifying(None)
def strides_ignored(batch: Batch) -> Verdict:
    """Read the coins as if the rows of uniforms had no last column (G06, E06)."""
    requests, drafts = batch.tokens.shape
    coins = batch.uniforms.ravel()[: requests * drafts].reshape(requests, drafts)
    uniforms = np.concatenate([coins, batch.uniforms[:, -1:]], axis=1)
    return verify(batch._replace(uniforms=uniforms))


@verifying(None)
def uniforms_rounded_to_one(batch: Batch) -> Verdict:
    """Round uniforms to half precision, and those just below 1 to 1 (E03)."""
    rounded = batch.uniforms.astype(np.float16).astype(np.float64)
    return verify(batch._replace(uniforms=rounded))


@verifying(None)
def coins_of_four_bits(batch: Batch) -> Verdict:
    """Keep four bits of every uniform, so that small probabilities vanish (E03)."""
    uniforms = np.floor(batch.uniforms * 16) / 16
    return verify(batch._replace(uniforms=uniforms))


@verifying(None)
def verdicts_of_the_neighbour(batch: Batch) -> Verdict:
    """Return the next token of the request before in the batch (G02, C08)."""
    accepted, token = verify(batch)
    return accepted, np.roll(token, 1)
