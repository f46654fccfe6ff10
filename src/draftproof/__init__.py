"""Verification arithmetic of speculative decoding, for every array library.

A cheap *draft* model proposes tokens and a *target* model verifies them, so that
what is emitted has the law of the target exactly. The words used here:

draft law `q`
    The probabilities a proposed token was really drawn from.
target law `p`
    The probabilities the target model gives at the same place.
drafted token `t`
    A token drawn from the draft law; ``-1`` means that there is none.
accepted, rejected
    A drafted token is kept with probability ``min(1, p[t] / q[t])``.
residual
    ``max(p - q, 0)`` over its sum: the law of the token that replaces a rejected
    one. Where the sum is zero it is the zero vector, and nothing is rejected.
"""

from draftproof._batch import AcceptResidual, accept_residual
from draftproof._step import DecodeStep, speculative_decode_step
from draftproof._values import check_probs

__all__ = [
    "AcceptResidual",
    "DecodeStep",
    "accept_residual",
    "check_probs",
    "speculative_decode_step",
]

__version__ = "0.1.0"
