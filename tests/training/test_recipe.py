"""The examples of the recipe, on an invented valley: right answers, true negatives, nothing that was to be avoided."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from training.reader import recipe
from training.reader.examples import Example
from training.reader.recipe import Recipe, parts
from training.reader.sources import Question, Seen, Unanswered, musique, nomiracl, plain, seen
from training.reader.texts import holds
from training.reader.wider import Wider

from ragworth.judging.labels import NO_RESPONSE_LABEL
from tests.training.samples import FERRY, MILLS, RIVERS, TOWNS, as_nq, mill_of, write

HASH = "edc52d6685a106ee2c5ac70c23d6fdc91b74cce05811dfe3bb5d1a6a91724943"


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    """Thirty draws of every question."""
    return [example for seed in range(30) for example in Recipe(MILLS, seed).examples()]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer questions about the invented world in each pass."""
    monkeypatch.setattr("training.reader.wider.INVENTED", 30)
    monkeypatch.setattr("training.reader.wider.TABLES", 20)


def test_a_seed_makes_the_same_examples_byte_for_byte(tmp_path: Path) -> None:
    """All kinds of examples, as they were when the shipped reader learned from them."""
    output, groups = tmp_path / "examples.jsonl", tmp_path / "groups.txt"
    groups.write_text(FERRY, encoding="utf-8")
    options = ["--nq", str(as_nq(tmp_path / "nq.jsonl")), "--written", str(groups), "--passes", "2"]
    recipe.main([*options, "-o", str(output)])
    assert hashlib.sha256(output.read_bytes()).hexdigest() == HASH


def passages(example: Example) -> list[str]:
    values = example.values
    return [values["passage"]] if "passage" in values else [each["text"] for each in values["passages"]]


def test_where_it_is_to_decline_no_passage_has_an_accepted_answer(examples: list[Example]) -> None:
    declining = [example for example in examples if example.answer == NO_RESPONSE_LABEL]
    assert len(declining) > 1000
    for example in declining:
        answers = mill_of(example.values["query"]).answers
        assert [holds(answers, text) for text in passages(example)] == [None] * len(passages(example))


def test_where_it_is_to_answer_the_answer_is_there(examples: list[Example]) -> None:
    answered = [example for example in examples if example.answer != NO_RESPONSE_LABEL]
    assert len(answered) > 1000
    for example in answered:
        assert any(holds([example.answer], text) for text in passages(example)), example
        if example.kind != "other answer":
            assert example.answer in mill_of(example.values["query"]).answers


def test_no_title_is_on_both_sides() -> None:
    sides: dict[str, set[str]] = {"train": set(), "held-out": set()}
    for part in parts(MILLS, [], held_out=0.5, passes=2, seed=0, wider=Wider(None, Seen(set(), set()))):
        texts = [text for example in part.examples for text in passages(example)]
        sides[part.name] |= {river for river in RIVERS if any(f"the river {river} " in text for text in texts)}
    assert [len(rivers) for rivers in sides.values()] == [2, 2]
    assert sides["train"] | sides["held-out"] == set(RIVERS)


def test_another_name_in_question_and_passage_or_in_the_passage_alone() -> None:
    texts = [
        f"The Old Bell of {town} was cast by Ann Lee for the church, and rings at noon and at night." for town in TOWNS
    ]
    bells = [
        Question(f"who cast the old bell of {town}", ("Ann Lee",), text, f"Old Bell of {town}")
        for town, text in zip(TOWNS, texts, strict=True)
    ]
    every = [example for seed in range(5) for example in Recipe([*bells, *MILLS], seed).examples()]
    both = [example for example in every if example.kind == "other name"]
    other = [example for example in every if example.kind == "about another"]
    assert len(both) == len(other) == 5 * len(bells)
    assert all(example.answer == "Ann Lee" and "bell" not in example.values["query"].lower() for example in both)
    assert all(example.answer == NO_RESPONSE_LABEL and "bell" in example.values["query"].lower() for example in other)
    assert not [example for example in [*both, *other] if "Bell" in example.values["passage"]]


# Sources


def test_sub_questions_with_the_answers_before_them(tmp_path: Path) -> None:
    texts = ["Ann Lee built the mill.", "Ann Lee was born in Kelby.", "Kelby lies by the Elm.", "Bread is baked."]
    item: dict[str, Any] = {
        "paragraphs": [{"title": f"t{n}", "paragraph_text": text} for n, text in enumerate(texts)],
        "question_decomposition": [
            {"question": "Who built the mill?", "answer": "Ann Lee", "paragraph_support_idx": 0},
            {"question": "#1 >> place of birth", "answer": "Kelby", "paragraph_support_idx": 1},
            {"question": "Which river is at #2?", "answer": "Elm", "paragraph_support_idx": None},
            {"question": "What is #9?", "answer": "x", "paragraph_support_idx": 3},
        ],
    }
    assert musique(write(tmp_path / "m.json", [item])) == [
        Question("Who built the mill?", ("Ann Lee",), texts[0], "t0", (texts[2], texts[3])),
        Question("what is the place of birth of Ann Lee", ("Kelby",), texts[1], "t1", (texts[0], texts[3])),
    ]


def test_questions_without_a_relevant_passage(tmp_path: Path) -> None:
    one, two = MILLS[0].gold, MILLS[1].gold
    prompt = f"Say.\n\nQUESTION:\nwho burned it\n\nCONTEXTS:\n[1] {one}\n[2] too short\n[3] {two}\n\nOUTPUT:\n"
    assert nomiracl(write(tmp_path / "n.jsonl", [{"prompt": prompt}])) == [Unanswered("who burned it", (one, two))]


def test_questions_and_titles_that_are_avoided_never_occur(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    avoid = [
        write(tmp_path / "a.jsonl", [{"query": f"Who built the MILL of {TOWNS[0]}, on the {RIVERS[0]}?"}]),
        write(tmp_path / "b.jsonl", [{"passages": [{"title": "Mills of the Wend", "text": "…"}]}]),
        write(tmp_path / "c.jsonl", [{"context": [["Mills of the Stell", ["One.", "Two."]]]}]),
    ]
    found = seen(avoid)
    assert found.questions == {plain(MILLS[0].text)}
    assert found.titles == {"Mills of the Wend", "Mills of the Stell"}
    output = tmp_path / "examples.jsonl"
    options = ["--held-out", "0.5", "--passes", "2", "-o", str(output)]
    recipe.main(["--nq", str(as_nq(tmp_path / "nq.jsonl")), "--avoid", *map(str, avoid), *options])
    rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert {row["part"]: row["pass"] for row in rows} == {"train": 1, "held-out": 0}
    text = "\n".join(content for row in rows for _, content in row["messages"])
    assert TOWNS[1] in text
    assert TOWNS[0] not in text
    assert not [river for river in ("Wend", "Stell") if f"the river {river} " in text]
    assert "16 questions, 7 after leaving out" in capsys.readouterr().out
