"""The card of a built collection: where it comes from, who wrote and checked it, and how far people confirmed it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ragworth import __version__
from ragworth.build.drafts import Drafts, FunnelStep
from ragworth.errors import FormatError, quote_short
from ragworth.formats.files import create_file, open_file
from ragworth.llm.contract import Card
from ragworth.nested_text import parse_json
from ragworth.prompts.template import Template
from ragworth.report.render import escape_markdown, markdown_grid

CARD_FILE = "card.json"
PAGE_FILE = "card.md"


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
        """Write ``card.json`` and, for people, ``card.md``."""
        for name, data in self.files().items():
            with create_file(Path(folder) / name) as stream:
                stream.write(data)

    def files(self) -> dict[str, bytes]:
        """The content of both files."""
        text = json.dumps(asdict(self), ensure_ascii=False, indent=1) + "\n"
        return {CARD_FILE: text.encode("utf-8", "replace"), PAGE_FILE: self.markdown().encode("utf-8", "replace")}

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

    def markdown(self) -> str:
        """The card as a page. Everything from documents and models is escaped."""
        parts = [f"# {escape_markdown(self.title)}\n", _facts("Corpus", self.corpus)]
        parts += [f"Built with `ragworth {self.command}`, version {self.version}. Licence: {_cell(self.license)}.\n"]
        parts += [_facts("Models", self.models), _facts("Prompts", self.prompts), _facts("Seeds", self.seeds)]
        parts += [_facts("Settings", self.settings), self._funnel()]
        parts += [_rows("Checks", self.checks)]
        parts += ["## Notes\n", "\n".join(f"- {_cell(note)}" for note in self.notes) + "\n"] if self.notes else []
        return "\n".join(part for part in parts if part)

    def _funnel(self) -> str:
        if not self.drafts:
            return ""
        rows = [("drafts", "", f"{self.drafts:,}")]
        rows += [(_cell(each["status"]), f"−{each['drafts']:,}", f"{each['left']:,}") for each in self.funnel]
        rows += [("kept", "", f"{self.kept:,}")]
        return "## From drafts to questions\n\n" + markdown_grid(
            [("step", "drafts", "left"), *rows], [False, True, True]
        )


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


def _cell(value: Any) -> str:
    text = ", ".join(f"{key} {each}" for key, each in value.items()) if isinstance(value, Mapping) else str(value)
    return escape_markdown(" ".join(text.split()))


def _facts(title: str, facts: Mapping[str, Any]) -> str:
    if not facts:
        return ""
    return f"## {title}\n\n" + markdown_grid([("", ""), *((_cell(k), _cell(v)) for k, v in facts.items())], [False] * 2)


def _rows(title: str, rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return ""
    names = list(rows[0])
    cells = [[_cell("" if row.get(name) is None else row[name]) for name in names] for row in rows]
    return f"## {title}\n\n" + markdown_grid([names, *cells], [False] * len(names))
