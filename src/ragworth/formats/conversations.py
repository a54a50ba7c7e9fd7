"""Read conversations: ragworth's own format, CANARD, TREC CAsT and MT-RAG; and write ragworth's own.

``conversations``: one turn a line, ``{"query": "c1_2", "text": "And in winter?", "conversation": "c1", "turn": 2,
"history": [{"role": "user", "text": "…"}, …], "rewrite": "…", "answers": ["…"]}``. ``content`` does instead of a
message's ``text``; messages of the system are left out. ``rewrite``, ``answers`` and ``query`` (the conversation, ``_``
and the turn) are optional.

``canard``: rows with ``QuAC_dialog_id``, ``Question_no``, ``Question``, ``Rewrite`` and ``History``. Its first two
texts, the title and section of the article, become one message of the user, who saw them and asks about them.

``cast``: topics with a ``number`` and a list ``turn`` with ``number``, ``raw_utterance``, and perhaps
``manual_rewritten_utterance`` and the reply, ``passage`` or ``response``. A folder may also have human rewrites
(``*resolved*.tsv``: the id of a turn, a tab, and its text) and labels (``*qrels*``).

``mtrag``: tasks with ``task_id`` (the conversation, ``<::>`` and the turn), ``input``, ``targets`` and ``contexts``,
whose texts are there or in ``documents`` of the whole file. What a task shows isn't a relevance label. A folder may
also have the retrieval task, in it or one folder below: ``*_lastturn.jsonl``, ``*_rewrite.jsonl``,
``*_questions.jsonl`` (all the user's turns) and ``dev.tsv`` (labels in BEIR's format).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ragworth.core.errors import BadLine, FormatError, format_count, format_list, quote_short
from ragworth.data import Judgments
from ragworth.data.collection import Collection
from ragworth.data.conversations import Message, Turn, turns_of
from ragworth.data.turns import ROLES, is_instruction, message_text
from ragworth.formats.beir import read_qrels
from ragworth.formats.contract import Format, Head, LoadedCollection
from ragworth.formats.files import PathOrStr, create_file, empty_file_error, skipped_note
from ragworth.formats.heads import read_head
from ragworth.formats.logs.files import bad_rows_error, read_log, reject_row
from ragworth.formats.texts import read_pairs, read_texts
from ragworth.formats.trec import FORMAT as TREC
from ragworth.formats.values import WrongLineError, as_dict, as_id, as_list, as_number, as_text

EXPECTED = (
    '{"query": …, "text": …, "conversation": …, "turn": 1, "history": [{"role": "user", "text": …}, …]} on each line'
)
CANARD_ROWS = "rows with QuAC_dialog_id, Question_no, Question, History and Rewrite"
CAST_TOPICS = 'topics such as {"number": 31, "turn": [{"number": 1, "raw_utterance": "…"}, …]}'
CAST_FOLDER = "a folder with one *topics*.json and, if there are any, one *resolved*.tsv and one *qrels* file"
TASKS = 'tasks such as {"task_id": "…<::>2", "input": [{"speaker": "user", "text": "…"}, …], "targets": […]}'
MTRAG_FOLDER = "a folder with *_lastturn.jsonl, *_rewrite.jsonl, *_questions.jsonl and dev.tsv, or with a file of tasks"
SPEAKERS = {"user": "user", "agent": "assistant", "assistant": "assistant"}
USER_MARK = re.compile(r"^\|user\|:\s*", re.M)
TASK_SEPARATOR = "<::>"


@dataclass
class ConversationBuilder:
    """Collects turns, and builds a collection of them."""

    source: str
    turns: dict[str, Turn] = field(default_factory=dict)
    answers: list[tuple[str, str]] = field(default_factory=list)
    passages: dict[str, str] = field(default_factory=dict)
    _numbers: set[tuple[str, int]] = field(default_factory=set)

    def add(self, turn: Turn, answers: Iterable[str] = ()) -> None:
        """Add a turn and its accepted answers; blank answers are none."""
        if turn.query in self.turns or (turn.conversation, turn.number) in self._numbers:
            raise WrongLineError(
                f"turn {turn.number} of conversation {quote_short(turn.conversation, 40)} occurs twice"
            )
        if not turn.question.strip():
            raise WrongLineError("the question is empty")
        self.turns[turn.query] = turn
        self._numbers.add((turn.conversation, turn.number))
        self.answers += [(turn.query, answer) for answer in dict.fromkeys(answers) if answer.strip()]

    def add_passage(self, document: dict[str, Any]) -> None:
        """Add a passage with its title; another text under the same id is wrong."""
        passage, title = as_id(document.get("document_id"), "document_id"), optional_text(document, "title")
        text = as_text(document.get("text"), "text of a passage")
        text = f"{title}\n{text}" if title and not text.startswith(title) else text
        if self.passages.setdefault(passage, text) != text:
            raise WrongLineError(f"the passage {quote_short(passage, 40)} has another text before")

    def build(self, notes: Iterable[str] = (), relevance: Judgments | None = None) -> LoadedCollection:
        """The collection of everything that was added."""
        turns = list(self.turns.values())
        queries = {"query": [turn.query for turn in turns], "text": [turn.question for turn in turns]}
        passages = {"passage": list(self.passages), "text": list(self.passages.values())}
        answers = {"query": [query for query, _ in self.answers], "text": [text for _, text in self.answers]}
        return LoadedCollection(
            Collection.of(
                queries=queries,
                turns=[_turn_row(turn) for turn in turns],
                answers=answers if self.answers else None,
                passages=passages if self.passages else None,
                relevance=relevance,
                source=self.source,
                notes=tuple(notes),
            )
        )


def _turn_row(turn: Turn) -> dict[str, Any]:
    history = [{"role": message.role, "text": message.text} for message in turn.history]
    names = {"query": turn.query, "conversation": turn.conversation, "number": turn.number}
    return {**names, "history": history, "rewrite": turn.rewrite}


AddRow = Callable[[ConversationBuilder, dict[str, Any]], None]


def _read_rows(
    path: PathOrStr,
    add: AddRow,
    expected: str,
    skip: bool,
    builder: ConversationBuilder | None = None,
    find_rows: Callable[[Mapping[str, Any]], list[Any] | None] = lambda document: None,
) -> tuple[ConversationBuilder, tuple[str, ...]]:
    """Read a file of JSON objects, each of which ``add`` adds to the builder. All bad rows are in one error."""
    bad: list[BadLine] = []
    rows = read_log(path, bad, skip=skip, expected=expected, find_rows=find_rows)
    builder = builder or ConversationBuilder(str(path))
    for place, value in rows.values:
        try:
            add(builder, as_dict(value, "the row"))
        except WrongLineError as error:
            reject_row(rows, bad, place, str(error), skip=skip, expected=expected)
    if bad and not skip:
        raise bad_rows_error(rows, bad, expected)
    if not builder.turns:
        raise empty_file_error(path, expected)
    return builder, skipped_note(path, bad)


def _load(path: PathOrStr, *, add: AddRow, expected: str, skip_bad_lines: bool = False) -> LoadedCollection:
    builder, notes = _read_rows(path, add, expected, skip_bad_lines)
    return builder.build(notes)


def as_turn_number(value: object, what: str) -> int:
    """A turn's number, from 1; text of digits is fine."""
    number = as_number(float(value) if isinstance(value, str) and value.isdecimal() else value, what)
    if not number.is_integer() or not 1 <= number < 2**32:
        raise WrongLineError(f"the {what} is {quote_short(value, 24)}, not a whole number from 1")
    return int(number)


def optional_text(row: Mapping[str, Any], *names: str) -> str | None:
    """The first of these fields that is there and isn't blank."""
    for name in names:
        if row.get(name) is not None and (text := as_text(row[name], name)).strip():
            return text
    return None


def _add_own(builder: ConversationBuilder, row: dict[str, Any]) -> None:
    conversation, number = as_id(row.get("conversation"), "conversation"), as_turn_number(row.get("turn"), "turn")
    query = as_id(row["query"], "query") if "query" in row else f"{conversation}_{number}"
    messages = as_list(row.get("history"), "the history")
    history = tuple(_message(each, "role", message_text) for each in messages if not is_instruction(each))
    question = as_text(row.get("text"), "text")
    answers = [row["answers"]] if isinstance(row.get("answers"), str) else row.get("answers") or []
    turn = Turn(query, conversation, number, question, history, optional_text(row, "rewrite"))
    builder.add(turn, [as_text(each, "answers") for each in as_list(answers, "the field 'answers'")])


def _message(value: object, speaker: str, text_of: Callable[[Mapping[str, Any]], object]) -> Message:
    message = as_dict(value, "a message of the history")
    names = SPEAKERS if speaker == "speaker" else dict(zip(ROLES, ROLES, strict=True))
    role = message.get(speaker)
    if not isinstance(role, str) or role not in names:
        raise WrongLineError(f"a message has the {speaker} {quote_short(role, 24)}, not {' or '.join(names)}")
    return Message("user" if role == "user" else "assistant", as_text(text_of(message), "text of a message"))


def _add_canard(builder: ConversationBuilder, row: dict[str, Any]) -> None:
    dialog = as_id(row.get("QuAC_dialog_id"), "QuAC_dialog_id")
    number = as_turn_number(row.get("Question_no"), "number")
    said = [as_text(each, "History") for each in as_list(row.get("History"), "the History")]
    if len(said) < 2:
        raise WrongLineError("the History has no title and section")
    messages = [Message("assistant" if place % 2 else "user", text) for place, text in enumerate(said[2:])]
    history = (Message("user", ", ".join(said[:2])), *messages)
    question = as_text(row.get("Question"), "Question")
    builder.add(Turn(f"{dialog}_{number}", dialog, number, question, history, optional_text(row, "Rewrite")))


def _add_topic(builder: ConversationBuilder, topic: dict[str, Any]) -> None:
    conversation = as_id(topic.get("number"), "number of a topic")
    history: list[Message] = []
    for value in as_list(topic.get("turn"), "the turns of a topic"):
        turn = as_dict(value, "a turn")
        number = as_turn_number(turn.get("number"), "number of a turn")
        question = as_text(turn.get("raw_utterance"), f"raw_utterance of turn {number} of topic {conversation}")
        rewrite = optional_text(turn, "manual_rewritten_utterance")
        builder.add(Turn(f"{conversation}_{number}", conversation, number, question, tuple(history), rewrite))
        history.append(Message("user", question))
        reply = optional_text(turn, "response", "passage")
        history += [Message("assistant", reply)] if reply is not None else []


def _load_cast(path: PathOrStr, *, skip_bad_lines: bool = False) -> LoadedCollection:
    """Read a file of topics, or a folder with topics, rewrites and labels."""
    folder = Path(path)
    if not folder.is_dir():
        return _load(path, add=_add_topic, expected=CAST_TOPICS, skip_bad_lines=skip_bad_lines)
    topics, resolved, labels = (_find_one(folder, name) for name in ("*topics*.json*", "*resolved*.tsv*", "*qrels*"))
    if topics is None:
        raise FormatError("there is no file of topics", file=str(folder), expected=CAST_FOLDER)
    builder, notes = _read_rows(topics, _add_topic, CAST_TOPICS, skip_bad_lines)
    rewrites = dict(read_pairs(resolved, "query", skip_bad_lines)[0].iter_rows()) if resolved else {}
    unknown = sorted(rewrites.keys() - builder.turns.keys())
    if unknown:
        few = format_list([quote_short(query, 24) for query in unknown], 3)
        rewritten = format_count(len(unknown), "rewrite")
        notes = (*notes, f"{topics}: {rewritten} of turns that aren't in the topics ({few})")
    for query, turn in builder.turns.items():
        builder.turns[query] = replace(turn, rewrite=rewrites.get(query, turn.rewrite))
    return builder.build(notes, TREC.do("judgments")(labels, skip_bad_lines=skip_bad_lines) if labels else None)


def _find_one(folder: Path, pattern: str) -> Path | None:
    files = sorted(file for file in folder.glob(pattern) if file.is_file())
    if len(files) > 1:
        names = format_list([file.name for file in files])
        raise FormatError(f"several files match {pattern}: {names}", file=str(folder), expected=CAST_FOLDER)
    return files[0] if files else None


def _load_mtrag(path: PathOrStr, *, skip_bad_lines: bool = False) -> LoadedCollection:
    """Read a file of tasks, or a folder of queries, labels and tasks."""
    folder = Path(path)
    if not folder.is_dir():
        builder, notes = _read_tasks(path, skip_bad_lines)
        return builder.build(notes)
    builder, notes, labels = ConversationBuilder(str(folder)), (), list[Judgments]()
    for file in sorted(folder.glob("*.json*")):
        if not re.search(r"_(lastturn|rewrite|questions)\.jsonl", file.name) and _has_tasks(head := read_head(file)):
            builder, notes = _read_tasks(head, skip_bad_lines, builder)
    for place in (folder, *sorted(each for each in folder.iterdir() if each.is_dir())):
        for file in sorted(place.glob("*_lastturn.jsonl*")):
            _add_queries(builder, file)
        labels += [read_qrels(file) for file in sorted(place.glob("dev.tsv*"))]
    if not builder.turns:
        raise FormatError("there are no queries and no tasks", file=str(folder), expected=MTRAG_FOLDER)
    return builder.build(notes, Judgments.concat(labels) if labels else None)


def _read_tasks(
    path: PathOrStr, skip: bool, builder: ConversationBuilder | None = None
) -> tuple[ConversationBuilder, tuple[str, ...]]:
    """Read tasks, and the passages that the whole file lists."""
    head, builder = read_head(path), builder or ConversationBuilder(str(path))
    document = head.document if head.kind == "json" and isinstance(head.document, dict) else {}
    try:
        for each in as_list(document.get("documents") or [], "the documents"):
            builder.add_passage(as_dict(each, "a document"))
    except WrongLineError as error:
        raise FormatError(f"among the documents, {error}", file=str(path), expected=TASKS) from error

    def tasks(document: Mapping[str, Any]) -> list[Any] | None:
        return document["tasks"] if isinstance(document.get("tasks"), list) else None

    return _read_rows(head, _add_task, TASKS, skip, builder, tasks)


def _add_task(builder: ConversationBuilder, row: dict[str, Any]) -> None:
    query = as_id(row.get("task_id"), "task_id")
    conversation, number = _split_task_id(query)
    said = [
        _message(each, "speaker", lambda message: message.get("text"))
        for each in as_list(row.get("input"), "the input")
    ]
    if not said or said[-1].role != "user":
        raise WrongLineError("the input doesn't end with a turn of the user")
    targets = [as_dict(each, "a target") for each in row.get("targets") or []]
    answers = [as_text(each.get("text"), "text of a target") for each in targets]
    builder.add(Turn(query, conversation, number, said[-1].text, tuple(said[:-1])), answers)
    for each in row.get("contexts") or []:
        if "text" in (context := as_dict(each, "a context")):
            builder.add_passage(context)


def _split_task_id(query: str) -> tuple[str, int]:
    """The conversation and the number of a turn."""
    conversation, sign, number = query.rpartition(TASK_SEPARATOR)
    if not sign:
        raise WrongLineError(f"the id {query!r} has no {TASK_SEPARATOR} between conversation and turn")
    return conversation, as_turn_number(number, "turn")


def _add_queries(builder: ConversationBuilder, last_turns: Path) -> None:
    """Add the turns of the retrieval task, or their rewrites where tasks, with all that was said, have the turns."""
    last, rewrites, questions = (
        dict(read_texts(file, kind="query")[0].iter_rows()) if file.is_file() else {}
        for name in ("lastturn", "rewrite", "questions")
        for file in [last_turns.with_name(last_turns.name.replace("_lastturn.", f"_{name}."))]
    )
    for query, text in last.items():
        try:
            conversation, number = _split_task_id(query)
        except WrongLineError as error:
            raise FormatError(str(error), file=str(last_turns)) from error
        said = [Message("user", each.strip()) for each in USER_MARK.split(questions.get(query, "")) if each.strip()]
        turn = Turn(query, conversation, number, USER_MARK.sub("", text).strip(), tuple(said[:-1]))
        rewrite = USER_MARK.sub("", rewrites.get(query, "")).strip() or None
        builder.turns[query] = replace(builder.turns.pop(query, turn), rewrite=rewrite)


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
            known = _turn_row(turn)
            row = {"query": turn.query, "text": turn.question, "conversation": turn.conversation, "turn": turn.number}
            row |= {name: known[name] for name in ("history", "rewrite") if known[name] is not None}
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
    document = head.document if isinstance(head.document, dict) else {}
    rows = document["tasks"] if isinstance(document.get("tasks"), list) else head.rows
    named = bool(rows) and isinstance(rows[0], dict) and {"task_id", "input"} <= set(rows[0])
    return named or (isinstance(document.get("documents"), list) and "Multi-Turn" in (document.get("filters") or ()))


OWN = Format(
    name="conversations",
    title="conversations, one turn a line",
    load=partial(_load, add=_add_own, expected=EXPECTED),
    recognise=_is_own,
)
CANARD = Format(
    name="canard", title="CANARD", load=partial(_load, add=_add_canard, expected=CANARD_ROWS), recognise=_is_canard
)
CAST = Format(name="cast", title="TREC CAsT topics", load=_load_cast, recognise=_has_topics)
MTRAG = Format(name="mtrag", title="MT-RAG", load=_load_mtrag, recognise=_has_tasks)
