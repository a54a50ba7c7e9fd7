"""Read QReCC: questions of conversations with human rewrites (Anantha et al., NAACL 2021).

A row has ``Conversation_no``, ``Turn_no``, ``Question``, ``Rewrite`` or ``Truth_rewrite``, ``Answer`` or
``Truth_answer``, and ``Context``, a list of questions and answers in turn. Where rows have no context, it is made from
the turns before. ``Truth_passages`` are ids of relevant passages. The id of a turn is the conversation, ``_`` and the
turn, as in the benchmark's labels.
"""

from __future__ import annotations

from typing import Any

from ragworth.data.conversations import Turn
from ragworth.formats.contract import FileSample, Format, LoadedCollection
from ragworth.formats.conversation_rows import (
    ConversationBuilder,
    alternating,
    as_turn_number,
    load_turns,
    optional_text,
    text_list,
)
from ragworth.formats.files import PathOrStr
from ragworth.formats.values import as_id, as_list, as_text

EXPECTED = "rows with Conversation_no, Turn_no, Question, Context and Rewrite"


def load(path: PathOrStr, *, skip_bad_lines: bool = False) -> LoadedCollection:
    """Read turns with human rewrites and accepted answers."""
    return load_turns(path, _add, expected=EXPECTED, skip_bad_lines=skip_bad_lines)


def _add(builder: ConversationBuilder, row: dict[str, Any]) -> None:
    conversation = as_id(row.get("Conversation_no"), "Conversation_no")
    number = as_turn_number(row.get("Turn_no"), "Turn_no")
    query, question = f"{conversation}_{number}", as_text(row.get("Question"), "Question")
    history = alternating(as_list(row["Context"], "the Context"), "Context") if "Context" in row else ()
    rewrite, answer = optional_text(row, "Truth_rewrite", "Rewrite"), optional_text(row, "Truth_answer", "Answer")
    builder.add(Turn(query, conversation, number, question, history, rewrite), [answer] if answer else [])
    if "Context" not in row:
        builder.without_history.append(query)
    for passage in text_list(row, "Truth_passages"):
        builder.relevance[query, passage] = 1.0


def _recognise(sample: FileSample) -> bool:
    return sample.has("Conversation_no", "Turn_no", "Question") and sample.has_any("Rewrite", "Truth_rewrite")


FORMAT = Format(
    name="qrecc",
    title="QReCC",
    load=load,
    recognise=_recognise,
)
