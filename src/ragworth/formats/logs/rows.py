"""The rows of a log: where they are in a JSON object, the record that each of them is, and what no field takes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ragworth.core.errors import FormatError, format_names
from ragworth.data.tables import TRUNCATED
from ragworth.formats.logs.collector import NO_ANSWER_TEXTS, NO_REFERENCE
from ragworth.formats.logs.fields import JOIN, FieldFinder, mapping_hint
from ragworth.formats.logs.names import FIELDS, plain_name
from ragworth.formats.logs.passages import ID_KEYS, as_passages
from ragworth.formats.logs.paths import find, parse_if_json
from ragworth.formats.logs.records import LoggedPassage, LogRecord
from ragworth.formats.logs.values import (
    as_answer,
    as_grades,
    as_name,
    as_repeat,
    as_row,
    as_texts,
    parse_cell,
    plain_value,
)
from ragworth.formats.values import WrongLineError, as_text

JOINED = re.compile(r"\n\s*\n|\[1\].*\[2\]|^1\..*\n2\.", re.DOTALL)
"""What programs write between passages that they put into one text."""

JOINED_CHARACTERS = 3000
"""Characters at the beginning of a text in which that is looked for."""

OTHER_FIELDS = {*FIELDS, "status", "grades"}
"""Fields that are no grades. Formats of tools have a path of the status of an answer, and of grades by name."""

SEVERAL = {name for name in FIELDS["accepted"] if name.endswith("s")}
"""Names of accepted answers in which | separates several, unless it is a sign of mathematics: ``|x|``, ``P(A|B)``."""

LONG_TEXT = 30
"""Characters from which a field of a passage may be its text, or an element of a list a passage."""

SEEN_ROWS = 500
"""Rows whose values are looked at."""

DESCRIPTION = re.compile(
    r"(?P<shared>(conversation|session|thread)(_id)?)|(question_)?type|category|topic|difficulty|level|domain|tags"
    r"|split|subset|source|lang(uage)?|title|url|date|comment|notes|author|reason|history|messages|.*_(id|at)"
)
"""Names, without case, of columns that describe a question or an answer, or that turns of a conversation share."""

PASSAGES = re.compile(r"(retrieved|context|passage|document|chunk)s?(_(texts?|list|used)|_?\d+)?")
SENTENCE = re.compile(r"[^\W\d_]{2,}\W+[^\W\d_]{2,}")

Row = dict[str, Any]

LISTS_OF_ROWS = {
    *("data", "rows", "results", "records", "samples", "items", "log", "logs", "entries", "questions", "queries"),
    *("traces", "runs", "test_cases", "cases", "outputs", "responses", "answers", "predictions", "evaluations"),
    "interactions",
}


def read_record(row: Mapping[str, Any], finder: FieldFinder, place: int, *, cells: bool = False) -> LogRecord:
    """Convert a row that has one field for each thing."""
    query, question = _read_question(row, finder, cells=cells)
    status, keys = finder.get(row, "status") or "", finder.keys(row)
    answer = as_answer(inner_text(finder.get(row, "answer")), keys.get("answer", "answer"))
    failed = status not in ("", TRUNCATED)
    return LogRecord(
        place=place,
        query=query,
        question=question,
        system=as_name(finder.get(row, "system"), "system", cells=cells),
        repeat=as_repeat(finder.get(row, "repeat")),
        passages=_read_passages(row, finder, cells=cells),
        answer=None if failed else answer,
        status=status if failed or answer is not None else "",
        accepted=as_texts(_accepted(row, finder, cells=cells), cells=cells),
        relevant=read_relevant(row, finder, cells=cells),
        outcomes={} if failed else read_grades(row, finder),
        content=hash(repr(row)),
    )


def _read_question(row: Mapping[str, Any], finder: FieldFinder, *, cells: bool) -> tuple[str | None, str | None]:
    """The id and the text of the question. A column that is mapped to both has texts, which name the questions."""
    keys = finder.keys(row)
    key = keys.get("question", "question")
    named = finder.get(row, "query")
    query = as_name(named, "query_id", cells=cells) if keys.get("query") != key else None
    value = inner_text(finder.get(row, "question"))
    if isinstance(value, list):
        raise WrongLineError(f"a conversation ({key} is a list of messages); only single questions are read")
    if value is None and query is None:
        if "question" in keys and "." not in key:
            raise WrongLineError(f"no question: {key!r} is null")
        inside = find(row, key.rpartition(".")[0]) if "." in key else None
        if isinstance(inside, Mapping):
            path = key.rpartition(".")[0]
            there = f"there are {format_names(list(map(str, inside)))}" if inside else "it is empty"
            raise WrongLineError(f"no question in {path!r}; {there}; say which it is: --map question={path}.NAME")
        more = "; map it, too: --map question=COLUMN" if finder.columns else ""
        raise WrongLineError(f"no question: there is neither {keys.get('query', 'query_id')!r} nor 'query'{more}")
    question = None if value is None else as_text(value, key)
    if query is None and question is not None and not question.strip():
        raise WrongLineError(f"the {key} is empty, and there is no id")
    return query, question


def inner_text(value: Any) -> Any:
    """Return the text, or list of texts, in an object such as ``{"text": …}``; other values stay as they are."""
    if not isinstance(value, Mapping):
        return value
    names = ("text", "content", "question", "query", "answer", "response", "output")
    return next((value[name] for name in names if isinstance(value.get(name), str | list)), value)


def _accepted(row: Mapping[str, Any], finder: FieldFinder, *, cells: bool) -> Any:
    """The accepted answers. In a column whose name is in the plural, ``|`` separates them."""
    value, column = finder.get(row, "accepted"), finder.keys(row).get("accepted", "")
    value = inner_text(parse_cell(value, "answer") if cells else value)
    if not (isinstance(value, str) and "|" in value and plain_name(column) in SEVERAL):
        return value
    parts = [part.strip() for part in value.split("|")]
    if not all(part and part.count("(") == part.count(")") for part in parts):
        return value
    finder.note(f"'|' in {column!r} separates accepted answers")
    return parts


def read_grades(row: Mapping[str, Any], finder: FieldFinder) -> dict[str, Any]:
    """Return the grades that a tool has by name, and those in columns of usual names or mapped ones."""
    mapped = finder.columns.values()
    named = as_row(finder.get(row, "grades")) or {}
    by_name = {str(name): grade for name, grade in named.items() if name not in mapped}
    finder.graded |= by_name.keys()
    columns = [name for name in {**finder.keys(row), **finder.grades} if name not in OTHER_FIELDS]
    return {name: as_grades(grade, name) for name, grade in by_name.items()} | {
        name: as_grades(finder.get(row, name), name) for name in columns
    }


def mapped_grades(row: Mapping[str, Any], finder: FieldFinder) -> dict[str, Any]:
    """Return the grades in the columns of a row that the user maps."""
    grades = {name: as_grades(finder.get(row, name), name) for name in finder.grades}
    return {name: grade for name, grade in grades.items() if grade is not None}


def _read_passages(row: Mapping[str, Any], finder: FieldFinder, *, cells: bool) -> list[LoggedPassage] | None:
    shown, key = parse_cell(finder.get(row, "passages"), "passage"), finder.keys(row).get("passages")
    if isinstance(shown, str):
        if shown.strip() in NO_ANSWER_TEXTS | NO_REFERENCE:
            finder.note(f"{key!r} such as {shown.strip()!r} are read as no passages")
            shown = []
        elif JOINED.search(shown[:JOINED_CHARACTERS]):
            finder.note(f"{key!r} is read as one passage; if several are joined, write them as a list")
    passages = as_passages(shown)
    _note_other_text(shown, passages, finder)
    names = as_texts(finder.get(row, "passage_ids"), "passage id", cells=cells)
    if names and passages is None:
        passages = [LoggedPassage(None, name) for name in names]
    elif names and passages is not None:
        if len(names) != len(passages):
            raise WrongLineError(f"there are {len(passages)} passages and {len(names)} ids of passages")
        passages = [passage._replace(id=name) for passage, name in zip(passages, names, strict=True)]
    return without_blank(passages, finder)


def read_relevant(row: Mapping[str, Any], finder: FieldFinder, *, cells: bool = False) -> list[LoggedPassage]:
    """Read passages known to be relevant. As many ids as texts are theirs; otherwise nothing says which are."""
    texts = [each for each in as_passages(finder.get(row, "relevant")) or [] if not each.is_empty_search]
    named = finder.get(row, "relevant_ids")
    groups = parse_cell(named, "id") if cells else plain_value(named)
    if isinstance(groups, list | tuple):  # AutoRAG has groups of ids: one of each is needed
        lists = (plain_value(group) for group in groups)
        groups = [name for group in lists for name in (group if isinstance(group, list) else [group])]
    ids = as_texts(groups, "id", cells=cells)
    if len(ids) != len(texts):
        return [*texts, *(LoggedPassage(None, name) for name in ids)]
    pairs = zip(texts, ids, strict=True)
    return [passage if passage.id is not None else passage._replace(id=name) for passage, name in pairs]


def without_blank(passages: list[LoggedPassage] | None, finder: FieldFinder) -> list[LoggedPassage] | None:
    """Leave out passages of nothing but white space that have no id either, and note it."""
    if passages is None:
        return None
    kept = [each for each in passages if each.id is not None or each.text is None or each.text.strip()]
    if len(kept) < len(passages):
        finder.note("passages without any text are left out")
    return kept


def _note_other_text(shown: Any, passages: Sequence[LoggedPassage] | None, finder: FieldFinder) -> None:
    """Note passages without a text: some of a context, or all of it, perhaps with texts under an unknown name."""
    with_text = [each.text is not None for each in passages or () if not each.is_empty_search]
    if all(with_text):
        return
    if any(with_text):
        finder.note("some passages of a context have an id and no text, others have one")
        return
    rows = [each for each in shown if isinstance(each, Mapping)] if isinstance(shown, list | tuple) else []
    if not rows:
        finder.note("passages that are names of files or addresses are ids, and have no text")
    fields = [(key, value) for row in rows for key, value in row.items() if key not in ID_KEYS]
    names = list(dict.fromkeys(str(key) for key, text in fields if isinstance(text, str) and len(text) >= LONG_TEXT))
    if names:
        finder.note(f"passages have no text: {format_names(names)} isn't read as one; call it 'text' if it is")


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


def find_rows(document: Any, *, known: bool, columns: Mapping[str, str] | None = None) -> list[Row] | None:
    """Return the rows in a JSON object; None if it is a record itself.

    ``known``: whether the object is of a known format; ``columns``: the user's names of its fields.
    """
    if not isinstance(document, Mapping):
        return None
    rows = split_rows(document) or column_rows(document)
    mapped = any(name.partition(".")[0] in document for name in (columns or {}).values())
    if rows is None and not known and not mapped:
        return _listed_rows(document)
    return rows


def split_rows(document: Mapping[str, Any]) -> list[Row] | None:
    """Return the rows of ``{"columns": […], "data": [[…], …]}``; None if it isn't that."""
    columns, data = document.get("columns") or (), document.get("data") or ()
    if _is_list_of(columns, str) and _is_list_of(data, list) and all(len(row) == len(columns) for row in data):
        return [dict(zip(columns, row, strict=True)) for row in data]
    return None


def column_rows(document: Mapping[str, Any]) -> list[Row] | None:
    """Return the rows of ``{column: [value, …]}``, or of ``{column: {row: value}}`` as pandas writes it.

    One column must have nothing but texts, because the fields of a single record may be lists, too.
    """
    columns = list(document.values())
    if columns and all(isinstance(each, Mapping) for each in columns):
        numbered = all(str(name).isdecimal() for name in columns[0])
        if not numbered or any(each.keys() != columns[0].keys() for each in columns):
            return None
        columns = [list(each.values()) for each in columns]
    if len(columns) < 2 or "ids" in document or not all(isinstance(each, list) for each in columns):
        return None
    if len({len(each) for each in columns}) > 1 or not any(_is_list_of(each, str) for each in columns):
        return None
    return [dict(zip(document, row, strict=True)) for row in zip(*columns, strict=True)]


def _listed_rows(document: Mapping[str, Any]) -> list[Row] | None:
    """The only list under a usual name, in an object that is no record itself: ``{"total": 2, "data": [row, …]}``."""
    lists = {name: value for name, value in document.items() if _is_list_of(value, Mapping)}
    others = {name: value for name, value in document.items() if name not in lists}
    is_record = {"question", "answer", "accepted"} & FieldFinder(FIELDS).keys(others).keys()
    named = [rows for name, rows in lists.items() if plain_name(name) in LISTS_OF_ROWS]
    if len(named) != 1 or len(lists) > 1 or is_record:
        return None
    return [dict(row) for row in named[0]]


def _is_list_of(value: Any, kind: type[Any]) -> bool:
    return isinstance(value, Sequence) and bool(value) and all(isinstance(each, kind) for each in value)
