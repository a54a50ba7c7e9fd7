"""Everything that is needed to make each number again."""

from __future__ import annotations

import platform
import sys
import tomllib
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ragworth import __version__
from ragworth.evaluation.asking import card_facts
from ragworth.evaluation.kept import file_digest
from ragworth.evaluation.state import State

PACKAGES = (
    *("polars", "numpy", "scipy", "onnxruntime", "tokenizers", "torch", "transformers", "httpx"),
    *("bm25s", "PyStemmer", "altair", "vl-convert-python", "ir-measures"),
)


def manifest(state: State) -> dict[str, Any]:
    """Versions, files, seeds, models, prompts, settings, and what each stage took."""
    space = state.space
    settings = _plain(tomllib.loads(space.file.read_text(encoding="utf-8")))
    return {
        "title": space.title,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"ragworth": __version__, "python": platform.python_version(), **_packages()},
        "machine": {"system": platform.system(), "processor": platform.machine(), "byte order": sys.byteorder},
        "workspace": {"file": space.file.name, "digest": file_digest(space.file)},
        "files": dict(state.material.files),
        "queries": len(state.material.queries),
        "seed": space.seed,
        "settings": {**settings, "k": space.k, "seed": space.seed, "baseline": space.baseline},
        "systems": dict(state.material.written),
        "models": [card_facts(card) for card in state.models.cards],
        "prompts": {
            name: {"version": template.version, "messages": [[each.role, each.text] for each in template.messages]}
            for name, template in sorted(state.prompts.items())
        },
        "stages": state.stages,
    }


def _plain(value: Any) -> Any:
    """What a TOML file holds as what JSON can hold: dates become texts."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value if isinstance(value, str | int | float | bool) else str(value)


def _packages() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
