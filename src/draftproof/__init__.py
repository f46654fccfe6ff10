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
chain
    K tokens drafted one after the other, each given those before.
next token, bonus token
    What follows the accepted tokens; if all are accepted it comes from the target's
    own row behind them, as a bonus. So ``num_accepted + 1`` tokens are emitted.
"""

from draftproof._batch import AcceptResidual, accept_residual
from draftproof._chain import Verdict, verify_chain
from draftproof._draw import draw
from draftproof._filters import apply_filters
from draftproof._match import emitted_tokens, match_tokens
from draftproof._metrics import acceptance_rate, accepted_law, expected_tokens
from draftproof._step import DecodeStep, speculative_decode_step
from draftproof._values import check_probs

__all__ = [
    "AcceptResidual",
    "DecodeStep",
    "Verdict",
    "accept_residual",
    "acceptance_rate",
    "accepted_law",
    "apply_filters",
    "check_probs",
    "draw",
    "emitted_tokens",
    "expected_tokens",
    "match_tokens",
    "speculative_decode_step",
    "verify_chain",
]

__version__ = "0.1.0"
