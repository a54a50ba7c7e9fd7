"""Groups of passages with questions: what the files say is what the reader is taught."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from training.reader import written
from training.reader.examples import Example
from training.reader.sources import plain, seen
from training.reader.texts import holds
from training.reader.written import Group

from ragworth.judging.labels import NO_RESPONSE_LABEL
from tests.training.samples import FERRY

MARKED = ("answering", "disputed", "seeming")


@pytest.fixture
def ferry(tmp_path: Path) -> Group:
    path = tmp_path / "ferry.txt"
    path.write_text(FERRY, encoding="utf-8")
    (group,) = written.read(path)
    return group


def test_a_group_as_it_is_written(ferry: Group) -> None:
    assert ferry.topic == "the ferry of Lonsk"
    assert list(ferry.passages) == [1, 2, 3, 4]
    assert ferry.passages[3].startswith("Tickets for the ferry cost 4 crowns")
    assert [asked.answering for asked in ferry.questions] == [(1,), (2,), (3,), (1,), ()]
    assert ferry.questions[2].answers == ("3 crowns", "three crowns")
    assert ferry.questions[1].seeming == (4,)
    assert ferry.questions[4].answers == ()
    assert ferry.missing(ferry.questions[1]) == [ferry.passages[n] for n in (4, 1, 3)]  # the likeliest mistake first
    assert ferry.missing(ferry.questions[3]) == [ferry.passages[n] for n in (3, 4)]  # what is disputed is left out


@pytest.mark.parametrize(
    ("line", "wrong", "why"),
    [
        (1, "the ferry", "begins with '== '"),
        (4, "Tickets for the ferry", "neither a topic"),
        (7, "? who => Ada Brock", "have '=>' between them"),
        (7, "? who => Ada Brock => 9", "'9' are not all numbers"),
        (7, "? who => Ada Brock => one", "'one' are not all numbers"),
        (7, "? who => Ada Brock =>", "an answer needs a passage"),
        (7, "? who => => 1", "an answer needs a passage"),
        (7, "? who => Ada Brock => 2", "passage 1 has the words"),
        (7, "? who => Ada Brock => 1 2", "passage 2 lacks the words"),
        (8, "? who built the new ferry => Emil Kotta => 2", "passage 4 has the words"),
        (8, "? who built the new ferry => Emil Kotta => 2 4 !4", "named twice"),
        (4, "2: The ferry again", "passage 2 where 3 is next"),
        (9, "5: A late passage.", "after the questions"),
    ],
)
def test_what_cannot_be_right_is_named(tmp_path: Path, line: int, wrong: str, why: str) -> None:
    lines = FERRY.splitlines()
    lines[line - 1] = wrong
    path = tmp_path / "wrong.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(ValueError, match=why) as raised:
        written.read(path)
    assert str(raised.value).startswith(f"{path}:{line}: ")


def shown(example: Example, group: Group) -> set[int]:
    values = example.values
    text = values["passage"] if "passage" in values else "\n".join(each["text"] for each in values["passages"])
    return {n for n, passage in group.passages.items() if passage in text}


def test_answers_are_taught_where_they_are_and_only_there(ferry: Group) -> None:
    right: dict[str, tuple[set[int], set[int]]] = {
        "ferryman": (set(), set()),
        "first": ({1}, set()),
        "new": ({2}, set()),
        "price": ({3}, set()),
    }
    right["there"] = ({1}, {2})
    kinds: Counter[str] = Counter()
    for seed in range(60):
        for example in written.examples([ferry], seed):
            kinds[example.kind] += 1
            (name,) = [word for word in right if word in example.values["query"]]
            answering, disputed = right[name]
            passages = shown(example, ferry)
            assert passages
            assert not passages & disputed
            assert (example.answer != NO_RESPONSE_LABEL) == bool(passages & answering)
            assert example.answer == NO_RESPONSE_LABEL or holds([example.answer], ferry.passages[min(answering)])
    assert set(kinds) == {"written", "written near miss", "context with gold", "context without", "reply"}
    assert kinds["written"] == 60 * 4


def test_to_choose_by_every_passage_is_shown_with_every_question(ferry: Group) -> None:
    every = list(written.held([ferry]))
    assert len(every) == 5 * 4 - 1  # one is disputed
    assert [example.answer for example in every if example.kind == "written"] == [
        *("Ada Brock", "Emil Kotta", "3 crowns", "1904")
    ]
    assert {example.answer for example in every if example.kind != "written"} == {NO_RESPONSE_LABEL}


def test_groups_to_learn_from_and_to_choose_by_are_apart(ferry: Group) -> None:
    groups = [ferry._replace(topic=str(number)) for number in range(1200)]
    learned, chosen_by, judged_by = written.split(groups)
    assert 60 < len(chosen_by) < 140
    assert 60 < len(judged_by) < 140
    every = [group.topic for group in [*learned, *chosen_by, *judged_by]]
    assert sorted(every) == sorted(group.topic for group in groups)
    assert written.split(groups[::-1]).judged_by == judged_by[::-1]  # whatever else there is, and in whatever order


@pytest.mark.slow
def test_the_files_that_are_here_can_be_read_and_repeat_nothing() -> None:
    groups = [group for path in written.files() for group in written.read(path)]
    assert len({group.topic for group in groups}) == len(groups) == 1356
    asked = [(group, each) for group in groups for each in group.questions]
    counts = [len(asked), sum(not each.answers for _, each in asked)]
    counts += [sum(len(getattr(each, name)) for _, each in asked) for name in MARKED]
    counts += [sum(len(group.missing(each)) for group, each in asked)]
    told = (written.FOLDER.parent / "README.md").read_text(encoding="utf-8")
    assert [count for count in counts if f"{count:,}" not in told] == []
    texts = Counter(text for group in groups for text in group.passages.values())
    assert max(texts.values()) == 1
    for group in groups:
        assert 4 <= len(group.passages) <= 8, group.topic
        assert len(group.questions) >= 5, group.topic
        assert list(group.passages) == list(range(1, len(group.passages) + 1)), group.topic


@pytest.mark.real
def test_no_question_of_theirs_is_one_that_the_reader_is_judged_by(data: Path) -> None:
    judged = [data / "rgb" / "en_fact.json.gz", *(data / "clapnq_dev").glob("*.gz")]
    judged += [data / "multihop" / f"{name}.json.gz" for name in ("hotpot", "wikihop")]
    asked = {plain(each.text) for path in written.files() for group in written.read(path) for each in group.questions}
    questions = seen(judged).questions
    assert len(questions) > 500
    assert not asked & questions
