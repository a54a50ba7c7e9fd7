"""Read the configuration in an encoder's folder, in the format of sentence-transformers.

``modules.json`` lists the modules: a transformer, how its vectors are pooled (``1_Pooling/config.json``), and whether
the result is normalised. ``sentence_bert_config.json`` has the maximum number of tokens and
``config_sentence_transformers.json`` the prefixes of queries and passages. A folder without any of them is read as a
transformer with mean pooling.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragworth.core.errors import ModelError, quote_short
from ragworth.core.nested_text import parse_json
from ragworth.retrieval.encoders.contract import Role

POOLINGS = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
MAX_TOKENS = 1 << 20
"""Maximum tokens, and token ids: no encoder has more."""

DEFAULT_LENGTH = 512
"""Default number of tokens read."""

PASSAGE_PROMPTS = ("passage", "document", "corpus")
"""Names of passages in lists of prefixes."""


@dataclass(frozen=True)
class EncoderConfig:
    """The configuration of an encoder."""

    pooling: str
    """``mean`` over all tokens, or ``cls`` for the first."""
    normalised: bool
    longest: int
    """Maximum tokens read of a text."""
    prompts: dict[str, str] = field(default_factory=dict)

    def prefix(self, role: Role) -> str:
        """Prefix of a query or passage."""
        names = ("query",) if role == "query" else PASSAGE_PROMPTS
        return next((self.prompts[name] for name in names if name in self.prompts), "")


def read_config(folder: Path) -> EncoderConfig:
    """Read the configuration of a folder; unknown modules are an error."""
    modules = read_json(folder / "modules.json", [])
    if not all(isinstance(each, dict) for each in modules):
        raise ModelError("a part is not an object", file=str(folder / "modules.json"), expected="a list of parts")
    kinds = [str(each.get("type", "")).rpartition(".")[2] for each in modules]
    unknown = [kind for kind in kinds if kind not in ("Transformer", "Pooling", "Normalize")]
    if unknown:
        raise ModelError(
            f"its module {unknown[0]} is not supported",
            file=str(folder / "modules.json"),
            expected="a transformer, pooling and normalising",
            remedy=f'use "st:{folder}", which needs pip install "ragworth[sentence-transformers]"',
        )
    paths = {kind: folder / str(each.get("path", "")) for kind, each in zip(kinds, modules, strict=True)}
    settings = read_json(folder / "config_sentence_transformers.json", {})
    dot = settings.get("similarity_fn_name") == "dot"
    return EncoderConfig(
        pooling=_read_pooling(paths["Pooling"] / "config.json") if "Pooling" in paths else "mean",
        normalised="Normalize" in paths or not dot,
        longest=_max_length(folder),
        prompts=_read_prompts(settings.get("prompts") or {}, folder / "config_sentence_transformers.json"),
    )


def _read_pooling(path: Path) -> str:
    settings = read_json(path, {})
    named = settings.get("pooling_mode")
    wanted = [name for name in settings if name.startswith("pooling_mode_") and settings[name] is True]
    found = named if isinstance(named, str) else POOLINGS.get(wanted[0], wanted[0]) if len(wanted) == 1 else None
    if settings and found not in POOLINGS.values():
        raise ModelError(
            f"vectors are pooled by {found or ', '.join(wanted) or 'nothing'}",
            file=str(path),
            expected="mean, or cls",
        )
    return found or "mean"


def _read_prompts(said: Any, path: Path) -> dict[str, str]:
    """Prefixes of texts, by role."""
    if not isinstance(said, dict):
        raise ModelError(f"prompts is {quote_short(said)}", file=str(path), expected="texts by name")
    return {str(name): str(text) for name, text in said.items()}


def _max_length(folder: Path) -> int:
    """Maximum tokens: the encoder's, limited by the transformer's positions."""
    config, own = folder / "config.json", folder / "sentence_bert_config.json"
    places = int_field(read_json(config, {}), "max_position_embeddings", config, DEFAULT_LENGTH)
    return min(int_field(read_json(own, {}), "max_seq_length", own, places), places)


def int_field(said: dict[str, Any], name: str, path: Path, default: int) -> int:
    """Read a whole number up to `MAX_TOKENS`; the default if it is missing or 0."""
    found = said.get(name)
    if found is None or (found == 0 and found is not False):
        return default
    if isinstance(found, bool) or not isinstance(found, int) or not 0 < found <= MAX_TOKENS:
        raise ModelError(
            f"{name} is {quote_short(found)}", file=str(path), expected=f"a whole number, 1 to {MAX_TOKENS:,}"
        )
    return found


def read_json(path: Path, default: Any) -> Any:
    """Read a JSON file; the default if it doesn't exist."""
    try:
        value = parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return default
    except (OSError, ValueError) as error:
        raise ModelError(f"it cannot be read: {error}", file=str(path)) from error
    if not isinstance(value, type(default)):
        raise ModelError("it has the wrong type", file=str(path), expected=f"a JSON {type(default).__name__}")
    return value
