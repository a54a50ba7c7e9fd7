"""The numbers of a report against counts made by hand, on results with something missing or out of the ordinary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

pytest.importorskip("altair")

import ragworth
from ragworth.cli.evaluate import leaderboard
from ragworth.comparison import RankedSystems, compare
from ragworth.data import OK, Answers, Contexts, Judgments, Outcomes, Ratings
from ragworth.report import page
from ragworth.report.document import Heading
from ragworth.report.page import explorer
from ragworth.report.page.overview import _sentence
from ragworth.report.page.rankings import MetricMean, Ranking, SystemGroups
from ragworth.report.page.relations import RESAMPLES, _best_sentence, outcome_predictions
from ragworth.report.page.sections.answers import outcome_table
from ragworth.report.page.sections.diagnosis import _finding
from ragworth.report.page.sections.verdict import leaderboard as leaderboard_table
from ragworth.report.renderers.html import render_block
from ragworth.results import Results
from ragworth.stats.pooled import pooled_correlations
from tests.report.page import samples
from tests.report.page.small_samples import GRADES, results, with_values
from tests.report.unpack import unpack_json


def standing(made: page.Page, system: str) -> Any:
    return next(each for each in made.overview.standings if each.system == system)


def test_what_the_model_does_not_read_is_not_shown() -> None:
    """k is 2, and nDCG looks at three: the third passages are no part of the diagnosis and of the shares."""
    made = page.build(results(["UDCG@2", "nDCG@3"], GRADES, manifest={"settings": {"k": 2}}))
    found = {(s, q, f) for s, q, f, _ in made.diagnosis.frame.iter_rows()}
    # q1 of one shows w and h: r, at rank 3, is not read. q2 of two shows h and w.
    assert {(s, q) for s, q, f in found if f == "nothing-relevant"} == {("one", "q1"), ("two", "q2")}
    assert ("one", "q1", "misled") in found
    counts = {(s, f): (n, of) for s, f, n, of in made.diagnosis.counts.iter_rows()}
    assert counts["one", "misled"] == (1, 2)  # x, which nobody judged, is at rank 3
    assert (standing(made, "one").judged, standing(made, "one").shown) == (4, 4)
    assert standing(made, "one").misleading == pytest.approx(2 / 4)
    ranks = next(each for each in made.figure_set.figures if each.name == "ranks").data
    assert set(ranks["place"]) == {1, 2}
    assert "3 different passages shown" in made.document.lead
    index = unpack_json(explorer.build_explorer(made.results, made.facts, made.overview, made.diagnosis).index)
    assert index["k"] == 2


def test_shares_say_how_many_they_are_from() -> None:
    made = page.build(results(["UDCG@3"], GRADES))
    two = standing(made, "two")
    # r w x and h w r, x not judged: one of five misleads. A partially correct answer is right, if without support.
    assert (two.misleading, two.judged, two.shown) == (pytest.approx(1 / 5), 5, 6)
    assert two.sentence.endswith("; 20 % of its passages mislead (5 of 6 judged).")
    board = render_block(leaderboard_table(made.overview, set()))
    assert '20 %<small title="passages" class="warn">5 of 6</small>' in board
    assert made.answers is not None
    answers = render_block(outcome_table(made.answers))
    assert '<small class="warn">1 of 2: 1 empty-answer </small>' in answers
    assert '<small class="warn">1 of 2, so 50 to 100 % of all: 1 empty-answer </small>' in answers
    figure = next(each for each in made.figure_set.figures if each.name == "grades")
    decided = "Shares are of the decided answers, which aren't a random part: one 2 of 2, two 1 of 2."
    assert figure.caption.endswith(decided)
    assert "<small>2 of 2</small>" in answers


def test_several_answers_to_a_query_are_counted_one_by_one() -> None:
    """Correct once and wrong once is not abstained, though the mean of the grades is 0."""
    each: dict[tuple[str, str], list[float | None]] = {
        ("one", "q1"): [1.0, -1.0], ("one", "q2"): [1.0, None], ("two", "q1"): [0.0, 0.0], ("two", "q2"): [-1.0],
    }  # fmt: skip
    means = {pair: float(np.mean([value for value in values if value is not None])) for pair, values in each.items()}
    rows = [{"system": s, "query": q, "aspect": "grade", "each": values} for (s, q), values in each.items()]
    said = pl.DataFrame(rows, schema_overrides={"each": pl.List(pl.Float64)})
    made = page.build(results(["UDCG@3"], means, said={"grade": said}))
    figure = next(each for each in made.figure_set.figures if each.name == "grades").data
    counts = {(s, kind): n for s, kind, n in figure.select("system", "kind", "count").iter_rows() if n}
    assert counts == {("one", "correct"): 2, ("one", "wrong"): 1, ("two", "abstained"): 2, ("two", "wrong"): 1}
    assert made.facts.grades == {
        ("one", "q1"): "wrong", ("one", "q2"): "correct", ("two", "q1"): "abstained", ("two", "q2"): "wrong",
    }  # fmt: skip


def test_numbers_on_another_scale_are_no_grades() -> None:
    made = page.build(results(["UDCG@3"], dict.fromkeys(GRADES, 1.0) | {("one", "q1"): 5.0}))
    why = "outcomes called grade are no grades: they lie outside −1 (wrong) to 1 (correct)"
    assert made.figure_set.absent["Correct, abstained, wrong"] == why
    assert made.diagnosis.absent["misled"] == why
    index = unpack_json(explorer.build_explorer(made.results, made.facts, made.overview, made.diagnosis).index)
    assert index["graded"] is False
    assert index["grades"] == [[None, None], [None, None]]


def test_a_metric_of_which_lower_is_better_predicts_by_going_down() -> None:
    rng = np.random.default_rng(5)
    pairs = [(f"s{i}", f"q{j}") for i in range(4) for j in range(50)]
    truth = rng.uniform(size=len(pairs))
    columns = {"nDCG@5": truth + rng.normal(0, 0.5, len(pairs)), "Distraction@5": -truth}
    scores = ragworth.Scores(
        [
            {"system": s, "query": q, "metric": name, "value": float(v)}
            for name, values in columns.items()
            for (s, q), v in zip(pairs, values, strict=True)
        ]
    )
    rows = [{"system": s, "query": q, "aspect": "good", "value": v} for (s, q), v in zip(pairs, truth, strict=True)]
    found = outcome_predictions(with_values(scores, Outcomes(rows)), list(columns), 0)
    assert found["metric"].to_list() == ["Distraction@5", "nDCG@5"]
    assert found["rho"][0] == pytest.approx(-1.0)
    assert found["apart"].to_list() == [None, True]
    assert found["reliable"].to_list() == [True, True]


def predictions(columns: Mapping[str, Any], truth: Any) -> pl.DataFrame:
    """How well metrics predict an outcome of 3 systems, in the order of their queries."""
    pairs = [(f"s{i % 3}", f"q{i // 3}") for i in range(len(truth))]
    score_rows = [
        (s, q, name, float(v), OK) for name, vs in columns.items() for (s, q), v in zip(pairs, vs, strict=True)
    ]
    outcome_rows = [(s, q, "grade", float(v), OK, "") for (s, q), v in zip(pairs, truth, strict=True)]
    scores = ragworth.Scores(pl.DataFrame(score_rows, schema=ragworth.Scores.schema, orient="row"))
    outcomes = Outcomes(pl.DataFrame(outcome_rows, schema=Outcomes.schema, orient="row"))
    return outcome_predictions(with_values(scores, outcomes), list(columns), 0)


def test_the_interval_of_a_correlation_is_that_of_studies() -> None:
    """It stays within −1 and 1 and isn't symmetric, as the percentile interval nearly is."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=90)
    near = truth + rng.normal(0, 0.3, 90)
    found = predictions({"near": near, "nDCG@5": rng.normal(size=90)}, truth).row(0, named=True)
    one, _ = pooled_correlations(
        np.stack([near, near], axis=1), truth, [f"q{i // 3}" for i in range(90)], resamples=RESAMPLES
    )
    assert (found["rho"], found["low"], found["high"]) == pytest.approx((one.value, one.low, one.high))
    assert found["rho"] - found["low"] > 1.3 * (found["high"] - found["rho"])


def test_noise_predicts_nothing() -> None:
    """Of 8 metrics of noise, the highest has an interval above 0, but not with one that allows for the choice."""
    rng = np.random.default_rng(2)
    noise, truth = rng.normal(size=(8, 90)), rng.normal(size=90)
    found = predictions({f"m{i}": row for i, row in enumerate(noise)}, truth)
    assert found["low"][0] > 0
    assert not found["reliable"].any()
    assert _best_sentence("grade", found).startswith("No metric reliably predicts grade; m")


@pytest.mark.parametrize(("right", "queries", "reliable"), [(2, 20, False), (8, 20, True), (2, 4, False)])
def test_a_few_right_answers_say_nothing_reliable(right: int, queries: int, reliable: bool) -> None:
    """The metric is higher for all right answers. That may be chance with answers to two queries, or with four."""
    truth = np.repeat(np.arange(queries) < right, 3).astype(float)
    found = predictions({"nDCG@5": truth + np.random.default_rng(0).random(3 * queries) / 2}, truth)
    assert found["rho"][0] > 0.4
    assert found["reliable"].to_list() == [reliable]


def test_a_metric_that_goes_against_the_answers_is_not_called_close() -> None:
    truth = np.random.default_rng(1).normal(size=90)
    said = _best_sentence("grade", predictions({"against": -truth}, truth))
    assert said.startswith(
        "No metric reliably predicts grade; against comes closest, in the wrong direction: ρ = −1.00"
    )


def test_metrics_with_the_same_values_predict_alike() -> None:
    rng = np.random.default_rng(1)
    truth = rng.normal(size=90)
    near = truth + rng.normal(size=90)
    found = predictions({"near": near, "copy": near, "noise": rng.normal(size=90)}, truth)
    said = _best_sentence("grade", found)
    assert said.startswith("near, copy predict grade best: ρ = 0.")
    assert said.endswith("; 1 other significantly worse.")
    assert _best_sentence("grade", predictions({"same": truth[:30]}, truth[:30])) == (
        "same predicts grade best: ρ = 1.00 (no interval). With 10 queries this is only a hint."
    )


@pytest.mark.slow
def test_the_explorer_goes_by_the_same_rating_as_the_diagnosis() -> None:
    """With η = 5, a sub-question whose best rating is 4 has no answer anywhere."""
    given = samples.realistic(queries=2, requests=1)
    assert given.ratings is not None
    frame = given.ratings.frame.with_columns(
        value=pl.when(pl.col("subquestion") == "r1.1").then(pl.min_horizontal("value", 4.0)).otherwise(5.0)
    )
    made = page.build(replace(given, ratings=Ratings(frame)), eta=5.0)
    packed = explorer.build_explorer(made.results, made.facts, made.overview, made.diagnosis)
    table = unpack_json(packed.pieces[0])["subquestions"]["columns"]
    answerable = dict(zip(table["subquestion"]["v"], table["answerable"]["v"], strict=True))
    assert answerable.pop("r1.1") is False
    assert all(answerable.values())


def test_one_system_and_one_query_make_a_report() -> None:
    given = results(["UDCG@3", "nDCG@3"], GRADES)
    contexts = Contexts(given.contexts.frame.filter((pl.col("system") == "two") & (pl.col("query") == "q1")))
    alone = replace(
        given,
        contexts=contexts,
        scores=ragworth.score(contexts, Judgments(given.judgments.frame.filter(pl.col("query") == "q1")), ["nDCG@3"]),  # type: ignore[union-attr]
        answers=Answers([{"system": "two", "query": "q1", "text": "so"}]),
        outcomes=Outcomes([{"system": "two", "query": "q1", "aspect": "grade", "value": 1.0}]),
    )
    made = page.build(alone)
    assert standing(made, "two").sentence == (
        "two has a mean nDCG@3 of 1.00, no interval from one query; 0 % of its passages mislead (2 of 3 judged)."
    )
    assert "1 of 1" in made.html


def test_the_terminal_says_where_means_are_from_fewer_queries() -> None:
    """UDCG@3 of one has no value for q2, where x was not judged; for two it has none for q1."""
    table = leaderboard(page.build(results(["UDCG@3", "nDCG@3"], {})))
    assert [value.endswith(" 1 of 2") for value in table["UDCG@3"]] == [True, True]
    assert not any(" of " in value for value in table["nDCG@3"])


def ranking(row: dict[str, Any]) -> Ranking:
    ranked = RankedSystems(["a", "b"], ["a", "b"], {}, {}, [])
    return Ranking("m", ["a", "b"], ranked, {("a", "b"): row}, SystemGroups({}), 1, 10_000, {})


def test_a_difference_that_all_pairs_together_hide_is_not_said_to_be_too_small_to_show() -> None:
    means = {name: {"m": MetricMean(0.5, 0.4, 0.6, 8, 8, "")} for name in ("a", "b")}
    row = {"difference": 0.158, "low": 0.1, "high": 0.2, "p": 0.0078, "p_holm": 0.078, "detectable": 0.033, "n": 8}
    hidden = _sentence("m", "a", "b", means, ranking(row))
    assert "is not significantly different from a by m once all 1 pairs are compared: difference 0.16" in hidden
    assert "would be detected" not in hidden
    unsure = row | {"p": 0.3, "p_holm": 0.3}
    assert _sentence("m", "a", "b", means, ranking(unsure)).endswith("but the test doesn't confirm it: p = 0.3")
    small = _sentence("m", "a", "b", means, ranking(unsure | {"low": -0.1, "difference": 0.02}))
    assert small.endswith("with 8 queries like these, a difference of 0.03 would be detected in 4 of 5 cases")


def test_a_mean_says_why_it_has_no_interval() -> None:
    assert MetricMean(0.5, 0.25, 0.75, 20, 20, "").ends == "[0.250, 0.750]"
    assert MetricMean(0.5, None, None, 20, 20, "").ends == "too few differ"
    assert MetricMean(0.5, None, None, 1, 20, "").ends == ""


@pytest.mark.parametrize("up", [1, -1])
def test_no_difference_is_claimed_where_its_interval_includes_0(up: int) -> None:
    """Six of 20 queries differ, all in one direction: the sign flips give p = 0.03."""
    means = {name: {"m": MetricMean(0.5, 0.4, 0.6, 20, 20, "")} for name in ("a", "b")}
    ends = sorted((up * -0.01, up * 0.12))
    row = {"difference": up * 0.05, "low": ends[0], "high": ends[1], "p": 0.031, "p_holm": 0.031, "detectable": 0.1}
    said = _sentence("m", "a", "b", means, ranking(row | {"n": 20}))
    assert said.startswith("is not clearly different from a by m: difference ")
    assert "includes 0" in said
    assert "0.031" in said
    clear = _sentence("m", "a", "b", means, ranking(row | {"n": 20, "low": up * 0.01, "high": up * 0.12}))
    assert clear == f"{'beats' if up > 0 else 'trails'} a by 0.05 m, 95 % interval 0.01 to 0.12"


def test_systems_share_a_letter_where_their_sentence_finds_no_difference() -> None:
    """Of 40 queries six gain: the test rejects, and the interval, which allows for a loss nobody saw, includes 0."""
    rows = [
        {"system": system, "query": f"q{i}", "passage": passage, "rank": rank}
        for system in ("one", "two")
        for i in range(40)
        for rank, passage in enumerate("yx" if system == "two" and i < 6 else "xy", 1)
    ]
    labels = [{"query": f"q{i}", "passage": "y", "aspect": "relevance", "value": 1.0} for i in range(40)]
    contexts, judgments = Contexts(rows), Judgments(labels)
    scores = ragworth.score(contexts, judgments, ["nDCG@2"])
    found = compare(scores).differences.row(0, named=True)
    assert found["p"] < 0.05
    assert found["low"] < 0 < found["high"]
    two, one = page.build(
        Results(ragworth.Collection(), contexts, judgments, None, None, None, scores)
    ).overview.standings
    assert one.sentence.startswith("one is not clearly different from two by nDCG@2: difference −0.06")
    assert one.group == two.group == "a"


def test_the_system_with_most_findings_is_named_only_if_there_is_one() -> None:
    """Not if another one has as many, nor if a system was examined for fewer than half of its ten queries."""

    def words(*counts: tuple[str, int, int]) -> str:
        rows = [dict(zip(("system", "n", "of"), each, strict=True)) for each in counts]
        head = _finding("redundant", "redundant", rows, [], {}, queries=10).blocks[0]
        assert isinstance(head, Heading)
        return head.count

    assert words(("a", 4, 8), ("b", 2, 8)) == "6 of 16 contexts (38 %), most of all a (4 of 8)"
    assert words(("a", 4, 8), ("b", 4, 8)) == "8 of 16 contexts (50 %)"
    assert words(("a", 4, 4), ("b", 2, 8)) == "6 of 12 contexts (50 %)"
