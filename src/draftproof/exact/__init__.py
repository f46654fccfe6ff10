"""The same rules on exact rationals, from the standard library alone.

Nothing here knows about arrays, and nothing is imported from the rest of the
package: it is the reference that the rest is compared with. Numbers may be
`int`, `fractions.Fraction`, `decimal.Decimal`, a string such as ``"1/3"``, or a
float of Python or NumPy, which is read as the rational number it stores.
"""

from draftproof.exact._chain import (
    ChainOutcome,
    ExactVerdict,
    chain_outcomes,
    chain_thresholds,
    verify_chain,
)
from draftproof.exact._laws import (
    accepted_law,
    expected_accepted,
    joint_law,
    target_law,
)
from draftproof.exact._step import (
    ExactStep,
    as_fraction,
    reconstruct,
    speculative_decode_step,
)

__all__ = [
    "ChainOutcome",
    "ExactStep",
    "ExactVerdict",
    "accepted_law",
    "as_fraction",
    "chain_outcomes",
    "chain_thresholds",
    "expected_accepted",
    "joint_law",
    "reconstruct",
    "speculative_decode_step",
    "target_law",
    "verify_chain",
]
