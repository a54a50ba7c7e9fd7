"""The labels table: who said what about which item, and how.

One row per answer or skip. It is what a project exports and imports, and what agreement and ragworth's tables are
computed from. Undone answers are not in it; the site's event log has them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from ragworth.core.errors import BadLine, quote_short
from ragworth.core.nested_text import parse_json, validate_value
from ragworth.data.coercion import read_parquet
from ragworth.formats.files import bad_lines_error, create_file
from ragworth.formats.values import read_objects
from ragworth.label.tasks.contract import LabelItem, LabelTask
from ragworth.label.tasks.fields import Value

ADJUDICATED = "adjudicated"
"""The judge of labels that settle a disagreement: whoever decides has seen the others' labels."""


@dataclass(frozen=True)
class Label:
    """One person's answer to one item.

    Attributes
    ----------
    annotator: who; ``adjudicated`` for a decision after a disagreement.
    item: id of the item.
    value: the answer, or None if the item was skipped.
    shown_at, answered_at: ISO 8601 with a time zone; empty if unknown.
    seconds: time in focus; None if unknown.
    skipped: the reason of a skip; or empty.
    comment: what the annotator added.
    seen_suggestion: whether a model's suggestion was shown.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"extra": "forbid"}

    annotator: str
    item: str
    value: Value | None
    shown_at: str = ""
    answered_at: str = ""
    seconds: float | None = None
    skipped: str = ""
    comment: str = ""
    seen_suggestion: bool = False

    @property
    def adjudicated(self) -> bool:
        return self.annotator == ADJUDICATED

    def problems(self) -> list[str]:
        """Everything that is wrong with the row itself; whether the value fits the task is `LabelTask.validate`'s."""
        found = [f"{name} is empty" for name in ("annotator", "item") if not getattr(self, name).strip()]
        if (self.value is None) != bool(self.skipped):
            found.append(
                "there is neither a value nor a reason to skip" if self.value is None else "a skip has a value"
            )
        found += [
            f"{name} is {quote_short(getattr(self, name))}, not a time" for name in TIMES if not self._is_time(name)
        ]
        if self.seconds is not None and not 0 <= self.seconds < float("inf"):
            found.append(f"seconds is {self.seconds}, not a duration")
        return found

    def _is_time(self, name: str) -> bool:
        given = getattr(self, name)
        try:
            return not given or datetime.fromisoformat(given).tzinfo is not None
        except ValueError:
            return False


TIMES = ("shown_at", "answered_at")
EXPECTED = '{"annotator": "anna", "item": "q1-p7", "value": {"relevance": "2"}, …}'
SCHEMA = {
    "annotator": pl.String,
    "item": pl.String,
    "value": pl.String,
    "shown_at": pl.String,
    "answered_at": pl.String,
    "seconds": pl.Float64,
    "skipped": pl.String,
    "comment": pl.String,
    "seen_suggestion": pl.Boolean,
    "adjudicated": pl.Boolean,
}
"""Columns of a Parquet file; ``value`` is JSON."""


class Labels:
    """A checked table of labels: at most one row for each annotator and item."""

    def __init__(self, rows: Iterable[Label], *, source: str = "") -> None:
        self.rows = tuple(rows)
        seen: set[tuple[str, str]] = set()
        wrong: list[BadLine] = []
        for number, label in enumerate(self.rows, 1):
            key = (label.annotator, label.item)
            again = [f"{quote_short(key[0])} labels the item {quote_short(key[1])} twice"] if key in seen else []
            wrong += [BadLine(number, text) for text in (*label.problems(), *again)]
            seen.add(key)
        if wrong:
            raise bad_lines_error(source or "labels", wrong, EXPECTED)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Label]:
        return iter(self.rows)

    @cached_property
    def answers(self) -> list[Label]:
        """The rows with a value, without skips."""
        return [label for label in self.rows if label.value is not None]

    @property
    def annotators(self) -> list[str]:
        return list(dict.fromkeys(label.annotator for label in self.rows))

    @property
    def frame(self) -> pl.DataFrame:
        """One row a label; ``value`` is JSON text."""
        return pl.DataFrame([_as_row(label) for label in self.rows], schema=SCHEMA, orient="row")

    def check(
        self, task: LabelTask, items: Mapping[str, LabelItem], source: str = "", *, imported: bool = False
    ) -> None:
        """Refuse labels of unknown items, and values that the task doesn't allow.

        Labels that were ``imported`` may break rules, such as the one that an answerable question needs a highlight.
        """
        wrong: list[BadLine] = []
        problems = task.field_problems if imported else task.validate
        for number, label in enumerate(self.rows, 1):
            if label.item not in items:
                wrong.append(BadLine(number, f"there is no item {quote_short(label.item)}"))
            elif label.value is not None:
                wrong += [BadLine(number, text) for text in problems(label.value, items[label.item])]
        if wrong:
            raise bad_lines_error(source or "labels", wrong, f"labels of the task {task.kind}")

    def write(self, path: str | Path) -> None:
        """Write JSONL or, by the name's ending, Parquet."""
        with create_file(path) as file:
            if Path(path).suffix == ".parquet":
                self.frame.write_parquet(file)
                return
            for label in self.rows:
                row = {**asdict(label), "adjudicated": label.adjudicated}
                file.write((json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass"))

    @classmethod
    def read(cls, path: str | Path) -> Labels:
        """Read what :meth:`write` wrote."""
        if Path(path).suffix == ".parquet":
            rows: Iterable[tuple[int, dict[str, Any]]] = enumerate(read_parquet(path).to_dicts(), 1)
        else:
            rows = read_objects(path, [], skip=False, expected=EXPECTED)
        made: list[Label] = []
        for number, row in rows:
            try:
                made.append(_parse_row(row))
            except (TypeError, ValueError) as error:
                raise bad_lines_error(path, [BadLine(number, str(error))], EXPECTED) from error
        return cls(made, source=str(path))


def _as_row(label: Label) -> tuple[Any, ...]:
    facts = {**asdict(label), "adjudicated": label.adjudicated}
    facts["value"] = None if label.value is None else json.dumps(label.value, ensure_ascii=False, sort_keys=True)
    return tuple(facts[name] for name in SCHEMA)


def _parse_row(row: Mapping[str, Any]) -> Label:
    facts = {name: value for name, value in row.items() if name != "adjudicated" and value is not None}
    value = facts.get("value")
    facts["value"] = parse_json(value) if isinstance(value, str) else value
    label: Label = validate_value(Label, facts)
    if row.get("adjudicated") not in (None, label.adjudicated):
        raise ValueError(f"adjudicated is {row['adjudicated']}, and the annotator {quote_short(label.annotator)}")
    return label
