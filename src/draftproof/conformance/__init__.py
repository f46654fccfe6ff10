"""The conformance kit: somebody else's sampler in, a verdict with evidence out.

Four kinds of subject, each with a protocol of its own: `check_step`, `check_verifier`,
`check_sampler` and `check_draft` return a `Report`. Needs the extra ``kit``.
"""

from draftproof.conformance._adapters import flat, from_logits, from_verdict, one_at_a_time
from draftproof.conformance._draft import check_draft
from draftproof.conformance._report import Check, NotConformingError, Report
from draftproof.conformance._sampler import check_sampler
from draftproof.conformance._step import check_step
from draftproof.conformance._subject import CouldNotRunError
from draftproof.conformance._verifier import check_verifier

__all__ = [
    "Check",
    "CouldNotRunError",
    "NotConformingError",
    "Report",
    "check_draft",
    "check_sampler",
    "check_step",
    "check_verifier",
    "flat",
    "from_logits",
    "from_verdict",
    "one_at_a_time",
]
