"""Read topics of TREC CAsT (2019 to 2021), their human rewrites and their relevance labels.

``cast:FILE`` is a file of topics: each has a ``number`` and a list ``turn`` with ``number`` and ``raw_utterance``. A
turn may have ``manual_rewritten_utterance``, and the system's reply as ``passage`` or ``response``. ``cast:FOLDER``
also reads the human rewrites of 2019 (``*resolved*.tsv``: the id of a turn, and its text) and the labels (``*qrels*``)
beside them. The id of a turn is the topic, ``_`` and the turn, as in the labels.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ragworth.core.errors import BadLine, FormatError, format_count, format_list, quote_short
from ragworth.data.collection import Collection
from ragworth.data.conversations import Message, Turn
from ragworth.data.turns import check_turns
from ragworth.formats.contract import FileSample, Format, LoadedCollection
from ragworth.formats.conversation_rows import ConversationBuilder, as_turn_number, load_turns, optional_text
from ragworth.formats.files import PathOrStr, bad_lines_error, read_lines
from ragworth.formats.trec import FORMAT as TREC
from ragworth.formats.values import as_dict, as_id, as_list, as_text

EXPECTED = 'topics such as {"number": 31, "turn": [{"number": 1, "raw_utterance": "…"}, …]}'
FOLDER = "a folder with one *topics*.json and, if there are any, one *resolved*.tsv and one *qrels* file"


def load(path: PathOrStr, *, skip_bad_lines: bool = False) -> LoadedCollection:
    """Read a file of topics, or a folder with topics, rewrites and labels."""
    folder = Path(path)
    if not folder.is_dir():
        return _load_topics(path, {}, skip_bad_lines)
    topics = _find_one(folder, "*topics*.json*")
    if topics is None:
        raise FormatError("there is no file of topics", file=str(folder), expected=FOLDER)
    resolved = _find_one(folder, "*resolved*.tsv*")
    labels = _find_one(folder, "*qrels*")
    loaded = _load_topics(topics, _read_rewrites(resolved) if resolved else {}, skip_bad_lines)
    if labels is None:
        return loaded
    relevance = TREC.do("judgments")(labels, skip_bad_lines=skip_bad_lines)
    return loaded._replace(collection=replace(loaded.collection, relevance=relevance))


def _find_one(folder: Path, pattern: str) -> Path | None:
    found = sorted(file for file in folder.glob(pattern) if file.is_file())
    if len(found) > 1:
        names = format_list([file.name for file in found])
        raise FormatError(f"several files match {pattern}: {names}", file=str(folder), expected=FOLDER)
    return found[0] if found else None


def _load_topics(path: PathOrStr, rewrites: dict[str, str], skip_bad_lines: bool) -> LoadedCollection:
    loaded = load_turns(path, _add_topic, expected=EXPECTED, skip_bad_lines=skip_bad_lines)
    return loaded._replace(collection=_with_rewrites(loaded.collection, rewrites, str(path))) if rewrites else loaded


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


def _read_rewrites(path: Path) -> dict[str, str]:
    """Rewrites by the id of their turn."""
    found: dict[str, str] = {}
    expected = "the id of a turn, a tab, and its rewrite, on each line"
    for number, line in read_lines(path):
        query, tab, text = line.decode("utf-8", "replace").strip("\r\n").partition("\t")
        if not line.strip():
            continue
        if not tab or not query.strip() or not text.strip() or query in found:
            what = "the turn occurs twice" if query in found else "there is no tab between id and text"
            raise bad_lines_error(path, [BadLine(number, f"{what}: {quote_short(query, 48)}")], expected)
        found[query] = text.strip()
    return found


def _with_rewrites(collection: Collection, rewrites: dict[str, str], source: str) -> Collection:
    rows = collection.turns.to_dicts()
    unknown = sorted(set(rewrites) - {row["query"] for row in rows})
    notes = collection.notes
    if unknown:
        few = format_list([quote_short(query, 24) for query in unknown], 3)
        notes = (
            *notes,
            f"{source}: {format_count(len(unknown), 'rewrite')} of turns that aren't in the topics ({few})",
        )
    turns = [row | {"rewrite": rewrites.get(row["query"], row["rewrite"])} for row in rows]
    return replace(collection, turns=check_turns(turns, source), notes=notes)


def _recognise(sample: FileSample) -> bool:
    first = sample.rows[0].get("turn") if sample.rows and sample.has("number", "turn") else None
    return isinstance(first, list) and bool(first) and isinstance(first[0], dict) and "raw_utterance" in first[0]


FORMAT = Format(name="cast", title="TREC CAsT topics", load=load, recognise=_recognise)
