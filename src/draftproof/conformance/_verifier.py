"""The check of a chain verifier that is handed its uniforms."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from draftproof.conformance._batches import certain_drafts, one_by_one, padded
from draftproof.conformance._calls import Arrays, UnusableError, Verifier
from draftproof.conformance._compare import Bench
from draftproof.conformance._judgement import observe
from draftproof.conformance._long_rows import Long, long_rows
from draftproof.conformance._models import MODELS
from draftproof.conformance._models_check import finer_grid, judge
from draftproof.conformance._named import (
    conventions,
    forbidden_tokens,
    one_hot_targets,
    out_of_range,
    without_drafts,
)
from draftproof.conformance._progress import tracked
from draftproof.conformance._report import Check, Report
from draftproof.conformance._session import Session
from draftproof.conformance._snippets import Snippets
from draftproof.conformance._subject import find, name_of
from draftproof.conformance._variants import RIGHT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from draftproof.conformance._judgement import Observed
    from draftproof.conformance._models import Model
    from draftproof.conformance._progress import Progress
    from draftproof.conformance._subject import Convert

    Work = tuple[str, Callable[[], None]]

__all__ = ["check_verifier"]


def check_verifier(  # noqa: PLR0913
    fn: Callable[..., Any] | str,
    *,
    rule: str | None = None,
    xp: str | Convert = "numpy",
    dtype: str = "float64",
    quick: bool = False,
    seed: int = 0,
    progress: Progress = None,
) -> Report:
    r"""Check a chain verifier that takes its uniforms as an argument, without statistics.

    The uniforms of all paths of small models are cut into the cells in which neither
    rule changes its decision. One decision of each cell, weighted with the exact volume
    of the cell, gives the law of what is emitted,

    .. math::

        \Pr(y) = \sum_x q(x) \sum_{\text{cells } C \text{ of } x} \operatorname{vol}(C)
        \, \mathbf{1}[\text{decision in } C \text{ emits } y],

    completed to K + 1 tokens by the target. It is compared with the law of the target by
    ``==`` on fractions.

    Parameters
    ----------
    fn : callable or str
        The verifier, or ``"module:function"``. It is called as `verify_chain` is, with
        ``draft_probs`` of shape (B, K, V) or None, ``target_probs`` (B, K + 1, V),
        ``draft_tokens`` (B, K) and ``uniforms`` (B, K + 1), and returns a pair of integer
        arrays of shape (B,): numbers of accepted tokens, and next tokens.
    rule : {None, "token", "block"}, optional
        The rule that must be followed, decision for decision. None for any verifier
        whose law is right: the rule found is reported among the conventions.
    xp : str or callable, optional
        The library of the arrays, or a function that converts NumPy's. Tokens are int64
        and uniforms float64; int32 and float32 for JAX, unless it has 64 bits enabled.
    dtype : {"float64", "float32", "float16", "bfloat16"}, optional
        The dtype of the rows.
    quick : bool, optional
        Whether to leave out the rows of 50,257 tokens, and to take coarser grids.
    seed : int, optional
        The seed of the random rows and uniforms.
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
        If the subject is not found, raises on ordinary input, or returns no pair.
    ValueError
        If the rule or the dtype is unknown.

    Notes
    -----
    Each cell is probed in its middle and 8 eps inside of all its sides and corners. What
    is proven: a verifier that decides alike on the whole of each cell has the law of the
    target on these models, exactly. A finer grid that knows of no edges looks for
    decisions that change inside of cells; no finite number of calls excludes them.

    Of a verifier that follows neither rule, cells are cut at the mirror images of the
    edges and at multiples of 1/8 (1/4 for three drafts), too; it conforms if decisions
    are the same all over each of these cells, and the law is right, unless `quick` also
    on a finer grid. That establishes exact match with drawn target tokens, mirrored
    coins and reversed cumulative sums; others need `check_sampler`.

    Long rows are compared with `draftproof.exact` at uniforms twice a margin of
    ``8 + 4 * sqrt(V)`` eps to either side of edges; what is within the margin of
    another edge is counted as a tie. The side of a tie, what replaces a residual of
    zeros, drafts with ``q = 0``, NaN and ids out of range are conventions: reported, and
    not judged. A token of target probability 0 is never allowed, at no uniform.

    Examples
    --------
    >>> from draftproof import verify_chain
    >>> from draftproof.conformance import check_verifier
    >>> report = check_verifier(verify_chain, rule="token", quick=True, progress=False)
    >>> report.conforms
    True
    >>> report.conventions["rule"]
    'token'
    """
    if rule is not None and rule not in RIGHT:
        msg = f"`rule` is {rule!r}; needed is one of None, 'token', 'block'"
        raise ValueError(msg)
    called, arrays = find(fn), Arrays(xp, dtype)
    name = name_of(fn)
    session = Session(name, "verifier", rule, seed)
    snippets = Snippets(called, name, xp, arrays)
    bench = Bench(Verifier(called, arrays), arrays, session, snippets, seed, quick)
    seen: list[Observed] = []
    work = list(_work(bench, seen))
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
    if seen and len(seen) < len(MODELS):
        judge(bench, seen, calling=False)
    _add_manners(bench)
    return session.report(complete=complete)


def _work(bench: Bench, seen: list[Observed]) -> Iterator[Work]:
    for model in MODELS.values():
        yield f"cells of {model.name}", partial(_observe, bench, seen, model)
    yield "the laws", partial(judge, bench, seen)
    yield "ends of [0, 1)", partial(forbidden_tokens, bench)
    for words, act in (
        ("one-hot targets", one_hot_targets),
        ("alone and in a batch", one_by_one),
        ("finer grid", finer_grid),
        ("padded requests", padded),
        ("None drafts", certain_drafts),
        ("no drafts", without_drafts),
        (
            "rows of 1,000",
            partial(long_rows, rows=Long(1000, 4, 1 if bench.quick else 8, 4)),
        ),
        (
            "rows of 50,257",
            partial(long_rows, rows=Long(50257, 2, 0 if bench.quick else 1, 2)),
        ),
    ):
        yield words, partial(_unless_failed, bench, act)
    yield "conventions", partial(conventions, bench)
    yield "ids out of range", partial(out_of_range, bench)


def _observe(bench: Bench, seen: list[Observed], model: Model) -> None:
    seen.append(observe(bench.verifier, model, bench.arrays))


def _unless_failed(bench: Bench, act: Callable[[Bench], None]) -> None:
    # A law that is wrong is wrong everywhere: once is enough.
    if not bench.session.failed:
        act(bench)


def _add_manners(bench: Bench) -> None:
    """Add checks of what every call was watched for."""
    for name in ("inputs are not written to", "shape and dtype"):
        problem = bench.verifier.problems.get(name)
        bench.session.add(Check(name, problem is None, bench.verifier.calls, problem or ""))
