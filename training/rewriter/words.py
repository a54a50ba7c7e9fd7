"""The word lists in ``words.toml``."""

from __future__ import annotations

import tomllib
from pathlib import Path

_LISTS: dict[str, str] = tomllib.loads((Path(__file__).parent / "words.toml").read_text(encoding="utf-8"))


def words(name: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset(_LISTS[name].split())
