"""What is said of judges that cannot be trusted, and of inputs that graders cannot do without."""

from __future__ import annotations

from typing import Any

import pytest

import ragworth
from ragworth.calls.job import Job
from ragworth.core.errors import InputError
from ragworth.judging import GRADERS, runner
from ragworth.judging.contract import plan_task
from ragworth.llm.contract import Request
from ragworth.llm.scripted import Scripted, ScriptedReply

TEXTS = ragworth.Collection.of(
    queries={"query": ["q1", "q2"], "text": ["Who built the mill?", "Who swims?"]},
    answers={"query": ["q1", "q2"], "text": ["Ann", "ducks"]},
    subquestions={"query": ["q1", "q1", "q2"], "subquestion": ["s1", "s2", "s1"], "text": ["S1", "S2", "T1"]},
)
IDEAL = [
    {"system": "x", "query": "q1", "text": "Ann"},
    {"system": "x", "query": "q2", "text": "Geese"},
    {"system": "(oracle)", "query": "q1", "text": "Ann Lee"},
    {"system": "(oracle)", "query": "q2", "text": "Ducks do"},
]
MINE = IDEAL[:2]


def against_itself(best: str) -> Scripted:
    """A judge that gives ``best`` to an answer that is the ideal one, and 3 to the first of the others, else 2."""

    def reply(request: Request) -> ScriptedReply:
        text = request.prompt.messages[-1].content
        if any(text.count(ideal) == 2 for ideal in ("Ann Lee", "Ducks do")):
            return {best: 1.0}
        return {"3" if "mill" in text else "2": 1.0}

    return Scripted(reply)


def test_the_ideal_answers_are_a_control() -> None:
    graded = ragworth.grade("ideal", IDEAL, TEXTS, against_itself("5"))
    assert graded.frame.select("system", "value").rows() == [("x", 3.0), ("x", 2.0)]
    assert set(graded.answers["system"]) == {"x"}
    assert graded.notes == ("against itself the ideal answer gets a mean of 5.00 (5 expected)",)


def test_a_judge_that_does_not_know_its_own() -> None:
    graded = ragworth.grade("ideal", IDEAL, TEXTS, against_itself("3"))
    assert graded.notes == (
        "against itself the ideal answer gets a mean of 3.00 (5 expected)",
        "a mean below 4 of answers against themselves: don't trust this model's grades, which stay in the table",
    )


def test_controls_are_planned_for() -> None:
    with Job(against_itself("5")) as job:
        book = runner.to_answer_book(IDEAL)
        grader = runner.build_judge(GRADERS, "ideal", job.card, TEXTS, None, {}, book)
        assert plan_task(grader, grader.items(book.answers), job).plan.asked == 4


def test_against_accepted_answers_the_oracles_are_answers_like_others() -> None:
    graded = ragworth.grade("ideal", IDEAL, TEXTS, against_itself("5"), ideal="accepted")
    assert graded.frame["system"].to_list() == ["x", "x", "(oracle)", "(oracle)"]
    assert not any("itself" in note for note in graded.notes)


LITTLE = "the labels hold little probability (median {} over {}): the model would rather say something else"


@pytest.mark.parametrize(
    ("kind", "labels", "notes"),
    [
        ("judge", {"WRONG": 0.02}, [LITTLE.format("0.02", "2 grades"), "all 2 grades are the same: wrong"]),
        ("judge", {"WRONG": 0.5}, ["all 2 grades are the same: wrong"]),
        (
            "coverage",
            {"4": 0.001},
            [
                LITTLE.format("0.001", "2 answers"),
                "all 3 ratings are the same: 4",
                "tokens are counted as words and punctuation marks",
                "2 queries without ratings: all sub-questions count as answerable, and there is no density",
            ],
        ),
    ],
)
def test_judges_that_say_the_same_to_everything(kind: str, labels: dict[str, float], notes: list[str]) -> None:
    graded = ragworth.grade(kind, MINE, TEXTS, Scripted({"*": labels}))
    assert [note for note in graded.notes if "have a value" not in note] == notes


def test_ideal_scores_that_are_all_the_same() -> None:
    notes = ragworth.grade("ideal", IDEAL, TEXTS, Scripted({"*": {"5": 0.04}})).notes
    assert notes[:2] == (LITTLE.format("0.04", "2 grades"), "all 2 grades are the same: 5")


def test_one_grade_and_graders_by_words_are_not_doubted() -> None:
    assert ragworth.grade("judge", MINE[:1], TEXTS, Scripted({"*": {"WRONG": 1.0}})).notes == ()
    assert ragworth.grade("deterministic", [IDEAL[0], IDEAL[2]], TEXTS).notes == ()


@pytest.mark.parametrize(
    ("kind", "settings", "words"),
    [
        ("deterministic", {}, "deterministic needs accepted answers"),
        ("text", {}, "text needs accepted answers"),
        ("judge", {}, "judge needs accepted answers"),
        ("ideal", {"ideal": "accepted"}, "ideal needs accepted answers"),
        ("ideal", {}, r"no answers of the system '\(oracle\)'"),
    ],
)
def test_what_graders_cannot_do_without(kind: str, settings: dict[str, Any], words: str) -> None:
    model = Scripted({"*": "?"})
    bare = ragworth.Collection.of(queries=TEXTS.queries, answers={"query": ["q9"], "text": ["Ann"]})
    with pytest.raises(InputError, match=words) as caught:
        ragworth.grade(kind, MINE, bare, model, **settings)
    assert "to do:" in str(caught.value)
    assert model.calls == 0


@pytest.mark.parametrize("kind", ["judge", "ideal"])
def test_questions_without_a_text(kind: str) -> None:
    bare = ragworth.Collection.of(answers=TEXTS.answers)
    with pytest.raises(InputError, match=f"{kind} needs texts of queries"):
        ragworth.grade(kind, IDEAL, bare, Scripted({"*": "?"}))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"limit": -1}, "limit is -1"),
        ({"sample": 0}, "sample is 0"),
        ({"sample": "3"}, "sample is '3'"),
        ({"citations": "yes"}, "citations is 'yes'; it may be true or false"),
        ({"length": "3"}, "length is '3'; it may be a whole number 1 or more"),
        ({"how": None}, "how is None"),
    ],
)
def test_settings_of_the_wrong_kind(settings: dict[str, Any], words: str) -> None:
    model = Scripted({"*": {"WRONG": 1.0}})
    with pytest.raises(InputError, match=words):
        ragworth.grade("judge", MINE, TEXTS, model, **settings)
    assert model.calls == 0


def test_a_model_by_its_written_form(tmp_path: Any) -> None:
    script = tmp_path / "says.json"
    script.write_text('{"*": {"WRONG": 1.0}}')
    graded = ragworth.grade("judge", MINE, TEXTS, f"scripted:{script}")
    assert graded.frame["label"].to_list() == ["wrong", "wrong"]
    script.write_text('{"*": "Ann"}')
    assert ragworth.answer(None, TEXTS, f"scripted:{script}", without=True).frame["text"].to_list() == ["Ann", "Ann"]
