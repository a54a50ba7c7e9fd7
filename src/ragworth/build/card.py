"""The card of a built collection: where it comes from, who wrote and checked it, and how far people confirmed it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ragworth import __version__
from ragworth.build.drafts import Drafts, FunnelStep
from ragworth.core.errors import FormatError, quote_short
from ragworth.core.nested_text import parse_json
from ragworth.formats.files import create_file, open_file
from ragworth.llm.contract import Card
from ragworth.llm.prompts.template import Template

CARD_FILE = "card.json"


@dataclass(frozen=True)
class CollectionCard:
    """Facts about a collection, as JSON values."""

    title: str
    command: str
    """The command or chain that built it, such as ``build questions``."""
    corpus: Mapping[str, Any]
    """Numbers of documents and passages, and ``sha256`` of ids and texts."""
    models: Mapping[str, Any] = field(default_factory=dict)
    """By role: writer, reader, judge. A role without a model says ``rules``."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """Versions by name."""
    seeds: Mapping[str, int] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    drafts: int = 0
    kept: int = 0
    funnel: Sequence[Mapping[str, Any]] = ()
    """Steps from drafts to kept: status, drafts, left."""
    checks: Sequence[Mapping[str, Any]] = ()
    """By check: pass, fail, unknown, and the sentence about it."""
    license: str = "not stated"
    notes: Sequence[str] = ()
    version: str = __version__

    def write(self, folder: str | Path) -> None:
        """Write ``card.json``."""
        with create_file(Path(folder) / CARD_FILE) as stream:
            stream.write(self.encode())

    def encode(self) -> bytes:
        text = json.dumps(asdict(self), ensure_ascii=False, indent=1) + "\n"
        return text.encode("utf-8", "replace")

    @classmethod
    def read(cls, folder: str | Path) -> CollectionCard:
        path = Path(folder) / CARD_FILE
        with open_file(path) as stream:
            data = stream.read()
        try:
            return cls(**parse_json(data))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            reason = quote_short(str(error), 80)
            raise FormatError(f"this isn't a collection card ({reason})", file=str(path)) from error


def model_facts(card: Card) -> dict[str, str]:
    """What identifies a model, without empty entries."""
    names = ("backend", "name", "revision", "quantisation", "endpoint")
    return {name: str(getattr(card, name)) for name in names if getattr(card, name)}


def prompt_versions(templates: Mapping[str, Template]) -> dict[str, str]:
    return {name: template.version for name, template in sorted(templates.items())}


def funnel_facts(drafts: Drafts, order: Sequence[str] = ()) -> dict[str, Any]:
    """The card's ``drafts``, ``kept`` and ``funnel``."""
    steps: list[FunnelStep] = drafts.funnel(order)
    return {"drafts": len(drafts), "kept": len(drafts.kept), "funnel": [step._asdict() for step in steps]}
