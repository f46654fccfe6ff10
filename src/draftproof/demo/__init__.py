"""Speculative decoding in the small: two n-gram models and a decoding loop.

What ``draftproof demo`` runs. Needs the extra ``kit``.
"""

from draftproof.demo._corpus import read_words
from draftproof.demo._figures import Call, Emitted, Run, figures
from draftproof.demo._loop import BACKENDS, Backend, Plan, decode
from draftproof.demo._models import NGram
from draftproof.demo._show import show

__all__ = [
    "BACKENDS",
    "Backend",
    "Call",
    "Emitted",
    "NGram",
    "Plan",
    "Run",
    "decode",
    "figures",
    "read_words",
    "show",
]
