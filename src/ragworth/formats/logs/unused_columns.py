"""Columns of a log that no field takes: a note names them, and texts that may be answers or passages are an error."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from ragworth.core.errors import FormatError, Hint, format_names
from ragworth.formats.logs.fields import JOIN, FieldFinder, plain_name, quote_argument
from ragworth.formats.logs.values import parse_cell
from ragworth.formats.values import WrongLineError

SEEN_ROWS = 500
"""Rows whose values are looked at."""

NAMED = 8
"""Columns that a note names; it counts the others."""

LONG_TEXT = 30
"""Characters from which an element of a list may be a passage."""

DESCRIPTIONS = {
    "category",
    "topic",
    "type",
    "question_type",
    "difficulty",
    "level",
    "domain",
    "tags",
    "split",
    "subset",
}
DESCRIPTIONS |= {"source", "language", "lang", "title", "url", "date", "comment", "notes", "author", "reason"}
"""Columns that describe a question or an answer."""

CONVERSATIONS = {f"{name}{end}" for name in ("conversation", "session", "thread") for end in ("", "_id")}
"""Names of what several turns share."""

SENTENCE = re.compile(r"[^\W\d_]{2,}\W+[^\W\d_]{2,}")
WORD = re.compile(r"[^\W\d_]{2}")
PASSAGES = re.compile(r"^(?:retrieved|context|passage|document|chunk)s?(?:_(?:texts?|list|used)|_?\d+)?$")
"""Names, without case, of columns that can only be passages."""


class UnusedColumns:
    """Collects the values of columns that a finder doesn't use."""

    def __init__(self) -> None:
        self.rows = 0
        self.values: dict[str, list[Any]] = {}

    def see(self, row: Mapping[str, Any], finder: FieldFinder) -> None:
        """Look at a row."""
        self.rows += 1
        if self.rows > SEEN_ROWS:
            return
        finder.get(row, "ignored")
        keys = (*finder.keys(row).values(), *finder.grades.values())
        used = {part.partition(".")[0] for key in keys for part in key.split(JOIN)} | set(keys)
        for name, value in row.items():
            if name not in used and value not in (None, "", [], {}):
                self.values.setdefault(str(name), []).append(value)

    def notes(self) -> list[str]:
        """A note that names the columns, and one on turns of conversations."""
        notes = [f"not used: {format_names(list(self.values), NAMED)}"] if self.values else []
        shared = [name for name in self.values if plain_name(name) in CONVERSATIONS]
        if shared:
            notes.append(f"turns with the same {shared[0]!r} count as independent, see docs/howto/conversations.md")
        return notes

    def check(self, finder: FieldFinder, source: str) -> None:
        """Raise an error if a column may be the answers or the passages, which no column is."""
        found = {field for keys in finder.known_keys() for field in keys}
        for field, holds in (("answer", _are_answers), ("passages", _are_passages)):
            if field not in found:
                self._check(finder, source, field, holds)

    def _check(self, finder: FieldFinder, source: str, field: str, holds: Callable[[str, list[Any]], bool]) -> None:
        columns = [name for name, values in self.values.items() if _may_be(name, values, holds)]
        if not columns:
            return
        column, names = columns[0], format_names(list(finder.seen), 16)
        many = quote_argument(f"ignored={JOIN.join(columns)}")
        ignored = json.dumps(JOIN.join(columns), ensure_ascii=False)
        quoted = json.dumps(column, ensure_ascii=False)
        raise FormatError(
            f"{format_names([repr(name) for name in columns], 4)} may be the {field}; the columns are {names}",
            file=source,
            remedy=Hint(
                f"--map {quote_argument(f'{field}={column}')} if it is, --map {many} if not",
                f"write under [columns] {field} = {quoted} if it is, or ignored = {ignored} if not",
                f'columns={{"{field}": {quoted}}} if it is, columns={{"ignored": {ignored}}} if not',
                option="columns",
            ),
        )


def _may_be(name: str, values: list[Any], holds: Callable[[str, list[Any]], bool]) -> bool:
    """Whether a column may be something, and its name says nothing else."""
    plain = plain_name(name)
    described = plain in DESCRIPTIONS | CONVERSATIONS or plain.endswith(("_id", "_at"))
    return not described and holds(plain, [_parsed(value) for value in values])


def _parsed(value: Any) -> Any:
    """A value, or the list or object that is written in a cell."""
    try:
        return parse_cell(value, "value")
    except WrongLineError:
        return value


def _are_answers(name: str, values: list[Any]) -> bool:
    """Whether most values are sentences, or different words: a description repeats."""
    sentences = sum(any(map(_is_sentence, _inside(value))) for value in values)
    words = {value for value in values if isinstance(value, str) and WORD.search(value)}
    return 2 * sentences > len(values) or 2 * len(words) > len(values)


def _are_passages(name: str, values: list[Any]) -> bool:
    """Whether most values are lists of long texts, or of objects with one, or the name says that they are passages."""
    texts = sum(any(map(_is_list_of_texts, (value, *_inside(value)))) for value in values)
    named = PASSAGES.search(name) is not None and any(isinstance(value, (str, list, dict)) for value in values)
    return 2 * texts > len(values) or named


def _inside(value: Any) -> list[Any]:
    """A value, or the values of an object."""
    return list(value.values()) if isinstance(value, Mapping) else [value]


def _is_sentence(value: Any) -> bool:
    return isinstance(value, str) and SENTENCE.search(value) is not None


def _is_list_of_texts(value: Any) -> bool:
    """Whether a value is a list of long texts, or of objects with one; messages of a chat have roles."""
    if not isinstance(value, list) or not value:
        return False
    inner = [list(each.values()) if isinstance(each, Mapping) and "role" not in each else [each] for each in value]
    return all(any(isinstance(text, str) and len(text) >= LONG_TEXT for text in each) for each in inner)
