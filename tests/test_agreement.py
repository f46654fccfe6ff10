"""The same uniforms give the same decisions on NumPy, PyTorch and JAX."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
import pytest

from backends import Backend
from draftproof import verify_chain

LIBRARIES = (Backend.NUMPY, Backend.TORCH, Backend.JAX)
SIZE, LENGTH, COUNT = 1_000, 4, 2_500
# 100,000 requests over both rules, or a tenth of them.
THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
BATCHES = 20 if THOROUGH else 2

ULP = 2.0**-24  # of the float32 numbers just below 1
ALLOWED = 16

both_rules = pytest.mark.parametrize("rule", ["token", "block"])


class Chains(NamedTuple):
    """Requests in float32."""

    draft: Any
    target: Any
    tokens: Any
    uniforms: Any


def random_chains(seed):
    """Make float32 requests of which about half of the drafts are accepted."""
    random = np.random.default_rng(seed)

    def laws(length):
        weights = random.standard_exponential((COUNT, length, SIZE), dtype=np.float32)
        weights /= weights.sum(axis=-1, keepdims=True)
        return weights

    target, draft = laws(LENGTH + 1), laws(LENGTH)
    draft *= np.float32(0.5)
    draft += np.float32(0.5) * target[:, :-1]
    running = np.cumsum(draft, axis=-1)
    share = random.random((COUNT, LENGTH, 1), dtype=np.float32)
    tokens = (running > share * running[..., -1:]).argmax(axis=-1).astype(np.int32)
    uniforms = random.random((COUNT, LENGTH + 1), dtype=np.float32)
    return Chains(draft, target, tokens, uniforms)


def decide(library, chains, *, rule):
    """Return the decisions of a library, one row of two numbers for each request."""
    with library.context():
        arrays = map(library.xp.asarray, chains)
        verdict = verify_chain(*arrays, rule=rule)
        return np.stack([library.host(part) for part in verdict], axis=-1).astype(int)


def thresholds(draft, target, tokens, *, rule):
    """Return what the coins of one request are compared with, and c_0, ..., c_K."""
    scale, scales, found = 1.0, [1.0], []
    for i, token in enumerate(tokens):
        ratio = target[i, token] / draft[i, token]
        if rule == "token":
            found.append(min(1.0, ratio))
            scales.append(1.0)
            continue
        scale = min(1.0, scale * ratio)
        scales.append(scale)
        last = i + 1 == len(tokens)
        mass = scale if last else np.maximum(scale * target[i + 1] - draft[i + 1], 0).sum()
        found.append(mass / (mass + 1 - scale) if mass + 1 - scale else 1.0)
    return found, scales


def margin(chains, at, *, rule):
    """Return how far one request is from another decision, in float64, in units ULP."""
    draft, target = (rows[at].astype(float) for rows in chains[:2])
    tokens, coins = chains.tokens[at].tolist(), chains.uniforms[at].astype(float).tolist()
    levels, scales = thresholds(draft, target, tokens, rule=rule)
    kept = [coin < level for coin, level in zip(coins, levels, strict=False)]
    if rule == "token":
        tau = [*kept, False].index(False)
        read = range(min(tau + 1, LENGTH))
    else:
        tau = max((i + 1 for i, success in enumerate(kept) if success), default=0)
        read = range(LENGTH)
    weights = scales[tau] * target[tau]
    if tau < LENGTH:
        weights = np.maximum(weights - draft[tau], 0)
    running = np.cumsum(weights)
    edges = running[weights > 0] / running[-1]
    # A threshold of 1 and the end of the last token are crossed by no uniform number.
    near = [abs(coins[i] - levels[i]) for i in read if levels[i] < 1]
    near.append(np.abs(edges[:-1] - coins[-1]).min())
    return min(near) / ULP


@both_rules
def test_the_libraries_decide_alike(rule):
    """But for uniforms within 16 float32 ulp of a threshold or boundary.

    10,000 requests over both rules; 100,000 with HYPOTHESIS_PROFILE=thorough.
    """
    apart, worst = dict.fromkeys(("NUMPY-TORCH", "NUMPY-JAX", "TORCH-JAX"), 0), 0.0
    accepted = np.zeros(LENGTH + 1, int)
    for seed in range(BATCHES):
        chains = random_chains(seed)
        found = {b.name: decide(b, chains, rule=rule) for b in LIBRARIES}
        accepted += np.bincount(found["NUMPY"][:, 0], minlength=LENGTH + 1)
        assert min(pairs.min() for pairs in found.values()) >= 0
        differs = np.zeros(COUNT, bool)
        for name in apart:
            one, other = (found[part] for part in name.split("-"))
            different = (one != other).any(axis=-1)
            apart[name] += int(different.sum())
            differs |= different
        for at in np.flatnonzero(differs):
            off = margin(chains, at, rule=rule)
            worst = max(worst, off)
            assert off <= ALLOWED, (seed, at, off)
    total = BATCHES * COUNT
    told = ", ".join(f"{name} {count}" for name, count in apart.items())
    print(f"{rule}: {total:,} requests, {accepted.tolist()} by number accepted;")
    print(f"different decisions: {told}; the farthest {worst:.2f} ulp from its boundary")
    assert (accepted > total / 100).all()
    assert max(apart.values()) < total / 1_000


@both_rules
def test_few_requests_could_be_excused(rule):
    """The negative control: the margin is right, and hardly a request is within 16 ulp."""
    chains = random_chains(0)
    pairs = decide(Backend.NUMPY, chains, rule=rule)
    margins = np.asarray([margin(chains, at, rule=rule) for at in range(600)])
    assert np.mean(margins <= ALLOWED) < 0.01
    # Moved by less than the margin nothing changes; by far more, decisions do.
    changed = []
    for by in (0.9, -0.9):
        moved = chains.uniforms[:600] + by * ULP * (margins - ALLOWED)[:, None]
        clear = (margins > 2 * ALLOWED) & (moved >= 0).all(-1) & (moved < 1).all(-1)
        some = Chains(*(array[:600][clear] for array in chains[:3]), moved[clear])
        found = decide(Backend.NUMPY, some, rule=rule)
        changed.append((found != pairs[:600][clear]).any())
        moved = np.clip(moved + 1e-3, 0, 0.999)
        some = some._replace(uniforms=moved[clear])
        assert (decide(Backend.NUMPY, some, rule=rule) != pairs[:600][clear]).any()
    assert not any(changed)
