"""Parse and render prompt files: messages of text, slots and repeated sections."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any, NamedTuple, TypeAlias, cast
from unicodedata import normalize
from zlib import crc32

from ragworth.core.errors import PromptError, format_list, quote_short
from ragworth.data.conversations import AskedQuestion, conversation_text, spoken_messages
from ragworth.llm.contract import Prompt, PromptMessage, Span
from ragworth.llm.prompts.reply import REPLY_SECTION, UNDECLARED, ReplyFormat, parse_reply

ROLES = ("system", "user", "assistant", "text")

SHORT_CODES = 8
"""The number of codes of six digits that are tried before those of eight."""

FENCE = "fence"
"""The slot that is filled with a code which occurs nowhere else."""

HISTORY = "history"
"""The slot for the conversation before the question."""

_HEAD = re.compile(r"^\[(\w+)\]\s*$")
_MARK = re.compile(r"\{\{([^{}\n]*)\}\}")
_SLOT = re.compile(r"([#/]?)\s*(\.|[A-Za-z_][\w-]*)\s*([*?]?)")
_NO_LETTERS = re.compile(r"[\W_]+")
_ALIKE = str.maketrans("\u0430\u03b1\u0441\u03f2\u0501\u0435\u043e\u03bf", "aaccdeoo")
"""Cyrillic and Greek letters that look like those of a code."""
_ESCAPED, _STAND_IN = "\\{{", "\ue000"


class Slot(NamedTuple):
    """A slot to fill; ``passage``: with text that may be truncated."""

    name: str
    passage: bool


class TemplateSection(NamedTuple):
    """A section repeated for each item of a list, or present if a text isn't empty."""

    name: str
    pieces: tuple[Any, ...]
    optional: bool = False


Piece: TypeAlias = str | Slot | TemplateSection


class TemplateMessage(NamedTuple):
    """A message: its role, its text, and its parsed pieces."""

    role: str
    text: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Template:
    """A prompt with slots. ``version`` is the hash of what is sent and of how the reply is read."""

    name: str
    about: str
    messages: tuple[TemplateMessage, ...]
    version: str
    file: str
    reply: ReplyFormat = UNDECLARED

    @cached_property
    def slots(self) -> Mapping[str, str]:
        """Slots by name, with their type: ``text``, ``passage``, ``list`` or ``optional list``."""
        found: dict[str, str] = {}
        for message in self.messages:
            for piece in message.pieces:
                if isinstance(piece, Slot) and piece.name != FENCE:
                    found.setdefault(piece.name, "passage" if piece.passage else "text")
                elif isinstance(piece, TemplateSection):
                    found.setdefault(piece.name, "optional list" if piece.optional else "list")
        return found

    @cached_property
    def names(self) -> frozenset[str]:
        """All names that may be given: slots, and outer values used in repeated sections."""
        return frozenset(name for message in self.messages for name in _names(message.pieces)) - {FENCE}

    @cached_property
    def fenced(self) -> bool:
        """Whether it marks where texts begin and end."""
        return any(name == FENCE for message in self.messages for name in _names(message.pieces))

    def render(self, values: Mapping[str, object], *, fenced_for: Mapping[str, object] | None = None) -> Prompt:
        """Fill the slots. Every slot needs a value, and every value a slot.

        The conversation before an `AskedQuestion` fills the slot ``history`` (a list of ``speaker`` and ``text``), or
        is in front of the last message of the user. ``fenced_for``: values to take the code of the fences
        from instead, so that prompts with only some of the passages differ in nothing else.
        """
        asked = next((value for value in values.values() if isinstance(value, AskedQuestion)), None)
        if asked is not None and HISTORY in self.names:
            values = {HISTORY: spoken_messages(asked.history), **values}
        slots = self.slots
        missing = [name for name, what in slots.items() if name not in values and what != "optional list"]
        extra = [name for name in values if name not in self.names]
        if missing or extra:
            words = [f"no value for {format_list(missing)}"] if missing else []
            words += [f"no slot for {format_list(extra)}"] if extra else []
            raise PromptError(
                f"the prompt {self.name!r} and its values don't match: {'; '.join(words)}",
                file=self.file,
                expected=", ".join(f"{name} ({what})" for name, what in slots.items()) or "no values",
            )
        messages, spans = [], []
        front = f"{conversation_text(asked.history)}\n\n" if asked and asked.history and HISTORY not in values else ""
        code = self._fence_code({**values, **(fenced_for or {})}, front) if self.fenced else ""
        last = max((n for n, source in enumerate(self.messages) if source.role in ("user", "text")), default=-1)
        for number, source in enumerate(self.messages):
            pieces = list(self._fill(source.pieces, [values], code))
            if front and number == last:
                pieces.insert(0, (front, False))
            text = "".join(piece for piece, _ in pieces)
            start_at = len(text) - len(text.lstrip())
            whole = len(text.rstrip())
            place = 0
            for piece, passage in pieces:
                if passage and piece:
                    start, end = max(place, start_at), min(place + len(piece), whole)
                    if end > start:
                        spans.append(Span(number, start - start_at, end - start_at))
                place += len(piece)
            # The parser accepts only known roles.
            messages.append(PromptMessage(cast(Any, source.role), text.strip()))
        return Prompt(tuple(messages), tuple(spans), self.version)

    def _fence_code(self, values: Mapping[str, object], front: str = "") -> str:
        """The code of the fences: the same for all passages of a question, and in none of the values."""
        pieces = [piece for source in self.messages for piece in self._fill(source.pieces, [values], "")]
        seed = front + "".join(text for text, passage in pieces if not passage)
        shown = _undisguised(front + "".join(text for text, _ in pieces))
        taken: Container[str] = shown
        for number in count():
            if number == SHORT_CODES:  # somebody wrote many codes into a text: don't search all of it for each
                taken = {shown[at : at + 8] for at in range(len(shown))}
            # A checksum is enough: whoever computes the code and writes it into a text gets another one.
            code = f"{crc32(f'{number} {seed}'.encode('utf-8', 'surrogatepass')):08x}"[
                : 6 if number < SHORT_CODES else 8
            ]
            if code not in taken:
                return code
        raise AssertionError("unreachable")

    def _fill(
        self, pieces: Sequence[Piece], scopes: list[Mapping[str, object]], code: str
    ) -> Iterator[tuple[str, bool]]:
        """The pieces as texts, each with whether it belongs to a passage."""
        for piece in pieces:
            if isinstance(piece, str):
                yield piece, False
            elif isinstance(piece, Slot):
                yield (code, False) if piece.name == FENCE else (self._text(piece.name, scopes), piece.passage)
            else:
                yield from self._repeat(piece, scopes, code)

    def _repeat(
        self, part: TemplateSection, scopes: list[Mapping[str, object]], code: str
    ) -> Iterator[tuple[str, bool]]:
        value = _look_up(part.name, scopes)
        if isinstance(value, str) or value is None:
            if value:
                yield from self._fill(part.pieces, [*scopes, {".": value, "number": "1"}], code)
            return
        if not isinstance(value, Sequence):
            raise self._value_error(part.name, value, "a list, or a text")
        for number, item in enumerate(value, 1):
            scope: dict[str, object] = dict(item) if isinstance(item, Mapping) else {".": item}
            yield from self._fill(part.pieces, [*scopes, scope | {"number": str(number)}], code)

    def _text(self, name: str, scopes: list[Mapping[str, object]]) -> str:
        value = _look_up(name, scopes)
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self._value_error(name, value, "a text")
        return value if isinstance(value, str) else f"{value}"

    def _value_error(self, name: str, value: object, expected: str) -> PromptError:
        found = "nothing" if value is None else quote_short(value)
        return PromptError(f"the slot {name!r} was given {found}", file=self.file, expected=expected)


def _undisguised(text: str) -> str:
    """The letters and digits of a text, so that a code with blanks or invisible characters in it is still the code."""
    return _NO_LETTERS.sub("", normalize("NFKC", text).casefold().translate(_ALIKE))


def _look_up(name: str, scopes: list[Mapping[str, object]]) -> object:
    return next((scope[name] for scope in reversed(scopes) if name in scope), None)


def _names(pieces: Sequence[Piece]) -> Iterator[str]:
    """All names, including those in repeated sections, which may use outer values."""
    for piece in pieces:
        if not isinstance(piece, str):
            yield piece.name
        if isinstance(piece, TemplateSection):
            yield from _names(piece.pieces)


class ParsedTemplate(NamedTuple):
    """The parts of a prompt file."""

    about: str
    messages: list[TemplateMessage]
    reply: ReplyFormat


def parse_template(text: str, file: str) -> ParsedTemplate:
    """Parse a file to its description, its messages, and how the reply is read."""
    about: list[str] = []
    declared: list[tuple[int, str]] = []
    reply_line = 0
    blocks: list[tuple[str, int, list[str]]] = []
    for number, line in enumerate(text.splitlines(), 1):
        head = _HEAD.match(line)
        if head and head[1] in ROLES:
            blocks.append((head[1], number, []))
        elif head and head[1].casefold() in (*ROLES, REPLY_SECTION) and head[1] != REPLY_SECTION:
            raise PromptError(
                f"{line.strip()} is not a role", file=file, line=number, expected=f"[{head[1].casefold()}]"
            )
        elif head and head[1] == REPLY_SECTION:
            if blocks or reply_line:
                raise PromptError(
                    f"[reply] comes {'after a message' if blocks else 'twice'}",
                    file=file,
                    line=number,
                    expected="one section [reply] at most, before the first message",
                    remedy="move it up" if blocks else "join the two",
                )
            reply_line = number
        elif blocks:
            blocks[-1][2].append(line)
        elif reply_line:
            declared.append((number, line))
        else:
            about.append(line)
    roles = [role for role, _, _ in blocks]
    turns = roles[1:] if roles[:1] == ["system"] else roles
    in_turn = bool(turns) and turns == [("user", "assistant")[i % 2] for i in range(len(turns))] and len(turns) % 2 == 1
    if not in_turn and roles != ["text"]:
        raise PromptError(
            f"its messages are {', '.join(roles) or 'none'}",
            file=file,
            expected="[system], then [user] and [assistant] in turn, ending with [user]; or [text] alone",
        )
    messages = []
    for role, number, lines in blocks:
        source = "\n".join(lines)
        blank = len(source) - len(source.lstrip())
        pieces = _parse_pieces(source.strip(), file, number + 1 + source.count("\n", 0, blank))
        messages.append(TemplateMessage(role, source.strip(), pieces))
    reply = parse_reply(declared, file, reply_line) if reply_line else UNDECLARED
    return ParsedTemplate("\n".join(about).strip(), messages, reply)


def _parse_pieces(text: str, file: str, line: int) -> tuple[Piece, ...]:
    """Parse a message that begins on ``line`` of the file; invalid marks are errors."""
    text = text.replace(_ESCAPED, _STAND_IN)
    opened: list[tuple[str, int, list[Piece], bool]] = [("", line, [], False)]
    place = 0
    for mark in _MARK.finditer(text):
        at = line + text.count("\n", 0, mark.start())
        opened[-1][2].append(_check_plain_text(text[place : mark.start()], file, line + text.count("\n", 0, place)))
        place = mark.end()
        slot = _SLOT.fullmatch(mark[1].strip())
        kind, name, sign = slot.groups() if slot is not None else ("", "", "")
        if slot is None or (sign == "*" and kind) or (sign == "?" and kind != "#") or (name == FENCE and kind + sign):
            raise PromptError(
                f"{quote_short(mark[0])} is not a slot", file=file, line=at, expected="{{name}} or {{name*}}"
            )
        if kind == "#":
            opened.append((name, at, [], sign == "?"))
        elif kind == "/":
            last, _, inside, optional = opened.pop() if len(opened) > 1 else ("", at, [], False)
            if last != name:
                raise PromptError(
                    f"{mark[0]} closes a section that isn't open", file=file, line=at, expected=f"{{{{#{name}}}}}"
                )
            opened[-1][2].append(TemplateSection(name, tuple(piece for piece in inside if piece != ""), optional))
        else:
            opened[-1][2].append(Slot(name, sign == "*"))
    if len(opened) > 1:
        name, at, _, _ = opened[-1]
        raise PromptError(f"{{{{#{name}}}}} is never closed", file=file, line=at, expected=f"{{{{/{name}}}}}")
    opened[0][2].append(_check_plain_text(text[place:], file, line + text.count("\n", 0, place)))
    return tuple(piece for piece in opened[0][2] if piece != "")


def _check_plain_text(text: str, file: str, line: int) -> str:
    """Return text between slots, rejecting unescaped half slots."""
    if "{{" in text:
        at = line + text.count("\n", 0, text.index("{{"))
        expected = "{{name}} on one line, or \\{{ for two literal brackets"
        raise PromptError("unmatched {{", file=file, line=at, expected=expected)
    return text.replace(_STAND_IN, "{{")
