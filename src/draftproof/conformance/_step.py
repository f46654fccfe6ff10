"""The check of a single deterministic step: acceptance probability and residual."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from draftproof.conformance._calls import Arrays, UnusableError
from draftproof.conformance._progress import tracked
from draftproof.conformance._session import Session
from draftproof.conformance._snippets import Snippets
from draftproof.conformance._step_bench import StepBench
from draftproof.conformance._step_cases import Stepper, dyadic_cases
from draftproof.conformance._subject import find, name_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from draftproof.conformance._progress import Progress
    from draftproof.conformance._report import Report
    from draftproof.conformance._subject import Convert

__all__ = ["check_step"]


def check_step(
    fn: Callable[..., Any] | str,
    *,
    xp: str | Convert = "numpy",
    dtype: str = "float64",
    quick: bool = False,
    seed: int = 0,
    progress: Progress = None,
) -> Report:
    r"""Check a step that returns the acceptance probability and the residual of a draft.

    Both are compared with `draftproof.exact` on the same bits,

    .. math::

        \mathrm{accept\_prob} = \min\left(1, \frac{p_t}{q_t}\right), \qquad
        \mathrm{residual}_v = \frac{\max(p_v - q_v, 0)}{\sum_w \max(p_w - q_w, 0)}.

    Parameters
    ----------
    fn : callable or str
        The step, or ``"module:function"``. It is called as `speculative_decode_step` is,
        with ``draft_probs`` (V,), ``target_probs`` (V,) and an int, and returns a mapping
        with ``"accept_prob"``, a number, and ``"residual"``, shape (V,); or them as a pair.
    xp : str or callable, optional
        The library of the arrays, or a function that converts NumPy's.
    dtype : {"float64", "float32", "float16", "bfloat16"}, optional
        The dtype of the rows.
    quick : bool, optional
        Whether to leave out the rows of 50,257 tokens.
    seed : int, optional
        The seed of the random rows.
    progress : bool, callable or None, optional
        True for a progress bar, None for one on a terminal, False for none, or a function
        of steps done, steps in all, and words.

    Returns
    -------
    Report
        The verdict. An interruption gives a report, too, of what was found before it.

    Raises
    ------
    CouldNotRunError
        If the subject is not found, raises on ordinary input, or returns something else.
    ValueError
        If the dtype is unknown.

    Notes
    -----
    The acceptance probability may be off by 8 eps of the dtype, relatively. The residual
    may be off by a total variation of ``8 + 4 * sqrt(V)`` eps, divided by the sum of its
    weights, where the eps under the root is at most float32's: half precision has to be
    summed in float32. Nothing but zero is allowed where the target is zero. A token with
    ``q = 0``, a residual of zeros, NaN and ids out of range are conventions: reported,
    and not judged.

    Examples
    --------
    >>> from draftproof import speculative_decode_step
    >>> from draftproof.conformance import check_step
    >>> check_step(speculative_decode_step, quick=True, progress=False).conforms
    True
    """
    called, arrays = find(fn), Arrays(xp, dtype)
    name = name_of(fn)
    session = Session(name, "step", None, seed)
    look = StepBench(Stepper(called, arrays), session, Snippets(called, name, xp, arrays))
    sizes = (1000,) if quick else (1000, 50257)
    work: list[tuple[str, Callable[[], None]]] = [
        ("dyadic rows", partial(look.at, "dyadic rows", list(dyadic_cases())))
    ]
    work += [
        (f"rows of {n:,}", partial(look.at_long, f"rows of {n:,}", n, seed)) for n in sizes
    ]
    work.append(("conventions", look.for_conventions))
    complete = True
    try:
        with tracked(progress, len(work)) as step:
            for words, act in work:
                act()
                step(words)
    except KeyboardInterrupt:
        complete = False
    except UnusableError:
        pass
    look.add_manners()
    return session.report(complete=complete)
