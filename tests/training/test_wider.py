"""The wider recipe: parts of what is needed don't answer, all of it does; tables, FAQs, other years and attacks."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from training.reader import several, wider, written
from training.reader.examples import ALL_PARTS, CONTRADICTED, OTHER_YEAR, Example
from training.reader.invented import World
from training.reader.several import Spread
from training.reader.sources import Question, Seen

from tests.training.samples import MILLS, write

NOTHING = Seen(set(), set())
GROUP = written.Group(
    "the mill",
    {
        1: "Ann Lee built it.",
        2: "It opened in 1820.",
        3: "It has 4 wheels.",
        4: "A cat lives there.",
        5: "In 1820 or so.",
    },
    [
        written.Asked("Who built it?", ("Ann Lee",), (1,), (), ()),
        written.Asked("When did it open?", ("1820",), (2,), (5,), ()),
        written.Asked("How many wheels has it?", ("4",), (3,), (), ()),
        written.Asked("What lives there?", ("A cat", "cat"), (4,), (), ()),
        written.Asked("Who owns it?", (), (), (), ()),
    ],
)


def shown(example: Example) -> list[str]:
    values = example.values
    return [values["passage"]] if "passage" in values else [each["text"] for each in values["passages"]]


def drawn(spread: Spread, times: int = 60) -> list[Example]:
    draw = random.Random(0)
    return [example for _ in range(times) for example in several.examples(spread, draw)]


def test_all_parts_answer_and_some_of_them_do_not() -> None:
    spread = Spread("who wrote it, and when", "Ann and 1820", ("Ann wrote.", "In 1820.", "It is long."), ("A", "B"))
    for example in drawn(spread):
        text = "\n".join(shown(example))
        whole = all(part in text for part in spread.needed)
        assert (example.answer == spread.answer) == whole == (example.kind == ALL_PARTS)
        assert any(part in text for part in spread.needed)
        assert len(shown(example)) <= several.MOST
        assert len(set(shown(example))) == len(shown(example))


@pytest.mark.parametrize("way", [several._chain, several._comparison, several._same])
def test_what_the_invented_world_asks_takes_both_passages(way: object) -> None:
    world = World(3)
    for _ in range(300):
        spread = way(world)  # type: ignore[operator]
        assert len(spread.needed) == 2 and "{" not in spread.question
        if way is several._chain:
            assert spread.answer not in spread.needed[0] and spread.answer in spread.needed[1]
            assert not any(spread.answer in text for text in spread.others)
        elif way is several._comparison:
            assert spread.answer in spread.question
            assert any(spread.answer.lower() in text.lower() for text in spread.needed)
        else:
            assert spread.answer in ("yes", "no")


def test_two_questions_of_a_group_are_joined_only_if_no_passage_may_answer_both() -> None:
    draw = random.Random(1)
    found = [spread for _ in range(40) for spread in several.joined([GROUP], draw)]
    assert {spread.question for spread in found} >= {"Who built it, and when did it open?"}
    for spread in found:
        assert "owns" not in spread.question
        assert len(set(spread.needed)) == 2
        assert not any("1820" in text for text in spread.others if "open" in spread.question)
    answers = {spread.question: spread.answer for spread in found}
    assert answers["Who built it, and when did it open?"] == "Ann Lee and 1820"


def test_musique_gives_all_hops_but_what_must_not_occur(tmp_path: Path) -> None:
    def item(question: str, answer: str, *hops: int) -> dict[str, object]:
        paragraphs = [{"idx": n, "title": f"T{n}", "paragraph_text": f"Text {n} says x{n}."} for n in range(4)]
        decomposition = [{"question": "?", "answer": "x", "paragraph_support_idx": hop} for hop in hops]
        return {
            "question": question,
            "answer": answer,
            "paragraphs": paragraphs,
            "question_decomposition": decomposition,
        }

    path = write(tmp_path / "m.jsonl", [item("a?", "x2", 1, 2), item("b?", "x1", 1), item("c?", "zz", 1, 3)])
    (spread,) = several.musique(path, NOTHING)
    assert spread == Spread("a?", "x2", ("Text 1 says x1.", "Text 2 says x2."), ("Text 0 says x0.", "Text 3 says x3."))
    assert several.musique(path, Seen({"a"}, set())) == several.musique(path, Seen(set(), {"T2"})) == []
    assert wider.Wider(path, NOTHING).spreads({"T1"}) == [] and wider.Wider(None, NOTHING).spreads(set()) == []


def test_another_year_and_contradictions_come_of_questions() -> None:
    dated = Question("who won the 1820 race", ("Ann",), "In the 1820 race Ann won. Bob lost in 1820.", "Race")
    assert wider._in_another_year(MILLS[0], random.Random(0)) is None
    moved = wider._in_another_year(dated, random.Random(0))
    assert moved is not None and "1820" not in moved and "Ann won" in moved
    found = list(wider._of_questions([*MILLS, dated], random.Random(0)))
    assert {example.kind for example in found} == {CONTRADICTED, OTHER_YEAR}
    for example in found:
        if example.kind == CONTRADICTED:
            assert sum(example.answer in text for text in shown(example)) == 2
