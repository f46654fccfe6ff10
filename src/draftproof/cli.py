"""The command line: ``draftproof demo | explain | check | vectors``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from draftproof import __version__
from draftproof._kit_commands import add_check, add_vectors

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from draftproof.explain import Given

    _Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001

__all__ = ["main"]

_COULD_NOT_RUN = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        The arguments without the program's name; by default those of the process.

    Returns
    -------
    int
        0, or 2 if the command could not run; ``check`` has 1 for what does not conform.
    """
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
    except ModuleNotFoundError as error:
        return _missing(error, options)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="draftproof",
        description="The verification arithmetic of speculative decoding.",
    )
    parser.add_argument("--version", action="version", version=f"draftproof {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_demo(commands)
    _add_explain(commands)
    add_check(commands)
    add_vectors(commands)
    return parser


def _add_demo(commands: _Commands) -> None:
    demo = commands.add_parser(
        "demo",
        help="generate text with two n-gram models, and check the tokens per call",
        description=(
            "Train a bigram drafter and a stronger target on the text of Python's own "
            "language reference, generate text by speculative decoding, and compare the "
            "tokens per call of the target with what was to be expected."
        ),
    )
    demo.add_argument(
        "--backend",
        choices=["numpy", "torch", "jax"],
        default="numpy",
        help="the array library that verifies (default: numpy)",
    )
    demo.add_argument(
        "--seed", type=_natural, default=0, help="of the uniforms (default: 0)"
    )
    demo.add_argument(
        "--tokens", type=_positive, default=250, help="how many to generate (default: 250)"
    )
    demo.add_argument(
        "--draft-length",
        type=_positive,
        default=4,
        metavar="K",
        help="how many to draft for each call of the target (default: 4)",
    )
    demo.add_argument(
        "--rule",
        choices=["token", "block"],
        default="token",
        help="the rule of acceptance (default: token)",
    )
    demo.set_defaults(run=_demo)


def _add_explain(commands: _Commands) -> None:
    explain = commands.add_parser(
        "explain",
        help="work out one step on two rows, with fractions and bars",
        description=(
            "Work out what speculative_decode_step does with one drafted token: "
            "acceptance, residual, and that together they make the target law. "
            "Numbers are decimals or fractions and are taken exactly."
        ),
    )
    explain.add_argument("--draft", type=_row, metavar="Q,Q,...", help="the draft law")
    explain.add_argument("--target", type=_row, metavar="P,P,...", help="the target law")
    explain.add_argument(
        "--token", type=int, metavar="T", help="the drafted token, an index"
    )
    explain.add_argument(
        "--file",
        type=Path,
        metavar="FILE",
        help='instead of both rows: JSON {"draft": [...], "target": [...], "token": T}, or '
        ".npy of shape (2, V), draft row first",
    )
    explain.add_argument(
        "--top",
        type=_positive,
        default=10,
        help="how many entries of a large vocabulary to show (default: 10)",
    )
    explain.set_defaults(run=_explain)


def _demo(options: argparse.Namespace) -> int:
    from rich.console import Console

    from draftproof.demo import BACKENDS, NGram, Plan, decode, read_words, show

    BACKENDS[options.backend].converter()  # a missing library shows before the work
    text = read_words()
    words = sorted(set(text))
    index = {word: token for token, word in enumerate(words)}
    learned = [index[word] for word in text]
    draft, target = (NGram(learned, len(words), order) for order in (2, 3))
    console = Console()
    console.print(
        f"{len(text):,} words, {len(words):,} distinct; drafter: bigram; target: trigram\n"
        f"drafts per call: {options.draft_length}; rule: {options.rule}, on "
        f"{options.backend}; seed {options.seed}\n",
        highlight=False,
    )
    plan = Plan(
        tokens=options.tokens,
        seed=options.seed,
        draft_length=options.draft_length,
        rule=options.rule,
        backend=options.backend,
    )
    start = time.perf_counter()
    run = decode(draft, target, learned[:3], plan)
    show(console, run, words, seconds=time.perf_counter() - start)
    return 0


def _explain(options: argparse.Namespace) -> int:
    from rich.console import Console

    from draftproof import check_probs
    from draftproof.explain import InputError, show, work

    try:
        given = _given(options)
        token = given.token if options.token is None else options.token
        if token is None:
            msg = "`token` is missing: add --token T"
            raise InputError(msg)
        check_probs(given.draft_probs, given.target_probs, token)
        worked = work(given.exact_draft, given.exact_target, token)
    except (ValueError, IndexError, TypeError) as error:
        print(f"draftproof explain: {error}", file=sys.stderr)
        return _COULD_NOT_RUN
    show(Console(), worked, top=options.top)
    return 0


def _given(options: argparse.Namespace) -> Given:
    from draftproof.explain import InputError, read_file, read_text

    rows = (options.draft, options.target)
    if (options.file is None) == (rows == (None, None)):
        msg = "needed are --draft and --target, or --file"
        raise InputError(msg)
    if options.file is not None:
        return read_file(options.file)
    if None in rows:
        msg = f"`{'draft' if options.draft is None else 'target'}` is missing"
        raise InputError(msg)
    return read_text(*rows)


def _missing(error: ModuleNotFoundError, options: argparse.Namespace) -> int:
    """Say in one line what to install; reraise what is not for the user to install."""
    module = (error.name or "").split(".")[0]
    if module in ("numpy", "rich", "scipy"):
        install = "pip install 'draftproof[kit]'"
    elif module == getattr(options, "backend", None):
        install = f"pip install {module}"
    else:
        raise error
    print(f"draftproof: {module} is not installed; {install}", file=sys.stderr)
    return _COULD_NOT_RUN


def _row(text: str) -> list[str]:
    return [entry.strip() for entry in text.split(",")]


def _natural(text: str) -> int:
    number = int(text)
    if number < 0:
        msg = f"{number} is negative"
        raise argparse.ArgumentTypeError(msg)
    return number


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        msg = f"{number} is not positive"
        raise argparse.ArgumentTypeError(msg)
    return number
