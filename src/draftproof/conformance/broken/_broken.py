"""How a subject is entered into the catalogues, with the fault that it has."""

from __future__ import annotations

from functools import update_wrapper
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from draftproof.conformance.broken._batch import batch_of
from draftproof.conformance.broken._right import verify, verify_block

if TYPE_CHECKING:
    from collections.abc import Callable

    from draftproof.conformance.broken._batch import Array, Batch
    from draftproof.conformance.broken._right import Verdict

    Subject: TypeAlias = Callable[..., Any]
    Verifying: TypeAlias = Callable[[Batch], Verdict]
    Register: TypeAlias = Callable[[Callable[..., Any]], Subject]

__all__ = ["Broken", "as_verifier", "entered", "noted", "verifying"]


class Broken(NamedTuple):
    """A subject of the kit of which it is known whether it is right.

    Attributes
    ----------
    subject : callable
        What to check.
    fault : str or None
        The fault that a report should name; None if it is right, or if its fault is one
        for which there is no name.
    summary : str
        What is wrong, in a sentence.
    rule : str or None
        The rule that it is held to, of verifiers and samplers.
    noted : str or None
        Of a subject that the kit does not reject, for peers disagree on such input: the
        convention that tells it from a right one in the report.
    """

    subject: Subject
    fault: str | None
    summary: str
    rule: str | None = "token"
    noted: str | None = None


VERIFIERS: dict[str, Broken] = {}
SAMPLERS: dict[str, Broken] = {}
DRAFTERS: dict[str, Broken] = {}
STEPS: dict[str, Broken] = {}


def entered(
    catalogue: dict[str, Broken], fault: str | None, rule: str | None = "token"
) -> Register:
    """Return a decorator that enters a subject as it is."""

    def register(subject: Subject) -> Subject:
        summary = (subject.__doc__ or "").strip()
        catalogue[subject.__name__] = Broken(subject, fault, summary, rule)
        return subject

    return register


def noted(catalogue: dict[str, Broken], convention: str) -> Register:
    """Return a decorator for a subject that only shows in a convention."""

    def register(subject: Subject) -> Subject:
        known = catalogue[subject.__name__]
        catalogue[subject.__name__] = known._replace(noted=convention)
        return subject

    return register


def as_verifier(decide: Verifying) -> Subject:
    """Return a verifier of four arrays from a function of a batch."""

    def verifier(
        draft_probs: Any, target_probs: Any, draft_tokens: Any, uniforms: Any
    ) -> Verdict:
        with np.errstate(all="ignore"):
            return decide(batch_of(draft_probs, target_probs, draft_tokens, uniforms))

    return verifier


def verifying(fault: str | None, rule: str | None = "token") -> Register:
    """Return a decorator for a function of a batch that verifies it."""

    def register(decide: Verifying) -> Subject:
        subject = update_wrapper(as_verifier(decide), decide)
        return entered(VERIFIERS, fault, rule)(subject)

    return register


def hooked(name: str, fault: str | None, rule: str | None = "token") -> Register:
    """Return a decorator for what stands in for one part of the right verifier."""
    right = verify_block if rule == "block" else verify

    def register(part: Callable[..., Array]) -> Subject:
        def decide(batch: Batch) -> Verdict:
            return right(batch, **{name: part})

        return verifying(fault, rule)(update_wrapper(decide, part))

    return register


def accepting(fault: str | None, rule: str | None = "token") -> Register:
    """Return a decorator for how coins succeed."""
    return hooked("accept", fault, rule)


def counting(fault: str | None, rule: str | None = "token") -> Register:
    """Return a decorator for how successes become a number."""
    return hooked("count", fault, rule)


def weighing(fault: str | None, rule: str | None = "token") -> Register:
    """Return a decorator for what the next token is drawn from."""
    return hooked("weigh", fault, rule)


def drawing(fault: str | None, rule: str | None = "token") -> Register:
    """Return a decorator for how the next token is drawn."""
    return hooked("draw", fault, rule)
