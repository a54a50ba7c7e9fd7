"""Parse and render prompt files: messages of text, slots and repeated sections."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast
from unicodedata import normalize
from zlib import crc32

from ragworth.core.errors import PromptError, format_list, quote_short
from ragworth.data.conversations import AskedQuestion, conversation_text, spoken_messages
from ragworth.llm.contract import Prompt, PromptMessage, Span
from ragworth.llm.prompts.reply import REPLY_SECTION, UNDECLARED, ReplyFormat, parse_reply

HEADS = ("system", "user", "assistant", "text", REPLY_SECTION)

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

Scopes: TypeAlias = Sequence[Mapping[str, object]]
"""Values by name: those of the prompt, then those of an item of each section around."""


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
        slots: dict[str, str] = {}
        for piece in (piece for message in self.messages for piece in message.pieces):
            if isinstance(piece, TemplateSection):
                slots.setdefault(piece.name, "optional list" if piece.optional else "list")
            elif isinstance(piece, Slot) and piece.name != FENCE:
                slots.setdefault(piece.name, "passage" if piece.passage else "text")
        return slots

    @cached_property
    def names(self) -> frozenset[str]:
        """All names that may be given: slots, and outer values used in repeated sections."""
        return self._names - {FENCE}

    @property
    def fenced(self) -> bool:
        """Whether it marks where texts begin and end."""
        return FENCE in self._names

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(name for message in self.messages for name in _piece_names(message.pieces))

    def render(self, values: Mapping[str, object], *, fenced_for: Mapping[str, object] | None = None) -> Prompt:
        """Fill the slots. Every slot needs a value, and every value a slot.

        The conversation before an `AskedQuestion` fills the slot ``history`` (a list of ``speaker`` and ``text``), or
        is in front of the last message. ``fenced_for``: values to take the code of the fences from instead, so that
        prompts with only some of the passages differ in nothing else.
        """
        asked = next((value for value in values.values() if isinstance(value, AskedQuestion)), None)
        if asked is not None and HISTORY in self.names:
            values = {HISTORY: spoken_messages(asked.history), **values}
        self._check_names(values)
        front = f"{conversation_text(asked.history)}\n\n" if asked and asked.history and HISTORY not in values else ""
        code = self._fence_code({**values, **(fenced_for or {})}, front) if self.fenced else ""
        messages, spans = [], []
        for number, source in enumerate(self.messages):
            pieces = list(self._fill(source.pieces, [values], code))
            if front and number == len(self.messages) - 1:
                pieces.insert(0, (front, False))
            text = "".join(piece for piece, _ in pieces)
            blank, end = len(text) - len(text.lstrip()), len(text.rstrip())
            place = 0
            for piece, is_passage in pieces:
                start, stop = max(place, blank), min(place + len(piece), end)
                if is_passage and start < stop:
                    spans.append(Span(number, start - blank, stop - blank))
                place += len(piece)
            # The parser accepts only known roles.
            messages.append(PromptMessage(cast(Any, source.role), text.strip()))
        return Prompt(tuple(messages), tuple(spans), self.version)

    def _check_names(self, values: Mapping[str, object]) -> None:
        missing = [name for name, kind in self.slots.items() if name not in values and kind != "optional list"]
        extra = [name for name in values if name not in self.names]
        if missing or extra:
            words = [f"no value for {format_list(missing)}"] if missing else []
            words += [f"no slot for {format_list(extra)}"] if extra else []
            raise PromptError(
                f"the prompt {self.name!r} and its values don't match: {'; '.join(words)}",
                file=self.file,
                expected=", ".join(f"{name} ({kind})" for name, kind in self.slots.items()) or "no values",
            )

    def _fence_code(self, values: Mapping[str, object], front: str) -> str:
        """The code of the fences: the same for all passages of a question, and in none of the values."""
        pieces = [piece for source in self.messages for piece in self._fill(source.pieces, [values], "")]
        seed = front + "".join(text for text, is_passage in pieces if not is_passage)
        shown = _undisguised(front + "".join(text for text, _ in pieces))

        def codes(numbers: Iterator[int] | range, size: int) -> Iterator[str]:
            # A checksum is enough: whoever computes the code and writes it into a text gets another one.
            for number in numbers:
                yield f"{crc32(f'{number} {seed}'.encode('utf-8', 'surrogatepass')):08x}"[:size]

        for code in codes(range(SHORT_CODES), 6):
            if code not in shown:
                return code
        # Somebody wrote many codes into a text: don't search all of it for each.
        written = {shown[at : at + 8] for at in range(len(shown))}
        return next(code for code in codes(count(SHORT_CODES), 8) if code not in written)

    def _fill(self, pieces: Sequence[Piece], scopes: Scopes, code: str) -> Iterator[tuple[str, bool]]:
        """The pieces as texts, each with whether it belongs to a passage."""
        for piece in pieces:
            if isinstance(piece, str):
                yield piece, False
            elif isinstance(piece, TemplateSection):
                for scope in self._section_scopes(piece.name, scopes):
                    yield from self._fill(piece.pieces, [*scopes, scope], code)
            else:
                yield (code, False) if piece.name == FENCE else (self._text(piece.name, scopes), piece.passage)

    def _section_scopes(self, name: str, scopes: Scopes) -> Iterator[Mapping[str, object]]:
        """The values of each item that a section is repeated for."""
        value = _look_up(name, scopes) or ()
        if not isinstance(value, Sequence):
            raise self._value_error(name, value, "a list, or a text")
        for number, item in enumerate([value] if isinstance(value, str) else value, 1):
            yield {**(item if isinstance(item, Mapping) else {".": item}), "number": str(number)}

    def _text(self, name: str, scopes: Scopes) -> str:
        value = _look_up(name, scopes)
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self._value_error(name, value, "a text")
        return value if isinstance(value, str) else f"{value}"

    def _value_error(self, name: str, value: object, expected: str) -> PromptError:
        quoted = "nothing" if value is None else quote_short(value)
        return PromptError(f"the slot {name!r} was given {quoted}", file=self.file, expected=expected)


def _undisguised(text: str) -> str:
    """The letters and digits of a text, so that a code with blanks or invisible characters in it is still the code."""
    return _NO_LETTERS.sub("", normalize("NFKC", text).casefold().translate(_ALIKE))


def _look_up(name: str, scopes: Scopes) -> object:
    return next((scope[name] for scope in reversed(scopes) if name in scope), None)


def _piece_names(pieces: Sequence[Piece]) -> Iterator[str]:
    """All names, including those in repeated sections, which may use outer values."""
    for piece in pieces:
        if not isinstance(piece, str):
            yield piece.name
        if isinstance(piece, TemplateSection):
            yield from _piece_names(piece.pieces)


def parse_template(text: str, file: str) -> Template:
    """Parse the text of a prompt file."""
    blocks: list[tuple[str, int, list[str]]] = [("", 0, [])]
    for number, line in enumerate(text.splitlines(), 1):
        head = _HEAD.match(line)
        role = head[1] if head is not None else ""
        if role.casefold() not in HEADS:
            blocks[-1][2].append(line)
            continue
        if role not in HEADS:
            raise PromptError(f"{line.strip()} is not a role", file=file, line=number, expected=f"[{role.casefold()}]")
        if role == REPLY_SECTION and len(blocks) > 1:
            late = blocks[-1][0] != REPLY_SECTION
            raise PromptError(
                f"[reply] comes {'after a message' if late else 'twice'}",
                file=file,
                line=number,
                expected="one section [reply] at most, before the first message",
                remedy="move it up" if late else "join the two",
            )
        blocks.append((role, number, []))
    (_, _, about), *sections = blocks
    reply = UNDECLARED
    if sections and sections[0][0] == REPLY_SECTION:
        (_, first, lines), *sections = sections
        reply = parse_reply(list(enumerate(lines, first + 1)), file, first)
    _check_turns([role for role, _, _ in sections], file)
    messages = []
    for role, number, lines in sections:
        source = "\n".join(lines)
        first = number + 1 + source[: len(source) - len(source.lstrip())].count("\n")
        messages.append(TemplateMessage(role, source.strip(), _parse_pieces(source.strip(), file, first)))
    # The version depends on what is sent and how the reply is read, not on the description.
    written = "\n".join(f"[{role}]\n{source}" for role, source, _ in messages)
    written += f"\n[reply]\n{json.dumps(reply.to_dict())}" if reply.declared else ""
    version = hashlib.sha256(written.encode()).hexdigest()[:12]
    return Template(Path(file).stem, "\n".join(about).strip(), tuple(messages), version, file, reply)


def _check_turns(roles: Sequence[str], file: str) -> None:
    turns = roles[1:] if roles[:1] == ["system"] else roles
    in_turn = len(turns) % 2 == 1 and turns == [("user", "assistant")[i % 2] for i in range(len(turns))]
    if not in_turn and roles != ["text"]:
        raise PromptError(
            f"its messages are {', '.join(roles) or 'none'}",
            file=file,
            expected="[system], then [user] and [assistant] in turn, ending with [user]; or [text] alone",
        )


class _OpenSection(NamedTuple):
    """A section whose end isn't reached yet, and the line that it begins on."""

    name: str
    line: int
    pieces: list[Piece]
    optional: bool = False


def _parse_pieces(text: str, file: str, first: int) -> tuple[Piece, ...]:
    """Parse a message that begins on line ``first`` of the file; invalid marks are errors."""
    text = text.replace(_ESCAPED, _STAND_IN)
    opened = [_OpenSection("", first, [])]

    def error(problem: str, line: int, expected: str) -> PromptError:
        return PromptError(problem, file=file, line=line, expected=expected)

    def add_text(start: int, end: int) -> None:
        plain = text[start:end]
        if "{{" in plain:
            line = first + text.count("\n", 0, start + plain.index("{{"))
            raise error("unmatched {{", line, "{{name}} on one line, or \\{{ for two literal brackets")
        if plain:
            opened[-1].pieces.append(plain.replace(_STAND_IN, "{{"))

    place = 0
    for mark in _MARK.finditer(text):
        line = first + text.count("\n", 0, mark.start())
        add_text(place, mark.start())
        place = mark.end()
        slot = _SLOT.fullmatch(mark[1].strip())
        kind, name, sign = slot.groups() if slot is not None else ("", "", "")
        if not name or (sign == "*" and kind) or (sign == "?" and kind != "#") or (name == FENCE and kind + sign):
            raise error(f"{quote_short(mark[0])} is not a slot", line, "{{name}} or {{name*}}")
        if kind == "#":
            opened.append(_OpenSection(name, line, [], sign == "?"))
        elif kind == "/":
            if len(opened) == 1 or opened[-1].name != name:
                raise error(f"{mark[0]} closes a section that isn't open", line, f"{{{{#{name}}}}}")
            section = opened.pop()
            opened[-1].pieces.append(TemplateSection(name, tuple(section.pieces), section.optional))
        else:
            opened[-1].pieces.append(Slot(name, sign == "*"))
    add_text(place, len(text))
    if len(opened) > 1:
        name, line = opened[-1][:2]
        raise error(f"{{{{#{name}}}}} is never closed", line, f"{{{{/{name}}}}}")
    return tuple(opened[0].pieces)
