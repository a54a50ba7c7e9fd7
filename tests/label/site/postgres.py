"""A PostgreSQL server in a temporary folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


def find_program(name: str) -> str | None:
    """A program of PostgreSQL, which Debian keeps out of the path."""
    beside = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(beside[-1]) if beside else None)


def has_postgres() -> bool:
    return find_program("initdb") is not None and find_program("pg_ctl") is not None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def postgres_server() -> Iterator[str]:
    """Start a server and yield the address of an empty database. PostgreSQL refuses to run as root."""
    initdb, control = str(find_program("initdb")), str(find_program("pg_ctl"))
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


def serve_postgres() -> Iterator[str]:
    """Start a server and yield the address of an empty database."""
    if not has_postgres():
        pytest.skip("no PostgreSQL server on this machine")
    with postgres_server() as address:
        yield address
