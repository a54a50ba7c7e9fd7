"""A PostgreSQL server for tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from benchmarks.postgres_server import has_postgres, postgres_server


def serve_postgres() -> Iterator[str]:
    """Start a server and yield the address of an empty database."""
    if not has_postgres():
        pytest.skip("no PostgreSQL server on this machine")
    with postgres_server() as address:
        yield address
