"""The examples of the recipe, on an invented valley: right answers, true negatives, nothing that was to be avoided."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from training.reader import recipe
from training.reader.bm25 import Bm25
from training.reader.examples import Example
from training.reader.recipe import Recipe, invented, made, parts, unanswered
from training.reader.sources import Question, Unanswered, musique, nomiracl, nq, plain, seen
from training.reader.texts import holds, kind_of

import ragworth
from ragworth.tasks.answerability import NO_RESPONSE_LABEL
from tests.training.samples import MILLS, RIVERS, TOWNS, as_nq, mill_of, write


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    """Thirty draws of every question."""
    return [example for seed in range(30) for example in Recipe(MILLS, seed).examples()]


def passages(example: Example) -> list[str]:
    values = example.values
    return [values["passage"]] if "passage" in values else [each["text"] for each in values["passages"]]


def test_all_kinds_occur(examples: list[Example]) -> None:
    counts = Counter(example.kind for example in examples)
    assert set(counts) == {
        *("gold", "gold piece", "gold with title", "other answer", "without the answer", "piece without"),
        *("near miss", "random", "context with gold", "context without", "reply", "alluded to"),
    }
    assert counts["gold"] == 30 * len(MILLS)
    assert counts["gold piece"] == 2 * counts["gold"]


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


def test_another_answer_stands_where_the_right_one_was(examples: list[Example]) -> None:
    for example in examples:
        if example.kind == "other answer":
            (right,) = mill_of(example.values["query"]).answers
            assert example.answer != right
            assert kind_of(example.answer) == kind_of(right)
            assert holds([right], example.values["passage"]) is None


def test_questions_stand_before_and_after_passages_and_after_them_alone(examples: list[Example]) -> None:
    single = Counter(example.prompt for example in examples if "passage" in example.values)
    assert set(single) == {"abstention", "abstention-swapped"}
    assert 0.1 < single["abstention-swapped"] / single.total() < 0.2
    for example in examples[:50]:
        text = ragworth.prompt(example.prompt, "plain").render(example.values).messages[-1].content
        shown, query = passages(example)[0], example.values["query"]
        assert text.index(shown) < text.rindex(query)
        assert (text.index(query) < text.index(shown)) == (example.prompt != "abstention-swapped")


def test_contexts_have_two_to_five_passages_and_the_gold_one_anywhere(examples: list[Example]) -> None:
    contexts = [example for example in examples if example.kind.startswith("context")]
    assert {len(passages(example)) for example in contexts} == {2, 3, 4, 5}
    five = [
        passages(example) for example in contexts if example.answer != NO_RESPONSE_LABEL and len(passages(example)) == 5
    ]
    places = {n for texts in five for n, text in enumerate(texts) if any(text == mill.gold for mill in MILLS)}
    assert places == {0, 1, 2, 3, 4}


def test_near_misses_are_of_the_same_title_first() -> None:
    near = Recipe(MILLS, 0).near(0)
    assert set(near[:3]) == {mill.gold for mill in MILLS[1:4]}
    assert MILLS[0].gold not in near


def test_the_seed_decides_everything() -> None:
    assert list(Recipe(MILLS, 3).examples()) == list(Recipe(MILLS, 3).examples())
    assert list(Recipe(MILLS, 3).examples()) != list(Recipe(MILLS, 4).examples())


def test_nothing_is_asked_whose_answer_is_long_or_not_there() -> None:
    gold = "one two three four five six seven eight nine ten eleven. " + MILLS[0].gold
    long = Question("what is counted", ("one two three four five six seven eight nine ten eleven",), gold, "t")
    lacking = Question("who sold the mill", ("Zoe",), gold, "t")
    every = list(Recipe([long, lacking, *MILLS], 0).examples())
    assert [example.answer for example in every if example.kind == "gold"] == [mill.answers[0] for mill in MILLS]


def test_too_few_passages_are_an_error_not_an_endless_search() -> None:
    with pytest.raises(ValueError, match="nearly all passages have an answer"):
        list(Recipe(MILLS[:1], 0).examples())


def test_no_title_is_on_both_sides() -> None:
    sides: dict[str, set[str]] = {"train": set(), "held-out": set()}
    for part in parts(MILLS, [], held_out=0.5, passes=2, seed=0):
        texts = [text for example in part.examples for text in passages(example)]
        sides[part.name] |= {river for river in RIVERS if any(f" {river} " in text for text in texts)}
    assert [len(rivers) for rivers in sides.values()] == [2, 2]
    assert sides["train"] | sides["held-out"] == set(RIVERS)


def test_what_people_judged_to_be_empty() -> None:
    some = Unanswered("who burned it", tuple(mill.gold for mill in MILLS[:3]))
    found = list(unanswered([some], 0))
    assert [(example.prompt, example.answer, example.kind) for example in found] == [
        ("abstention", NO_RESPONSE_LABEL, "judged near miss"),
        ("abstention", NO_RESPONSE_LABEL, "judged near miss"),
        ("answer", NO_RESPONSE_LABEL, "context without"),
    ]


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


def test_questions_made_of_passages() -> None:
    found = list(made([(mill.title, mill.gold) for mill in MILLS], 1.0, 0))
    kinds = Counter(example.kind for example in found)
    assert kinds["made question"] >= len(MILLS) // 2
    assert kinds["made question, no answer"] >= len(MILLS) // 4
    for example in found:
        answer = example.answer
        assert (answer == NO_RESPONSE_LABEL) == example.kind.endswith("no answer")
        if answer != NO_RESPONSE_LABEL:
            assert holds([answer], example.values["passage"])
            assert answer.lower() not in example.values["query"].lower()


def test_questions_about_an_invented_world() -> None:
    found = list(invented(200, 0))
    assert {example.kind for example in found} == {
        "invented",
        "invented near miss",
        "context with gold",
        "context without",
    }
    said = {example.values["query"]: example.answer for example in found if example.kind == "invented"}
    for example in found:
        if example.answer == NO_RESPONSE_LABEL and example.values["query"] in said:
            assert [text for text in passages(example) if said[example.values["query"]] in text] == []
        elif example.answer != NO_RESPONSE_LABEL:
            assert any(example.answer in text for text in passages(example))
    assert list(invented(20, 3)) == list(invented(20, 3)) != list(invented(20, 4))


# Sources


def test_natural_questions(tmp_path: Path) -> None:
    assert nq(as_nq(tmp_path / "nq.jsonl")) == MILLS


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


def test_the_best_passages() -> None:
    search = Bm25(["the red mill", "the red red barn", *(f"the house {n}" for n in range(8))])
    assert search.best("Red barn?", 5) == [1, 0]
    assert search.best("the", 5) == []  # everywhere, and so of no use
    assert search.best("nowhere", 5) == []


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
    assert not [river for river in ("Wend", "Stell") if river in text]
    assert "16 questions, 7 after leaving out" in capsys.readouterr().out
