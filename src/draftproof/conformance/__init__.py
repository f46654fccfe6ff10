"""The conformance kit: somebody else's sampler in, a verdict with evidence out.

Needs the extra ``kit``.
"""

from draftproof.conformance._report import Check, NotConformingError, Report
from draftproof.conformance._subject import CouldNotRunError

__all__ = ["Check", "CouldNotRunError", "NotConformingError", "Report"]
