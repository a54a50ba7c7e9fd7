"""What an annotator fills in: choices on a scale, highlighted spans, texts; and rules that connect them.

Every field checks its own part of an answer in :meth:`problems`, on the server: the browser's checks are a convenience.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from ragworth.core.errors import format_list, quote_short
from ragworth.workspace.toml import Flag

Value = Mapping[str, Any]
"""An answer: a JSON object with the fields' names as keys."""

MAX_TEXT = 10_000
"""Maximum length of a text that an annotator writes, in code points."""
MAX_SPANS = 200
"""Maximum number of spans in one answer."""
TABLE_CONFIG = {"extra": "forbid", "allow_inf_nan": False}
"""How pydantic checks the tables of a custom task."""
NAME = r"^[a-z][a-z0-9_-]{0,39}$"
"""How names of tasks and fields are written."""
SPAN_KEYS = frozenset({"part", "start", "end", "sha256"})


@dataclass(frozen=True)
class ScaleOption:
    """One value of a scale: ``key`` selects it on the keyboard, ``anchor`` says when it is right.

    ``score`` is its number in exported tables; None if it has no place in an order.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = TABLE_CONFIG

    value: Annotated[str, Field(pattern=r"\S")]
    label: str
    key: Annotated[str, Field(pattern=r"^[^\s\p{C}]$")]
    anchor: str = ""
    score: Annotated[float, Field(strict=True)] | None = None


def _check_options(options: tuple[ScaleOption, ...]) -> tuple[ScaleOption, ...]:
    """Options have different values, and all or none of them a score."""
    values = [option.value for option in options]
    if len(set(values)) < len(values):
        raise ValueError(f"the values are {values}; expected each once")
    if len({option.score is None for option in options}) > 1:
        raise ValueError("some options have a score and others don't; expected all of them, or none")
    return options


@dataclass(frozen=True)
class ChoiceField:
    """One value of a scale."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = TABLE_CONFIG

    name: Annotated[str, Field(pattern=NAME)]
    title: str
    options: Annotated[tuple[ScaleOption, ...], Field(min_length=2), AfterValidator(_check_options)]
    required: Flag = True
    help: str = ""
    type: Literal["choice"] = "choice"

    def option(self, value: str) -> ScaleOption:
        return next(one for one in self.options if one.value == value)

    def problems(self, value: Any, parts: Mapping[str, str]) -> list[str]:
        if value is None:
            return [f"{self.title}: choose a value"] if self.required else []
        if not isinstance(value, str) or value not in [one.value for one in self.options]:
            known = format_list([one.value for one in self.options], 12)
            return [f"{self.title}: {quote_short(value)} is none of {known}"]
        return []


@dataclass(frozen=True)
class SpansField:
    """Highlighted passages of the texts in ``parts``: a list of {part, start, end, sha256}.

    ``start`` and ``end`` count code points of the part's text, ``end`` excluded; ``sha256`` is the hash of that whole
    text in UTF-8, so a span can't be applied to another text by mistake. Spans don't overlap.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = TABLE_CONFIG

    name: Annotated[str, Field(pattern=NAME)]
    title: str
    parts: Annotated[tuple[str, ...], Field(min_length=1)]
    required: Flag = False
    help: str = ""
    type: Literal["spans"] = "spans"

    def problems(self, value: Any, parts: Mapping[str, str]) -> list[str]:
        if not value and value in (None, []):
            return [f"{self.title}: highlight the text"] if self.required else []
        if not isinstance(value, list):
            return [f"{self.title}: {quote_short(value)} is not a list of spans"]
        if len(value) > MAX_SPANS:
            return [f"{self.title}: {len(value):,} spans; at most {MAX_SPANS} are allowed"]
        found = [f"{self.title}: {text}" for span in value if (text := self._span_problem(span, parts))]
        return found or self._overlaps(value)

    def _span_problem(self, span: Any, parts: Mapping[str, str]) -> str:
        if not isinstance(span, Mapping) or set(span) != SPAN_KEYS:
            return f"{quote_short(span)} is not a span of {format_list(sorted(SPAN_KEYS))}"
        if span["part"] not in self.parts or span["part"] not in parts:
            return f"a span in {quote_short(span['part'])}, which can't be highlighted"
        text, start, end = parts[span["part"]], span["start"], span["end"]
        if type(start) is not int or type(end) is not int or not 0 <= start < end <= len(text):
            return f"a span from {start!r:.24} to {end!r:.24} in a text of {len(text):,} characters"
        if span["sha256"] != text_hash(text):
            return "a span of another version of the text; reload the page"
        return "" if text[start:end].strip() else "a span of blanks"

    def _overlaps(self, spans: Sequence[Mapping[str, Any]]) -> list[str]:
        rows = sorted((span["part"], span["start"], span["end"]) for span in spans)
        clash = any(one[0] == two[0] and two[1] < one[2] for one, two in pairwise(rows))
        return [f"{self.title}: two spans overlap; join them"] if clash else []


@dataclass(frozen=True)
class TextField:
    """A text that the annotator writes."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = TABLE_CONFIG

    name: Annotated[str, Field(pattern=NAME)]
    title: str
    required: Flag = False
    max_length: Annotated[int, Field(strict=True, gt=0, le=MAX_TEXT)] = MAX_TEXT
    help: str = ""
    type: Literal["text"] = "text"

    def problems(self, value: Any, parts: Mapping[str, str]) -> list[str]:
        if value is None or value == "":
            return [f"{self.title}: write something"] if self.required else []
        if not isinstance(value, str):
            return [f"{self.title}: {quote_short(value)} is not a text"]
        if len(value) > self.max_length:
            return [f"{self.title}: {len(value):,} characters; at most {self.max_length:,} are allowed"]
        return [f"{self.title}: write something"] if self.required and not value.strip() else []


LabelField = ChoiceField | SpansField | TextField


@dataclass(frozen=True)
class Requirement:
    """If ``field`` has one of ``values``, ``requires`` has to be filled in (or, with ``empty``, left empty)."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = TABLE_CONFIG

    field: str
    values: Annotated[tuple[str, ...], Field(min_length=1)]
    requires: str
    message: str
    empty: Flag = False

    def problems(self, value: Value) -> list[str]:
        applies = value.get(self.field) in self.values
        given = value.get(self.requires) not in (None, "", [])
        return [self.message] if applies and given == self.empty else []


def text_hash(text: str) -> str:
    """The SHA-256 of a text in UTF-8, as spans have it."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def make_span(part: str, text: str, start: int, end: int) -> dict[str, Any]:
    """The span of a part's text from one code point to another."""
    return {"part": part, "start": start, "end": end, "sha256": text_hash(text)}


def span_text(span: Mapping[str, Any], parts: Mapping[str, str]) -> str:
    """The highlighted text."""
    return parts[span["part"]][span["start"] : span["end"]]
