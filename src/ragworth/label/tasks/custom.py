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
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ragworth.errors import FormatError, InputError, format_list, quote_short
from ragworth.label.tasks.answer_grade import AnswerGradeTask
from ragworth.label.tasks.contract import ROLES, ItemPart, LabelItem, LabelTask, TableName, TableRow
from ragworth.label.tasks.fields import (
    ChoiceField,
    LabelField,
    Requirement,
    ScaleOption,
    SpansField,
    TextField,
    Value,
)
from ragworth.label.tasks.question_soundness import QuestionSoundnessTask
from ragworth.label.tasks.relevance import RelevanceTask
from ragworth.nested_text import parse_toml

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
KEYS = {
    "": {"kind", "title", "instructions", "about", "fields", "rules", "parts"},
    "fields": {"name", "type", "title", "options", "parts", "required", "help", "max_length"},
    "options": {"value", "label", "key", "anchor", "score"},
    "rules": {"field", "values", "requires", "message", "empty"},
    "parts": {"name", "title", "role", "optional"},
}
FIELD_TYPES = ("choice", "spans", "text")
NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
RESERVED = {"judge", "query", "passage", "subquestion", "system", "repeat", "aspect", "value", "status", "source"}
SHORTCUTS = frozenset("u?cshxi")
"""Keys that the page uses itself."""


class CustomTask(LabelTask):
    """A task from a TOML file."""

    def __init__(
        self,
        kind: str,
        title: str,
        instructions: str,
        about: str,
        parts: tuple[ItemPart, ...],
        fields: tuple[LabelField, ...],
        rules: tuple[Requirement, ...],
    ) -> None:
        self.kind, self.title, self.instructions, self.about = kind, title, instructions, about
        self.parts, self.fields, self.rules = parts, fields, rules
        self.ordered = all(option.score is not None for option in self.main.options)
        if base := BASES[about]:
            self.names, self.optional_names = base.names, base.optional_names

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
    """The task in the text of a TOML file."""
    return _TaskParser(parse_toml(text, file, expected="a task in TOML"), text, file).task()


class _TaskParser:
    """Turns the tables of a file into a task."""

    def __init__(self, tables: dict[str, Any], text: str, file: str) -> None:
        self.tables, self.lines, self.file = tables, text.splitlines(), file

    def task(self) -> CustomTask:
        whole = self.tables
        self._check_keys(whole, "")
        kind = self._text(whole, "kind")
        if not NAME.fullmatch(kind):
            self._fail(f"kind is {quote_short(kind)}", "small letters, digits, - and _", "kind")
        about = self._text(whole, "about", "items" if "parts" in whole else "")
        if about not in BASES:
            self._fail(f"about is {quote_short(about)}", f"one of {format_list(list(BASES))}", "about")
        parts = self._parts(about)
        fields = tuple(self._field(one, at, parts) for at, one in enumerate(self._tables("fields")))
        names = [field.name for field in fields]
        if len(set(names)) < len(names):
            self._fail(f"two fields are called {format_list(sorted({n for n in names if names.count(n) > 1}))}", "")
        if not any(isinstance(field, ChoiceField) for field in fields):
            self._fail("there is no choice", '[[fields]] with type = "choice" and options', "fields")
        self._check_shortcuts(fields)
        rules = tuple(self._rule(one, at, fields) for at, one in enumerate(self._tables("rules")))
        instructions = self._text(whole, "instructions")
        return CustomTask(kind, self._text(whole, "title"), instructions, about, parts, fields, rules)

    def _parts(self, about: str) -> tuple[ItemPart, ...]:
        base, given = BASES[about], self._tables("parts")
        if base is not None:
            if given:
                self._fail(f"[[parts]] of a task about {about}", 'about = "items"', "parts", 0)
            return base.parts
        found = []
        for at, one in enumerate(given):
            self._check_keys(one, "parts", at)
            role = self._text(one, "role", "other", ("parts", at))
            if role not in ROLES:
                self._fail(
                    f"role is {quote_short(role)}", f"one of {format_list(list(ROLES), 12)}", "parts", at, "role"
                )
            name = self._text(one, "name", None, ("parts", at))
            optional = self._flag(one, "optional", "parts", at)
            found.append(ItemPart(name, self._text(one, "title", name, ("parts", at)), role, optional))
        if not found:
            self._fail("nothing says what an item shows", '[[parts]] with name, title and role; or about = "passages"')
        return tuple(found)

    def _field(self, one: dict[str, Any], at: int, parts: tuple[ItemPart, ...]) -> LabelField:
        place = ("fields", at)
        self._check_keys(one, *place)
        name, kind = self._text(one, "name", None, place), self._text(one, "type", None, place)
        if not NAME.fullmatch(name) or name in RESERVED:
            self._fail(f"a field is called {quote_short(name)}", "another name, in small letters", *place, "name")
        if kind not in FIELD_TYPES:
            self._fail(f"type is {quote_short(kind)}", f"one of {format_list(list(FIELD_TYPES))}", *place, "type")
        facts: dict[str, Any] = {"name": name, "title": self._text(one, "title", name.capitalize(), place)}
        facts |= {"help": self._text(one, "help", "", place)}
        if kind == "choice":
            required = self._flag(one, "required", *place, default=True)
            return ChoiceField(**facts, options=self._options(one, at), required=required)
        required = self._flag(one, "required", *place)
        if kind == "text":
            length = one.get("max_length", TextField.max_length)
            if type(length) is not int or not 0 < length <= TextField.max_length:
                self._fail(f"max_length is {length!r}", f"1 to {TextField.max_length:,}", *place, "max_length")
            return TextField(**facts, required=required, max_length=length)
        known, given = [part.name for part in parts], one.get("parts", [])
        if not isinstance(given, list) or not given or any(name not in known for name in given):
            self._fail(f"parts is {quote_short(given)}", f"a list of {format_list(known)}", *place, "parts")
        return SpansField(**facts, parts=tuple(given), required=required)

    def _options(self, one: dict[str, Any], at: int) -> tuple[ScaleOption, ...]:
        given, place = one.get("options"), ("fields", at, "options")
        if not isinstance(given, list) or len(given) < 2 or not all(isinstance(each, dict) for each in given):
            self._fail("a choice needs two options or more", '[{value = "yes", key = "1"}, …]', *place)
        found = []
        for number, each in enumerate(given, 1):
            if unknown := [key for key in each if key not in KEYS["options"]]:
                self._fail(f"an option has no {format_list(unknown)}", format_list(sorted(KEYS["options"])), *place)
            value, key = each.get("value"), each.get("key", str(number))
            if not isinstance(value, str) or not value.strip():
                self._fail(f"the value of an option is {quote_short(value)}", "a text in quotes", *place)
            if not isinstance(key, str) or len(key) != 1 or not key.isprintable() or key.isspace() or key in SHORTCUTS:
                self._fail(f"the key of {value!r} is {quote_short(key)}", "one character, such as 1", *place)
            score = each.get("score")
            if score is not None and (isinstance(score, bool) or not isinstance(score, int | float)):
                self._fail(f"the score of {value!r} is {quote_short(score)}", "a number", *place)
            texts = {name: each.get(name, value if name == "label" else "") for name in ("label", "anchor")}
            if not all(isinstance(text, str) for text in texts.values()):
                self._fail(f"label and anchor of {value!r} are not both texts", "texts in quotes", *place)
            found.append(ScaleOption(str(value), key=key, score=None if score is None else float(score), **texts))
        for name in ("value", "key"):
            every = [getattr(each, name) for each in found]
            if len(set(every)) < len(every):
                self._fail(f"two options have the same {name}", f"a different {name} for each", *place)
        if len({each.score is None for each in found}) > 1:
            self._fail("some options have a score and others don't", "a score for all of them, or for none", *place)
        return tuple(found)

    def _check_shortcuts(self, fields: tuple[LabelField, ...]) -> None:
        seen: dict[str, str] = {}
        for at, field in enumerate(fields):
            for option in field.options if isinstance(field, ChoiceField) else ():
                if option.key in seen:
                    found = f"the key {option.key!r} is used by {seen[option.key]} and {field.name}"
                    self._fail(found, "a different key for each option of all fields", "fields", at, "options")
            seen |= {one.key: field.name for one in (field.options if isinstance(field, ChoiceField) else ())}

    def _rule(self, one: dict[str, Any], at: int, fields: tuple[LabelField, ...]) -> Requirement:
        place = ("rules", at)
        self._check_keys(one, *place)
        names = {field.name: field for field in fields}
        field, requires = (self._text(one, name, None, place) for name in ("field", "requires"))
        chosen = names.get(field)
        if not isinstance(chosen, ChoiceField):
            self._fail(f"field is {quote_short(field)}", "the name of a choice", *place, "field")
        if requires not in names:
            self._fail(f"requires is {quote_short(requires)}", format_list(list(names)), *place, "requires")
        values, known = one.get("values"), [option.value for option in chosen.options]
        if not isinstance(values, list) or not values or any(value not in known for value in values):
            self._fail(f"values is {quote_short(values)}", f"a list of {format_list(known)}", *place, "values")
        message = self._text(one, "message", None, place)
        return Requirement(field, tuple(values), requires, message, self._flag(one, "empty", *place))

    def _tables(self, name: str) -> list[dict[str, Any]]:
        given = self.tables.get(name, [])
        if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
            self._fail(f"{name} is no list of tables", f"[[{name}]]", name)
        return list(given)

    def _text(self, table: dict[str, Any], key: str, default: str | None = None, place: tuple[Any, ...] = ()) -> str:
        value = table.get(key, default)
        if not isinstance(value, str) or (default is None and not value.strip()):
            found = f"there is no {key}" if key not in table else f"{key} is {quote_short(value)}"
            self._fail(found, f'{key} = "…"', *place, key)
        return str(value)

    def _flag(self, table: dict[str, Any], key: str, *place: Any, default: bool = False) -> bool:
        value = table.get(key, default)
        if not isinstance(value, bool):
            self._fail(f"{key} is {quote_short(value)}", "true or false", *place, key)
        return bool(value)

    def _check_keys(self, table: dict[str, Any], name: str, at: int = 0) -> None:
        for key in table:
            if key not in KEYS[name]:
                where = f"[[{name}]] has" if name else "there is"
                self._fail(f"{where} no {key!r}", f"one of {format_list(sorted(KEYS[name]), 12)}", name, at, key)

    def _fail(self, found: str, expected: str, *place: Any) -> NoReturn:
        raise FormatError(found, file=self.file, line=self._line(*place), expected=expected)

    def _line(self, table: str = "", at: int | str = 0, key: str = "") -> int | None:
        """The line of a key of a table, of the table itself, or of a key at the top."""
        seen, inside, found = -1, table not in ("fields", "rules", "parts"), None
        key = key or (table if inside else "")
        for number, line in enumerate(self.lines, 1):
            if head := re.match(r"\s*\[\[?\s*([\w.-]+)\s*\]", line):
                seen += head[1] == table
                inside = head[1] == table and seen == at
                found = number if inside else found
            elif inside and key and re.match(rf"""\s*["']?{re.escape(key)}["']?\s*=""", line):
                return number
        return found
