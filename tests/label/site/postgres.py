"""A PostgreSQL server for tests, in a folder of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.label.site.live import free_port


def find_program(name: str) -> str | None:
    """A program of PostgreSQL, which Debian keeps out of the path."""
    beside = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(beside[-1]) if beside else None)


def serve_postgres() -> Iterator[str]:
    """Start a server and yield the address of an empty database. PostgreSQL refuses to run as root."""
    initdb, control = find_program("initdb"), find_program("pg_ctl")
    if initdb is None or control is None:
        pytest.skip("no PostgreSQL server on this machine")
    folder = Path(tempfile.mkdtemp(prefix="ragworth-pg-"))
    other: dict[str, Any] = {}
    if os.geteuid() == 0:
        other = {"user": "nobody"}
        shutil.chown(folder, "nobody")
    port = free_port()
    data = str(folder / "data")
    options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={folder}"
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    try:
        subprocess.run([initdb, "-D", data, "-A", "trust", "-U", "label", "--no-sync"], **quiet, **other, check=True)
        start = [control, "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start"]
        subprocess.run(start, **quiet, **other, check=True)
        yield f"postgresql://label@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run([control, "-D", data, "-m", "immediate", "stop"], **quiet, **other, check=False)
        shutil.rmtree(folder, ignore_errors=True)
