"""Questions that the model writes for passages: what it learns from, what is asked for, what is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("gguf")
pytest.importorskip("jinja2")

from training.reader import questions as writing
from training.reader.cloze import spans
from training.reader.questions import Written, asked_for, lessons, sensible
from training.reader.recipe import parts
from training.reader.sources import Question, asked, paragraphs
from training.reader.texts import holds

from tests.llm.local import made_gguf
from tests.training.samples import MILLS, as_nq, write

PASSAGE = "The ferry Gull was built in 1904 by Ann Lee of Kelby and carried 120 people until 3 May 1951."


def test_lessons_are_questions_that_people_asked() -> None:
    found = list(lessons(MILLS, 2, 0))
    assert len(found) == 2 * len(MILLS)
    for (prompt, question), mill in zip(found, [*MILLS, *MILLS], strict=True):
        assert question == mill.text
        assert holds(mill.answers, prompt.messages[0].content.partition("Answer: ")[0])
        assert prompt.messages[0].content.endswith(f"Answer: {mill.answers[0]}")


def test_names_dates_and_numbers_are_asked_for() -> None:
    assert set(spans(PASSAGE)) == {"Gull", "1904", "Ann Lee of Kelby", "120", "3 May 1951"}
    wanted = asked_for([("Gull (ferry)", PASSAGE), ("1904", PASSAGE)], 10, 0)
    assert {one.answer for one in wanted if one.title == "Gull (ferry)"} == set(spans(PASSAGE)) - {"Gull"}
    assert "1904" not in {one.answer for one in wanted if one.title == "1904"}
    assert len(asked_for([("t", PASSAGE)], 2, 0)) == 2


@pytest.mark.parametrize(
    ("question", "good"),
    [
        ("who built the ferry Gull", True),
        ("who is it", False),  # too short
        ("was the ferry built by Ann Lee of Kelby or not", False),  # it has the answer
        ("what is the capital of any country", False),  # not about the passage
        (" ".join(["ferry"] * 30), False),
    ],
)
def test_what_could_be_a_question(question: str, good: bool) -> None:
    assert sensible(Written(question, "Ann Lee of Kelby", PASSAGE, "Gull")) is good


def test_paragraphs_come_once(tmp_path: Path) -> None:
    item = {"paragraphs": [{"title": "a", "paragraph_text": PASSAGE}, {"title": "b", "paragraph_text": "too short"}]}
    assert paragraphs(write(tmp_path / "m.json", [item, item])) == [("a", PASSAGE)]


def test_written_questions_are_for_training_alone() -> None:
    more = [Question(f"who built number {n}", ("Ann Lee of Kelby",), f"{PASSAGE} {n}", f"Gull {n}") for n in range(8)]
    sides: dict[str, list[str]] = {"train": [], "held-out": []}
    for part in parts(MILLS, [], more, held_out=0.5, passes=2, seed=0):
        sides[part.name] += [str(example.values["query"]) for example in part.examples if example.kind == "gold"]
    assert sum("number" in query for query in sides["train"]) == len(more)  # each in one pass
    assert not [query for query in sides["held-out"] if "number" in query]


def test_a_tiny_model_writes_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = made_gguf.write(tmp_path / "tiny.gguf")
    monkeypatch.setattr(writing, "sensible", lambda one: bool(one.answer))
    monkeypatch.setattr("builtins.print", lambda *_, **__: None)
    output = tmp_path / "asked.jsonl"
    options = ["--weights", str(weights), "--each", "1", "--passes", "1", "--rank", "2", "--device", "cpu"]
    writing.main(["--nq", str(as_nq(tmp_path / "nq.jsonl")), *options, "--tokens", "3200", "-o", str(output)])
    rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert rows
    assert all(set(row) == {"question", "answer", "passage", "title"} for row in rows)
    assert all(row["answer"] in row["passage"] for row in rows)
    assert len(asked(output)) == len(rows)
