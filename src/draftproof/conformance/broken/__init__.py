"""Wrong verifiers, samplers, drafters and steps, one fault each, after public bugs.

They are the kit's own negative controls: a check that lets one of them pass is broken
itself. Beside them stand correct ones, which must pass. Their numbers such as A01 say
which public reports a fault is from.
"""

from draftproof.conformance.broken._broken import (
    DRAFTERS,
    SAMPLERS,
    STEPS,
    VERIFIERS,
    Broken,
)
from draftproof.conformance.broken._positive import (
    RIGHT_DRAFTERS,
    RIGHT_SAMPLERS,
    RIGHT_STEPS,
    RIGHT_VERIFIERS,
)

__all__ = [
    "DRAFTERS",
    "RIGHT_DRAFTERS",
    "RIGHT_SAMPLERS",
    "RIGHT_STEPS",
    "RIGHT_VERIFIERS",
    "SAMPLERS",
    "STEPS",
    "VERIFIERS",
    "Broken",
]
