"""The wider recipe: parts of what is needed don't answer, all of it does; tables, FAQs, other years and attacks."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from training.reader import several, tables, wider, written
from training.reader.attacks import WANTING_AN_ANSWER, WANTING_TO_DECLINE, attacked, faq
from training.reader.examples import ALL_PARTS, CONTRADICTED, OTHER_YEAR, SOME_PARTS, TABLE, TABLE_WITHOUT, Example
from training.reader.invented import World
from training.reader.several import Spread
from training.reader.sources import Question, Seen

from ragworth.tasks.answerability import NO_RESPONSE_LABEL
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


def test_comparisons_are_right() -> None:
    world = World(5)
    found = 0
    for _ in range(300):
        spread = several._comparison(world)
        if "founded first" in spread.question:
            years = [int(re.findall(r"(?:founded in|Since) (\d{4})", text)[0]) for text in spread.needed]
            early = spread.needed[years.index(min(years))]
            assert spread.answer in early
            found += 1
    assert found > 10


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


def test_tables_have_the_cell_or_lack_it() -> None:
    found = list(tables.examples(200, 0))
    assert sum(example.kind == TABLE for example in found) == 200
    for example in found:
        text = example.values["passage"]
        if example.kind == TABLE:
            assert example.answer in text
        else:
            assert example.kind == TABLE_WITHOUT and example.answer == NO_RESPONSE_LABEL
    rows = [["film", "place"], ["Iron Road", "Elm"], ["Salt Hour", "Garth"]]
    assert tables._markdown(rows).splitlines()[1:] == ["| --- | --- |", "| Iron Road | Elm |", "| Salt Hour | Garth |"]
    assert tables._records(rows) == "film: Iron Road\nplace: Elm\n\nfilm: Salt Hour\nplace: Garth"
    assert tables._sentences(rows) == "Iron Road (place Elm). Salt Hour (place Garth)."


def test_attacks_change_a_passage_and_nothing_else() -> None:
    world = World(0)
    answered = Example("abstention", {"query": "who?", "passage": "Ann did."}, "Ann", "gold")
    declined = Example("answer", {"query": "who?", "passages": [{"text": "a"}, {"text": "b"}]}, NO_RESPONSE_LABEL, "x")
    for example in (answered, declined):
        for _ in range(80):
            made = attacked(example, world)
            changed = [new for new, old in zip(shown(made), shown(example), strict=True) if new != old]
            assert (made.answer, made.kind, made.prompt) == (example.answer, example.kind, example.prompt)
            assert len(changed) == 1
            if example is declined:
                assert NO_RESPONSE_LABEL not in changed[0]
    assert [text["text"] for text in declined.values["passages"]] == ["a", "b"]
    assert not any(NO_RESPONSE_LABEL in text for text in WANTING_AN_ANSWER)
    assert not any("{w}" in text for text in WANTING_TO_DECLINE)


def test_a_page_of_questions_answers_its_own() -> None:
    one = Example("abstention", {"query": "who built it?"}, "Ann", "")
    others = [Example("abstention", {"query": f"q{n}?"}, f"a{n}", "") for n in range(3)]
    made, without = faq(one, others, random.Random(0))
    assert made.answer == "Ann" and "who built it?" in made.values["passage"] and "a2" in made.values["passage"]
    assert without.answer == NO_RESPONSE_LABEL and "who built it?" not in without.values["passage"]


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


def test_a_pass_has_all_kinds_and_some_attacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wider, "INVENTED", 30)
    monkeypatch.setattr(wider, "TABLES", 20)
    made = list(wider.examples(MILLS, [GROUP], [], 0))
    assert made == list(wider.examples(MILLS, [GROUP], [], 0))
    kinds = {example.kind for example in made}
    assert kinds >= {ALL_PARTS, SOME_PARTS, TABLE, CONTRADICTED, "FAQ", "context without"}
    many = made * 10
    harmed = sum(new != old for new, old in zip(wider.with_attacks(iter(many), 0), many, strict=True))
    assert 0.02 < harmed / len(many) < 0.06
