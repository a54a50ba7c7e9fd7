"""Seconds to read a run of 7 million rows and a log of 100,000 rows, each in a fresh process, medians of three.

Seconds are the processor's, of all threads: other work on the machine disturbs them less than the clock. ``--src
old/src`` reads with another version as well, in turn, and prints the ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

QUERIES, DEPTH, LOG_ROWS = 7_000, 1_000, 100_000
PROGRAM = """
import sys, time
import polars, ragworth
read = ragworth.read_contexts if sys.argv[1].endswith(".run") else ragworth.load
read  # imports it
begin = time.process_time()
read(sys.argv[1])
print(time.process_time() - begin)
"""


def run_lines() -> Iterator[str]:
    for query in range(QUERIES):
        passages = ((query * 7919 + rank * 104729) % 8_841_823 for rank in range(DEPTH))
        yield "".join(f"q{query} Q0 d{each} {n + 1} {DEPTH - n}.5 bm25\n" for n, each in enumerate(passages))


def log_lines() -> Iterator[str]:
    for n in range(LOG_ROWS):
        passages = [f"Passage {n % 5000 + rank} is about the mill of town {rank}. " * 4 for rank in range(5)]
        row = {"question": f"Who built mill {n}?", "answer": f"Town {n}", "contexts": passages, "ground_truth": f"{n}"}
        yield json.dumps(row) + "\n"


def read_seconds(path: Path, source: str) -> float:
    environment = os.environ | ({"PYTHONPATH": str(Path(source).resolve())} if source else {})
    command = [sys.executable, "-c", PROGRAM, str(path)]
    return float(subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--src", help="folder with another version of ragworth")
    sources = ["", *filter(None, [parser.parse_args().src])]
    print("| file | this version, s | other, s | ratio |\n| --- | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        for name, lines in (("large.run", run_lines), ("large.jsonl", log_lines)):
            path = Path(folder, name)
            with path.open("w") as file:
                file.writelines(lines())
            turns = [[read_seconds(path, source) for source in sources] for _ in range(3)]
            medians = " | ".join(f"{statistics.median(times):.2f}" for times in zip(*turns, strict=True))
            ratio = f" | {statistics.median(turn[0] / turn[1] for turn in turns):.2f}" if sources[1:] else " | |"
            print(f"| {name} | {medians}{ratio} |")
            path.unlink()


if __name__ == "__main__":
    main()
