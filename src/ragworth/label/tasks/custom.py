"""Custom tasks: a TOML file with fields, scales and keys.

::

    kind = "tone"
    title = "How does the answer sound?"
    instructions = "Judge the tone, not the content."
    about = "answers"                 # passages, answers, questions, or items (a file of your own)

    [[fields]]
    name = "tone"
    type = "choice"                   # choice, spans or text
    title = "Tone"
    options = [
      {value = "polite", key = "1", score = 1.0},
      {value = "rude", key = "2", anchor = "insults or mocks the reader", score = 0.0},
    ]

    [[fields]]
    name = "where"
    type = "spans"
    parts = ["answer"]

    [[rules]]
    field = "tone"
    values = ["rude"]
    requires = "where"
    message = "Highlight the rude words."
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from ragworth.core.errors import FormatError, InputError, format_list, quote_short
from ragworth.core.nested_text import InvalidValueError, ValueProblem, parse_toml, validate_value
from ragworth.label.tasks.answer_grade import AnswerGradeTask
from ragworth.label.tasks.contract import ItemPart, LabelItem, LabelTask, TableName, TableRow
from ragworth.label.tasks.fields import (
    MAX_TEXT,
    TABLE_CONFIG,
    ChoiceField,
    LabelField,
    Requirement,
    SpansField,
    TextField,
    Value,
)
from ragworth.label.tasks.question_soundness import QuestionSoundnessTask
from ragworth.label.tasks.relevance import RelevanceTask

if TYPE_CHECKING:
    from ragworth.label.sources import LabelSource

BASES: dict[str, LabelTask | None] = {
    "passages": RelevanceTask(),
    "answers": AnswerGradeTask(),
    "questions": QuestionSoundnessTask(),
    "items": None,
}
"""What a custom task may be about, and the task that has the same items."""
TABLES: dict[str, TableName] = {
    "passages": "judgments",
    "answers": "outcomes",
    "questions": "questions",
    "items": "custom",
}
FIELD_TYPES = ("choice", "spans", "text")
NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
RESERVED = {"judge", "query", "passage", "subquestion", "system", "repeat", "aspect", "value", "status", "source"}
SHORTCUTS = frozenset("u?cshxi")
"""Keys that the page uses itself."""


@dataclass(frozen=True)
class TaskFile:
    """The tables of a file."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = TABLE_CONFIG

    kind: str
    title: str
    instructions: str
    fields: tuple[Annotated[LabelField, Field(discriminator="type")], ...]
    about: Literal["passages", "answers", "questions", "items"] = "items"
    parts: tuple[ItemPart, ...] = ()
    rules: tuple[Requirement, ...] = ()


class CustomTask(LabelTask):
    """A task from a TOML file."""

    def __init__(self, file: TaskFile) -> None:
        self.kind, self.title, self.instructions, self.about = file.kind, file.title, file.instructions, file.about
        self.parts, self.fields, self.rules = file.parts, file.fields, file.rules
        self.ordered = all(option.score is not None for option in self.main.options)
        if base := BASES[file.about]:
            self.parts, self.names, self.optional_names = base.parts, base.names, base.optional_names

    def keys(self, item: LabelItem) -> dict[str, str]:
        """Items of one's own are named by all their facts; without a query, the id stands for it."""
        return super().keys(item) if self.names else {"query": item.id, **item.meta}

    def units(self, source: LabelSource) -> Iterator[dict[str, str]]:
        return self._base.units(source)

    def texts(self, meta: Mapping[str, str], source: LabelSource) -> dict[str, str]:
        return self._base.texts(meta, source)

    @property
    def _base(self) -> LabelTask:
        base = BASES[self.about]
        if base is None:
            raise InputError(
                f"the task {self.kind!r} is about items of your own",
                expected="a file of items (JSONL)",
                remedy='name the file, or set about = "passages", "answers" or "questions"',
            )
        return base

    def rows(self, item: LabelItem, value: Value) -> list[TableRow]:
        """A row for each choice: the first has the task's name as aspect, others their own name after it."""
        found = []
        for field in self.fields:
            chosen = value.get(field.name)
            if isinstance(field, ChoiceField) and chosen is not None:
                option = field.option(chosen)
                aspect = self.kind if field is self.main else f"{self.kind}-{field.name}"
                found.append(TableRow(TABLES[self.about], aspect, self.keys(item), option.score, option.value))
        return found


def read_custom_task(path: Path) -> CustomTask:
    """Read a task; an error names the line."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror or error}", file=str(path)) from error
    except UnicodeDecodeError as error:
        raise FormatError("it is no text in UTF-8", file=str(path)) from error
    return parse_custom_task(text, str(path))


def parse_custom_task(text: str, file: str = "") -> CustomTask:
    """Parse the text of a TOML file; an error has all problems of a kind, and the line of the first."""
    tables = parse_toml(text, file, expected="a task in TOML")
    try:
        task: TaskFile = validate_value(TaskFile, _with_defaults(tables))
        if problems := list(_inconsistencies(task)):
            raise InvalidValueError(problems)
    except InvalidValueError as error:
        line = _line(text.splitlines(), *error.problems[0].path)
        raise FormatError(error.texts[0], file=file, line=line, more=error.texts[1:]) from None
    return CustomTask(task)


def _with_defaults(tables: dict[str, Any]) -> dict[str, Any]:
    """The tables with titles that follow from names, and options with labels and keys."""
    filled = dict(tables)
    for name in ("fields", "parts"):
        if isinstance(rows := tables.get(name), list):
            filled[name] = [_filled(row, title=_name(row, "name").capitalize()) for row in rows]
    for row in filled.get("fields", ()):
        if isinstance(row, dict) and isinstance(options := row.get("options"), list):
            row["options"] = [
                _filled(option, label=_name(option, "value"), key=str(number))
                for number, option in enumerate(options, 1)
            ]
    return filled


def _filled(row: Any, **defaults: str) -> Any:
    return {**defaults, **row} if isinstance(row, dict) else row


def _name(row: Any, key: str) -> str:
    return str(row.get(key, "")) if isinstance(row, dict) else ""


def _inconsistencies(task: TaskFile) -> Iterator[ValueProblem]:
    """What can't be right although every value is of the right type."""
    base = BASES[task.about]
    if not NAME.fullmatch(task.kind):
        yield ValueProblem(("kind",), f"kind is {quote_short(task.kind)}; expected small letters, digits, - and _")
    if base is None and not task.parts:
        yield ValueProblem((), 'nothing says what an item shows; expected [[parts]], or about = "passages"')
    if base is not None and task.parts:
        yield ValueProblem(("parts", 0), f'[[parts]] of a task about {task.about}; expected about = "items"')
    if not any(isinstance(field, ChoiceField) for field in task.fields):
        yield ValueProblem(("fields",), 'there is no choice; expected [[fields]] with type = "choice" and options')
    shown = [part.name for part in (base.parts if base else task.parts)]
    taken, keys = set(RESERVED), set(SHORTCUTS)
    for at, field in enumerate(task.fields):
        if not NAME.fullmatch(field.name) or field.name in taken:
            yield ValueProblem(
                ("fields", at, "name"), f"a field is called {quote_short(field.name)}; expected another name"
            )
        taken.add(field.name)
        yield from (ValueProblem(("fields", at, *path), text) for path, text in _field_problems(field, shown, keys))
    for at, rule in enumerate(task.rules):
        yield from (ValueProblem(("rules", at, key), text) for key, text in _rule_problems(rule, task.fields))


def _field_problems(field: LabelField, shown: list[str], keys: set[str]) -> Iterator[ValueProblem]:
    """``shown``: names of the parts of an item; ``keys``: those that are taken, which grow."""
    if isinstance(field, TextField):
        if not 0 < field.max_length <= MAX_TEXT:
            yield ValueProblem(("max_length",), f"max_length is {field.max_length:,}; expected 1 to {MAX_TEXT:,}")
        return
    if isinstance(field, SpansField):
        if not field.parts or not set(field.parts) <= set(shown):
            yield ValueProblem(("parts",), f"parts is {quote_short(list(field.parts))}; expected {format_list(shown)}")
        return
    values = [option.value for option in field.options]
    if len(values) < 2 or len(set(values)) < len(values) or not all(value.strip() for value in values):
        yield ValueProblem(("options",), f"{field.name} has the values {values}; expected two or more, each once")
    if len({option.score is None for option in field.options}) > 1:
        yield ValueProblem(("options",), "some options have a score and others don't; expected all of them, or none")
    for option in field.options:
        if len(option.key) != 1 or not option.key.isprintable() or option.key.isspace() or option.key in keys:
            found = f"the key of {option.value!r} is {quote_short(option.key)}"
            yield ValueProblem(("options",), f"{found}; expected one character that nothing else uses, such as 1")
        keys.add(option.key)


def _rule_problems(rule: Requirement, fields: Sequence[LabelField]) -> Iterator[tuple[str, str]]:
    names = [field.name for field in fields]
    chosen = next((field for field in fields if field.name == rule.field and isinstance(field, ChoiceField)), None)
    if chosen is None:
        yield "field", f"field is {quote_short(rule.field)}; expected the name of a choice"
        return
    known = [option.value for option in chosen.options]
    if not rule.values or not set(rule.values) <= set(known):
        yield "values", f"values is {quote_short(list(rule.values))}; expected a list of {format_list(known)}"
    if rule.requires not in names:
        yield "requires", f"requires is {quote_short(rule.requires)}; expected {format_list(names)}"


def _line(lines: Sequence[str], table: str | int = "", at: str | int = 0, *keys: str | int) -> int | None:
    """The line of a key of a table, of the table itself, or of a key at the top."""
    seen, inside, found = -1, table not in ("fields", "rules", "parts"), None
    key = next((key for key in keys if key not in FIELD_TYPES), table if inside else "")
    for number, line in enumerate(lines, 1):
        if head := re.match(r"\s*\[\[?\s*([\w.-]+)\s*\]", line):
            seen += head[1] == table
            inside = head[1] == table and seen == at
            found = number if inside else found
        elif inside and key and re.match(rf"""\s*["']?{re.escape(str(key))}["']?\s*=""", line):
            return number
    return found
