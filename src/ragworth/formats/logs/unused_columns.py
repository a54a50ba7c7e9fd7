"""Columns of a log that no field takes: a note names them, and texts that may be answers or passages are an error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ragworth.core.errors import FormatError, format_names
from ragworth.formats.logs.fields import JOIN, FieldFinder, mapping_hint
from ragworth.formats.logs.messages import parse_if_json
from ragworth.formats.logs.names import plain_name

SEEN_ROWS = 500
"""Rows whose values are looked at."""

DESCRIPTION = re.compile(
    r"(?P<shared>(conversation|session|thread)(_id)?)|(question_)?type|category|topic|difficulty|level|domain|tags|split|subset|source|lang(uage)?|title|url|date"
    r"|comment|notes|author|reason|history|messages|.*_(id|at)"
)
"""Names, without case, of columns that describe a question or an answer, or that turns of a conversation share."""

PASSAGES = re.compile(r"(retrieved|context|passage|document|chunk)s?(_(texts?|list|used)|_?\d+)?")
SENTENCE = re.compile(r"[^\W\d_]{2,}\W+[^\W\d_]{2,}")

LONG_TEXT = 30
"""Characters from which an element of a list may be a passage."""


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
        used = finder.used(row)
        for name, value in row.items():
            if name not in used and value not in (None, "", [], {}):
                self.values.setdefault(str(name), []).append(value)

    def notes(self) -> list[str]:
        """Return a note that names the columns, and one on turns of conversations."""
        notes = [f"not used: {format_names(list(self.values), 8)}"] if self.values else []
        for name in self.values:
            if (match := DESCRIPTION.fullmatch(plain_name(name))) and match["shared"]:
                notes.append(f"turns with the same {name!r} count as independent, see docs/howto/conversations.md")
        return notes

    def check(self, finder: FieldFinder, source: str) -> None:
        """Raise an error if a column may be the answers or the passages, which no column is."""
        found = {field for keys in finder.known_keys() for field in keys}
        for field, may_be in (("answer", _may_be_answers), ("passages", _may_be_passages)):
            names = [name for name, values in self.values.items() if may_be(plain_name(name), values)]
            if names and field not in found:
                raise FormatError(
                    f"{format_names([repr(name) for name in names], 4)} may be the {field}; the columns are "
                    f"{format_names(list(finder.seen), 16)}",
                    file=source,
                    remedy=mapping_hint(({field: names[0]}, " if it is, "), ({"ignored": JOIN.join(names)}, " if not")),
                )


def _may_be_answers(name: str, values: list[Any]) -> bool:
    """Whether most values are sentences, or different texts: a description repeats."""
    if DESCRIPTION.fullmatch(name):
        return False
    inner = [each for value in values for each in (value.values() if isinstance(value, Mapping) else [value])]
    texts = [text for text in inner if isinstance(text, str)]
    words = {text for text in texts if re.search(r"[^\W\d_]{2}", text)}
    return 2 * max(len(words), sum(SENTENCE.search(text) is not None for text in texts)) > len(values)


def _may_be_passages(name: str, values: list[Any]) -> bool:
    """Whether the name says so, or most values are lists of long texts, or of objects with one, also in cells."""
    if DESCRIPTION.fullmatch(name):
        return False
    lists = [parsed for value in values if isinstance(parsed := parse_if_json(value), list) and parsed]
    return PASSAGES.fullmatch(name) is not None or 2 * sum(map(_are_long_texts, lists)) > len(values)


def _are_long_texts(items: list[Any]) -> bool:
    inner = [list(each.values()) if isinstance(each, Mapping) else [each] for each in items]
    return all(any(isinstance(text, str) and len(text) >= LONG_TEXT for text in each) for each in inner)
