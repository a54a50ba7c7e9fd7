"""Outcomes of answers as scores: what follows from grades, what is missing, and how they are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import pytest

from ragworth.answer_outcomes import (
    given_outcomes,
    main_outcome,
    outcome_direction,
    outcome_scores,
)
from ragworth.comparison import compare, direction, join_scores, summarise, to_scores, value_bounds
from ragworth.core.errors import InputError, MetricError
from ragworth.data import Outcomes, Scores
from ragworth.formats.grades import IN_WORDS


def outcomes(values: Mapping[str, Sequence[float | None]], aspect: str = "grade", **more: Any) -> Outcomes:
    """By system, a value for each query; None was not decided."""
    rows = [
        {
            "system": system,
            "query": f"q{i}",
            "aspect": aspect,
            "value": value,
            "status": "ok" if value is not None else "undecided",
            **more,
        }
        for system, each in values.items()
        for i, value in enumerate(each)
    ]
    return Outcomes(pl.DataFrame(rows, schema_overrides={"value": pl.Float64}))


def by_metric(scores: Scores) -> dict[str, list[float | None]]:
    return {name: scores.having("metric", [name]).frame["value"].to_list() for name in scores.distinct("metric")}


def test_a_grade_gives_shares_and_an_undecided_answer_is_missing() -> None:
    scores = outcome_scores(outcomes({"rag": [1, 0.5, 0, -1, None]}))
    assert by_metric(scores) == {
        "correct": [1, 1, 0, 0, None],  # without support, and right all the same
        "wrong": [0, 0, 0, 1, None],
        "abstained": [0, 0, 1, 0, None],
        "grade": [1, 0.5, 0, -1, None],
    }
    assert scores.frame.filter(pl.col("query") == "q4")["status"].to_list() == ["undecided"] * 4
    row = summarise(outcomes({"rag": [1, 0.5, 0, -1, None]})).row(0, named=True)
    assert (row["metric"], row["mean"], row["n"], row["total"]) == ("correct", 0.5, 4, 5)
    assert row["missing"] == "1 undecided"


def test_zero_and_one_alone_may_mean_wrong_as_well_as_abstained() -> None:
    assert by_metric(outcome_scores(outcomes({"rag": [1, 0]}))) == {"correct": [1, 0], "grade": [1, 0]}
    assert list(by_metric(outcome_scores(outcomes({"rag": [1, 0, 0.5]})))) == ["grade"]
    ours = outcomes({"rag": [1, 0]}, source="deterministic ← answers.jsonl")
    assert by_metric(outcome_scores(ours))["abstained"] == [0, 1]


@pytest.mark.parametrize("values", [[5.0, 3.0], [0.7, -1.0], [0.2, 0.9]], ids=str)
def test_numbers_on_another_scale_give_no_shares(values: list[float]) -> None:
    assert list(by_metric(outcome_scores(outcomes({"rag": [*values]})))) == ["grade"]


def test_people_may_grade_three_ways_or_two() -> None:
    assert list(by_metric(outcome_scores(outcomes({"rag": [1, 0]}, "human")))) == ["human"]
    words = f"labels.csv{IN_WORDS}"
    three = by_metric(outcome_scores(outcomes({"rag": [1, -1, 0]}, "human", source=words)))
    assert three["human-correct"] == [1, 0, 0] and three["human-abstained"] == [0, 0, 1]
    two = by_metric(outcome_scores(outcomes({"rag": [1, -1]}, "human", source=words)))
    assert list(two) == ["human-correct", "human-wrong", "human"]


def test_of_people_s_numbers_nobody_knows_which_abstained() -> None:
    assert list(by_metric(outcome_scores(outcomes({"rag": [1, -1, 0]}, "human")))) == ["human"]
    assert list(by_metric(outcome_scores(outcomes({"rag": [1, -1]}, "human")))) == [
        "human-correct",
        "human-wrong",
        "human",
    ]
    both = [
        outcomes({"a": [1, 0]}, "human").frame,
        outcomes({"b": [1, -1]}, "human", source=f"b.csv{IN_WORDS}").frame,
    ]
    mixed = by_metric(outcome_scores(Outcomes(pl.concat(both, how="diagonal"))))
    assert mixed["human-correct"] == [1, 0, 1, 0] and "human-wrong" not in mixed


def test_grades_of_another_grader_keep_its_name() -> None:
    both = [outcomes({"rag": [1, -1]}).frame, outcomes({"rag": [-1, -1]}, "judge-grade").frame]
    found = by_metric(outcome_scores(Outcomes(pl.concat(both))))
    assert (found["correct"], found["judge-correct"]) == ([1, 0], [0, 0])
    assert (direction("judge-wrong"), direction("judge-correct"), direction("judge-abstained")) == (-1, 1, 0)
    assert value_bounds("judge-grade") == (-1, 1)


def test_an_outcome_that_is_given_is_not_overwritten() -> None:
    both = [outcomes({"rag": [1, -1]}).frame, outcomes({"rag": [0, 0]}, "correct").frame]
    found = by_metric(outcome_scores(Outcomes(pl.concat(both))))
    assert found["correct"] == [0, 0] and found["grade-correct"] == [1, 0]


def test_several_answers_to_a_query_are_counted_one_by_one() -> None:
    table = outcomes({"rag": [0.0, 1 / 3]}, source="deterministic")
    said = pl.DataFrame(
        {"system": "rag", "query": ["q0", "q1"], "aspect": "grade", "each": [[1.0, -1.0], [1.0, 1.0, -1.0]]}
    )
    assert by_metric(outcome_scores(table, {"grade": said}))["correct"] == [0.5, pytest.approx(2 / 3)]
    alone = outcome_scores(table).having("metric", ["wrong"]).frame
    assert alone["status"].to_list() == ["ok", "several-answers"]  # the mean of a third doesn't say how many are wrong


def test_people_go_before_graders() -> None:
    assert main_outcome(["correct", "wrong", "human"]) == "human"
    assert main_outcome(["wrong", "abstained", "grade", "correct", "em"]) == "correct"
    assert main_outcome(["em", "f1"]) == "em"
    assert main_outcome(["wrong", "abstained", "PPL"]) is None


def test_verdicts_in_the_data_go_before_our_graders_and_after_people() -> None:
    ours = outcomes({"rag": [1, -1]}, source="deterministic ← log.jsonl").frame
    passed = outcomes({"rag": [1, 0]}, "pass", source="results.json").frame
    both = Outcomes(pl.concat([ours, passed]))
    assert given_outcomes(both) == {"pass", "pass-correct", "pass-wrong", "pass-abstained"}
    names = outcome_scores(both).distinct("metric")
    assert main_outcome(names, given_outcomes(both)) == "pass"
    assert main_outcome([*names, "human-preference"], given_outcomes(both)) == "human-preference"
    measured = outcomes({"rag": [0.5, 1]}, "faithfulness", source="text.jsonl").frame
    support = Outcomes(pl.concat([ours, measured]))  # says nothing of whether an answer is right
    assert main_outcome(outcome_scores(support).distinct("metric"), given_outcomes(support)) == "correct"
    words = outcomes({"rag": [1, -1]}, "grade", source=f"log.jsonl{IN_WORDS}").frame
    renamed = ours.with_columns(aspect=pl.lit("deterministic-grade"))
    graded = Outcomes(pl.concat([renamed, words]))
    assert main_outcome(outcome_scores(graded).distinct("metric"), given_outcomes(graded)) == "correct"


@pytest.mark.parametrize(
    "name", ["score", "rating", "quality", "context_correctness", "judge_faithfulness", "retrieval_accuracy"]
)
def test_measures_and_scores_of_anything_go_after_our_graders(name: str) -> None:
    assert main_outcome(["correct", "f1", name], {name}) == "correct"


def test_verdicts_in_words_have_shares() -> None:
    table = outcomes({"rag": [1, 1, -1]}, "verdict", source=f"log.jsonl{IN_WORDS}")
    found = by_metric(outcome_scores(table))
    assert found["verdict-correct"] == [1, 1, 0] and found["verdict-wrong"] == [0, 0, 1]
    assert main_outcome(list(found), given_outcomes(table)) == "verdict-correct"


# Comparison


def test_correctness_is_compared_with_interval_and_test() -> None:
    made = compare(outcomes({"closed-book": [-1] * 30 + [1] * 10, "rag": [1] * 35 + [-1] * 5}))
    row = made.differences.filter(pl.col("metric") == "correct").row(0, named=True)
    assert row["difference"] == pytest.approx(25 / 40)
    assert 0 < row["low"] < row["difference"] < row["high"] and row["p_holm"] < 0.001
    assert made.worse("correct").is_empty()
    assert made.worse("wrong").is_empty()
    back = compare(outcomes({"rag": [1] * 35 + [-1] * 5, "closed-book": [-1] * 30 + [1] * 10}))
    assert back.worse("correct").height == back.worse("wrong").height == 1


def test_wins_follow_the_direction_and_abstaining_has_none() -> None:
    made = compare(outcomes({"a": [-1, 0, 1], "b": [1, 1, 1]}))
    rows = {row["metric"]: row for row in made.differences.iter_rows(named=True)}
    assert (rows["wrong"]["wins"], rows["wrong"]["losses"]) == (1, 0)
    assert (rows["abstained"]["wins"], rows["abstained"]["losses"]) == (None, None)
    with pytest.raises(MetricError, match="neither better nor worse"):
        made.worse("abstained")


def test_the_same_system_in_two_places_is_compared_with_itself() -> None:
    old, new = outcomes({"rag": [1, 1, 1], "other": [1, 0, 1]}), outcomes({"rag": [1, -1, -1], "other": [1, 0, 1]})
    scores, pairs, lost = join_scores({"main": old, "branch": new})
    assert lost == () == scores.notes
    assert pairs == [("main/rag", "branch/rag"), ("main/other", "branch/other")]
    made = compare({"main": old, "branch": new}).differences.filter(pl.col("metric") == "correct")
    assert made.select("baseline", "system", "difference").rows() == [
        ("main/rag", "branch/rag", pytest.approx(-2 / 3)),
        ("main/other", "branch/other", 0.0),
    ]
    assert set(scores.distinct("system")) == {"main/rag", "main/other", "branch/rag", "branch/other"}


def test_different_systems_in_two_places_keep_their_names() -> None:
    scores, pairs, _ = join_scores({"a": outcomes({"rag": [1, 0]}), "b": outcomes({"closed-book": [0, 0]})})
    assert (scores.distinct("system"), pairs) == (["rag", "closed-book"], None)


def test_systems_without_a_counterpart_are_noted() -> None:
    old, new = outcomes({"rag": [1, 1], "gone": [1, 0]}), outcomes({"rag": [1, 1], "added": [1, 0]})
    scores, pairs, lost = join_scores({"main": old, "branch": new})
    assert pairs == [("main/rag", "branch/rag"), ("main/rag", "branch/added")]
    assert lost == ("branch/gone",)
    assert scores.notes == (
        "main has no added, so branch/added is compared with main/rag",
        "branch has no gone, so nothing there is compared with main/gone",
    )


def test_a_system_that_others_are_compared_with_is_not_lost() -> None:
    old, new = outcomes({"bm25": [1, 1]}), outcomes({"dense": [1, 0]})
    joined = join_scores({"main": old, "one": new, "two": new})
    assert joined.pairs == [("main/bm25", "one/dense"), ("main/bm25", "two/dense")]
    assert joined.lost == ()
    assert [note for note in joined.scores.notes if "nothing" in note] == []
    three = join_scores({"main": outcomes({"a": [1], "b": [1]}), "one": outcomes({"a": [1]}), "two": old})
    assert three.lost == ("one/b", "two/b")


def test_what_cannot_be_compared_is_said() -> None:
    with pytest.raises(InputError, match="'int' can't be compared"):
        to_scores(3)  # type: ignore[arg-type]


def test_a_comparison_in_a_notebook_escapes_names() -> None:
    html = compare(outcomes({"<b>a": [1, 0], "b": [1, 1]}))._repr_html_()
    assert "&lt;b&gt;a" in html and "<b>a" not in html
    assert html.startswith("<table>") and "correct" in html


@pytest.mark.parametrize(
    ("name", "better"),
    [
        ("Toxicity", -1),
        ("noise_sensitivity(mode=relevant)", -1),
        ("lower_accuracy", -1),
        ("lower_latency", -1),
        ("higher_mark", 1),
        ("faithfulness", 1),
        ("Contextual Recall [GEval]", 1),
        ("answerRelevancy", 1),
        ("human-overall-preference", 1),
        ("human_correctness", 1),
        ("human_toxicity", -1),
        ("human_slips", 0),
        ("latency_ms", 0),
        ("schulnote", 0),
        ("hallucination_free", 0),
    ],
)
def test_the_name_of_a_foreign_score_says_which_way_it_is_better(name: str, better: int) -> None:
    assert outcome_direction(name) == direction(name) == better


def test_what_is_incorrect_is_not_the_best_outcome() -> None:
    assert main_outcome(["faithfulness", "hallucination"]) == "faithfulness"
    assert main_outcome(["latency", "hallucination"]) == "hallucination"
    assert main_outcome(["latency", "schulnote"]) is None
    assert main_outcome(["faithfulness", "answer_correctness"]) == "answer_correctness"


def test_the_verdict_rests_on_a_score_of_answers_where_higher_is_better() -> None:
    assert main_outcome(["latency_ms", "hallucination", "context_recall", "faithfulness"]) == "faithfulness"
    assert main_outcome(["faithfulness", "context_recall", "answer_correctness"]) == "answer_correctness"
    assert main_outcome(["latency_ms", "timestamp"]) is None
