"""Speculative decoding in the small: two n-gram models and a decoding loop.

What ``draftproof demo`` runs. Needs the extra ``kit``.
"""

from draftproof.demo._corpus import read_words
from draftproof.demo._loop import BACKENDS, Backend, Emitted, Run, decode
from draftproof.demo._models import NGram
from draftproof.demo._show import show

__all__ = ["BACKENDS", "Backend", "Emitted", "NGram", "Run", "decode", "read_words", "show"]
