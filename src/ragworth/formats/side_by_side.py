"""Read logs with several systems, or several answers of one, in each row.

The systems are in columns (``gpt4_answer``, ``llama_answer``, also with ``gpt4_contexts``), in objects
(``{"baseline": {"answer": …}, "new": {"answer": …}}``, ``{"answers": {"gpt-4": "…", "llama": "…"}}``) or in a list
(``{"responses": [{"model": "gpt-4", "answer": "…"}, …]}``). Each gets a row of its own. A list of answers without
names of systems (``{"responses": ["…", "…"]}``) are repeats.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ragworth.errors import format_list, quote_short
from ragworth.formats.contract import FileSample
from ragworth.formats.fields import FIELDS, GRADE_FIELDS, SYSTEM_COLUMNS, FieldFinder, plain_name
from ragworth.formats.log_files import LogRows
from ragworth.formats.log_format import LogFormat, Reject, parse_rows
from ragworth.formats.log_record import LogRecord
from ragworth.formats.log_values import as_row
from ragworth.formats.values import objects

Row = Mapping[str, Any]

SYSTEM_WORD = re.compile(
    r"v\d+(?:[._]\d+)*|base(?:line)?|new|old|control|treatment|candidate|challenger|champion|current|proposed|ours|prod|"
    r"production|staging|before|after|(?:fine)?_?tuned|(?:no|with|without|naive|advanced|vanilla)_(?:rag|context)|rag|"
    r"norag|vanilla|naive|hybrid|dense|sparse|bm25|rerank(?:ed|er)?|closed_book|open_book|zero_shot|few_shot|"
    r"(?:model|system|variant|version|pipeline)_?[a-z\d]|"
    r".*(?:gpt|llama|claude|mistral|mixtral|gemini|gemma|qwen|deepseek|phi_?\d|command_r|falcon|haiku|sonnet|opus|grok).*"
)
"""What systems are called in the names of columns."""

WITHOUT_PASSAGES = re.compile(r"(?:no|non|without)_?(?:rag|context|retrieval|docs|documents)|closed_?book|llm_only")
"""What a system is called that is shown no passages."""

MAX_LETTERS = 3
"""More answers that are called by letters are the choices of a question."""

HOLDERS = {
    *("systems", "models", "responses", "answers", "outputs", "predictions", "generations", "completions"),
    *("candidates", "variants"),
}
"""What the answers of several systems to a question are called."""

ANSWERS = tuple(name for name in FIELDS["answer"] if "_" not in name)
PASSAGES = tuple(name for name in FIELDS["passages"] if "_" not in name or name.startswith("retriev"))
"""The words beside the name of a system in the name of a column."""

SAMPLES = {"responses", "outputs", "predictions", "generations", "completions", "samples", "sampled_answers"}
"""What several answers of one system to a question are called."""

NO_SYSTEM = re.compile(
    r"(?:human|expert|annotator|user|student|true|truth|right|real|ref|best|worst|wrong|incorrect|short|long)(?:_.*)?|"
    r"(?:.*_)?(?:judge|grader|evaluator|eval|critic)(?:_.*)?"
)
"""What answers are called that no system gave, or that are another form of an answer, or a judge's."""

CHOICE = re.compile(r"[a-e]|[0-5]", re.IGNORECASE)
"""What says which of a question's choices is the right one."""

TAKEN = {name for field in ("accepted", "relevant", "question", "query") for name in FIELDS[field]}
SYSTEM_NAMES = {"system": (*FIELDS["system"], *SYSTEM_COLUMNS, "name")}


def split_row(row: Row, least: int = 2) -> list[Row]:
    """A row for each system in a row; nothing if there are fewer than ``least``."""
    answer = FieldFinder(FIELDS).keys(dict.fromkeys(row)).get("answer", "")
    if plain_name(answer) in ANSWERS:
        return []
    parts = ANSWERS if answer else ANSWERS + PASSAGES  # several searches may lead to one answer
    found = _split_objects(row, least) or _split_holders(row, least) or _split_columns(row, parts)
    return found or _split_samples(row)


def _split_columns(row: Row, parts: tuple[str, ...]) -> list[Row]:
    """``{"answer_a": …, "answer_b": …}``."""
    of_system = {name: _columns_of(name, row) for name in _systems_in_columns(row, parts)}
    taken = {column for columns in of_system.values() for column in columns.values()}
    shared = {column: value for column, value in row.items() if column not in taken}
    return [
        _row_of(name, shared, {field: row[column] for field, column in columns.items()})
        for name, columns in of_system.items()
    ]


def _systems_in_columns(row: Row, parts: tuple[str, ...]) -> list[str]:
    """The names of systems in those of columns of answers or passages."""
    texts = [plain_name(column) for column, value in row.items() if isinstance(value, str | list | None)]
    for part in parts:
        names = [name for column in texts if (name := _without(part, column)) and not NO_SYSTEM.fullmatch(name)]
        if len(names) < 2:
            continue
        letters = len(names) <= MAX_LETTERS and all(len(name) == 1 and name.isalpha() for name in names)
        of_systems = not _has_right_choice(row) if letters else any(map(SYSTEM_WORD.fullmatch, names))
        if of_systems:
            return names
    return []


def _has_right_choice(row: Row) -> bool:
    """Whether a column says which answer is right, so that these are the choices of a question."""
    finder = FieldFinder(FIELDS | GRADE_FIELDS)
    values = [str(finder.get(row, field)).strip() for field in ("answer", "accepted", "human", "correct")]
    return any(map(CHOICE.fullmatch, values))


def _without(part: str, column: str) -> str:
    """The name of a column without a part at its end or beginning; empty if it has none, or is that of a field."""
    found = re.fullmatch(rf"(.+)_{re.escape(part)}|{re.escape(part)}_(.+)", column)
    return "" if found is None or column in TAKEN else found[1] or found[2]


def _columns_of(system: str, row: Row) -> dict[str, str]:
    """The columns of a system, by their names without that of the system."""
    return {field: column for column in row if (field := _without(system, plain_name(column)))}


def _split_objects(row: Row, least: int) -> list[Row]:
    """``{"baseline": {"answer": …}, "new": {"answer": …}}``."""
    inner = {name: value for name, value in row.items() if _is_of_system(value)}
    if len(inner) < least or FieldFinder(FIELDS).keys(dict.fromkeys(inner)):
        return []
    shared = {name: value for name, value in row.items() if name not in inner}
    return [_row_of(name, shared, value) for name, value in inner.items()]


def _split_holders(row: Row, least: int) -> list[Row]:
    """``{"answers": {"gpt-4": …, "llama": …}}`` and ``{"responses": [{"model": "gpt-4", "answer": …}, …]}``."""
    for name, held in row.items():
        systems = _systems_of(held) if plain_name(name) in HOLDERS else {}
        if systems and len(systems) >= least:
            shared = {column: value for column, value in row.items() if column != name}
            return [_row_of(system, shared, value) for system, value in systems.items()]
    return []


def _split_samples(row: Row) -> list[Row]:
    """``{"responses": ["…", "…"]}``: repeats of one system."""
    name = next((name for name in row if plain_name(name) in SAMPLES and isinstance(row[name], list)), None)
    held = row[name] if name else []
    texts = [_with_answer(each) if isinstance(each, Mapping) else {"answer": each} for each in held]
    steps = any({"role", "type"} & each.keys() for each in texts)  # messages, or calls of tools
    if steps or not all(isinstance(each.get("answer"), str | None) for each in texts):
        return []
    shared = {column: value for column, value in row.items() if column != name}
    return [{**shared, "answer": each.get("answer"), "repeat": number} for number, each in enumerate(texts)]


def _systems_of(held: Any) -> dict[str, Row]:
    """What several systems did, by their names."""
    if isinstance(held, list):
        each = [_with_answer(value) for value in objects(held)]
        names = [FieldFinder(SYSTEM_NAMES).get(value, "system") for value in each]
        named = all(isinstance(name, str) for name in names) and len(set(names)) == len(held)
        return dict(zip(names, each, strict=True)) if named and all(map(_is_of_system, each)) else {}
    if not isinstance(held, Mapping):
        return {}
    if all(map(_is_of_system, held.values())):
        return dict(held)
    texts = all(isinstance(value, str | None) for value in held.values())
    known = texts and any(SYSTEM_WORD.fullmatch(plain_name(name)) for name in held)
    return {name: {"answer": value} for name, value in held.items()} if known else {}


def _with_answer(value: Row) -> Row:
    """An object of a list, in which a text is the answer."""
    text = next((value[name] for name in ("text", "content") if isinstance(value.get(name), str)), None)
    return value if text is None or _is_of_system(value) else {**value, "answer": text}


def _is_of_system(value: Any) -> bool:
    """Whether an object has an answer or passages, and no question."""
    found = FieldFinder(FIELDS).keys(value) if isinstance(value, Mapping) else {}
    return bool({"answer", "passages"} & found.keys()) and "question" not in found


def _row_of(system: str, shared: Row, own: Row) -> Row:
    """The row of a system, which its own fields may name."""
    if WITHOUT_PASSAGES.search(plain_name(system)):
        shown = FieldFinder(FIELDS).keys(dict.fromkeys(shared)).get("passages")
        shared = {name: value for name, value in shared.items() if name != shown}
    name = FieldFinder(SYSTEM_NAMES).get(own, "system")
    return {**shared, **own, "system": name if isinstance(name, str) and name else system}


def _recognise(sample: FileSample) -> bool:
    asked = {"question", "query"} & FieldFinder(FIELDS).keys(dict.fromkeys(sample.columns)).keys()
    return bool(asked) and 2 * sum(bool(split_row(row)) for row in sample.rows) > len(sample.rows)


def _parse(rows: LogRows, finder: FieldFinder, reject: Reject) -> Iterator[LogRecord]:
    """Rows of single systems. Columns that the user names are read as they are."""
    if {"answer", "passages", "system"} & finder.columns.keys():
        yield from parse_rows(rows, finder, reject)
        return
    found = [(place, as_row(value) or value) for place, value in rows.values]
    columns = dict.fromkeys(name for _, row in found if isinstance(row, Mapping) for name in row)
    split = [(place, part) for place, row in found for part in _parts(row, columns)]
    parts = [part for _, part in split if isinstance(part, Mapping)]
    systems = dict.fromkeys(str(part["system"]) for part in parts if "system" in part)
    few = format_list([quote_short(name, 24) for name in systems], 4)
    several = f"several systems: {few}" if systems else "several answers of a system, read as repeats"
    if len(split) > len(found):
        finder.notes.append(f"each {rows.unit} has {several}")
    yield from parse_rows(rows._replace(values=split), finder, reject)


def _parts(row: Any, columns: Row) -> list[Any]:
    """The rows of the systems in a row, which may lack some of the columns."""
    if not isinstance(row, Mapping):
        return [row]
    return split_row({**columns, **row}) or split_row(row, 1) or [row]


FORMAT = LogFormat(
    name="side-by-side",
    title="a log with several systems in each row",
    expected="a question in each record, and answers of several systems, such as answer_a and answer_b",
    names=FIELDS,
    recognise=_recognise,
    parse=_parse,
).format()
