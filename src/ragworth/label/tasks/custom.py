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

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, ValidationInfo

from ragworth.core.errors import InputError, format_list, quote_short
from ragworth.core.nested_text import parse_toml
from ragworth.label.tasks.answer_grade import AnswerGradeTask
from ragworth.label.tasks.contract import ItemPart, LabelItem, LabelTask, TableName, TableRow
from ragworth.label.tasks.fields import (
    NAME,
    TABLE_CONFIG,
    ChoiceField,
    LabelField,
    Requirement,
    SpansField,
    Value,
)
from ragworth.label.tasks.question_soundness import QuestionSoundnessTask
from ragworth.label.tasks.relevance import RelevanceTask
from ragworth.workspace.toml import check_toml, read_toml

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
RESERVED = {"judge", "query", "passage", "subquestion", "system", "repeat", "aspect", "value", "status", "source"}
SHORTCUTS = frozenset("u?cshxi")
"""Keys that the page uses itself."""


def _check_parts(parts: tuple[ItemPart, ...], info: ValidationInfo) -> tuple[ItemPart, ...]:
    """Only a task about items of the user's own says what they show."""
    about = info.data.get("about")
    if about == "items" and not parts:
        raise ValueError('nothing says what an item shows; expected [[parts]], or about = "passages"')
    if about in TABLES and about != "items" and parts:
        raise ValueError(f'[[parts]] of a task about {about}; expected about = "items"')
    return parts


def _check_field(field: LabelField, info: ValidationInfo) -> LabelField:
    """A field has a name that the exported tables don't use; spans are in parts that the item shows."""
    if field.name in RESERVED:
        raise ValueError(f"a field is called {quote_short(field.name)}; expected another name", "name")
    if isinstance(field, SpansField) and {"about", "parts"} <= info.data.keys():
        base = BASES[info.data["about"]]
        shown = [part.name for part in (base.parts if base else info.data["parts"])]
        if not set(field.parts) <= set(shown):
            raise ValueError(f"parts is {quote_short(list(field.parts))}; expected {format_list(shown)}", "parts")
    return field


def _check_fields(fields: tuple[LabelField, ...]) -> tuple[LabelField, ...]:
    """One field is a choice, and no two share a name or a key."""
    choices = [field for field in fields if isinstance(field, ChoiceField)]
    if not choices:
        raise ValueError('there is no choice; expected [[fields]] with type = "choice" and options')
    names = [field.name for field in fields]
    if double := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"two fields are called {quote_short(double)}; expected another name")
    taken = set(SHORTCUTS)
    for field in choices:
        for option in field.options:
            if option.key in taken:
                problem = f"the key of {option.value!r} is {quote_short(option.key)}, which something else uses"
                raise ValueError(f"{problem}; expected another character, such as 1", fields.index(field), "options")
            taken.add(option.key)
    return fields


def _check_rule(rule: Requirement, info: ValidationInfo) -> Requirement:
    """A rule names a choice, some of its values, and a field."""
    fields: dict[str, LabelField] = {field.name: field for field in info.data.get("fields", ())}
    chosen = fields.get(rule.field)
    if not fields:
        return rule
    if not isinstance(chosen, ChoiceField):
        raise ValueError(f"field is {quote_short(rule.field)}; expected the name of a choice", "field")
    known = [option.value for option in chosen.options]
    if not set(rule.values) <= set(known):
        given = quote_short(list(rule.values))
        raise ValueError(f"values is {given}; expected a list of {format_list(known)}", "values")
    if rule.requires not in fields:
        raise ValueError(f"requires is {quote_short(rule.requires)}; expected {format_list([*fields])}", "requires")
    return rule


@dataclass(frozen=True)
class TaskFile:
    """The tables of a file. Each is checked with the help of those before it."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {**TABLE_CONFIG, "validate_default": True}

    kind: Annotated[str, Field(pattern=NAME)]
    title: str
    instructions: str
    about: Literal["passages", "answers", "questions", "items"] = "items"
    parts: Annotated[tuple[ItemPart, ...], AfterValidator(_check_parts)] = ()
    fields: Annotated[
        tuple[Annotated[LabelField, Field(discriminator="type"), AfterValidator(_check_field)], ...],
        AfterValidator(_check_fields),
    ] = ()
    rules: tuple[Annotated[Requirement, AfterValidator(_check_rule)], ...] = ()


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
    tables, text = read_toml(path, "a task in TOML")
    return _custom_task(tables, str(path), text)


def parse_custom_task(text: str) -> CustomTask:
    """Parse the text of a task's file."""
    return _custom_task(parse_toml(text, "", expected="a task in TOML"), "", text)


def _custom_task(tables: dict[str, Any], file: str, text: str) -> CustomTask:
    return CustomTask(check_toml(TaskFile, _with_defaults(tables), file, text))


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
