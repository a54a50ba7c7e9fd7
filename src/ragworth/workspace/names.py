"""Names that people give to files on the command line."""

from __future__ import annotations

from pathlib import Path


def named_run(spec: str) -> tuple[str, str]:
    """Split ``NAME=PATH``; the name of a plain path is empty. A file whose name contains ``=`` is a path."""
    name, equals, path = spec.partition("=")
    named = bool(equals and name and "/" not in name and not Path(spec).exists())
    return (name, path) if named else ("", spec)
