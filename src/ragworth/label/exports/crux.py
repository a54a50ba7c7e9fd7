"""``crux``: the format of CRUX's labelling app, one file for each annotator.

``NAME_qlabels.jsonl`` has the answerability of a report's sub-questions, with the highlighted texts;
``NAME_qrels.jsonl`` has ratings of passages by sub-question, with rationales. A sub-question without a label is −1. If
a query has several reports, their ids are ``QUERY:SYSTEM``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ragworth.core.errors import InputError
from ragworth.label.dataset import LabelledData
from ragworth.label.exports.contract import LabelExport, safe_file_name, write_json_lines
from ragworth.label.labels import Label
from ragworth.label.tasks.answerability import YES
from ragworth.label.tasks.contract import LabelItem
from ragworth.label.tasks.fields import span_text

NOT_LABELLED = -1


class TextKey(NamedTuple):
    """What a line is about: a report (query, system, repeat) or a passage (query, passage)."""

    query: str
    system: str
    repeat: str
    passage: str


def write(data: LabelledData, folder: Path) -> list[Path]:
    kind = data.task.kind
    if kind not in ("answerability", "coverage"):
        raise InputError(f"labels of {kind} are none of CRUX", expected="answerability or coverage")
    ending, line = ("qlabels", _answerability) if kind == "answerability" else ("qrels", _ratings)
    asked: dict[TextKey, dict[str, str]] = {}
    for item in data.items.values():
        if not item.is_control:
            asked.setdefault(_text_key(item), {})[item.meta["subquestion"]] = item.parts["subquestion"]
    names = _line_ids(list(asked))
    found = []
    for judge in data.labels.annotators:
        by_text: dict[TextKey, dict[str, Label]] = {}
        for label in data.labels.answers:
            item = data.items[label.item]
            if label.annotator == judge and not item.is_control:
                by_text.setdefault(_text_key(item), {})[item.meta["subquestion"]] = label
        rows = [line(names[key], key, mine, data.items, asked[key]) for key, mine in by_text.items()]
        found.append(write_json_lines(rows, folder / f"{safe_file_name(judge)}_{ending}.jsonl"))
    return found


def _text_key(item: LabelItem) -> TextKey:
    return TextKey(*(item.meta.get(name, "") for name in TextKey._fields))


def _line_ids(keys: Sequence[TextKey]) -> dict[TextKey, str]:
    """The id of each line: the query's, with system and repeat where it has several reports."""
    systems: dict[str, set[str]] = {}
    repeats: dict[tuple[str, str], set[str]] = {}
    for key in keys:
        systems.setdefault(key.query, set()).add(key.system)
        repeats.setdefault((key.query, key.system), set()).add(key.repeat)
    found = {}
    for key in keys:
        parts = [key.query]
        parts += [key.system] if len(systems[key.query]) > 1 else []
        parts += [key.repeat] if len(repeats[key.query, key.system]) > 1 else []
        found[key] = ":".join(parts)
    return found


def _answerability(
    name: str, key: TextKey, mine: Mapping[str, Label], items: Mapping[str, LabelItem], asked: Mapping[str, str]
) -> dict[str, Any]:
    values = {each: _value(label, "answerable") == YES for each, label in mine.items()}
    marks = [int(values[each]) if each in values else NOT_LABELLED for each in asked]
    nuggets = {words: _nugget(mine[each], items) if each in mine else "" for each, words in asked.items()}
    known = [mark for mark in marks if mark != NOT_LABELLED]
    coverage = sum(known) / len(known) if known else None
    return {
        "id": name,
        "system": key.system,
        "question_based_nugget": nuggets,
        "answerability": marks,
        "coverage": coverage,
    }


def _ratings(
    name: str, key: TextKey, mine: Mapping[str, Label], items: Mapping[str, LabelItem], asked: Mapping[str, str]
) -> dict[str, Any]:
    ratings = {each: int(_value(mine[each], "rating")) if each in mine else NOT_LABELLED for each in asked}
    reasons = {each: str(_value(mine[each], "rationale") or "") if each in mine else "" for each in asked}
    return {"id": name, "document": key.passage, "relevances": ratings, "rationales": reasons}


def _value(label: Label, name: str) -> Any:
    return (label.value or {}).get(name)


def _nugget(label: Label, items: Mapping[str, LabelItem]) -> str:
    """The highlighted texts, each on a line."""
    spans = sorted(_value(label, "nuggets") or [], key=lambda span: int(span["start"]))
    return "\n".join(span_text(span, items[label.item].parts) for span in spans)


EXPORT = LabelExport("crux", "CRUX's qlabels or qrels, by annotator (JSONL)", write)
