"""What users write, as type checkers see it: checked by mypy and pyright, never run."""

from __future__ import annotations

from fractions import Fraction
from typing import assert_type

import numpy as np
from numpy.typing import NDArray

from draftproof import (
    AcceptResidual,
    DecodeStep,
    accept_residual,
    check_probs,
    exact,
    speculative_decode_step,
)

Row = NDArray[np.float32]


def decode(draft: Row, target: Row, token: int) -> Row:
    """Use the step by position and by keyword."""
    step = speculative_decode_step(draft, target, token)
    assert_type(step, DecodeStep[Row])
    assert_type(step["accept_prob"], float)
    assert_type(step["residual"], Row)
    named = speculative_decode_step(
        draft_probs=draft, target_probs=target, drafted_token=np.int64(token)
    )
    return named["residual"]


def decode_batch(draft: Row, target: Row, tokens: NDArray[np.int64]) -> float:
    """Use the batched step by field and by unpacking."""
    result = accept_residual(draft, target, tokens)
    assert_type(result, AcceptResidual[Row])
    accept_prob, residual = result
    return float(accept_prob.max() + result.residual.max() + residual.sum())


def check(draft: Row | None, target: Row) -> None:
    """Use the checks with and without what is optional."""
    check_probs(draft, target)
    check_probs(draft, target, 0, tolerance=1e-6)
    check_probs(None, target, draft_tokens=np.asarray(0))


def exactly() -> Fraction:
    """Use the reference with any kind of number."""
    step = exact.speculative_decode_step([0.5, "1/2"], (Fraction(1, 4), 0.75), 1)
    assert_type(step["accept_prob"], Fraction)
    assert_type(step["residual"], tuple[Fraction, ...])
    assert_type(exact.reconstruct([1], [1]), tuple[Fraction, ...])
    return step["accept_prob"] + exact.as_fraction("0.1")


def wrong(draft: Row, target: Row) -> None:
    """Misuse that a type checker must see: an unused ignore would be an error."""
    speculative_decode_step(draft, target)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    speculative_decode_step(draft, target, 0)["accepted"]  # type: ignore[typeddict-item] # pyright: ignore[reportTypedDictNotRequiredAccess, reportGeneralTypeIssues]
    check_probs(draft, target, 0, 1e-6)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
