"""The manifest: everything needed to reproduce the results."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ragworth import __version__
from ragworth.evaluation.model_pool import card_facts
from ragworth.evaluation.state import EvaluationState

PACKAGES = (
    *("polars", "numpy", "scipy", "onnxruntime", "tokenizers", "torch", "transformers", "h11"),
    *("bm25s", "PyStemmer", "altair", "vl-convert-python", "ir-measures"),
)


def build_manifest(state: EvaluationState) -> dict[str, Any]:
    """Versions, files, seeds, models, prompts, settings, and the cost of each stage."""
    space = state.space
    # As they were when the evaluation began: the file may have been changed since.
    settings = _json_value(
        dict(space.given) or {name: value for name, value in asdict(space).items() if name != "file"}
    )
    return {
        "title": space.title,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"ragworth": __version__, "python": platform.python_version(), **_package_versions()},
        "machine": {"system": platform.system(), "processor": platform.machine(), "byte order": sys.byteorder},
        "workspace": {"file": space.file.name, "digest": space.digest},
        "files": dict(state.material.files),
        "queries": len(state.material.queries),
        "seed": space.seed,
        "settings": {**settings, "k": state.k, "seed": space.seed, "baseline": space.baseline},
        "systems": dict(state.material.written),
        "models": [card_facts(card) for card in state.models.cards],
        "prompts": {
            name: {
                "version": template.version,
                "messages": [[each.role, each.text] for each in template.messages],
                **({"reply": template.reply.to_dict()} if template.reply.declared else {}),
            }
            for name, template in sorted(state.prompts.items())
        },
        "stages": state.stages,
    }


def _json_value(value: Any) -> Any:
    """Settings as JSON values; dates become texts."""
    if isinstance(value, dict):
        return {key: _json_value(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(each) for each in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


@cache
def _package_versions() -> Mapping[str, str]:
    """Versions of installed packages, read once, because reading them is slow."""
    found: dict[str, str] = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
