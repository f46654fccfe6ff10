"""Samplers of other forms, put into the form that `check_sampler` calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from array_api_compat import array_namespace, device

from draftproof.conformance._subject import name_of, to_host

if TYPE_CHECKING:
    from collections.abc import Callable

    from draftproof.conformance._subject import Host

__all__ = ["flat", "from_logits", "from_verdict", "one_at_a_time"]


def _named(adapter: str, fn: Callable[..., Any], adapted: Callable[..., Any]) -> Any:
    """Let the adapted function tell in reports what it was made of."""
    module, _, function = name_of(fn).rpartition(":")
    adapted.__module__, adapted.__qualname__ = module, f"{adapter}({function})"
    return adapted


def one_at_a_time(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a sampler of batches from one of single requests.

    Parameters
    ----------
    fn : callable
        Called with draft_probs (K, V), or None, target_probs (K + 1, V), draft_tokens
        (K,) and a seed of its own for each request, it returns the emitted tokens, in a
        list or an array, with padding behind or without. Requests with fewer drafts
        come without padding; K may be 0.

    Returns
    -------
    callable
        A sampler for `check_sampler`.

    Examples
    --------
    >>> import numpy as np
    >>> from draftproof.conformance import check_sampler, one_at_a_time
    >>> def sampler(draft_probs, target_probs, draft_tokens, seed):
    ...     rng = np.random.default_rng(seed)
    ...     row = target_probs[0].astype(float)
    ...     return [int(rng.choice(row.size, p=row / row.sum()))]  # no draft is used
    >>> batched = one_at_a_time(sampler)
    >>> rows = np.full((3, 2, 4), 0.25)
    >>> batched(rows[:, :1], rows, np.zeros((3, 1), int), 7).shape
    (3, 2)
    """

    def batched(draft_probs: Any, target_probs: Any, draft_tokens: Any, seed: int) -> Host:
        drafted = to_host(draft_tokens)
        count, length = drafted.shape
        seeds = np.random.default_rng(seed).integers(2**31, size=(count,)).tolist()
        emitted = np.full((count, length + 1), -1, np.int64)
        ends = (np.cumsum(drafted < 0, axis=1) == 0).sum(1)
        for row, end in enumerate(ends.tolist()):
            draft = None if draft_probs is None else draft_probs[row, :end]
            request = draft, target_probs[row, : end + 1], draft_tokens[row, :end]
            tokens = np.atleast_1d(to_host(fn(*request, seeds[row])))
            if (
                tokens.ndim != 1
                or len(tokens) > length + 1
                or tokens.dtype.kind not in "iu"
            ):
                return tokens  # whose form will be found wrong
            emitted[row, : len(tokens)] = tokens
        return emitted

    adapted: Callable[..., Any] = _named("one_at_a_time", fn, batched)
    return adapted


def from_logits(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a sampler of probabilities from one of logits.

    Parameters
    ----------
    fn : callable
        A sampler that takes logarithms of probabilities, ``-inf`` for 0, instead of
        probabilities: draft_logits, or None, target_logits, and what else there is.

    Returns
    -------
    callable
        A sampler for `check_sampler`, or for another adapter.

    Examples
    --------
    >>> import numpy as np
    >>> from draftproof.conformance import from_logits
    >>> given = from_logits(lambda draft_logits, target_logits, tokens, seed: target_logits)
    >>> given(None, np.asarray([[1.0, 0.0]]), None, 0)
    array([[  0., -inf]])
    """

    def adapted(draft_probs: Any, target_probs: Any, *rest: Any) -> Any:
        draft_logits = None if draft_probs is None else _logarithm(draft_probs)
        return fn(draft_logits, _logarithm(target_probs), *rest)

    named: Callable[..., Any] = _named("from_logits", fn, adapted)
    return named


def _logarithm(probs: Any) -> Any:
    xp = array_namespace(probs)
    possible = probs > 0
    one, nothing = (xp.full_like(probs, value) for value in (1.0, -float("inf")))
    return xp.where(possible, xp.log(xp.where(possible, probs, one)), nothing)


def flat(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a sampler of padded batches from one of concatenated rows.

    Parameters
    ----------
    fn : callable
        Called with draft_probs (N, V), or None, target_probs (N + B, V), draft_tokens
        (N,), the numbers of drafts (B,), which add up to N, and a seed, it returns the
        emitted tokens as `check_sampler` needs them, shape (B, K + 1) for the largest
        number of drafts K; or what `from_verdict` takes.

    Returns
    -------
    callable
        A sampler for `check_sampler`, or for another adapter.

    Examples
    --------
    >>> import numpy as np
    >>> from draftproof.conformance import flat
    >>> def sampler(draft_probs, target_probs, draft_tokens, lengths, seed):
    ...     print(target_probs.shape, draft_tokens, lengths)
    ...     return np.zeros((2, 3), int)
    >>> tokens = np.asarray([[4, 2], [3, -1]])
    >>> flat(sampler)(None, np.full((2, 3, 5), 0.2), tokens, 0).shape
    (5, 5) [4 2 3] [2 1]
    (2, 3)
    """

    def padded(draft_probs: Any, target_probs: Any, draft_tokens: Any, seed: int) -> Any:
        drafted = to_host(draft_tokens)
        real = np.cumsum(drafted < 0, axis=1) == 0
        rows = np.concatenate([np.ones((len(real), 1), bool), real], axis=1)
        draft = None if draft_probs is None else _taken(draft_probs, real)
        tokens = _taken(draft_tokens[..., None], real)[..., 0]
        xp = array_namespace(draft_tokens)
        lengths = xp.asarray(real.sum(1), dtype=tokens.dtype, device=device(tokens))
        return _wide(fn(draft, _taken(target_probs, rows), tokens, lengths, seed), real)

    adapted: Callable[..., Any] = _named("flat", fn, padded)
    return adapted


def _taken(rows: Any, kept: Host) -> Any:
    """Return the rows (N, V) of an array (B, K, V) that are kept."""
    xp = array_namespace(rows)
    index = xp.asarray(np.flatnonzero(kept), device=device(rows))
    return xp.take(xp.reshape(rows, (-1, rows.shape[-1])), index, axis=0)


def _wide(result: Any, real: Host) -> Any:
    """Pad to K + 1 columns what came from a batch without any longest request."""
    if isinstance(result, tuple):
        return result
    tokens = to_host(result)
    missing = real.shape[1] + 1 - tokens.shape[-1]
    if tokens.ndim != real.ndim or missing <= 0:
        return tokens
    return np.pad(tokens, ((0, 0), (0, missing)), constant_values=-1)


def from_verdict(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a sampler from one that returns a number accepted and the next token.

    Parameters
    ----------
    fn : callable
        Takes what a sampler takes and returns a pair: how many drafts are accepted,
        shape (B,), and the token behind them, shape (B,).

    Returns
    -------
    callable
        A sampler for `check_sampler`, or for another adapter.

    Examples
    --------
    >>> import numpy as np
    >>> from draftproof import verify_chain
    >>> from draftproof.conformance import check_sampler, from_verdict
    >>> def sampler(draft_probs, target_probs, draft_tokens, seed):
    ...     uniforms = np.random.default_rng(seed).random(target_probs.shape[:-1])
    ...     return verify_chain(draft_probs, target_probs, draft_tokens, uniforms)
    >>> check_sampler(from_verdict(sampler), quick=True).conforms
    True
    """

    def emitting(
        draft_probs: Any, target_probs: Any, draft_tokens: Any, *rest: Any
    ) -> Host:
        verdict = fn(draft_probs, target_probs, draft_tokens, *rest)
        accepted, token = (to_host(part)[..., None] for part in verdict)
        drafted = to_host(draft_tokens)
        filler = np.full((*drafted.shape[:-1], 1), -1, drafted.dtype)
        places = np.arange(drafted.shape[-1] + 1)
        kept = np.where(places < accepted, np.concatenate([drafted, filler], -1), -1)
        # A next token of -1 is none: not padding, but an id that is out of range.
        emitted: Host = np.where(places == accepted, np.where(token < 0, -2, token), kept)
        return emitted

    adapted: Callable[..., Any] = _named("from_verdict", fn, emitting)
    return adapted
