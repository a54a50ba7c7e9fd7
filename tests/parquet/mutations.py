"""Read thousands of damaged Parquet files: each gives a table or a ragworth error, and nothing on standard error.

    python -m tests.parquet.mutations [NUMBER [SEED]]

reads NUMBER mutations of each seed file and prints what came of them. A reader that ends the process or hangs ends
this program, so the test runs it in a process of its own.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter

from ragworth.errors import FormatError
from ragworth.parquet import quiet, read_parquet
from tests.parquet.seeds import SEEDS, changed, changes


def read_all(number: int, seed: int) -> Counter[str]:
    """How the reads ended."""
    outcomes: Counter[str] = Counter()
    for name, data in SEEDS.items():
        fewer = number if name != "arrow delta" else -(-number // 20)  # each starts a process
        for change in changes(data, fewer, seed):
            print(f"{name}: {change}", file=sys.stderr)  # the last line names the one that ended the process
            sys.stderr.flush()
            try:
                read_parquet(changed(data, change), name="damaged.parquet")
                outcomes["table"] += 1
            except FormatError as error:
                lines = str(error).splitlines()
                assert lines[0].startswith("damaged.parquet: cannot be read as Parquet ("), lines
                assert len(lines) == 3, lines
                outcomes["error"] += 1
    return outcomes


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    quiet.SETTLE = 0.02
    terminal = os.dup(2)
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 2)
        outcomes = read_all(number, int(sys.argv[2]) if len(sys.argv) > 2 else 0)
        os.dup2(terminal, 2)
        log.seek(0)
        odd = [line for line in log.read().decode().splitlines() if ": Change(at=" not in line]
    print(*(f"{number} {what}" for what, number in sorted(outcomes.items())), sep="\n")
    if odd:
        sys.exit("on standard error:\n" + "\n".join(odd[:20]))


if __name__ == "__main__":
    main()
