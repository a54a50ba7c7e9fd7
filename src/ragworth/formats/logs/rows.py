"""Turn a row that has one field for each thing into a record."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ragworth.core.errors import format_names
from ragworth.formats.logs.fields import FIELDS, FieldFinder, plain_name
from ragworth.formats.logs.missing_answers import NO_ANSWER_TEXTS, NO_REFERENCE
from ragworth.formats.logs.passages import ID_KEYS, as_passages
from ragworth.formats.logs.records import LoggedPassage, LogRecord
from ragworth.formats.logs.values import (
    as_answer,
    as_grades,
    as_name,
    as_repeat,
    as_texts,
    parse_cell,
    plain_value,
)
from ragworth.formats.values import WrongLineError, as_text

BLANK_NOTE = "passages without any text are left out"

JOINED = re.compile(r"\n\s*\n|\[1\].*\[2\]|^1\..*\n2\.", re.DOTALL)
"""What programs write between passages that they put into one text."""

JOINED_CHARACTERS = 3000
"""Characters at the beginning of a text in which that is looked for."""


SEVERAL = {name for name in FIELDS["accepted"] if name.endswith("s")}
"""Names of accepted answers in which | separates several, unless it is a sign of mathematics: ``|x|``, ``P(A|B)``."""

LONG_TEXT = 30
"""Characters from which a field of a passage may be its text."""


def read_record(row: Mapping[str, Any], finder: FieldFinder, place: int, *, cells: bool = False) -> LogRecord:
    """Convert a row that has one field for each thing."""
    keys = finder.keys(row)
    named = finder.get(row, "query")
    query = as_name(named, "query_id", cells=cells) if keys.get("query") != keys.get("question") else None
    question = inner_text(finder.get(row, "question"), "question")
    if query is None and question is None:
        if "question" in keys:
            raise WrongLineError(f"no question: {keys['question']!r} is null")
        more = "; map it, too: --map question=COLUMN" if finder.columns else ""
        raise WrongLineError(f"no question: there is neither {keys.get('query', 'query_id')!r} nor 'query'{more}")
    question = None if question is None else as_text(question, keys.get("question", "question"))
    if query is None and question is not None and not question.strip():
        raise WrongLineError(f"the {keys['question']} is empty, and there is no id")
    grades = [name for name in {**keys, **finder.grades} if name not in FIELDS]
    shown = parse_cell(finder.get(row, "passages"), "passage")
    if isinstance(shown, str) and shown.strip() in NO_ANSWER_TEXTS | NO_REFERENCE:
        _note_once(finder, f"{keys['passages']!r} such as {shown.strip()!r} are read as no passages")
        shown = []
    if isinstance(shown, str) and JOINED.search(shown[:JOINED_CHARACTERS]):
        _note_once(finder, f"{keys['passages']!r} is read as one passage; if several are joined, write them as a list")
    passages = as_passages(shown)
    _note_other_text(shown, passages, finder)
    return LogRecord(
        place=place,
        query=query,
        question=question,
        system=as_name(finder.get(row, "system"), "system", cells=cells),
        repeat=as_repeat(finder.get(row, "repeat")),
        passages=without_blank(_with_ids(passages, finder.get(row, "passage_ids"), cells=cells), finder),
        answer=as_answer(inner_text(finder.get(row, "answer"), "answer"), keys.get("answer", "answer")),
        accepted=as_texts(_accepted(row, finder, cells=cells), cells=cells),
        relevant=read_relevant(row, finder, cells=cells),
        outcomes={name: as_grades(finder.get(row, name), name) for name in grades},
        content=hash(repr(row)),
    )


def mapped_grades(row: Mapping[str, Any], finder: FieldFinder) -> dict[str, Any]:
    """The grades in the columns of a row that the user maps."""
    grades = {name: as_grades(finder.get(row, name), name) for name in finder.grades}
    return {name: grade for name, grade in grades.items() if grade is not None}


def inner_text(value: Any, field: str) -> Any:
    """The text in an object such as ``{"question": …}``; other values stay as they are."""
    if not isinstance(value, Mapping):
        return value
    return next(
        (value[name] for name in (*FIELDS[field], "text", "content") if isinstance(value.get(name), str)), value
    )


def _accepted(row: Mapping[str, Any], finder: FieldFinder, *, cells: bool) -> Any:
    """The accepted answers in an object: ``{"text": […], "answer_start": […]}`` of SQuAD, or a value with aliases."""
    value, column = finder.get(row, "accepted"), finder.keys(row).get("accepted", "")
    value = parse_cell(value, "answer") if cells else value
    if isinstance(value, str) and "|" in value and plain_name(column) in SEVERAL:
        parts = [part.strip() for part in value.split("|")]
        if not all(part and part.count("(") == part.count(")") for part in parts):
            return value
        _note_once(finder, f"'|' in {column!r} separates accepted answers")
        return parts
    if not isinstance(value, Mapping):
        return value
    inner = inner_text(value, "answer")
    if isinstance(inner, Mapping):
        inner = next(
            (value[name] for name in ("text", "texts", "answers", "value") if value.get(name) is not None), inner
        )
    aliases = value.get("aliases")
    if isinstance(inner, str) and isinstance(aliases, list):
        texts = [*([inner] if inner.strip() else []), *aliases]
        return [each for i, each in enumerate(texts) if each not in texts[:i]]
    return inner


def read_relevant(row: Mapping[str, Any], finder: FieldFinder, *, cells: bool = False) -> list[LoggedPassage]:
    """Passages known to be relevant. As many ids as texts are theirs; otherwise nothing says which belong together."""
    texts = [each for each in as_passages(finder.get(row, "relevant")) or [] if not each.is_empty_search]
    named = finder.get(row, "relevant_ids")
    groups = parse_cell(named, "id") if cells else plain_value(named)
    if isinstance(groups, list | tuple):  # AutoRAG has groups of ids: one of each is needed
        groups = [
            name for group in map(plain_value, groups) for name in (group if isinstance(group, list) else [group])
        ]
    ids = as_texts(groups, "id", cells=cells)
    if len(ids) == len(texts):
        return [
            passage if passage.id is not None else passage._replace(id=name)
            for passage, name in zip(texts, ids, strict=True)
        ]
    return [*texts, *(LoggedPassage(None, name) for name in ids)]


def without_blank(passages: list[LoggedPassage] | None, finder: FieldFinder) -> list[LoggedPassage] | None:
    """Leave out passages of nothing but white space that have no id either, and note it."""
    if passages is None:
        return None
    kept = [each for each in passages if each.id is not None or each.text is None or each.text.strip()]
    if len(kept) < len(passages):
        _note_once(finder, BLANK_NOTE)
    return kept


def _note_once(finder: FieldFinder, note: str) -> None:
    if note not in finder.notes:
        finder.notes.append(note)


def _note_other_text(value: Any, passages: Sequence[LoggedPassage] | None, finder: FieldFinder) -> None:
    """Note that passages have an id, no text under a known name, and something under another that may be the text."""
    if not passages or any(each.text is not None for each in passages):
        return
    rows = [each for each in value if isinstance(each, Mapping)] if isinstance(value, list | tuple) else []
    long = {key for row in rows for key, text in row.items() if isinstance(text, str) and len(text) >= LONG_TEXT}
    if isinstance(value, str) or not rows:
        _note_once(finder, "passages that are names of files or addresses are ids, and have no text")
    names = [key for key in dict.fromkeys(key for row in rows for key in row) if key in long and key not in ID_KEYS]
    note = f"passages have no text: {format_names(names)} isn't read as one; call it 'text' if it is"
    if names:
        _note_once(finder, note)


def _with_ids(passages: list[LoggedPassage] | None, ids: Any, *, cells: bool) -> list[LoggedPassage] | None:
    """Passages with the ids of another field."""
    names = as_texts(ids, "passage id", cells=cells)
    if not names:
        return passages
    if passages is None:
        return [LoggedPassage(None, name) for name in names]
    if len(names) != len(passages):
        raise WrongLineError(f"there are {len(passages)} passages and {len(names)} ids of passages")
    return [passage._replace(id=name) for passage, name in zip(passages, names, strict=True)]
