"""Wrong samplers: faults of engines around a verifier that is right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from draftproof.conformance.broken._batch import at, row
from draftproof.conformance.broken._broken import SAMPLERS, noted
from draftproof.conformance.broken._right import (
    coins_below_ratio,
    emitted,
    inverse_cdf,
    until_first_failure,
    verify,
)
from draftproof.conformance.broken._sampling import sampling

if TYPE_CHECKING:
    from draftproof.conformance.broken._batch import Array, Batch
    from draftproof.conformance.broken._right import Verdict

__all__ = ["drawn_from_target", "matched"]


@sampling("rejected drafts left behind the replacement")
def rejected_drafts_left(batch: Batch, seed: int) -> Array:
    """Leave rejected drafts in the buffer, behind the token that replaces one (C08)."""
    del seed
    tokens = emitted(batch, verify(batch))
    stale = np.pad(batch.tokens, ((0, 0), (0, 1)), constant_values=-1)
    return np.where(tokens < 0, stale, tokens)


@sampling(None)
def zeros_behind_the_last_token(batch: Batch, seed: int) -> Array:
    """Fill the buffer with 0, which is a token, and not with -1 (C01, C06)."""
    del seed
    return np.maximum(emitted(batch, verify(batch)), 0)


@sampling("padding counted as accepted")
def padding_taken_for_drafts(batch: Batch, seed: int) -> Array:
    """Verify padding as if token 0 had been drafted there, and emit it (C03, C06)."""
    del seed
    tokens = np.maximum(batch.tokens, 0)
    padded = batch._replace(tokens=tokens, drafted=np.ones_like(batch.drafted))
    return emitted(padded, verify(padded))


@sampling("nothing emitted")
def replacement_dropped(batch: Batch, seed: int) -> Array:
    """Emit the accepted drafts only, no token in place of the rejected one (C02)."""
    del seed
    accepted, token = verify(batch)
    kept = np.where(accepted == batch.tokens.shape[1], token, -1)
    return emitted(batch, (accepted, kept))


@sampling(None)
def rejected_draft_emitted(batch: Batch, seed: int) -> Array:
    """Emit the draft that was rejected, not the token drawn in its place (C08)."""
    del seed
    accepted, token = verify(batch)
    places = np.minimum(accepted, batch.tokens.shape[1] - 1)
    wrong = np.where(batch.all_accepted(accepted), token, row(batch.tokens, places))
    return emitted(batch, (accepted, wrong))


@sampling("seed ignored")
def seed_ignored(batch: Batch, seed: int) -> Array:
    """Draw the same random numbers whatever the seed (E06)."""
    del seed
    return emitted(batch, verify(_with_uniforms(batch, 0)))


@noted(SAMPLERS, "same seed again")
@sampling(None)
def not_replayable(batch: Batch, seed: int) -> Array:
    """Draw other random numbers every time, though the seed is the same (E06, E07)."""
    del seed
    return emitted(batch, verify(_with_uniforms(batch, None)))


def _with_uniforms(batch: Batch, seed: int | None) -> Batch:
    uniforms = np.random.default_rng(seed).random(batch.uniforms.shape)
    return batch._replace(uniforms=uniforms)


@sampling(None)
def noise_keyed_by_the_draft(batch: Batch, seed: int) -> Array:
    """Take coins that depend on nothing but the seed and the drafted token (E10)."""
    noise = np.random.default_rng(seed).random(batch.target.shape[1:])
    uniforms = batch.uniforms.copy()
    places = np.arange(batch.tokens.shape[1])
    uniforms[:, :-1] = noise[places, batch.tokens]
    return emitted(batch, verify(batch._replace(uniforms=uniforms)))


@sampling(None)
def mismatch_drawn_again(batch: Batch, seed: int) -> Array:
    """Draw from p, keep the draft if it is equal, and else draw once more (B02)."""
    rng = np.random.default_rng(seed)
    accepted, _ = matched(batch, drawn_from_target(batch, rng))
    again = row(drawn_from_target(batch, rng), accepted)
    return emitted(batch, (accepted, again))


@sampling(None)
def one_noise_for_all_places(batch: Batch, seed: int) -> Array:
    """Draw the target's tokens of all places with the same uniform (E01)."""
    del seed
    uniforms = batch.uniforms[:, -1]
    drawn = [inverse_cdf(rows, uniforms) for rows in batch.target.swapaxes(0, 1)]
    return emitted(batch, matched(batch, np.stack(drawn, axis=1)))


@sampling(None)
def target_sharpened(batch: Batch, seed: int) -> Array:
    """Score the target at another temperature than was asked for (D02, D04)."""
    del seed
    sharp = batch.target**2
    target = sharp / sharp.sum(axis=-1, keepdims=True)
    return emitted(batch, verify(batch._replace(target=target)))


@sampling(None)
def draft_flattened(batch: Batch, seed: int) -> Array:
    """Verify with draft rows at another temperature than they were drawn at (D04)."""
    del seed
    flat = batch.draft**0.5
    draft = flat / flat.sum(axis=-1, keepdims=True)
    return emitted(batch, verify(batch._replace(draft=draft)))


@sampling(None)
def race_with_uniform_noise(batch: Batch, seed: int) -> Array:
    """Draw replacements by a race, with noise that is not exponential (E05)."""

    def draw(weights: Array, uniforms: Array) -> Array:
        del uniforms
        noise = np.random.default_rng([seed, 1]).random(weights.shape)
        return (weights / (noise + 1e-9)).argmax(axis=-1)

    return emitted(batch, verify(batch, draw=draw))


@sampling("same noise for every request")
def race_shared_by_the_batch(batch: Batch, seed: int) -> Array:
    """Draw replacements by a race with one noise for all requests (E10)."""

    def draw(weights: Array, uniforms: Array) -> Array:
        del uniforms
        noise = np.random.default_rng([seed, 1]).exponential(size=weights.shape[-1])
        return (weights / noise).argmax(axis=-1)

    return emitted(batch, verify(batch, draw=draw))


@sampling(None)
def replacement_of_the_first_ratio(batch: Batch, seed: int) -> Array:
    """Read every ratio from the first pair of rows, not from the place's own (B09)."""
    del seed
    p = at(np.broadcast_to(batch.target[:, :1], batch.draft.shape), batch.tokens)
    q = at(np.broadcast_to(batch.draft[:, :1], batch.draft.shape), batch.tokens)
    good = batch.coins * q < p
    good[:, :1] = coins_below_ratio(batch)[:, :1]
    return emitted(batch, verify(batch, accept=lambda _: good))


def drawn_from_target(batch: Batch, rng: np.random.Generator) -> Array:
    """Return a token of each target row, (B, K + 1)."""
    rows = batch.target.reshape(-1, batch.target.shape[-1])
    return inverse_cdf(rows, rng.random(len(rows))).reshape(batch.target.shape[:2])


def matched(batch: Batch, drawn: Array) -> Verdict:
    """Accept drafts as long as they equal the tokens that the target gave."""
    equal = (batch.tokens == drawn[:, :-1]) & batch.drafted
    accepted = until_first_failure(equal)
    return accepted, row(drawn, accepted).astype(batch.tokens.dtype)
