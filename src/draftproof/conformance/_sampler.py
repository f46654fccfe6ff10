"""The check of a sampler, a black box with randomness of its own."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from draftproof.conformance._call import Caller, replaying
from draftproof.conformance._plan import Plan
from draftproof.conformance._progress import tracked
from draftproof.conformance._report import Report, versions
from draftproof.conformance._sampling import Sampling
from draftproof.conformance._subject import converter, find, name_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from draftproof.conformance._progress import Progress
    from draftproof.conformance._subject import Convert

__all__ = ["check_sampler"]


def check_sampler(  # noqa: PLR0913 - keywords, each of which stands alone
    fn: Callable[..., Any] | str,
    *,
    rule: str | None = None,
    xp: str | Convert = "numpy",
    dtype: str = "float32",
    drafter: Callable[..., Any] | str | None = None,
    one_hot: bool = False,
    ragged: bool = True,
    detect: float | None = None,
    false_alarm: float = 1e-6,
    power: float = 0.999,
    quick: bool = False,
    seed: int = 0,
    progress: Progress = None,
) -> Report:
    r"""Check the law of what a sampler emits.

    Drafts are drawn along small models, the sampler verifies them, and what it emits is
    completed to K + 1 tokens by draws from the target. These have the law of the target
    exactly, whatever lossless rule it is:

    .. math::

        P(y_1, \dots, y_{K+1}) = \prod_i p_i(y_i \mid y_1, \dots, y_{i-1}).

    All sequences of K + 1 tokens are counted and compared with that law, on several
    models whose rows depend on the tokens before, for a model with the same rows
    everywhere is blind to public faults.

    Parameters
    ----------
    fn : callable or str
        The sampler, or ``"module:function"``. Called with draft_probs, shape (B, K, V),
        target_probs, shape (B, K + 1, V), draft_tokens, shape (B, K), and a seed, it
        returns the emitted tokens, integers of shape (B, K + 1): the accepted drafts,
        one token behind them, and ``-1`` as padding. `one_at_a_time`, `from_logits`,
        `flat` and `from_verdict` adapt functions of other forms.
    rule : {None, "token", "block"}, optional
        None for losslessness alone. A named rule is also held to its law of the number
        accepted and the next token after each drafted path; a sampler that compares
        the target's own draws with the drafts passes only with None.
    xp : str or callable, optional
        Library of the arrays, or a function that converts from NumPy.
    dtype : str, optional
        Of the rows, which hold dyadic numbers that every dtype has.
    drafter : callable or str, optional
        The engine's own drafter, ``drafter(draft_probs, place, seed)``, with rows
        (B, V) to tokens (B,), with the seed that the sampler gets: only so does noise
        show that both share. By default the drafts are drawn here.
    one_hot : bool, optional
        Whether the drafts have no law: ``draft_probs`` is None.
    ragged : bool, optional
        Whether requests with fewer drafts come as well, padded with ``-1``.
    detect : float, optional
        The total variation that is to be seen; by default 0.01, or 0.03 if quick.
    false_alarm : float, optional
        The probability that a sampler that is right fails, of the whole check.
    power : float, optional
        The probability that a law as far away as `detect`, on one model, fails.
    quick : bool, optional
        Whether to draw a tenth as much.
    seed : int, optional
        Of everything random; the sampler gets seeds that are drawn from it.
    progress : bool or callable, optional
        Whether to show a bar; by default on a terminal.

    Returns
    -------
    Report
        After an interruption (Ctrl-C), what is known so far. `fault` names the wrong
        rule whose law the counts of all models fit.

    Raises
    ------
    CouldNotRunError
        If the sampler is not found, or raises.
    ValueError
        If the rule is unknown or a rate is not between 0 and 1.

    Notes
    -----
    The statistic is the likelihood ratio :math:`G = 2 \sum N \log (N / E)`, whose law is
    chi-square's with the number of cells less one degrees of freedom. For a law at total
    variation TV its noncentrality is at least :math:`4 n\,TV^2`, by Pinsker's
    inequality, which gives the number of requests n. The rate of false alarms is divided
    by the number of tests. Every cell is expected 25 times at least, so that the tail
    holds at the rates that remain. A token that cannot come fails at once.

    References
    ----------
    .. [1] Leviathan, Kalman, Matias, "Fast Inference from Transformers via
       Speculative Decoding", ICML 2023, arXiv:2211.17192.
    .. [2] Read, Cressie, "Goodness-of-Fit Statistics for Discrete Multivariate Data",
       Springer, 1988.

    Examples
    --------
    >>> import numpy as np
    >>> from draftproof import emitted_tokens, verify_chain
    >>> from draftproof.conformance import check_sampler
    >>> def sampler(draft_probs, target_probs, draft_tokens, seed):
    ...     uniforms = np.random.default_rng(seed).random(target_probs.shape[:-1])
    ...     verdict = verify_chain(draft_probs, target_probs, draft_tokens, uniforms)
    ...     return emitted_tokens(draft_tokens, verdict)
    >>> check_sampler(sampler, rule="token", detect=0.1).conforms
    True
    >>> report = check_sampler(sampler, rule="block", detect=0.1)
    >>> report.conforms, report.fault
    (False, 'token rule')
    """
    start = time.perf_counter()
    detect = (0.03 if quick else 0.01) if detect is None else detect
    own = None if drafter is None else find(drafter)
    plan = Plan(rule, one_hot, ragged, own is not None, detect, false_alarm, power)
    sampling = Sampling(plan, Caller(find(fn), own, converter(xp), dtype), seed)
    with tracked(progress, sampling.steps()) as step:
        complete = sampling.run(step)
    again = sampling.again
    snippet = None
    if again is not None:
        subjects = {"sampler": name_of(fn)}
        if drafter is not None:
            subjects["drafter"] = name_of(drafter)
        options = {"xp": xp, "dtype": dtype, "one_hot": one_hot}
        snippet = replaying("replay", subjects, again | options)
    return Report(
        subject=name_of(fn),
        kind="sampler",
        rule=rule,
        conforms=complete and all(check.passed for check in sampling.checks),
        fault=sampling.fault,
        checks=tuple(sampling.checks),
        conventions=sampling.conventions,
        seed=seed,
        complete=complete,
        seconds=time.perf_counter() - start,
        snippet=snippet,
        versions=versions(),
    )
