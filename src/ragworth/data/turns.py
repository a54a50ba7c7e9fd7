"""The turns of conversations: which conversation a query belongs to, and what was said before it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import polars as pl

from ragworth.core.errors import TableError, format_names, quote_short
from ragworth.data import coercion
from ragworth.data.coercion import Data, duplicate_rows

ROLES: Final = ("user", "assistant")
INSTRUCTIONS: Final = ("system", "developer")
"""Roles of messages that set up a model. Nobody said them, so they are left out of histories."""

HISTORY_TYPE: Final = pl.List(pl.Struct({"role": pl.String, "text": pl.String}))

TURN_SCHEMA: Final[dict[str, Any]] = {
    "query": pl.String,
    "conversation": pl.String,
    "number": pl.UInt32,
    "history": HISTORY_TYPE,
    "rewrite": pl.String,
}
"""``number`` counts a conversation's turns from 1; ``history`` is what was said before the turn, oldest first;
``rewrite`` is the turn as a question that can be understood alone, as a person wrote it, or null.
"""


def empty_turns() -> pl.DataFrame:
    return pl.DataFrame(schema=TURN_SCHEMA)


def turns_digest(turns: pl.DataFrame) -> str:
    """A hash of all turns, in their order."""
    return hashlib.sha256(turns.write_json().encode("utf-8", "surrogatepass")).hexdigest()[:16]


def check_turns(data: Data, source: str = "") -> pl.DataFrame:
    """Check a table of turns. ``rewrite`` may be missing; each turn of a conversation occurs once."""
    frame = _rows_frame(data) if _is_rows(data) else coercion.to_frame(data, source=source)
    missing = [name for name in ("query", "conversation", "number", "history") if name not in frame.columns]
    if missing:
        raise TableError(
            f"a table of turns needs {format_names(missing)}; this one has {format_names(frame.columns)}",
            expected="query, conversation, number, history and optionally rewrite",
            file=source,
        )
    checked = pl.DataFrame(
        [
            coercion.text_ids(frame["query"], source=source),
            coercion.text_ids(frame["conversation"], source=source),
            _numbers(frame["number"], source),
            _histories(frame["history"], source),
            _rewrites(frame, source),
        ]
    )
    for keys in (["query"], ["conversation", "number"]):
        duplicates = duplicate_rows(checked.select(keys), keys)
        if len(duplicates):
            row = int(duplicates[0])
            name = ", ".join(f"{key} {quote_short(str(checked[key][row]), 40)}" for key in keys)
            raise TableError(f"row {row + 1}: {name} occurs twice", expected="each turn once", file=source)
    return checked


def _is_rows(data: Data) -> bool:
    return isinstance(data, Sequence) and bool(data) and all(isinstance(row, Mapping) for row in data)


def _rows_frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """A frame of dicts. Histories may all be empty, so their type can't be inferred."""
    names = dict.fromkeys(name for row in rows for name in row)
    histories = pl.Series("history", [row.get("history") for row in rows], dtype=pl.Object)
    plain = [{name: row.get(name) for name in names if name != "history"} for row in rows]
    frame = coercion.to_frame(plain)
    return frame.with_columns(histories) if "history" in names else frame


def _numbers(column: pl.Series, source: str) -> pl.Series:
    numbers = coercion.to_numbers(column, source=source, kind=pl.Int64)
    bad = (numbers.is_null() | (numbers < 1) | (numbers > 2**32 - 1)).arg_true()
    if len(bad):
        raise TableError(
            f"row {bad[0] + 1}: the turn's number is {numbers[int(bad[0])]}",
            expected="1 for the first turn of a conversation",
            file=source,
        )
    return numbers.cast(pl.UInt32)


def _histories(column: pl.Series, source: str) -> pl.Series:
    values = [_history(value, row, source) for row, value in enumerate(column.to_list(), 1)]
    return pl.Series("history", values, HISTORY_TYPE)


def _history(value: Any, row: int, source: str) -> list[dict[str, Any]]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        found = "is missing" if value is None else f"is {quote_short(str(value))}"
        raise TableError(
            f"row {row}: the history {found}", expected="a list of messages; an empty one for a first turn", file=source
        )
    history = []
    for message in value:
        if is_instruction(message):
            continue
        role, text = (message.get("role"), message_text(message)) if isinstance(message, Mapping) else (None, None)
        if role not in ROLES or not isinstance(text, str):
            raise TableError(
                f"row {row}: the history has the message {quote_short(str(message))}",
                expected='messages of a user or an assistant, such as {"role": "user", "text": "…"}',
                file=source,
            )
        history.append({"role": role, "text": text})
    return history


def is_instruction(message: Any) -> bool:
    """Whether a message only sets up a model."""
    return isinstance(message, Mapping) and message.get("role") in INSTRUCTIONS


def message_text(message: Mapping[str, Any]) -> Any:
    """The text of a message: its ``text``, or the ``content`` of an OpenAI message, whose parts are joined."""
    found = message["text"] if message.get("text") is not None else message.get("content")
    if isinstance(found, Sequence) and not isinstance(found, str) and found:
        parts = [part.get("text") if isinstance(part, Mapping) else part for part in found]
        texts = [part for part in parts if isinstance(part, str)]
        return "\n".join(texts) if len(texts) == len(parts) else found
    return found


def _rewrites(frame: pl.DataFrame, source: str) -> pl.Series:
    if "rewrite" not in frame.columns or frame["rewrite"].dtype == pl.Null:
        return pl.Series("rewrite", [None] * frame.height, dtype=pl.String)
    rewrites = frame["rewrite"]
    if rewrites.dtype != pl.String:
        raise TableError(f"the rewrites are {rewrites.dtype} values", expected="text, or null", file=source)
    empty = (rewrites.str.strip_chars().str.len_bytes() == 0).fill_null(False).arg_true()
    if len(empty):
        raise TableError(
            f"row {empty[0] + 1}: the rewrite is empty", expected="text, or null where there is none", file=source
        )
    return rewrites
