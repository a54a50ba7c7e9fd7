"""Cost of a first run: ``ragworth evaluate log.jsonl --model none`` on 24 rows.

Counts how often the log is opened and its first row parsed, how many modules of ragworth are imported, and how long
everything takes, as the median of five processes. ``--src old/src`` measures another version beside this one.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = """
import json, sys
opened = parsed = 0
def count(event, arguments):
    global opened
    opened += event == "open" and str(arguments[0]).endswith("log.jsonl")
decode = json.JSONDecoder.decode
def decode_counted(self, text, *rest):
    global parsed
    parsed += "country 0?" in text and "contexts" in text
    return decode(self, text, *rest)
sys.addaudithook(count)
json.JSONDecoder.decode = decode_counted
from ragworth.cli import main
try:
    main(["evaluate", sys.argv[1], "--model", "none"], standalone_mode=False)
finally:
    modules = sum(name.partition(".")[0] == "ragworth" for name in sys.modules)
    print(f"COUNTS {opened} {parsed} {modules}", file=sys.stderr)
"""
ROWS = [
    {
        "question": f"What is the capital of country {n}?",
        "answer": f"The capital is city {n % 20}.",
        "contexts": [f"City {n} is the capital of country {n}.", f"Country {n} has rivers."],
        "ground_truth": f"city {n}",
        "system": "ab"[n % 2],
    }
    for n in range(24)
]


def measure(source: str) -> tuple[list[str], float]:
    """Counts, and the seconds of a process with a new folder."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log.jsonl")
        log.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
        begin = time.perf_counter()
        command = [sys.executable, "-c", PROGRAM, str(log)]
        environment = os.environ | ({"PYTHONPATH": str(Path(source).resolve())} if source else {})
        run = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=True)
        seconds = time.perf_counter() - begin
    return next(line.split()[1:] for line in run.stderr.splitlines() if line.startswith("COUNTS")), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--src", help="folder with another version of ragworth")
    sources = [*filter(None, [parser.parse_args().src]), ""]
    runs = {source: [measure(source) for _ in range(6)] for source in sources}
    print("| | log opened | first row parsed | modules of ragworth | seconds |\n| --- | ---: | ---: | ---: | ---: |")
    for source, measured in runs.items():
        seconds = statistics.median(each for _, each in measured[1:])  # the first one fills caches
        print(f"| {source or 'this version'} | {' | '.join(measured[0][0])} | {seconds:.2f} |")


if __name__ == "__main__":
    main()
