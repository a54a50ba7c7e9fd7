"""Read conversations: ragworth's own format, CANARD, TREC CAsT and MT-RAG; and write ragworth's own.

``conversations``: one turn a line, ``{"query": "c1_2", "text": "And in winter?", "conversation": "c1", "turn": 2,
"history": [{"role": "user", "text": "…"}, …], "rewrite": "…", "answers": ["…"]}``. ``content`` does instead of a
message's ``text``; messages of the system are left out. ``rewrite``, ``answers`` and ``query`` (the conversation, ``_``
and the turn) are optional.

``canard``: rows with ``QuAC_dialog_id``, ``Question_no``, ``Question``, ``Rewrite`` and ``History``. Its first two
texts, the title and section of the article, become one message of the user, who saw them and asks about them.

``cast``: topics with a ``number`` and a list ``turn`` with ``number``, ``raw_utterance``, and perhaps
``manual_rewritten_utterance`` and the reply, ``passage`` or ``response``.

``mtrag``: tasks with ``task_id`` (the conversation, ``<::>`` and the turn), ``input``, ``targets`` and ``contexts``,
whose texts are there or in ``documents`` of the whole file. What a task shows isn't a relevance label.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Literal, NamedTuple

from ragworth.core.errors import BadLine, FormatError, quote_short
from ragworth.data.collection import Collection
from ragworth.data.conversations import Message, Turn, is_instruction, message_text, turns_of
from ragworth.formats.contract import Contents, Format, Head, LoadedCollection
from ragworth.formats.files import PathOrStr, create_file, empty_file_error, skipped_note
from ragworth.formats.logs.rows import bad_rows_error, read_log, reject_row
from ragworth.formats.values import WrongLineError, as_dict, as_id, as_list, as_number, as_text, objects

EXPECTED = (
    '{"query": …, "text": …, "conversation": …, "turn": 1, "history": [{"role": "user", "text": …}, …]} on each line'
)
CANARD_ROWS = "rows with QuAC_dialog_id, Question_no, Question, History and Rewrite"
CAST_TOPICS = 'topics such as {"number": 31, "turn": [{"number": 1, "raw_utterance": "…"}, …]}'
TASKS = 'tasks such as {"task_id": "…<::>2", "input": [{"speaker": "user", "text": "…"}, …], "targets": […]}'
SPEAKERS = {"user": "user", "assistant": "assistant", "agent": "assistant"}
TASK_SEPARATOR = "<::>"


class LinkedText(NamedTuple):
    """An accepted answer to a query, or the text of a passage."""

    part: Literal["answers", "passages"]
    name: str
    text: str


Items = Iterator[Turn | LinkedText]


def _turn_row(turn: Turn) -> dict[str, Any]:
    history = [{"role": message.role, "text": message.text} for message in turn.history]
    names = {"query": turn.query, "conversation": turn.conversation, "number": turn.number}
    return {**names, "history": history, "rewrite": turn.rewrite}


def _load(
    path: PathOrStr,
    *,
    parse: Callable[[dict[str, Any]], Items],
    expected: str,
    lists: tuple[str, ...] = (),
    skip_bad_lines: bool = False,
) -> LoadedCollection:
    """Read a file of JSON objects, or one object with ``lists`` of them. All bad rows are in one error."""
    bad: list[BadLine] = []
    turns: list[Turn] = []
    texts: dict[LinkedText, None] = {}
    seen: set[object] = set()

    def find_rows(document: Mapping[str, Any]) -> list[Any] | None:
        """The rows inside a file's only object; None if it is a row itself."""
        return [row for name in lists for row in objects(document.get(name))] or None

    rows = read_log(path, bad, skip=skip_bad_lines, expected=expected, find_rows=find_rows)
    for place, value in rows.values:
        try:
            for item in list(parse(as_dict(value, "the row"))):
                if isinstance(item, LinkedText):
                    texts[item] = None
                else:
                    _check_turn(item, seen)
                    turns.append(item)
        except WrongLineError as error:
            reject_row(rows, bad, place, str(error), skip=skip_bad_lines, expected=expected)
    if bad and not skip_bad_lines:
        raise bad_rows_error(rows, bad, expected)
    if not turns:
        raise empty_file_error(path, expected)
    collection = Collection.of(
        queries={"query": [turn.query for turn in turns], "text": [turn.question for turn in turns]},
        turns=[_turn_row(turn) for turn in turns],
        answers=_linked_texts(texts, "answers", "query"),
        passages=_linked_texts(texts, "passages", "passage"),
        source=str(path),
        notes=skipped_note(path, bad),
    )
    return LoadedCollection(collection)


def _linked_texts(texts: Iterable[LinkedText], part: str, column: str) -> list[dict[str, str]] | None:
    """The rows of the answers or passages, without blank ones; None if there are none."""
    return [{column: each.name, "text": each.text} for each in texts if each.part == part and each.text.strip()] or None


def _check_turn(turn: Turn, seen: set[object]) -> None:
    """Reject a turn without a question, and one that was seen already."""
    names = {turn.query, (turn.conversation, turn.number)}
    if names & seen:
        raise WrongLineError(f"turn {turn.number} of conversation {quote_short(turn.conversation, 40)} occurs twice")
    if not turn.question.strip():
        raise WrongLineError("the question is empty")
    seen |= names


def _turn_number(value: object, what: str) -> int:
    number = as_number(value, what)
    if not number.is_integer() or not 1 <= number < 2**32:
        raise WrongLineError(f"the {what} is {quote_short(value, 24)}, not a whole number from 1")
    return int(number)


def _optional_text(row: dict[str, Any], *names: str) -> str | None:
    """The first of these texts that is there and isn't blank."""
    texts = (as_text(row[name], name) for name in names if row.get(name) is not None)
    return next((text for text in texts if text.strip()), None)


def _message(value: object) -> Message:
    message = as_dict(value, "a message of the history")
    name = "speaker" if "speaker" in message else "role"
    role = message.get(name)
    if not isinstance(role, str) or role not in SPEAKERS:
        raise WrongLineError(f"a message has the {name} {quote_short(role, 24)}, not {' or '.join(SPEAKERS)}")
    text = as_text(message_text(message), "text of a message")
    return Message("user" if role == "user" else "assistant", text)


def _parse_own(row: dict[str, Any]) -> Items:
    conversation, number = as_id(row.get("conversation"), "conversation"), _turn_number(row.get("turn"), "turn")
    query = as_id(row["query"], "query") if "query" in row else f"{conversation}_{number}"
    messages = as_list(row.get("history"), "the history")
    history = tuple(_message(each) for each in messages if not is_instruction(each))
    yield Turn(query, conversation, number, as_text(row.get("text"), "text"), history, _optional_text(row, "rewrite"))
    for text in as_list(row.get("answers") or [], "the answers"):
        yield LinkedText("answers", query, as_text(text, "answers"))


def _parse_canard(row: dict[str, Any]) -> Items:
    dialog = as_id(row.get("QuAC_dialog_id"), "QuAC_dialog_id")
    number = _turn_number(row.get("Question_no"), "Question_no")
    texts = [as_text(each, "History") for each in as_list(row.get("History"), "the History")]
    if len(texts) < 2:
        raise WrongLineError("the History has no title and section")
    messages = [Message("assistant" if place % 2 else "user", text) for place, text in enumerate(texts[2:])]
    history = (Message("user", ", ".join(texts[:2])), *messages)
    question = as_text(row.get("Question"), "Question")
    yield Turn(f"{dialog}_{number}", dialog, number, question, history, _optional_text(row, "Rewrite"))


def _parse_topic(topic: dict[str, Any]) -> Items:
    conversation = as_id(topic.get("number"), "number of a topic")
    history: tuple[Message, ...] = ()
    for value in as_list(topic.get("turn"), "the turns of a topic"):
        turn = as_dict(value, "a turn")
        number = _turn_number(turn.get("number"), "number of a turn")
        question = as_text(turn.get("raw_utterance"), f"raw_utterance of turn {number} of topic {conversation}")
        rewrite = _optional_text(turn, "manual_rewritten_utterance")
        yield Turn(f"{conversation}_{number}", conversation, number, question, history, rewrite)
        reply = _optional_text(turn, "response", "passage")
        history += (Message("user", question), *([Message("assistant", reply)] if reply is not None else []))


def _parse_task(row: dict[str, Any]) -> Items:
    if "document_id" in row:
        yield _parse_document(row)
        return
    query = as_id(row.get("task_id"), "task_id")
    conversation, _, number = query.rpartition(TASK_SEPARATOR)
    if not conversation or not number.isdecimal():
        raise WrongLineError(f"the id {query!r} isn't a conversation, {TASK_SEPARATOR} and the number of a turn")
    messages = [_message(each) for each in as_list(row.get("input"), "the input")]
    if not messages or messages[-1].role != "user":
        raise WrongLineError("the input doesn't end with a turn of the user")
    yield Turn(query, conversation, _turn_number(int(number), "turn"), messages[-1].text, tuple(messages[:-1]))
    for target in row.get("targets") or []:
        yield LinkedText("answers", query, as_text(as_dict(target, "a target").get("text"), "text of a target"))
    contexts = [as_dict(each, "a context") for each in row.get("contexts") or []]
    yield from (_parse_document(each) for each in contexts if "text" in each)


def _parse_document(document: dict[str, Any]) -> LinkedText:
    """A passage, with its title in front if the text doesn't begin with it."""
    title, text = _optional_text(document, "title"), as_text(document.get("text"), "text of a passage")
    whole = f"{title}\n{text}" if title and not text.startswith(title) else text
    return LinkedText("passages", as_id(document.get("document_id"), "document_id"), whole)


def write(collection: Collection, path: PathOrStr) -> None:
    """Write the turns of a collection in ragworth's format, with their rewrites and accepted answers."""
    turns = turns_of(collection)
    if not turns:
        raise FormatError("there are no turns to write", file=str(path), expected="a collection of conversations")
    answers: dict[str, list[str]] = {}
    for query, text in collection.answers.iter_rows():
        answers.setdefault(query, []).append(text)
    with create_file(path) as stream:
        for turn in turns:
            cells = _turn_row(turn)
            row = {"query": turn.query, "text": turn.question, "conversation": turn.conversation, "turn": turn.number}
            row |= {name: cells[name] for name in ("history", "rewrite") if cells[name] is not None}
            row |= {"answers": answers[turn.query]} if turn.query in answers else {}
            stream.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def _is_own(head: Head) -> bool:
    return head.kind in ("lines", "json") and head.has("text", "conversation", "turn", "history")


def _is_canard(head: Head) -> bool:
    return head.has("QuAC_dialog_id", "Question_no", "Question", "History")


def _has_topics(head: Head) -> bool:
    first = head.rows[0].get("turn") if head.rows and head.has("number", "turn") else None
    return isinstance(first, list) and bool(first) and isinstance(first[0], dict) and "raw_utterance" in first[0]


def _has_tasks(head: Head) -> bool:
    rows = head.document.get("tasks") if isinstance(head.document, dict) else None
    first = next(iter(rows if isinstance(rows, list) else head.rows), None)
    return isinstance(first, dict) and "input" in first and TASK_SEPARATOR in str(first.get("task_id"))


def _queries_if(is_known: Callable[[Head], bool]) -> Callable[[Head], list[Contents]]:
    """Say that files of a format, which ``is_known`` tells by their heads, hold queries."""
    return lambda head: [Contents("queries")] if is_known(head) else []


OWN = Format(
    name="conversations",
    title="conversations, one turn a line",
    load=partial(_load, parse=_parse_own, expected=EXPECTED),
    inspect=_queries_if(_is_own),
)
CANARD = Format(
    name="canard",
    title="CANARD",
    load=partial(_load, parse=_parse_canard, expected=CANARD_ROWS),
    inspect=_queries_if(_is_canard),
)
CAST = Format(
    name="cast",
    title="TREC CAsT topics",
    load=partial(_load, parse=_parse_topic, expected=CAST_TOPICS),
    inspect=_queries_if(_has_topics),
)
MTRAG = Format(
    name="mtrag",
    title="MT-RAG tasks",
    load=partial(_load, parse=_parse_task, expected=TASKS, lists=("documents", "tasks")),
    inspect=_queries_if(_has_tasks),
)
