"""Read MT-RAG: conversations with an agent that reads passages (Katsis et al., TACL 2025).

``mtrag:FILE`` has tasks: ``task_id`` (the conversation, ``<::>`` and the turn), ``input``, a list of ``speaker`` and
``text`` that ends with the user's turn, ``targets``, which are accepted answers, and ``contexts``, which are passages.
Their texts are there or in a list ``documents`` of the whole file. What a task shows isn't a relevance label.

``mtrag:FOLDER`` also has the queries and labels of the retrieval task, in the folder or one below it:
``*_lastturn.jsonl``, ``*_rewrite.jsonl`` (human rewrites), ``*_questions.jsonl`` (all the user's turns, from which the
history is made) and ``dev.tsv`` (labels in BEIR's format). Histories of tasks also have what the agent said, so they
come first.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from ragworth.core.errors import FormatError
from ragworth.data.collection import Collection
from ragworth.data.conversations import Message, Turn, turns_of
from ragworth.formats.beir import read_qrels
from ragworth.formats.contract import FileSample, Format, LoadedCollection
from ragworth.formats.conversation_rows import ConversationBuilder, as_turn_number, load_turns, optional_text
from ragworth.formats.files import PathOrStr
from ragworth.formats.heads import read_document, read_head
from ragworth.formats.log_files import LogRows, unpack_rows
from ragworth.formats.texts import read_texts
from ragworth.formats.values import WrongLineError, as_dict, as_id, as_list, as_text

EXPECTED = 'tasks such as {"task_id": "…<::>2", "input": [{"speaker": "user", "text": "…"}, …], "targets": […]}'
FOLDER = "a folder with *_lastturn.jsonl, *_rewrite.jsonl, *_questions.jsonl and dev.tsv, or with a file of tasks"
ROLE_OF = {"user": "user", "agent": "assistant", "assistant": "assistant"}
SPEAKER = re.compile(r"^\|user\|:\s*", re.M)
SEPARATOR = "<::>"


def load(path: PathOrStr, *, skip_bad_lines: bool = False) -> LoadedCollection:
    """Read a file of tasks, or a folder of queries, labels and tasks."""
    return _load_folder(Path(path)) if Path(path).is_dir() else _load_tasks(path, skip_bad_lines)


def _load_tasks(path: PathOrStr, skip_bad_lines: bool = False) -> LoadedCollection:
    def tasks(rows: LogRows) -> LogRows:
        return unpack_rows(rows, lambda value: value.get("tasks"))

    documents = _documents(path)

    def add(builder: ConversationBuilder, row: dict[str, Any]) -> None:
        if not builder.turns:
            builder.passages |= documents
        _add_task(builder, row)

    return load_turns(path, add, expected=EXPECTED, skip_bad_lines=skip_bad_lines, unpack=tasks)


def _documents(path: PathOrStr) -> dict[str, str]:
    """Passages that a whole file lists."""
    if not str(path).removesuffix(".gz").removesuffix(".zst").endswith(".json"):
        return {}
    given = [each.get("documents") or [] for each in read_document(path) if isinstance(each, dict)]
    try:
        return dict(_passage(as_dict(each, "a document")) for some in given for each in some)
    except WrongLineError as error:
        raise FormatError(f"among the documents, {error}", file=str(path), expected=EXPECTED) from error


def _passage(document: dict[str, Any]) -> tuple[str, str]:
    text, title = as_text(document.get("text"), "text of a passage"), optional_text(document, "title")
    whole = f"{title}\n{text}" if title and not text.startswith(title) else text
    return as_id(document.get("document_id"), "document_id"), whole


def _add_task(builder: ConversationBuilder, row: dict[str, Any]) -> None:
    query = as_id(row.get("task_id"), "task_id")
    conversation, number = _place(query)
    said = [_message(as_dict(each, "a message")) for each in as_list(row.get("input"), "the input")]
    if not said or said[-1].role != "user":
        raise WrongLineError("the input doesn't end with a turn of the user")
    targets = [as_dict(each, "a target") for each in row.get("targets") or []]
    answers = [as_text(each.get("text"), "text of a target") for each in targets]
    builder.add(Turn(query, conversation, number, said[-1].text, tuple(said[:-1])), answers)
    for each in row.get("contexts") or []:
        if "text" in (context := as_dict(each, "a context")):
            builder.add_passage(*_passage(context))


def _message(value: dict[str, Any]) -> Message:
    role = ROLE_OF.get(str(value.get("speaker")))
    if role is None:
        raise WrongLineError(f"a message has the speaker {value.get('speaker')!r}, not user or agent")
    return Message("user" if role == "user" else "assistant", as_text(value.get("text"), "text of a message"))


def _place(query: str) -> tuple[str, int]:
    """The conversation and the number of a turn."""
    conversation, sign, number = query.rpartition(SEPARATOR)
    if not sign:
        raise WrongLineError(f"the id {query!r} has no {SEPARATOR} between conversation and turn")
    return conversation, as_turn_number(number, "turn")


def _load_folder(folder: Path) -> LoadedCollection:
    builder = ConversationBuilder(str(folder))
    for file in sorted(each for each in folder.glob("*.json*") if _has_tasks(each)):
        _take_tasks(builder, _load_tasks(file).collection)
    for place in (folder, *sorted(each for each in folder.iterdir() if each.is_dir())):
        for file in sorted(place.glob("*_lastturn.jsonl*")):
            _add_queries(builder, file)
        for file in sorted(place.glob("dev.tsv*")):
            labels = read_qrels(file).frame.select("query", "passage", "value")
            builder.relevance |= {(query, passage): value for query, passage, value in labels.iter_rows()}
    if not builder.turns:
        raise FormatError("there are no queries and no tasks", file=str(folder), expected=FOLDER)
    return builder.build()


def _has_tasks(file: Path) -> bool:
    return not re.search(r"_(lastturn|rewrite|questions)\.jsonl", file.name) and _recognise(read_head(file))


def _take_tasks(builder: ConversationBuilder, tasks: Collection) -> None:
    answers: dict[str, list[str]] = {}
    for query, text in tasks.answers.iter_rows():
        answers.setdefault(query, []).append(text)
    for turn in turns_of(tasks):
        builder.add(turn, answers.get(turn.query, ()))
    for passage, text in tasks.passages.select("passage", "text").iter_rows():
        builder.add_passage(passage, text)


def _add_queries(builder: ConversationBuilder, last_turns: Path) -> None:
    """Add the turns of the retrieval task, or their rewrites where tasks have the turns already."""
    rewrites = _texts(_beside(last_turns, "rewrite"))
    questions = _texts(_beside(last_turns, "questions"))
    for query, text in _texts(last_turns).items():
        try:
            conversation, number = _place(query)
        except WrongLineError as error:
            raise FormatError(str(error), file=str(last_turns)) from error
        said = [Message("user", each.strip()) for each in SPEAKER.split(questions.get(query, "")) if each.strip()]
        turn = Turn(query, conversation, number, _spoken(text), tuple(said[:-1]))
        known = builder.turns.pop(query, turn)
        rewrite = _spoken(rewrites[query]) if query in rewrites else None
        builder.turns[query] = replace(known, rewrite=rewrite or None)


def _beside(last_turns: Path, name: str) -> Path | None:
    file = last_turns.with_name(last_turns.name.replace("_lastturn.", f"_{name}."))
    return file if file.is_file() else None


def _texts(file: Path | None) -> dict[str, str]:
    return dict(read_texts(file, kind="query")[0].iter_rows()) if file is not None else {}


def _spoken(text: str) -> str:
    return SPEAKER.sub("", text).strip()


def _recognise(sample: FileSample) -> bool:
    document = sample.document if isinstance(sample.document, dict) else {}
    tasks = document.get("tasks") if isinstance(document.get("tasks"), list) else None
    first = (tasks[0] if tasks else {}) if tasks is not None else (sample.rows[0] if sample.rows else {})
    shown = isinstance(document.get("documents"), list) and "Multi-Turn" in (document.get("filters") or ())
    return (isinstance(first, dict) and {"task_id", "input"} <= set(first)) or shown


FORMAT = Format(name="mtrag", title="MT-RAG", load=load, recognise=_recognise)
