"""``crux``: exports of CRUX's labelling app: a folder of ``NAME_qlabels.jsonl`` or ``NAME_qrels.jsonl``, or one file.

An export has one JSON object a line, of one annotator: ``answerability`` is a list of labels, for each sub-question of
a report; ``relevances`` are ratings of a passage by sub-question, numbered from 0 in the order of the known items. −1
and −2 are no labels. Highlights are texts without offsets. If the report is known, they are looked up there; otherwise
the text goes to the label's comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ragworth.core.errors import BadLine, FormatError, InputError, format_count, quote_short
from ragworth.formats.files import bad_lines_error, run_name
from ragworth.formats.values import WrongLineError, as_dict, as_id, as_list, as_number, as_rating, read_objects
from ragworth.label.imports.contract import ImportedLabels, LabelImport
from ragworth.label.labels import Label, Labels
from ragworth.label.tasks.answerability import NO, YES
from ragworth.label.tasks.contract import LabelItem, LabelTask
from ragworth.label.tasks.fields import make_span

NO_TEXT = "(the export has no text)"
ENDINGS = {"answerability": "_qlabels", "coverage": "_qrels"}
EXPECTED = '{"id": …, "answerability": [1, 0, …]} or {"id": …, "document": …, "relevances": {"0": 5, …}} on each line'
NOT_JUDGED = (-2, -1)
"""Labels of sub-questions that were filtered out, and of those the annotator was not asked about."""


class CruxMark(NamedTuple):
    """One label: the kind of task, the line's id, the passage or nothing, the sub-question's number, its words."""

    kind: str
    id: str
    passage: str
    number: str
    value: int
    text: str
    question: str


def find_exports(folder: Path, kind: str = "") -> list[Path]:
    """The exports in a folder, of all kinds or of one."""
    endings = [ending for name, ending in ENDINGS.items() if kind in ("", name)]
    return [file for ending in endings for file in sorted(folder.glob(f"*{ending}.jsonl*"))]


def is_export(path: Path) -> bool:
    """Whether a file is an export."""
    if ".jsonl" not in path.suffixes:
        return False
    _, first = next(iter(read_objects(path, [], skip=False, expected=EXPECTED)), (0, {}))
    return "answerability" in first or "relevances" in first


def judge_of(path: Path) -> str:
    """The annotator: the name of the file without ``_qlabels`` or ``_qrels``."""
    return re.sub(rf"(?:{'|'.join(ENDINGS.values())})$", "", run_name(path))


def read_marks(path: Path) -> Iterator[CruxMark]:
    """Read the labels of an export."""
    for number, row in read_objects(path, [], skip=False, expected=EXPECTED):
        try:
            yield from _answerability(row) if "answerability" in row else _ratings(row)
        except WrongLineError as error:
            raise bad_lines_error(path, [BadLine(number, str(error))], EXPECTED) from error


def read(path: Path, task: LabelTask, items: Mapping[str, LabelItem]) -> ImportedLabels:
    if task.kind not in ENDINGS:
        raise InputError(f"CRUX has no labels of {task.kind}", expected="answerability or coverage")
    files = find_exports(path, task.kind) if path.is_dir() else [path]
    if not files:
        raise FormatError(f"there is no *{ENDINGS[task.kind]}.jsonl in this folder", file=str(path))
    builder = _LabelCollector(task, items)
    for file in files:
        for mark in read_marks(file):
            if mark.kind != task.kind:
                raise FormatError(f"these are labels of {mark.kind}", file=str(file), expected=f"labels of {task.kind}")
            builder.add(judge_of(file), mark, file)
    return ImportedLabels(tuple(builder.used.values()), Labels(builder.labels, source=str(path)), builder.notes())


def _answerability(row: dict[str, Any]) -> Iterator[CruxMark]:
    name, values = as_id(row.get("id"), "id"), as_list(row.get("answerability"), "answerability")
    nuggets = list(as_dict(row.get("question_based_nugget", {}), "question_based_nugget").items())
    # Equal questions share an entry, so only a complete list says which highlight belongs to which.
    nuggets = nuggets if len(nuggets) == len(values) else [("", "")] * len(values)
    for at, (given, (question, nugget)) in enumerate(zip(values, nuggets, strict=True)):
        value = as_number(given, "answerability")
        if value not in (*NOT_JUDGED, 0, 1):
            raise WrongLineError(f"the answerability is {value:g}, not 0, 1, −1 or −2")
        if value not in NOT_JUDGED:
            yield CruxMark("answerability", name, "", str(at), int(value), str(nugget or ""), question)


def _ratings(row: dict[str, Any]) -> Iterator[CruxMark]:
    name, passage = as_id(row.get("id"), "id"), as_id(row.get("document"), "document")
    reasons = as_dict(row.get("rationales", {}), "rationales")
    for at, given in as_dict(row.get("relevances"), "relevances").items():
        value = as_number(given, "rating")
        if value not in NOT_JUDGED:
            rating = int(as_rating(given, "rating"))
            yield CruxMark("coverage", name, passage, at, rating, str(reasons.get(at) or ""), "")


@dataclass
class _LabelCollector:
    """Collects items and labels."""

    task: LabelTask
    items: Mapping[str, LabelItem]
    used: dict[str, LabelItem] = field(default_factory=dict)
    labels: list[Label] = field(default_factory=list)
    without_text: int = 0
    lost: int = 0

    def __post_init__(self) -> None:
        self.known: dict[tuple[str, str, str], LabelItem] = {}
        numbers: dict[tuple[str, ...], list[str]] = {}
        for item in self.items.values():
            meta = item.meta
            text = tuple(meta.get(name, "") for name in ("query", "system", "repeat", "passage"))
            asked = numbers.setdefault(text, [])
            asked.append(meta["subquestion"])
            for name in (meta["query"], f"{meta['query']}:{meta.get('system', '')}"):
                self.known.setdefault((name, meta.get("passage", ""), str(len(asked) - 1)), item)

    def add(self, judge: str, mark: CruxMark, file: Path) -> None:
        item = self._item(mark, file)
        self.used[item.id] = item
        if self.task.kind == "coverage":
            value: dict[str, Any] = {"rating": str(mark.value)} | ({"rationale": mark.text} if mark.text else {})
            self.labels.append(Label(judge, item.id, value))
            return
        value = {"answerable": YES if mark.value else NO}
        spans = self._spans(mark, item) if mark.value else []
        value |= {"nuggets": spans} if spans else {}
        self.without_text += bool(mark.value) and not spans
        self.labels.append(Label(judge, item.id, value, comment="" if spans else mark.text))

    def _item(self, mark: CruxMark, file: Path) -> LabelItem:
        if self.items:
            item = self.known.get((mark.id, mark.passage, mark.number))
            if item is None:
                found = f"there is no item for the sub-question {mark.number} of {quote_short(mark.id)}"
                raise FormatError(found, file=str(file), expected="labels of this project's items")
            return item
        shown = "passage" if mark.passage else "report"
        meta = {"query": mark.id, "subquestion": mark.number} | ({"passage": mark.passage} if mark.passage else {})
        question = mark.question or f"(sub-question {mark.number})"
        return self.task.make_item(meta, {shown: NO_TEXT, "subquestion": question})

    def _spans(self, mark: CruxMark, item: LabelItem) -> list[dict[str, Any]]:
        """Where the highlighted texts are in the report; a text that isn't there stays in the comment."""
        report = item.parts["report"]
        if not self.items:
            return []
        found = []
        for line in filter(None, (line.strip() for line in mark.text.splitlines())):
            at = report.find(line)
            self.lost += at < 0
            found += [make_span("report", report, at, at + len(line))] if at >= 0 else []
        return [] if self.task.fields[1].problems(found, item.parts) else found

    def notes(self) -> tuple[str, ...]:
        notes = []
        if self.without_text:
            labels = format_count(self.without_text, "label")
            notes.append(f"{labels} without a highlight: its text is in the comment, if there is one")
        if self.lost:
            notes.append(f"{format_count(self.lost, 'highlight')} not found in the report")
        return tuple(notes)


IMPORT = LabelImport("crux", "CRUX's qlabels or qrels (JSONL), a folder or one file", read)
