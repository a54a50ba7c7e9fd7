"""Files of conversations: ragworth's own and those of three test collections."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragworth import formats
from ragworth.core.errors import FormatError, TableError
from ragworth.data.collection import Collection
from ragworth.data.conversations import Message, Turn, turns_of
from ragworth.formats import conversations, texts
from tests.formats.sample_files import format_of

OTTERS = {
    "query": "c1_2",
    "text": "And in winter?",
    "conversation": "c1",
    "turn": 2,
    "history": [{"role": "user", "text": "What do otters eat?"}, {"role": "assistant", "text": "Fish — mostly."}],
    "rewrite": "What do otters eat in winter?",
    "answers": ["fish", "crabs"],
}
FIRST = {"query": "c1_1", "text": "What do otters eat?", "conversation": "c1", "turn": 1, "history": []}


def write_lines(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def load(path: Path, name: str) -> Collection:
    """Read a file by its own format, which must recognise it."""
    assert format_of(path) == name
    return formats.load(path).collection


def test_own_format(tmp_path: Path) -> None:
    made = load(write_lines(tmp_path / "turns.jsonl", FIRST, OTTERS), "conversations")
    first, second = turns_of(made)
    assert first == Turn("c1_1", "c1", 1, "What do otters eat?")
    assert second.history[1] == Message("assistant", "Fish — mostly.")
    assert second.rewrite == "What do otters eat in winter?"
    assert made.answers.rows() == [("c1_2", "fish"), ("c1_2", "crabs")]


def test_histories_of_openai(tmp_path: Path) -> None:
    said = [{"role": each["role"], "content": each["text"]} for each in OTTERS["history"]]  # type: ignore[attr-defined]
    row = OTTERS | {"history": [{"role": "system", "content": "Be brief."}, *said]}
    files = [write_lines(tmp_path / f"{name}.jsonl", FIRST, each) for name, each in (("a", OTTERS), ("b", row))]
    assert load(files[0], "conversations").equals(load(files[1], "conversations"))


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    made = load(write_lines(tmp_path / "turns.jsonl", FIRST, OTTERS), "conversations")
    conversations.write(made, tmp_path / "again.jsonl.gz")
    assert formats.load(tmp_path / "again.jsonl.gz").collection.equals(made)
    with pytest.raises(FormatError, match="there are no turns to write"):
        conversations.write(Collection(), tmp_path / "none.jsonl")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"turn": 0}, "the turn is '0'"),
        ({"turn": "two"}, "the turn is"),
        ({"conversation": ""}, "the conversation is empty"),
        ({"text": None}, "the text is"),
        ({"text": " "}, "the question is empty"),
        ({"history": None}, "the history is"),
        ({"history": ["What?"]}, "a message of the history is"),
        ({"history": [{"role": "bot", "text": "Hi"}]}, "a message has the role 'bot'"),
        ({"history": [{"role": "user"}]}, "the text of a message is"),
        ({"answers": [1]}, "the answers is"),
        ({"turn": 1}, "turn 1 of conversation 'c1' occurs twice"),
        ({"query": "c1_1"}, "occurs twice"),
    ],
)
def test_bad_lines_are_named(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "turns.jsonl", FIRST, OTTERS | changes)
    with pytest.raises(FormatError, match="line 2") as caught:
        formats.load(f"conversations:{path}")
    assert words in str(caught.value)
    left = formats.load(f"conversations:{path}", skip_bad_lines=True).collection
    assert left.queries.height == 1
    assert any("line 2" in note for note in left.notes)


def test_queries_may_be_conversations(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "turns.jsonl", FIRST, OTTERS)
    assert texts.read(path, "queries").turns.height == 2
    assert texts.read(f"conversations:{path}", "queries").turns.height == 2
    plain = write_lines(tmp_path / "queries.jsonl", {"_id": "q", "text": "What?"})
    assert texts.read(plain, "queries").turns.height == 0


CANARD = {
    "QuAC_dialog_id": "C_1",
    "Question_no": 2,
    "Question": "When did they disband?",
    "Rewrite": "When did the Mothers disband?",
    "History": ["Frank Zappa", "Disbandment", "What group disbanded?", "The Mothers"],
}


def test_canard(tmp_path: Path) -> None:
    path = tmp_path / "canard.json"
    path.write_text(json.dumps([CANARD]))
    (turn,) = turns_of(load(path, "canard"))
    assert turn.history == (
        Message("user", "Frank Zappa, Disbandment"),
        Message("user", "What group disbanded?"),
        Message("assistant", "The Mothers"),
    )
    path.write_text(json.dumps([CANARD, CANARD | {"Question_no": 3, "History": []}]))
    with pytest.raises(FormatError, match="record 2: the History has no title and section"):
        formats.load(path)


TOPIC = {
    "number": 31,
    "turn": [
        {"number": 1, "raw_utterance": "What is throat cancer?"},
        {"number": 2, "raw_utterance": "Is it treatable?", "manual_rewritten_utterance": "Is throat cancer treatable?"},
    ],
}


def test_cast(tmp_path: Path) -> None:
    path = tmp_path / "topics.json"
    path.write_text(json.dumps([TOPIC]))
    first, second = turns_of(load(path, "cast"))
    assert (first.query, first.rewrite, second.rewrite) == ("31_1", None, "Is throat cancer treatable?")
    assert second.history == (Message("user", "What is throat cancer?"),)
    turns = [TOPIC["turn"][0] | {"passage": "It is a disease."}, TOPIC["turn"][1]]  # type: ignore[index]
    path.write_text(json.dumps([{"number": 31, "turn": turns}]))
    assert turns_of(formats.load(path).collection)[1].history[1] == Message("assistant", "It is a disease.")


TASK: dict[str, Any] = {
    "task_id": "abc<::>2",
    "input": [
        {"speaker": "user", "text": "Where do they play?"},
        {"speaker": "agent", "text": "At home."},
        {"speaker": "user", "text": "Outside the US?"},
    ],
    "contexts": [{"document_id": "d1", "title": "Cardinals", "text": "They play in Arizona."}],
    "targets": [{"speaker": "agent", "text": "No."}],
}


def test_mtrag_tasks(tmp_path: Path) -> None:
    made = load(write_lines(tmp_path / "tasks.jsonl", TASK), "mtrag")
    (turn,) = turns_of(made)
    assert (turn.conversation, turn.number, turn.question) == ("abc", 2, "Outside the US?")
    assert turn.history == (Message("user", "Where do they play?"), Message("assistant", "At home."))
    assert made.answers.rows() == [("abc<::>2", "No.")]
    assert made.passages.rows() == [("d1", "Cardinals\nThey play in Arizona.")]
    for changes, words in (
        ({"task_id": "abc"}, "isn't a conversation, <::> and the number"),
        ({"input": TASK["input"][:2]}, "doesn't end with a turn of the user"),
        ({"input": [{"speaker": "bot", "text": "Hi"}]}, "the speaker 'bot'"),
    ):
        path = write_lines(tmp_path / "bad.jsonl", TASK, TASK | changes)
        with pytest.raises(FormatError, match="line 2") as caught:
            formats.load(f"mtrag:{path}")
        assert words in str(caught.value)


def test_mtrag_passages_of_the_whole_file(tmp_path: Path) -> None:
    (context,) = TASK["contexts"]
    whole = {"documents": [context], "tasks": [TASK | {"contexts": [{"document_id": "d1"}]}], "models": []}
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps(whole))
    assert load(path, "mtrag").passages.rows() == [("d1", "Cardinals\nThey play in Arizona.")]
    path.write_text(json.dumps(whole | {"documents": [context, context | {"text": "Elsewhere."}]}))
    with pytest.raises(TableError, match="second text for passage 'd1'"):
        formats.load(path)


def test_tasks_without_turns_are_of_no_known_format(tmp_path: Path) -> None:
    """InspectorRAGet's files have the same keys."""
    path = tmp_path / "performance.json"
    path.write_text(json.dumps({"tasks": [TASK | {"task_id": "ClapNQ::64"}], "models": [{"name": "a"}]}))
    with pytest.raises(FormatError, match="no known format"):
        formats.load(path)
