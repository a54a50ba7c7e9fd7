"""A constant of the whole library is defined once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ragworth

SOURCES = Path(ragworth.__file__).parent


@pytest.mark.parametrize("name", ["MAX_PROBABILITY_MASS", "MAX_PATH_LENGTH", "OPTIONS_TO_LOWER"])
def test_a_constant_has_one_definition(name: str) -> None:
    definition = re.compile(rf"^{name}\b[^=\n]*= ", re.MULTILINE)
    found = [str(path) for path in SOURCES.rglob("*.py") if definition.search(path.read_text(encoding="utf-8"))]
    assert len(found) == 1, found
