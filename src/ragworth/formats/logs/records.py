"""Read records from rows: what one system showed and answered for one question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragworth.core.errors import format_names
from ragworth.data.tables import TRUNCATED
from ragworth.formats.grades import Grade
from ragworth.formats.logs.fields import FieldFinder, Row
from ragworth.formats.logs.names import FIELDS
from ragworth.formats.logs.passages import KNOWN_KEYS, LoggedPassage, as_passages
from ragworth.formats.logs.paths import follow
from ragworth.formats.logs.values import as_answer, as_grades, as_name, as_repeat, as_row, as_texts, parse_cell
from ragworth.formats.values import WrongLineError, as_text

MISSING = frozenset(("nan", "NaN", "null", "NULL", "<NA>", "#N/A", "#REF!", "#VALUE!", "#NAME?"))
"""Missing values, as programs and spreadsheets write them."""

NO_REFERENCE = MISSING | {"N/A", "n/a"}
"""Missing accepted answers. "None" may be one."""

NO_ANSWER_TEXTS = MISSING | {"None", "-", "[]", "{}"}
"""Missing answers. "N/A" may be one: the question has no answer."""

OTHER_FIELDS = {*FIELDS, "status", "grades"}
"""Fields that are no grades. Formats of tools have a path of the status of an answer, and of grades by name."""

TEXT_KEYS = ("text", "content", "question", "query", "answer", "response", "output")
"""Keys of an object that has a question or an answer."""


@dataclass(slots=True, kw_only=True)
class LogRecord:
    """What one system showed and answered for one question.

    Attributes
    ----------
    place: line or number of the record.
    query: id of the question; by default derived from its text, so that equal questions are the same query.
    passages: None if the log does not say what was shown.
    status: why there is no answer, or ``truncated``.
    accepted: accepted answers.
    relevant: passages known to be relevant, shown or not.
    outcomes: grades by name, one or several: a number, a word such as ``correct``, or None.
    trace: id of the trace that the answer comes from.
    row: all of the row; records of the same system and question with equal ones count once.
    """

    place: int
    query: str = ""
    question: str | None = None
    system: str = ""
    repeat: int = 0
    passages: Sequence[LoggedPassage] | None = None
    answer: str | None = None
    status: str = ""
    accepted: Sequence[str] = ()
    relevant: Sequence[LoggedPassage] = ()
    outcomes: Mapping[str, list[Grade]] = field(default_factory=dict)
    trace: str | None = None
    row: Mapping[str, Any] | None = None


def read_record(row: Row, finder: FieldFinder, place: int, *, cells: bool = False) -> LogRecord:
    """Convert a row that has one field for each thing."""
    values, columns = finder.read(row), finder.layout(row).columns
    query, question = _read_question(row, values, finder, cells=cells)
    status = values.get("status", "")
    answer = as_answer(_inner_text(values, "answer", finder, columns), columns.get("answer", "answer"))
    failed = status not in ("", TRUNCATED)
    accepted = parse_cell(values.get("accepted"), "answer") if cells else values.get("accepted")
    accepted = _inner_text({**values, "accepted": accepted}, "accepted", finder, columns)
    return LogRecord(
        place=place,
        query=query or "",
        question=question,
        system=as_name(values.get("system"), "system", cells=cells) or "",
        repeat=as_repeat(values.get("repeat")),
        passages=_read_passages(values, finder, columns, cells=cells),
        answer=None if failed else answer,
        status=status if failed or answer is not None else "",
        accepted=as_texts(_split_accepted(accepted, columns, finder)),
        relevant=_read_relevant(values, cells=cells),
        outcomes={} if failed else _read_grades(values, columns, finder),
        row=row,
    )


def _read_question(
    row: Row, values: dict[str, Any], finder: FieldFinder, *, cells: bool
) -> tuple[str | None, str | None]:
    """Return the id and the text of the question. A column that is mapped to both has texts."""
    columns = finder.layout(row).columns
    key = columns.get("question", "question")
    named = values.get("query") if columns.get("query") != key else None
    query = as_name(named, "query_id", cells=cells)
    value = _inner_text(values, "question", finder, columns)
    if isinstance(value, list):
        raise WrongLineError(f"a conversation ({key} is a list of messages); only single questions are read")
    if value is None and query is None:
        outer, dot, _ = key.rpartition(".")
        if "question" in columns and not dot:
            raise WrongLineError(f"no question: {key!r} is null")
        if isinstance(inner := follow(row, outer), Mapping) and dot:
            there = f"there are {format_names(list(map(str, inner)))}" if inner else "it is empty"
            raise WrongLineError(f"no question in {outer!r}; {there}; say which it is: --map question={outer}.NAME")
        more = "; map it, too: --map question=COLUMN" if finder.mapped else ""
        raise WrongLineError(f"no question: there is neither {columns.get('query', 'query_id')!r} nor 'query'{more}")
    question = None if value is None else as_text(value, key)
    if query is None and question is not None and not question.strip():
        raise WrongLineError(f"the {key} is empty, and there is no id")
    return query, question


def _inner_text(values: Row, field: str, finder: FieldFinder, columns: Mapping[str, str]) -> Any:
    """Return a field whose value may be an object with a text or texts, such as ``{"text": …}``."""
    value = values.get(field)
    if not isinstance(value, Mapping):
        return value
    name = next((name for name in TEXT_KEYS if isinstance(value.get(name), str | list)), None)
    if name is None:
        return value
    others = {f"{columns[field]}.{key}": each for key, each in value.items() if key != name and each}
    finder.unused |= {key: each for key, each in others.items() if key not in finder.unused}
    return value[name]


def _split_accepted(value: Any, columns: Mapping[str, str], finder: FieldFinder) -> Any:
    """Return the accepted answers that ``|`` separates in a column with a plural name. P(A|B) is one answer."""
    column = columns.get("accepted", "")
    parts = [part.strip() for part in value.split("|")] if isinstance(value, str) and column.endswith("s") else []
    if len(parts) < 2 or not all(part and part.count("(") == part.count(")") for part in parts):
        return value
    finder.note(f"'|' in {column!r} separates accepted answers")
    return parts


def _read_grades(values: Row, columns: Mapping[str, str], finder: FieldFinder) -> dict[str, list[Grade]]:
    """Return the grades that a tool has by name, and those in columns of usual names or mapped ones."""
    mapped = finder.mapped.values()
    named = as_row(values.get("grades")) or {}
    grades = {
        as_text(str(name), "name of a grade"): as_grades(grade, str(name))
        for name, grade in named.items()
        if name not in mapped
    }
    finder.graded |= grades.keys()
    return grades | {name: as_grades(values.get(name), name) for name in columns if name not in OTHER_FIELDS}


def _read_passages(
    values: Row, finder: FieldFinder, columns: Mapping[str, str], *, cells: bool
) -> list[LoggedPassage] | None:
    shown = parse_cell(values.get("passages"), "passage")
    if isinstance(shown, str) and shown.strip() in NO_REFERENCE:
        finder.note(f"{finder.column('passages')!r} such as {shown.strip()!r} are read as no passages")
        shown = []
    elif isinstance(shown, str):
        column = finder.column("passages")
        finder.note(f"{column!r} is read as one passage; if several are joined, write them as a list")
    passages = as_passages(shown)
    names = as_texts(values.get("passage_ids"), "passage id", cells=cells)
    if names and passages is None:
        passages = [LoggedPassage(None, name) for name in names]
    elif names and passages is not None:
        if len(names) != len(passages):
            raise WrongLineError(f"there are {len(passages)} passages and {len(names)} ids of passages")
        passages = [passage._replace(id=name) for passage, name in zip(passages, names, strict=True)]
    _note_other_text(shown, passages or (), finder)
    rows = [each for each in shown if isinstance(each, Mapping)] if isinstance(shown, list) else []
    ranks = [row["rank"] for row in rows if isinstance(row.get("rank"), int)]
    if ranks != sorted(ranks):
        finder.note("the ranks in passages contradict the order of the list, which counts")
    return without_blank(passages, finder)


def _read_relevant(values: Row, *, cells: bool) -> list[LoggedPassage]:
    """Read passages known to be relevant. As many ids as texts are theirs; otherwise nothing says which are."""
    texts = as_passages(values.get("relevant")) or []
    groups = parse_cell(values.get("relevant_ids"), "id")
    if isinstance(groups, list | tuple):  # AutoRAG has groups of ids: one of each is needed
        groups = [name for group in groups for name in (group if isinstance(group, list) else [group])]
    ids = as_texts(groups, "id", cells=cells)
    if len(ids) != len(texts):
        return [*texts, *(LoggedPassage(None, name) for name in ids)]
    pairs = zip(texts, ids, strict=True)
    return [passage if passage.id is not None else passage._replace(id=name) for passage, name in pairs]


def without_blank(passages: list[LoggedPassage] | None, finder: FieldFinder) -> list[LoggedPassage] | None:
    """Leave out passages of nothing but white space that have no id either, and note it."""
    if passages is None:
        return None
    filled = [each for each in passages if each.id is not None or each.text is None or each.text.strip()]
    if len(filled) < len(passages):
        finder.note("passages without any text are left out")
    return filled


def _note_other_text(shown: Any, passages: Iterable[LoggedPassage], finder: FieldFinder) -> None:
    """Note passages without a text, and the fields that may have it."""
    passages = list(passages)
    if not isinstance(shown, list | tuple) or not passages or any(each.text is not None for each in passages):
        return
    rows = [each for each in shown if isinstance(each, Mapping)]
    if not rows and any(each.id is not None for each in passages):
        finder.note("passages that are names of files or addresses are ids, and have no text")
    fields = [(str(key), value) for row in rows for key, value in row.items() if key not in KNOWN_KEYS]
    names = list(dict.fromkeys(key for key, value in fields if isinstance(value, str) and " " in value))
    if names:
        finder.note(f"passages have no text: {format_names(names)} isn't read as one; call it 'text' if it is")
