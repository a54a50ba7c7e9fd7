"""Read a file in a separate process, to see whether the reader survives it.

Some encodings have sizes within the data, which header checks can't see. A reader that believes a wrong one ends its
process, so it gets a disposable one. The result is discarded, and the file is then read again.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ragworth.parquet.thrift import DamagedError

TRIAL_SECONDS = 60
"""Time limit in seconds for each gigabyte that the file takes in memory, rounded up."""

TRIAL_MEMORY = 4 << 30
"""Address space beyond the file's size in memory: for Python, Polars and its threads."""

MEMORY_FACTOR = 4
"""How many copies of the data a reader may have at once, in different forms."""

PROGRAM = """
import sys
path, limit = sys.argv[1], int(sys.argv[2])
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
except (ImportError, OSError, ValueError):
    pass
import polars as pl
source = sys.stdin.buffer.read() if path == "" else path
try:
    pl.read_parquet(source, **({} if path == "" else {"glob": False}))
except BaseException as error:
    print((str(error).splitlines() or [""])[0][:120])
    sys.exit(3)
"""


def try_reading(source: str | Path | bytes, size: int) -> None:
    """Read in another process; raises :class:`DamagedError` unless that process succeeds."""
    path = "" if isinstance(source, bytes) else str(source)
    # -P: otherwise Python would import modules from the current folder, which may be somebody else's.
    command = [sys.executable, "-P", "-c", PROGRAM, path, str(TRIAL_MEMORY + MEMORY_FACTOR * size)]
    try:
        done = subprocess.run(
            command,
            input=source if isinstance(source, bytes) else b"",
            capture_output=True,
            timeout=TRIAL_SECONDS * (1 + (size >> 30)),
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise DamagedError(f"reading it takes longer than {error.timeout:.0f} seconds") from error
    if done.returncode:
        said = done.stdout.decode("utf-8", "replace").strip() if done.returncode == 3 else ""
        raise DamagedError(said or "the reader does not survive it")
