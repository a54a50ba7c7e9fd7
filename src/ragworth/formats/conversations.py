"""Read and write ragworth's own format of conversations, one turn a line.

::

    {"query": "c1_2", "text": "And in winter?", "conversation": "c1", "turn": 2,
     "history": [{"role": "user", "text": "…"}, {"role": "assistant", "text": "…"}],
     "rewrite": "What do otters eat in winter?", "answers": ["…"]}

``history`` is what was said before the turn; ``content``, as in OpenAI's messages, does instead of ``text``, and
messages of the system are left out. ``rewrite`` and ``answers`` are optional. ``query`` may be left out; it is then the
conversation, ``_`` and the turn.
"""

from __future__ import annotations

import json
from typing import Any

from ragworth.core.errors import FormatError, quote_short
from ragworth.data.collection import Collection
from ragworth.data.conversations import Message, Turn, turns_of
from ragworth.data.turns import ROLES, is_instruction, message_text
from ragworth.formats.contract import FileSample, Format, LoadedCollection
from ragworth.formats.conversation_rows import (
    ConversationBuilder,
    as_turn_number,
    load_turns,
    optional_text,
    text_list,
)
from ragworth.formats.files import PathOrStr, create_file
from ragworth.formats.values import WrongLineError, as_dict, as_id, as_list, as_text

EXPECTED = (
    '{"query": …, "text": …, "conversation": …, "turn": 1, "history": [{"role": "user", "text": …}, …]} on each line'
)


def load(path: PathOrStr, *, skip_bad_lines: bool = False) -> LoadedCollection:
    """Read turns, with human rewrites and accepted answers if the lines have them."""
    return load_turns(path, _add, expected=EXPECTED, skip_bad_lines=skip_bad_lines)


def _add(builder: ConversationBuilder, row: dict[str, Any]) -> None:
    conversation, number = as_id(row.get("conversation"), "conversation"), as_turn_number(row.get("turn"), "turn")
    query = as_id(row["query"], "query") if "query" in row else f"{conversation}_{number}"
    messages = as_list(row.get("history"), "the history")
    history = tuple(_message(each) for each in messages if not is_instruction(each))
    question = as_text(row.get("text"), "text")
    turn = Turn(query, conversation, number, question, history, optional_text(row, "rewrite"))
    builder.add(turn, text_list(row, "answers"))


def _message(value: object) -> Message:
    message = as_dict(value, "a message of the history")
    role = message.get("role")
    if role not in ROLES:
        raise WrongLineError(f"a message has the role {quote_short(role, 24)}, not {' or '.join(ROLES)}")
    return Message(role, as_text(message_text(message), "text of a message"))


def write(collection: Collection, path: PathOrStr) -> None:
    """Write the turns of a collection, with their rewrites and accepted answers."""
    turns = turns_of(collection)
    if not turns:
        raise FormatError("there are no turns to write", file=str(path), expected="a collection of conversations")
    answers: dict[str, list[str]] = {}
    for query, text in collection.answers.iter_rows():
        answers.setdefault(query, []).append(text)
    with create_file(path) as stream:
        for turn in turns:
            row: dict[str, Any] = {
                "query": turn.query,
                "text": turn.question,
                "conversation": turn.conversation,
                "turn": turn.number,
                "history": [{"role": message.role, "text": message.text} for message in turn.history],
            }
            row |= {"rewrite": turn.rewrite} if turn.rewrite is not None else {}
            row |= {"answers": answers[turn.query]} if turn.query in answers else {}
            stream.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def _recognise(sample: FileSample) -> bool:
    return sample.kind in ("lines", "json") and sample.has("text", "conversation", "turn", "history")


FORMAT = Format(
    name="conversations",
    title="conversations, one turn a line",
    load=load,
    recognise=_recognise,
)
