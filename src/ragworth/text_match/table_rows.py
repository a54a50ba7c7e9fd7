"""Find where an answer stands in another row or column of a table or list than the question asks for."""

from __future__ import annotations

import re
from typing import NamedTuple

from ragworth.text_match.text_facts import QuestionFacts, TextFacts

_RULE = re.compile(r"[\s|:+=-]+")
_ITEM = re.compile(r"^\s*(?:[-*•–]|\d+[.)])?\s*(?P<label>[^:|\t→=]{1,60}?)\s*(?::|\t|→|=|\s[–—-])\s+(?P<value>\S.*)$")
_PAIR = re.compile(r"\s*(?P<label>[^:|]{1,40}?):\s*(?P<value>[^:|]{1,60}?)\s*[.]?")
_MIN_ROWS = 2


class LabelledRow(NamedTuple):
    """A label, the values beside it, and the header of each value, if there is one."""

    label: TextFacts
    values: tuple[TextFacts, ...]
    headers: tuple[TextFacts, ...]


def is_in_other_row(text: TextFacts, wanted: TextFacts, question: QuestionFacts) -> bool:
    """Whether an answer stands only in rows or columns that the question names less than others."""
    rows = _rows(text.raw)
    if len(rows) < _MIN_ROWS or not question.stems or _is_outside(text.raw, rows, wanted):
        return False
    best = max(_fit(row.label, question) for row in rows)
    having = [row for row in rows if any(_has(value, wanted) for value in row.values)]
    return bool(having) and all(
        _fit(row.label, question) < best or _is_other_column(row, wanted, question) for row in having
    )


def _is_other_column(row: LabelledRow, wanted: TextFacts, question: QuestionFacts) -> bool:
    """Whether an answer stands only under headers that the question doesn't name, and it names another one."""
    if len(row.headers) != len(row.values):
        return False
    fits = [_fit(header, question) for header in row.headers]
    own = [fit for fit, value in zip(fits, row.values, strict=True) if _has(value, wanted)]
    return max(own) < max(fits)


def _fit(label: TextFacts, question: QuestionFacts) -> int:
    """How many words of a label the question has; 0 if it lacks one."""
    stems = label.stems
    return len(stems) if stems and stems <= question.stems else 0


def _has(value: TextFacts, wanted: TextFacts) -> bool:
    return wanted.matchable.line in value.matchable.line


def _is_outside(raw: str, rows: list[LabelledRow], wanted: TextFacts) -> bool:
    """Whether an answer also stands in what is no table or list."""
    count = TextFacts(raw).matchable.line.count(wanted.matchable.line.rstrip())
    inside = sum(value.matchable.line.count(wanted.matchable.line.rstrip()) for row in rows for value in row.values)
    return count > inside


def _rows(raw: str) -> list[LabelledRow]:
    lines = [line for line in raw.splitlines() if line.strip()]
    piped = [line for line in lines if "|" in line]
    if len(piped) > _MIN_ROWS:
        return _piped_rows(piped)
    items = [found for line in lines if (found := _ITEM.match(line))]
    if len(items) < _MIN_ROWS:
        items = [found for line in lines for found in _pairs(line)]
    return [LabelledRow(TextFacts(found["label"]), (TextFacts(found["value"]),), ()) for found in items]


def _pairs(line: str) -> list[re.Match[str]]:
    """The pairs of which a line consists: "Berlin: 85, Munich: 120"."""
    pairs = [_PAIR.fullmatch(part) for part in re.split(r"[,;](?!\d)", line)]
    return [pair for pair in pairs if pair is not None] if all(pairs) else []


def _piped_rows(lines: list[str]) -> list[LabelledRow]:
    cells = [
        [cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines if not _RULE.fullmatch(line)
    ]
    headers = tuple(map(TextFacts, cells[0][1:]))
    return [LabelledRow(TextFacts(row[0]), tuple(map(TextFacts, row[1:])), headers) for row in cells[1:]]
