"""Read CANARD: questions of QuAC with human rewrites (Elgohary, Peskov and Boyd-Graber, EMNLP 2019).

A row has ``QuAC_dialog_id``, ``Question_no``, ``Question``, ``Rewrite`` and ``History``. The first two texts of the
history are the title and the section of the article that both people talk about. They become one message of the user,
because the user saw them and asks about them. Questions and answers follow in turn.
"""

from __future__ import annotations

from typing import Any

from ragworth.data.conversations import Message, Turn
from ragworth.formats.contract import FileSample, Format, LoadedCollection
from ragworth.formats.conversation_rows import (
    ConversationBuilder,
    alternating,
    as_turn_number,
    load_turns,
    optional_text,
)
from ragworth.formats.files import PathOrStr
from ragworth.formats.values import WrongLineError, as_id, as_list, as_text

EXPECTED = "rows with QuAC_dialog_id, Question_no, Question, History and Rewrite"


def load(path: PathOrStr, *, skip_bad_lines: bool = False) -> LoadedCollection:
    """Read turns with human rewrites."""
    return load_turns(path, _add, expected=EXPECTED, skip_bad_lines=skip_bad_lines)


def _add(builder: ConversationBuilder, row: dict[str, Any]) -> None:
    dialog, number = (
        as_id(row.get("QuAC_dialog_id"), "QuAC_dialog_id"),
        as_turn_number(row.get("Question_no"), "number"),
    )
    said = as_list(row.get("History"), "the History")
    if len(said) < 2:
        raise WrongLineError("the History has no title and section")
    topic = Message("user", ", ".join(as_text(each, "History") for each in said[:2]))
    question = as_text(row.get("Question"), "Question")
    history = (topic, *alternating(said[2:], "History"))
    builder.add(Turn(f"{dialog}_{number}", dialog, number, question, history, optional_text(row, "Rewrite")))


def _recognise(sample: FileSample) -> bool:
    return sample.has("QuAC_dialog_id", "Question_no", "Question", "History")


FORMAT = Format(
    name="canard",
    title="CANARD",
    load=load,
    recognise=_recognise,
)
