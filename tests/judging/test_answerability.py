"""Models that were taught to decline: calibrated, and asked whether they answer instead of for a label.

By hand throughout, with a temperature of 2: p = 0.9 has odds 9, whose square root is 3, so that it becomes 3/4;
p = 0.1 becomes 1/4.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ragworth
from ragworth.core.errors import InputError, ModelError
from ragworth.judging.labels import answerability_labels, calibrate, choose_label_method
from ragworth.judging.runner import annotate
from ragworth.llm.contract import Card, Choose, Request
from ragworth.llm.scripted import Scripted, ScriptedReply
from tests.judging.annotators.samples import QUESTIONS, RUN, WORLD, by_passage, by_text, column

LABELS = {"query": ["q1", "q1"], "passage": ["p1", "p2"], "relevance": [1, 0]}
SAID: dict[str, ScriptedReply] = {"p1": {"NO-RESPONSE": 0.1}, "p2": {"NO-RESPONSE": 0.9}}


def reader(script: Any = None, *, declining: float | None = 2.0, **options: Any) -> Scripted:
    """A model that declines, by default as `SAID` says."""
    model = Scripted(script or by_passage(SAID, {"NO-RESPONSE": 0.5}), **options)
    model.card = replace(model.card, declining=declining)
    return model


def test_a_probability_is_calibrated() -> None:
    card = Card("scripted", "m", declining=2.0)
    assert calibrate(0.9, card) == pytest.approx(0.75)
    assert calibrate(0.9, card) == pytest.approx(1 / (1 + math.exp(-math.log(9) / 2)))
    assert calibrate(0.1, card) == pytest.approx(0.25)
    assert [calibrate(p, card) for p in (0.0, 0.5, 1.0)] == [0.0, 0.5, 1.0]
    assert calibrate(0.9, replace(card, declining=1.0)) == pytest.approx(0.9)
    assert calibrate(0.9, replace(card, declining=None)) == 0.9
    assert 0 <= calibrate(5e-324, replace(card, declining=0.3)) < calibrate(1 - 2**-53, card) <= 1


MAPPED = "answerability, calibrated p (log-odds / 2), mapped to 0–5"


@pytest.mark.parametrize(
    ("settings", "chosen", "words"),
    [({}, "p_calibrated", "calibrated p (log-odds / 2)"), ({"calibrated": False}, "p_raw", "raw p")],
)
def test_abstention_has_both_p_and_says_which_is_its_value(settings: Any, chosen: str, words: str) -> None:
    found = annotate("abstention", RUN, WORLD, reader(), k=2, **settings)
    assert column(found, "p_raw") == {"p1": 0.1, "p2": 0.9}
    assert column(found, "p_calibrated") == pytest.approx({"p1": 0.25, "p2": 0.75})
    for name in ("value", "low", "high"):  # this model knows its probabilities exactly
        assert column(found, name) == column(found, chosen)
    assert all(source.endswith(f"· first-token, {words}") for source in found.frame["source"])
    assert f"p_abstain is the {words} of 2 passages" in found.notes
    scores = ragworth.score(RUN, [found.table, ragworth.Judgments(LABELS)], ["UDCG@2"])
    assert f"p_abstain is the {words} of 2 passages" in scores.notes


def test_a_model_without_a_calibration_has_one_p() -> None:
    found = annotate("abstention", RUN, WORLD, reader(declining=None), k=2)
    assert column(found, "value") == column(found, "p_raw") == {"p1": 0.1, "p2": 0.9}
    assert column(found, "p_calibrated") == {"p1": None, "p2": None}
    assert not [note for note in found.notes if note.startswith("p_abstain is")]


def test_relevance_is_whether_it_answers() -> None:
    found = annotate("relevance", RUN, WORLD, reader(), k=2)
    assert column(found, "value") == {"p1": 1.0, "p2": 0.0}
    assert column(found, "p") == pytest.approx({"p1": 0.75, "p2": 0.25})
    assert column(found, "expected") == column(found, "mass") == {"p1": None, "p2": None}
    assert all(
        "abstention@" in source and source.endswith("· answerability, calibrated p (log-odds / 2)")
        for source in found.frame["source"]
    )


def test_at_even_odds_a_passage_is_relevant() -> None:
    found = annotate("relevance", RUN, WORLD, reader(by_passage({"p1": {"NO-RESPONSE": 0.5}})), k=1)
    assert column(found, "value") == {"p1": 1.0}


def test_grades_are_the_nearest_to_the_share() -> None:
    found = annotate("relevance", RUN, WORLD, reader(), k=2, graded=True)
    assert column(found, "expected") == pytest.approx({"p1": 2.25, "p2": 0.75})  # 3 · 3/4, 3 · 1/4
    assert column(found, "value") == {"p1": 2.0, "p2": 1.0}


def test_ratings_are_whether_it_answers_the_sub_question() -> None:
    asked = {QUESTIONS["a"]: {"NO-RESPONSE": 0.1}, QUESTIONS["b"]: {"NO-RESPONSE": 0.9}}
    found = annotate("ratings", RUN, WORLD, reader(by_text(asked, {"NO-RESPONSE": 1.0})), k=1)
    expected = {"a": 3.75, "b": 1.25}  # 5 · 3/4, 5 · 1/4
    assert column(found, "expected", "subquestion") == pytest.approx(expected)
    assert column(found, "value", "subquestion") == {"a": 4.0, "b": 1.0}
    assert all("abstention@" in source and source.endswith(f"· {MAPPED}") for source in found.frame["source"])
    assert sum("answerability, not graded quality" in note for note in found.notes) == 1


def test_coverage_is_whether_the_answer_answers_the_sub_questions() -> None:
    asked = {QUESTIONS["a"]: {"NO-RESPONSE": 0.1}, QUESTIONS["b"]: {"NO-RESPONSE": 0.9}}
    answers = ragworth.Answers([{"system": "x", "query": "q1", "repeat": 0, "text": "Ann built it.", "status": "ok"}])
    graded = ragworth.grade("coverage", answers, WORLD, reader(by_text(asked, {"NO-RESPONSE": 1.0})))
    row = graded.frame.row(0, named=True)
    # 4 is at least 3, 1 is not: one of two.
    assert (row["aspect"], row["value"], row["ratings"]) == ("coverage", 0.5, [4.0, 1.0])
    assert "abstention@" in row["source"]
    assert row["source"].endswith(f"· {MAPPED}")
    assert sum("answerability, not graded quality" in note for note in graded.notes) == 1


def test_one_that_always_or_never_answers_is_at_the_ends_of_the_scale() -> None:
    for p, value in ((0.0, 5.0), (1.0, 0.0)):
        found = annotate("ratings", RUN, WORLD, reader(by_passage({}, {"NO-RESPONSE": p})), k=1)
        assert set(found.frame["value"]) == {value}


def test_labels_can_still_be_asked_for() -> None:
    def script(request: Request) -> ScriptedReply:
        assert isinstance(request, Choose)
        assert request.labels == ("YES", "NO")
        return {"YES": 0.6, "NO": 0.2}

    found = annotate("relevance", RUN, WORLD, reader(script), k=1, how="labels")
    assert found.frame[["value", "p"]].row(0) == (1.0, pytest.approx(0.75))
    assert "relevance@" in found.frame["source"][0]


def test_any_model_can_be_asked_for_answerability() -> None:
    found = annotate("relevance", RUN, WORLD, reader(declining=None), k=2, how="answerability")
    assert column(found, "p") == pytest.approx({"p1": 0.9, "p2": 0.1})  # as it is: nothing calibrates it
    found = annotate("relevance", RUN, WORLD, reader(lambda _: {"YES": 0.9}, declining=None), k=1)
    assert "relevance@" in found.frame["source"][0]  # but it is not by itself


def test_what_no_passage_answers_is_not_asked_in_that_way() -> None:
    card = reader().card
    assert choose_label_method(card, "auto", "grades") == "labels"
    with pytest.raises(InputError, match="how='answerability' is not possible for grades") as error:
        choose_label_method(card, "answerability", "grades")
    assert error.value.expected == "auto, labels, parsed"
    with pytest.raises(ModelError):
        choose_label_method(
            replace(card, abilities=frozenset({"generate"})), "answerability", "relevance", answerable=True
        )


def test_abstention_and_relevance_share_their_calls(tmp_path: Path) -> None:
    model, store = reader(), tmp_path / "calls.sqlite"
    annotate("abstention", RUN, WORLD, model, k=2, store=store, floor=0)
    before = model.calls
    assert before > 0
    found = annotate("relevance", RUN, WORLD, model, k=2, store=store)
    again = annotate("relevance", RUN, WORLD, model, k=2, store=store, graded=True)
    assert model.calls == before
    assert found.frame["status"].to_list() == again.frame["status"].to_list() == ["ok", "ok"]


def test_an_endpoint_is_asked_for_one_label_alone() -> None:
    card = Card("openai", "m", endpoint="http://localhost")
    assert answerability_labels(card) == ("NO-RESPONSE",)
    assert answerability_labels(replace(card, endpoint=""))[0] == "NO-RESPONSE"
