"""Columns of a log that no field takes: a note names them, and texts that may be answers or passages are an error."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from ragworth.errors import FormatError, Hint, format_names
from ragworth.formats.fields import FIELDS, JOIN, FieldFinder, plain_name, quote_argument

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
        """Raise an error if a column may be the answers or the passages, and the user maps no field."""
        found = {field for keys in finder.known_keys() for field in keys}
        if not FIELDS.keys() & finder.columns.keys():
            # Beside passages, one word says less: it may be any description.
            are_answers = _is_sentence if "passages" in found else _is_text
            for field, holds in (("answer", are_answers), ("passages", _are_texts)):
                if field not in found:
                    self._check(finder, source, field, holds)

    def _check(self, finder: FieldFinder, source: str, field: str, holds: Callable[[Any], bool]) -> None:
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


def _may_be(name: str, values: list[Any], holds: Callable[[Any], bool]) -> bool:
    """Whether most values of a column are texts, and its name says nothing else."""
    plain = plain_name(name)
    described = plain in DESCRIPTIONS | CONVERSATIONS or plain.endswith(("_id", "_at"))
    return not described and 2 * sum(map(holds, values)) > len(values)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and re.search(r"[^\W\d_]{2}", value) is not None


def _is_sentence(value: Any) -> bool:
    return isinstance(value, str) and not value.startswith(("[", "{")) and SENTENCE.search(value) is not None


def _are_texts(value: Any) -> bool:
    """Whether a value is a list of long texts, or of objects with one; messages of a chat have roles."""
    if not isinstance(value, list) or not value:
        return False
    inner = [list(each.values()) if isinstance(each, Mapping) and "role" not in each else [each] for each in value]
    return all(any(isinstance(text, str) and len(text) >= LONG_TEXT for text in each) for each in inner)
