"""The section ``[reply]`` of a prompt file: how the reply to the prompt ends, and how it is read."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ragworth.core.errors import PromptError, quote_short
from ragworth.llm.contract import Output, cut_at_stop

REPLY_SECTION = "reply"
REPLY_KEYS = ("labels", "field", "stop", "length")


@dataclass(frozen=True, slots=True)
class ReplyFormat:
    """How a reply is read. Without a section ``[reply]``, the task that uses the prompt decides."""

    labels: tuple[tuple[str, str], ...] = ()
    """Labels as the model writes them, each with its meaning."""
    field: str = ""
    """The field of a JSON object that holds the label."""
    stop: tuple[str, ...] = ()
    """Texts at which the reply ends; they are not part of it."""
    length: int = 0
    """Tokens that a reply with a label may take, if that is more than the task's own limit."""
    line: int = dataclasses.field(default=0, compare=False)
    """Where the labels are declared, or the section begins."""
    source: str = dataclasses.field(default="", compare=False)
    """The section as the file has it."""

    @property
    def declared(self) -> tuple[str, ...]:
        """Names of the keys that the section has."""
        return tuple(key for key in REPLY_KEYS if getattr(self, key))

    def to_dict(self) -> dict[str, Any]:
        """The declared keys with their values."""
        return {key: getattr(self, key) for key in self.declared}

    def trim(self, output: Output) -> Output:
        """End an output at the first stop text, which some servers return or ignore."""
        cut = cut_at_stop(output, self.stop)
        return cut._replace(text=cut.text.rstrip()) if self.stop else cut


UNDECLARED = ReplyFormat()
"""That of a prompt without the section."""


def parse_reply(lines: Sequence[tuple[int, str]], file: str, first: int) -> ReplyFormat:
    """Parse the numbered lines of the section that begins on line ``first``."""
    values: dict[str, Any] = {}
    line_of = {"labels": first}
    for number, line in lines:
        if line.strip():
            key, _, text = (part.strip() for part in line.partition(":"))
            try:
                value = _parse_line(line.strip(), key, text)
                if key in values and key != "stop":
                    raise PromptError(f"{key} is declared twice", expected=f"one line {key}:", remedy="join the two")
            except PromptError as error:
                raise error.copy(file=file, line=number) from error
            values[key] = (*values.get(key, ()), value) if key == "stop" else value
            line_of[key] = number
    if not values:
        raise PromptError(
            "[reply] is empty", file=file, line=first, expected=", ".join(REPLY_KEYS), remedy="fill it or remove it"
        )
    source = "\n".join(line for _, line in lines if line.strip())
    return ReplyFormat(**values, line=line_of["labels"], source=source)


def _parse_line(line: str, key: str, value: str) -> Any:
    if key not in REPLY_KEYS or not value:
        raise PromptError(
            f"{quote_short(line)} declares nothing",
            expected="labels: A = MEANING, B = MEANING; field: NAME; stop: TEXT; or length: TOKENS",
            remedy="correct the line; a description of the prompt belongs above [reply]",
        )
    if key == "labels":
        return _parse_labels(value)
    if key == "stop":
        return _parse_stop(value)
    if key == "length" and (not value.isdecimal() or int(value) == 0):
        raise PromptError(
            f"the length is {quote_short(value)}", expected="a number of tokens, 1 or more, such as length: 200"
        )
    return int(value) if key == "length" else value


def _parse_stop(value: str) -> str:
    """A stop text as it is written, or in double quotes with JSON's escapes."""
    try:
        text = json.loads(value) if value.startswith('"') else value
    except ValueError:
        text = ""
    if not text:
        raise PromptError(
            f"the stop text {quote_short(value)} is no quoted text",
            expected='stop: TEXT, or in double quotes with escapes, such as stop: "\\n\\n"',
        )
    return str(text)


def _parse_labels(value: str) -> tuple[tuple[str, str], ...]:
    """Parse ``A = relevant, B = irrelevant``; a label without a meaning means itself."""
    labels: list[tuple[str, str]] = []
    for part in value.split(","):
        label, equals, meaning = (piece.strip() for piece in part.partition("="))
        problem = f"{quote_short(part.strip())} is no label" if not label or (equals and not meaning) else ""
        if label.casefold() in (known.casefold() for known, _ in labels):
            problem = f"the label {quote_short(label)} is declared twice"
        if problem:
            raise PromptError(
                problem,
                expected="labels: A = MEANING, B = MEANING, each label once",
                remedy="separate labels with commas; a label may contain neither a comma nor =",
            )
        labels.append((label, meaning or label))
    return tuple(labels)
