"""Samplers of other projects in the conformance kit: ``nox -s peers``.

Prints a page in Markdown; ``--write FILE`` puts it into the documentation. Exits with 1
if a peer could not be run; what a verdict is, is theirs.
"""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is imported

import argparse
import datetime as dt
import importlib.metadata
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import torch

from draftproof.conformance import (
    Check,
    Report,
    _calls,
    _models,
    _plan,
    _sampling,
    check_sampler,
)
from draftproof.conformance._calls import Arrays, Verifier
from draftproof.conformance._diagnosis import by_decisions
from draftproof.conformance._judgement import (
    constant,
    distance,
    found_rule,
    law_of,
    observe,
)
from draftproof.conformance._models import MODELS
from draftproof.conformance._session import Session
from peer_edges import EDGE_TITLES, edge, without_adapter
from peer_list import PEERS, Peer

if TYPE_CHECKING:
    from collections.abc import Callable


def main() -> int:
    """Check all, or those that are named, and print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="also write the page to this file")
    parser.add_argument("names", nargs="*", help="only peers with one of these words in it")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows, edges, missing = [], [], []
    for peer in PEERS:
        words = f"{peer.package} {peer}"
        if options.names and not any(name in words for name in options.names):
            continue
        start = time.perf_counter()
        try:
            subject = peer.load()
            report = (decisions if peer.kind == "verifier" else law)(peer, subject)
            rows.append(row(peer, report))
            edges.append(f"| {peer.package} | {peer} | {' | '.join(edge(peer, subject))} |")
        except Exception as error:  # noqa: BLE001 - any is a failure, told below
            missing.append(f"{words}: {type(error).__name__}: {error}"[:300])
        print(f"{words}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    page = "\n".join([*introduction(), *TITLES, *rows, "", *EDGE_TITLES, *edges, ""])
    if not options.names:
        page += "\n".join(["", *without_adapter(), ""])
    print(page)
    print("\n".join(missing), file=sys.stderr)
    if options.write and not missing:
        options.write.write_text(page, encoding="utf-8")
    return 1 if missing else 0


def law(peer: Peer, subject: Callable[..., Any]) -> Report:
    """Check a sampler, in smaller calls and on fewer models if it is slow."""
    kept = {name: MODELS[name] for name in peer.models}
    with ExitStack() as stack:
        stack.enter_context(mock.patch.dict(_models.MODELS, kept, clear=True))
        if peer.batch:
            for module in (_plan, _sampling):
                stack.enter_context(mock.patch.object(module, "BATCH", peer.batch))
        options = {"rule": peer.rule, "xp": peer.xp, "one_hot": peer.one_hot}
        return check_sampler(subject, progress=False, **options, **peer.options)


def decisions(peer: Peer, subject: Callable[..., Any]) -> Report:
    """Take one decision in each cell of the uniforms, and the exact law of all.

    `check_verifier` takes many in each, which is hours in Triton's interpreter.
    """
    arrays = Arrays(peer.xp, "float32")
    session = Session(peer.name, "verifier", peer.rule, 0)
    verifier = Verifier(subject, arrays)
    with mock.patch.object(_calls, "CHUNK", 64):
        seen = [
            observe(verifier, model, arrays, places="middle") for model in MODELS.values()
        ]
    rule, _ = found_rule(seen)
    session.conventions["rule"] = rule or "neither"
    for one in seen:
        off = distance(law_of(one), one.model.target_law())
        detail = f"total variation {off:.3g}"
        good = off == 0 and rule == peer.rule and constant(one)
        session.add(Check(one.model.name, good, len(one.points.which), detail))
    if session.failed:
        session.fault = by_decisions(seen, arrays)
    return session.report()


COLUMNS = ("function", "held to", "verdict", "alone", "sees", "requests", "seconds")
TITLES = (f"| {' | '.join(COLUMNS)} |", f"|{' --- |' * len(COLUMNS)}")


def row(peer: Peer, report: Report) -> str:
    """Return the line of a report."""
    version = importlib.metadata.version(peer.package)
    verdict = "conforms" if report.conforms else "does not conform"
    alone = report.conventions.get("same seed, request alone", "")
    cells = (
        f"{peer}, {peer.package} {version}",
        f"{peer.rule} rule, as {report.kind}",
        f"{verdict}: {report.fault}" if report.fault else verdict,
        "other tokens" if alone.startswith("other") else alone and "same tokens",
        seen_by(report),
        f"{sum(check.cases for check in report.checks if counted(check)):,}",
        f"{report.seconds:.0f}",
    )
    return f"| {' | '.join(cells)} |"


def seen_by(report: Report) -> str:
    """Return what would have been seen, of a peer in which nothing was."""
    if report.kind == "verifier":
        return "every cell"
    laws = [check for check in report.checks if check.name.startswith("law of the tokens")]
    return f"TV {max(check.detectable for check in laws):.2g}" if report.conforms else ""


def counted(check: Check) -> bool:
    """Return whether the cases of a check are requests, counted once."""
    return check.name in MODELS or check.name.startswith(
        ("law of the tokens", "requests of")
    )


def introduction() -> list[str]:
    """Say what was run, with which versions, and when."""
    names = ("draftproof", "numpy", "torch", "jax", "triton")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
    today = dt.datetime.now(tz=dt.UTC).date()
    return [f"Run on {today} on a CPU with {versions}.", ""]


if __name__ == "__main__":
    sys.exit(main())
