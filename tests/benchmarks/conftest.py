"""The table of ratios at the end of a benchmark run."""

from __future__ import annotations

import statistics
from collections import defaultdict


def pytest_terminal_summary(terminalreporter, config):
    """Print, for each group, the times over all turns and their ratio to the package's.

    On a shared machine the least time says most about the code, the median about the
    neighbours; both are shown.
    """
    session = getattr(config, "_benchmarksession", None)
    times = defaultdict(lambda: defaultdict(list))
    for one in session.benchmarks if session else ():
        times[one.group][one.params["who"]] += one.stats.data
    write = terminalreporter.line
    terminalreporter.section("ratios to draftproof in this run: of least times, of medians")
    for group, data in times.items():
        write(group)
        own = data.get("draftproof")
        if not own:
            write("  no time of draftproof to compare with")
            continue
        for who, others in data.items():
            least, median = min(others), statistics.median(others)
            ratios = f"{least / min(own):6.2f}x {median / statistics.median(own):6.2f}x"
            write(f"  {who:12} {least * 1e6:8.1f} us {median * 1e6:8.1f} us  {ratios}")
