"""Read thousands of damaged Parquet files: each gives a table or a ragworth error, and nothing on standard error.

    python -m tests.parquet.mutations [NUMBER [SEED [-v]]]

reads NUMBER mutations of each seed file and counts what came of them. A reader that ends the process or hangs ends
this program, so the test runs it in a process of its own; with ``-v``, the last line names the mutation that did it.
"""

from __future__ import annotations

import sys
from collections import Counter

from ragworth.errors import FormatError
from ragworth.parquet import quiet, read_parquet
from tests.parquet.seeds import SEEDS, changed, changes


def say(text: object) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def read_all(number: int, seed: int, verbose: bool) -> Counter[str]:
    """How the reads ended."""
    outcomes: Counter[str] = Counter()
    for name, data in SEEDS.items():
        fewer = number if name != "arrow delta" else -(-number // 20)  # each starts a process
        for change in changes(data, fewer, seed):
            if verbose:
                say(f"{name}: {change}")
            try:
                read_parquet(changed(data, change), name="damaged.parquet")
                outcomes["table"] += 1
            except FormatError as error:
                lines = str(error).splitlines()
                assert lines[0].startswith("damaged.parquet: can't be read as Parquet ("), lines
                assert len(lines) == 3, lines
                outcomes["error"] += 1
    return outcomes


def main(number: str = "1000", seed: str = "0", verbose: str = "") -> None:
    quiet.SETTLE_SECONDS = 0.02
    for what, count in sorted(read_all(int(number), int(seed), bool(verbose)).items()):
        say(f"{count} {what}")


if __name__ == "__main__":
    main(*sys.argv[1:])
