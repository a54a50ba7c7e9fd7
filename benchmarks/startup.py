"""What it takes to start a command: CPU seconds beside those of Python, click, NumPy and Polars alone.

    python benchmarks/startup.py                  # medians of 15
    python benchmarks/startup.py --imports 15     # also the slowest imports of `ragworth score` on a tiny run

Each command runs in a fresh process, and all take turns, so that load from elsewhere hits all of them.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

RUN = "q1 Q0 p1 1 2.0 tiny\nq1 Q0 p2 2 1.0 tiny\n"
QRELS = "q1 0 p2 1\n"
RAGWORTH = ("-m", "ragworth")
SCORE = (*RAGWORTH, "score", "-q", "qrels.txt", "run.txt")
COMMANDS = {
    "`python -c pass`": ("-c", "pass"),
    "`import click`": ("-c", "import click"),
    "`ragworth --version`": (*RAGWORTH, "--version"),
    "`ragworth --help`": (*RAGWORTH, "--help"),
    "`ragworth score --help`": (*RAGWORTH, "score", "--help"),
    "`ragworth evaluate --help`": (*RAGWORTH, "evaluate", "--help"),
    "`import click, numpy, polars`": ("-c", "import click, numpy, polars"),
    "`ragworth score`, one query": SCORE,
    "`ragworth compare`, one query, two runs": (*RAGWORTH, "compare", "-q", "qrels.txt", "run.txt", "other=run.txt"),
}
IMPORT = re.compile(r"import time:\s+(\d+) \|\s+(\d+) \|\s*(\S+)")


class Cost(NamedTuple):
    """CPU seconds, seconds by the clock and peak megabytes of a process."""

    cpu: float
    clock: float
    peak: float


def run(command: tuple[str, ...], folder: Path) -> Cost:
    begun = time.perf_counter()
    with subprocess.Popen([sys.executable, *command], cwd=folder, stdout=subprocess.DEVNULL) as child:
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} failed with {child.returncode}")
    return Cost(used.ru_utime + used.ru_stime, time.perf_counter() - begun, used.ru_maxrss / 1024)


def slowest_imports(folder: Path, number: int) -> list[tuple[str, float]]:
    """Modules by the milliseconds that they take themselves, without what they import."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *SCORE], cwd=folder, capture_output=True, check=True, text=True
    )
    found = [(match[3], int(match[1]) / 1000) for match in map(IMPORT.match, done.stderr.splitlines()) if match]
    return sorted(found, key=lambda each: -each[1])[:number]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=15, help="how often each command runs")
    parser.add_argument("--imports", type=int, default=0, help="how many of the slowest imports to list")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "run.txt").write_text(RUN)
        (folder / "qrels.txt").write_text(QRELS)
        costs: dict[str, list[Cost]] = {command: [] for command in COMMANDS}
        for _ in range(given.times):
            for command, arguments in COMMANDS.items():
                costs[command].append(run(arguments, folder))
        print("| | CPU s | least | s | peak MiB |\n| --- | ---: | ---: | ---: | ---: |")
        for command, found in costs.items():
            cpu, clock = ([getattr(cost, kind) for cost in found] for kind in ("cpu", "clock"))
            peak = max(cost.peak for cost in found)
            times = f"{statistics.median(cpu):.2f} | {min(cpu):.2f} | {statistics.median(clock):.2f}"
            print(f"| {command} | {times} | {peak:.0f} |")
        for module, milliseconds in slowest_imports(folder, given.imports) if given.imports else ():
            print(f"{milliseconds:7.1f} ms {module}")


if __name__ == "__main__":
    main()
