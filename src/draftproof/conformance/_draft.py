"""The check of a drafter: whether it draws from the law that it hands over."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from draftproof.conformance._call import replaying
from draftproof.conformance._drawing import Drafter, Drawing, Rates
from draftproof.conformance._plan import check_rates
from draftproof.conformance._progress import tracked
from draftproof.conformance._report import Report, versions
from draftproof.conformance._subject import converter, find, name_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from draftproof.conformance._progress import Progress
    from draftproof.conformance._subject import Convert

__all__ = ["check_draft"]

_SMALLEST = 4


def check_draft(  # noqa: PLR0913 - keywords, each of which stands alone
    fn: Callable[..., Any] | str,
    *,
    xp: str | Convert = "numpy",
    dtype: str = "float32",
    size: int = 64,
    detect: float | None = None,
    false_alarm: float = 1e-6,
    power: float = 0.999,
    quick: bool = False,
    seed: int = 0,
    progress: Progress = None,
) -> Report:
    r"""Check that a drafter draws from the law that it hands to the verifier.

    Every rule of acceptance is lossless for the law q that the draft was really drawn
    from, and for no other. Drawn is for a handful of rows of logits, many times each;
    of every row, the counts of the tokens are compared with the mean of the q that
    came with them.

    Parameters
    ----------
    fn : callable or str
        The drafter, or ``"module:function"``. Called with logits, shape (B, V), and a
        seed, it returns tokens, integers of shape (B,), and draft_probs, shape (B, V).
        Temperature and filters are its own.
    xp : str or callable, optional
        Library of the logits, or a function that converts from NumPy.
    dtype : str, optional
        Of the logits.
    size : int, optional
        The vocabulary V, for filters that keep fewer tokens than there are.
    detect : float, optional
        The total variation that is to be seen; by default 0.01, or 0.03 if quick.
    false_alarm : float, optional
        The probability that a drafter that is right fails, of the whole check.
    power : float, optional
        The probability that a law as far away as `detect`, on one row, fails.
    quick : bool, optional
        Whether to draw a tenth as much.
    seed : int, optional
        Of everything random; the drafter gets seeds that are drawn from it.
    progress : bool or callable, optional
        Whether to show a bar; by default on a terminal.

    Returns
    -------
    Report
        After an interruption (Ctrl-C), what is known so far. `fault` names what the
        counts fit instead: a filter or a temperature on one side only, argmax, the law
        of another request.

    Raises
    ------
    CouldNotRunError
        If the drafter is not found, raises, or does not return a pair.
    ValueError
        If the vocabulary has fewer than 4 tokens, or a rate is not between 0 and 1.

    Notes
    -----
    The statistic and the sample size are those of `check_sampler`. Where the q of equal
    logits differ, the statistic is smaller than its law has it, and the check errs on
    the safe side. A token whose q is 0 fails at once.

    References
    ----------
    .. [1] "Speculative decoding: candidate generators return a q they did not sample
       from", https://github.com/huggingface/transformers/issues/47932.

    Examples
    --------
    >>> import numpy as np
    >>> from draftproof import draw
    >>> from draftproof.conformance import check_draft
    >>> def drafter(logits, seed):
    ...     probs = np.exp(logits - logits.max(axis=-1, keepdims=True))
    ...     probs /= probs.sum(axis=-1, keepdims=True)
    ...     return draw(probs, np.random.default_rng(seed).random(len(probs))), probs
    >>> check_draft(drafter, detect=0.1).conforms
    True
    >>> def greedy(logits, seed):
    ...     return logits.argmax(axis=-1), drafter(logits, seed)[1]
    >>> check_draft(greedy, detect=0.1).fault
    'argmax draw with a dense law'
    """
    start = time.perf_counter()
    detect = (0.03 if quick else 0.01) if detect is None else detect
    check_rates(detect=detect, false_alarm=false_alarm, power=power)
    if size < _SMALLEST:
        msg = f"`size` is {size}; needed are at least {_SMALLEST} tokens"
        raise ValueError(msg)
    drafter = Drafter(find(fn), converter(xp), dtype)
    drawing = Drawing(drafter, Rates(detect, false_alarm, power), size, seed)
    with tracked(progress, drawing.steps()) as step:
        complete = drawing.run(step)
    snippet = None
    if drawing.again is not None:
        row, batch_seed = drawing.again
        options = {"row": row, "seed": batch_seed, "xp": xp, "dtype": dtype, "size": size}
        snippet = replaying("replay_draft", {"drafter": name_of(fn)}, options)
    return Report(
        subject=name_of(fn),
        kind="draft",
        rule=None,
        conforms=complete and all(check.passed for check in drawing.checks),
        fault=drawing.fault,
        checks=tuple(drawing.checks),
        seed=seed,
        complete=complete,
        seconds=time.perf_counter() - start,
        snippet=snippet,
        versions=versions(),
    )
