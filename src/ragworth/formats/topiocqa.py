"""Read TopiOCQA: conversations that switch topics (Adlakha et al., TACL 2022).

A row has ``Conversation_no``, ``Turn_no``, ``Question``, ``Answer`` and ``Context``, a list of questions and answers in
turn. ``Additional_answers`` are accepted too; ``UNANSWERABLE`` is no answer. ``Gold_passage`` (``id``, ``title``,
``text``) is a relevant passage.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ragworth.data.conversations import Turn
from ragworth.formats.contract import FileSample, Format, LoadedCollection
from ragworth.formats.conversation_rows import (
    ConversationBuilder,
    alternating,
    as_turn_number,
    load_turns,
    optional_text,
)
from ragworth.formats.files import PathOrStr
from ragworth.formats.values import as_dict, as_id, as_list, as_text

EXPECTED = "rows with Conversation_no, Turn_no, Question, Context and Answer or Gold_passage"
UNANSWERABLE = "UNANSWERABLE"


def load(path: PathOrStr, *, skip_bad_lines: bool = False) -> LoadedCollection:
    """Read turns with accepted answers and gold passages."""
    return load_turns(path, _add, expected=EXPECTED, skip_bad_lines=skip_bad_lines)


def _add(builder: ConversationBuilder, row: dict[str, Any]) -> None:
    conversation = as_id(row.get("Conversation_no"), "Conversation_no")
    number = as_turn_number(row.get("Turn_no"), "Turn_no")
    query, question = f"{conversation}_{number}", as_text(row.get("Question"), "Question")
    history = alternating(as_list(row.get("Context"), "the Context"), "Context")
    builder.add(Turn(query, conversation, number, question, history), _answers(row))
    if row.get("Gold_passage") is not None:
        gold = as_dict(row["Gold_passage"], "the Gold_passage")
        passage, title = as_id(gold.get("id"), "id of the Gold_passage"), optional_text(gold, "title")
        text = as_text(gold.get("text"), "text of the Gold_passage")
        builder.add_passage(passage, f"{title}\n{text}" if title else text)
        builder.relevance[query, passage] = 1.0


def _answers(row: dict[str, Any]) -> Iterator[str]:
    more = [as_dict(each, "an additional answer") for each in row.get("Additional_answers") or []]
    for each in (row, *more):
        answer = optional_text(each, "Answer")
        if answer is not None and answer.strip() != UNANSWERABLE:
            yield answer


def _recognise(sample: FileSample) -> bool:
    named = sample.has("Conversation_no", "Turn_no", "Question")
    return named and sample.has_any("Gold_passage", "Rationale", "Topic") and not sample.has_any("Rewrite")


FORMAT = Format(
    name="topiocqa",
    title="TopiOCQA",
    load=load,
    recognise=_recognise,
)
