"""Steps that are wrong on purpose, one fault each, as they have been written before.

Each is NumPy as somebody would write it. `test_broken` shows that a property rejects
every one of them, and which.
"""

from __future__ import annotations

import numpy as np

BROKEN = {}


def broken(caught_by: str):
    """Register a wrong step with the property that must reject it."""

    def register(step):
        BROKEN[step.__name__] = (step, caught_by)
        return step

    return register


def accept_prob(draft, target, token):
    """The right acceptance probability; raises for a token that cannot be drawn."""
    if not draft[token] > 0:
        raise ValueError(token)
    return min(1.0, float(target[token]) / float(draft[token]))


def residual(draft, target):
    """The right residual, give or take rounding; raises for rows that are not finite."""
    wide = np.result_type(draft.dtype, np.float32)
    draft_wide, target_wide = draft.astype(wide), target.astype(wide)
    part = np.maximum(target_wide, draft_wide) - draft_wide
    total = part.sum()
    if not np.isfinite(total):
        raise ValueError(total)
    return (part / total if total > 0 else part).astype(draft.dtype)


def step(draft, target, token, *, kept=None, law=None):
    """Put a step together from the right parts and the wrong one."""
    return {
        "accept_prob": accept_prob(draft, target, token) if kept is None else kept,
        "residual": residual(draft, target) if law is None else law,
    }


def checked(draft, target, token):
    """Raise where the right step raises, for faults that lie elsewhere."""
    step(draft, target, token)


@broken("reconstructs_the_target")
def replacement_from_the_target(draft, target, token):
    """A rejected token is replaced by a draw from p (B02)."""
    checked(draft, target, token)
    return step(draft, target, token, law=target.copy())


@broken("reconstructs_the_target")
def softmax_of_the_residual(draft, target, token):
    """The residual goes through a softmax instead of being divided (B01)."""
    checked(draft, target, token)
    weights = np.exp(np.maximum(target - draft, 0))
    return step(draft, target, token, law=(weights / weights.sum()).astype(draft.dtype))


@broken("residual_is_zero_where_draft_covers_target")
def clamp_to_a_tiny_positive_number(draft, target, token):
    """Impossible tokens get a little mass, identical rows a uniform law (B04)."""
    checked(draft, target, token)
    part = np.maximum(target - draft, np.finfo(draft.dtype).tiny)
    return step(draft, target, token, law=part / part.sum())


@broken("accept_prob_is_exact")
def ratio_of_the_maximum(draft, target, token):
    """The numerator is the largest target probability (A06)."""
    checked(draft, target, token)
    kept = min(1.0, float(target.max()) / float(draft[token]))
    return step(draft, target, token, kept=kept)


@broken("accept_prob_is_exact")
def ratio_at_the_likeliest_draft(draft, target, token):
    """The ratio is taken at the argmax of the draft, not at the token (A14)."""
    checked(draft, target, token)
    return step(draft, target, token, kept=accept_prob(draft, target, int(draft.argmax())))


@broken("accept_prob_is_exact")
def ratio_not_capped(draft, target, token):
    """The ratio is returned as it is, above 1 where the target is likelier."""
    checked(draft, target, token)
    return step(draft, target, token, kept=float(target[token]) / float(draft[token]))


@broken("accept_prob_is_exact")
def renormalised_inputs(draft, target, token):
    """Both rows are divided by their sums first."""
    checked(draft, target, token)
    wide = np.result_type(draft.dtype, np.float32)
    one, other = (row.astype(wide) for row in (draft, target))
    return step(one / one.sum(), other / other.sum(), token) | {
        "residual": residual(one / one.sum(), other / other.sum()).astype(draft.dtype)
    }


@broken("accept_prob_is_exact")
def rounded_accept_prob(draft, target, token):
    """The acceptance probability is rounded to the seven digits that are printed."""
    return step(draft, target, token, kept=round(accept_prob(draft, target, token), 7))


@broken("accept_prob_is_exact")
def ratio_in_single_precision(draft, target, token):
    """The ratio is rounded to float32 before it is returned."""
    kept = accept_prob(draft, target, token)
    return step(draft, target, token, kept=float(np.float32(kept)))


@broken("accept_prob_is_exact")
def ratio_with_an_epsilon(draft, target, token):
    """A small number in the divisor keeps zero away, and the exact ratio too."""
    checked(draft, target, token)
    kept = min(1.0, float(target[token]) / (float(draft[token]) + 1e-10))
    return step(draft, target, token, kept=kept)


@broken("accept_prob_is_exact")
def all_or_nothing(draft, target, token):
    """The token is kept if the target is at least as likely, and never else (A07)."""
    checked(draft, target, token)
    return step(draft, target, token, kept=float(target[token] >= draft[token]))


@broken("inputs_are_untouched")
def subtraction_in_place(draft, target, token):
    """The target row is turned into the residual where it stands (J01)."""
    result = step(draft, target, token)
    np.maximum(target, draft, out=target)
    target -= draft
    return result


@broken("residual_does_not_depend_on_the_token")
def residual_only_at_the_token(draft, target, token):
    """Only the drafted entry is subtracted, as if the draft were one-hot (B03)."""
    checked(draft, target, token)
    part = target.copy()
    part[token] = max(part[token] - draft[token], 0)
    total = part.sum()
    return step(draft, target, token, law=part / total if total > 0 else part)


@broken("residual_is_within_budget")
def residual_not_divided(draft, target, token):
    """The positive part is returned without being divided by its sum."""
    checked(draft, target, token)
    return step(draft, target, token, law=np.maximum(target, draft) - draft)


@broken("residual_is_within_budget")
def absolute_difference(draft, target, token):
    """The absolute value is taken instead of the positive part."""
    checked(draft, target, token)
    part = np.abs(target - draft)
    total = part.sum()
    return step(draft, target, token, law=part / total if total > 0 else part)


@broken("reconstructs_the_target")
def arguments_swapped(draft, target, token):
    """Draft and target are mistaken for each other."""
    checked(draft, target, token)
    return step(draft, target, token, law=residual(target, draft))


@broken("residual_is_within_budget")
def residual_with_an_epsilon(draft, target, token):
    """A small number in the divisor keeps zero away, and the sum of 1 too."""
    checked(draft, target, token)
    part = np.maximum(target, draft) - draft
    return step(draft, target, token, law=part / (part.sum() + draft.dtype.type(1e-5)))


@broken("residual_is_within_budget")
def fallback_to_the_target(draft, target, token):
    """Where nothing is left the target row is returned instead of zeros."""
    result = step(draft, target, token)
    if not result["residual"].any():
        result["residual"] = target.copy()
    return result


@broken("not_finite_rows_are_refused")
def nan_dropped(draft, target, token):
    """NaN disappears in a maximum that ignores it (B06)."""
    kept = accept_prob(draft, target, token)
    part = np.fmax(target - draft, 0)
    total = np.nansum(part)
    return step(draft, target, token, kept=kept, law=part / total if total > 0 else part)


@broken("residual_is_within_budget")
def arithmetic_in_half_precision(draft, target, token):
    """The residual is computed in float16 whatever the rows are."""
    checked(draft, target, token)
    law = residual_in(np.float16, draft, target)
    return step(draft, target, token, law=law)


def residual_in(dtype, draft, target):
    """Compute the residual in a dtype that is too small for it."""
    part = np.maximum(target.astype(dtype) - draft.astype(dtype), dtype(0))
    total = part.sum(dtype=dtype)
    return (part / total if total > 0 else part).astype(target.dtype)


@broken("residual_is_within_budget")
def running_sum_in_single_precision(draft, target, token):
    """The mass is the end of a running sum, added one by one in float32 (B14)."""
    checked(draft, target, token)
    part = np.maximum(target, draft) - draft
    total = np.cumsum(part, dtype=np.float32)[-1]
    law = (part / total if total > 0 else part).astype(draft.dtype)
    return step(draft, target, token, law=law)


@broken("library_dtype_shape_and_device_are_kept")
def residual_in_double_precision(draft, target, token):
    """The residual comes back as float64 whatever went in (I01, I11)."""
    return step(draft, target, token, law=residual(draft, target).astype(np.float64))


@broken("residual_is_zero_where_draft_covers_target")
def small_entries_dropped(draft, target, token):
    """Differences below a threshold are taken for rounding errors."""
    checked(draft, target, token)
    part = np.maximum(target, draft) - draft
    part[part < 1e-6] = 0
    total = part.sum()
    return step(draft, target, token, law=part / total if total > 0 else part)


@broken("impossible_tokens_are_refused")
def impossible_token_accepted(draft, target, token):
    """A token that cannot have been drawn is kept, because p / 0 is infinite (A10)."""
    kept = accept_prob(draft, target, token) if draft[token] > 0 else 1.0
    return step(draft, target, token, kept=kept)
