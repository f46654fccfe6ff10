"""The commands of the conformance kit: ``draftproof check`` and ``draftproof vectors``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse
    from typing import TypeAlias

    from draftproof.conformance import Report

    _Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001

__all__ = ["add_check", "add_vectors"]

_CONFORMS, _DOES_NOT, _COULD_NOT_RUN = 0, 1, 2


def add_check(commands: _Commands) -> None:
    """Add ``draftproof check``."""
    check = commands.add_parser(
        "check",
        help="check a step, verifier, sampler or drafter of your own",
        description=(
            "Check somebody else's function against the exact laws, and say what is "
            "wrong. Exit code 0: it conforms; 1: it does not; 2: it could not run."
        ),
    )
    check.add_argument(
        "subject", nargs="?", metavar="MODULE:FUNCTION", help="what to check"
    )
    check.add_argument(
        "--kind",
        choices=["step", "verifier", "sampler", "draft"],
        default="sampler",
        help="what it is, which is also its protocol (default: sampler)",
    )
    check.add_argument(
        "--rule",
        choices=["token", "block"],
        help="hold a verifier or sampler to this rule (default: to losslessness only)",
    )
    check.add_argument(
        "--xp",
        default="numpy",
        choices=["numpy", "torch", "jax", "cupy", "array_api_strict"],
        help="the library whose arrays it takes (default: numpy)",
    )
    _add_options(check)
    check.set_defaults(run=_check)


def _add_options(check: argparse.ArgumentParser) -> None:
    check.add_argument("--dtype", help="of the probabilities (default: as the kind has it)")
    check.add_argument(
        "--quick", action="store_true", help="a first verdict in a few seconds"
    )
    check.add_argument("--seed", type=int, default=0, help="of all that is random")
    check.add_argument(
        "--json", type=Path, metavar="FILE", help="write the report there as well"
    )
    check.add_argument(
        "--self-test",
        action="store_true",
        help="instead: run the kit on wrong subjects that it must reject",
    )


def add_vectors(commands: _Commands) -> None:
    """Add ``draftproof vectors``."""
    vectors = commands.add_parser(
        "vectors",
        help="write the golden vectors, for replay in any language",
        description=(
            "Write the golden vectors as JSON: exact rationals, hexadecimal floats, "
            "uniforms, the decisions expected of them, and their margins."
        ),
    )
    vectors.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="where to write them"
    )
    vectors.set_defaults(run=_vectors)


def _check(options: argparse.Namespace) -> int:
    from rich.console import Console

    from draftproof.conformance import CouldNotRunError

    if options.self_test:
        return _self_test(options)
    if options.subject is None:
        print("draftproof check: MODULE:FUNCTION is missing", file=sys.stderr)
        return _COULD_NOT_RUN
    try:
        report = _report(options)
    except CouldNotRunError as error:
        print(f"draftproof check: {error}", file=sys.stderr)
        return _COULD_NOT_RUN
    Console().print(report, crop=False)
    if options.json is not None:
        text = json.dumps(report.to_json(), indent=2)
        options.json.write_text(text + "\n", encoding="utf-8")
    if report.conforms:
        return _CONFORMS
    failed = any(not check.passed for check in report.checks)
    return _DOES_NOT if report.complete or failed else _COULD_NOT_RUN


def _report(options: argparse.Namespace) -> Report:
    from draftproof import conformance

    checks = {
        "step": conformance.check_step,
        "verifier": conformance.check_verifier,
        "sampler": conformance.check_sampler,
        "draft": conformance.check_draft,
    }
    keywords: dict[str, Any] = {
        "xp": options.xp,
        "quick": options.quick,
        "seed": options.seed,
    }
    if options.dtype is not None:
        keywords["dtype"] = options.dtype
    if options.rule is not None:
        if options.kind not in ("verifier", "sampler"):
            msg = f"--rule is for verifiers and samplers; --kind is {options.kind}"
            raise conformance.CouldNotRunError(msg)
        keywords["rule"] = options.rule
    report: Report = checks[options.kind](options.subject, **keywords)
    return report


def _self_test(options: argparse.Namespace) -> int:
    from rich.console import Console

    from draftproof.conformance._self_test import self_test, table

    results = self_test(quick=options.quick, seed=options.seed)
    Console().print(table(results))
    return _CONFORMS if all(result.ok for result in results) else _DOES_NOT


def _vectors(options: argparse.Namespace) -> int:
    from draftproof.conformance import vectors

    try:
        vectors.write(options.out)
    except OSError as error:
        print(f"draftproof vectors: {error}", file=sys.stderr)
        return _COULD_NOT_RUN
    print(f"wrote {options.out}")
    return 0
