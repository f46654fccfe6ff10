"""Mutation testing of the core modules: ``nox -s mutation``, up to half an hour.

Runs mutmut on a copy of the sources and tests, in the folder that is given; the table
``[tool.mutmut]`` of pyproject.toml says what is mutated and which tests judge it. Prints
a table and what every surviving mutant changes; exits with 1 if fewer are killed than
needed. What is known of the survivors is in docs/mutation.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
NEEDED = 95.0
# What mutmut says of a mutant that made the tests fail, hang or crash.
KILLED = {"killed", "timeout", "segfault"}


def main() -> int:
    """Mutate, test and tell; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where to work; emptied before")
    parser.add_argument("names", nargs="*", help="patterns of mutants; all by default")
    options = parser.parse_args()
    copy(options.folder)
    start = time.perf_counter()
    mutmut(options.folder, "run", "--max-children", "1", *options.names, told=True)
    minutes = (time.perf_counter() - start) / 60
    found = statuses(options.folder)
    share = table(found)
    for name, status in found.items():
        if status not in KILLED:
            print(f"\n{name}: {status}")
            print(change(mutmut(options.folder, "show", name)))
    print(f"\n{share:.1f} % killed, needed are {NEEDED:.0f} %; {minutes:.0f} minutes")
    return int(share < NEEDED)


def copy(folder: Path) -> None:
    """Copy what the tests need; mutmut writes beside it."""
    shutil.rmtree(folder, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)


def mutmut(folder: Path, *arguments: str, told: bool = False) -> str:
    """Run a command of mutmut in the folder; return what it prints, if it is not told."""
    environment = os.environ | {"HYPOTHESIS_PROFILE": "default"}
    done = subprocess.run(
        [sys.executable, "-m", "mutmut", *arguments],
        cwd=folder,
        env=environment,
        stdout=None if told else subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout or ""


def statuses(folder: Path) -> dict[str, str]:
    """Return what became of each mutant that was looked at."""
    lines = mutmut(folder, "results", "--all", "true").splitlines()
    pairs = (line.strip().rsplit(": ", 1) for line in lines if ": " in line)
    return {name: status for name, status in pairs if status != "not checked"}


def table(found: dict[str, str]) -> float:
    """Print how many mutants of each module are killed; return the share of all."""
    modules: dict[str, Counter[bool]] = defaultdict(Counter)
    for name, status in found.items():
        modules[name.split(".")[1]][status in KILLED] += 1
    total: Counter[bool] = sum(modules.values(), Counter())
    print("\n| module | mutants | killed | survived | % |\n|---|---|---|---|---|")
    for module, count in (*sorted(modules.items()), ("all", total)):
        share = 100 * count[True] / count.total()
        print(
            f"| {module} | {count.total()} | {count[True]} | {count[False]} | {share:.1f} |"
        )
    return 100 * total[True] / total.total()


def change(told: str) -> str:
    """Return the lines of a difference that are taken away and put in."""
    lines = (line for line in told.splitlines() if line[:1] in ("-", "+"))
    return "\n".join(line for line in lines if line[:3] not in ("---", "+++"))


if __name__ == "__main__":
    sys.exit(main())
