"""Which system answers better: also where systems have grades for different questions, few grades, or the same ones."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import ragworth
from ragworth.answer_outcomes import grader_of
from ragworth.cli.difference_notes import difference_notes
from ragworth.cli.evaluate import answer_record, answer_table, evaluation_record
from ragworth.comparison import compare, summarise
from ragworth.data import OK, Answers, Contexts, Judgments, Outcomes, Scores
from ragworth.evaluation.run import Evaluation
from ragworth.report import page
from ragworth.report.page.answer_sentences import AnswerSentences, OutcomeScale
from ragworth.report.page.answers import AnswerOverview, build_answers
from ragworth.report.page.rankings import rank_systems, read_means
from ragworth.report.page.sections.answers import outcome_table
from ragworth.report.render import render
from ragworth.report.renderers.html import render_block
from ragworth.report.summary_tables import difference_table, summary_table
from ragworth.results import Results
from tests.report.page.small_samples import GRADES, results

Grades = Sequence[float | None]
DECIDED = {"old": (8, 30), "new": (29, 29), "third": (14, 28), "fourth": (10, 28)}
"""Correct answers, and decided ones of 86."""


def overview(aspects: Mapping[str, Mapping[str, Grades]]) -> AnswerOverview:
    """By aspect and system, the grades of the questions q0, q1, …; None where an answer has none."""
    rows = [
        (system, f"q{number:02}", aspect, value, OK if value is not None else "undecided", "deterministic")
        for aspect, systems in aspects.items()
        for system, values in systems.items()
        for number, value in enumerate(values)
    ]
    outcomes = Outcomes(pl.DataFrame(rows, schema=Outcomes.schema, orient="row"))
    found = build_answers(replace(results(["nDCG@3"], GRADES), outcomes=outcomes, said={}, manifest={}), 0)
    assert found is not None
    return found


def test_systems_with_different_questions_are_ranked_by_those_they_share() -> None:
    """On its own questions b has more right answers; of the eleven that both have, a has all and b seven."""
    a = [-1.0] * 10 + [1.0] * 11 + [None]
    b = [None] * 10 + [1.0] * 7 + [-1.0] * 4 + [None]
    found = overview({"grade": {"b": b, "a": a}})
    assert [each.system for each in found.standings] == ["a", "b"]
    assert found.headline.startswith("a ")
    assert "the 11 of 22 questions that have a grade for both" in found.headline
    assert found.standings[0].sentence.startswith(
        "a: 100 % correct by text comparison on the 11 shared questions (95 % interval "
    )
    assert "; 52 % on its own questions (of the 21 decided of 22 asked" in found.standings[0].sentence
    assert found.ranking.ranked.order == ["a", "b"]
    table = outcome_table(found)
    assert table.caption == "Answers, ordered by correct (shared)"
    assert [row[2][0] for row in table.rows] == ["100 %", "64 %"]  # type: ignore[index]
    assert found.ranking.tested == "the two systems"
    assert answer_table(found)["correct (shared)"].str.starts_with("100 %").to_list() == [True, False]
    assert "over the 11 questions that both have" in found.standings[1].sentence
    assert "different questions" in found.notes[0]


def test_a_system_that_is_worse_than_another_one_does_not_lead() -> None:
    """On the 20 questions that all have, a is first; on the 40 that a and b have, b is far better."""
    a, b = [1.0] * 15 + [-1.0] * 25, [1.0] * 12 + [-1.0] * 8 + [1.0] * 20
    found = overview({"grade": {"a": a, "b": b, "c": [1.0] * 5 + [-1.0] * 15 + [None] * 20}})
    assert [each.system for each in found.standings] == ["a", "b", "c"]
    assert found.headline == (
        "No system answers best. On the 20 of 40 questions that have a grade for all, a is first: 75 % of its answers "
        "are correct by text comparison. But b is significantly better than a on the questions that both have."
    )
    assert found.standings[2].sentence.endswith(
        "; 50 points below a (95 % interval 25 to 74 points; over the 20 questions that both have)."
    )


def test_a_system_with_few_grades_does_not_lead() -> None:
    lucky = [1.0, 1.0] + [None] * 18
    found = overview({"grade": {"lucky": lucky, "good": [1.0] * 18 + [-1.0] * 2, "poor": [1.0] * 10 + [-1.0] * 10}})
    assert found.headline.startswith("good answers best: 90 % of its answers are correct")
    assert found.headline.endswith("lucky isn't ranked, with grades for fewer than half of the questions (2 of 20).")
    assert found.ranking.ranked.order == ["good", "poor"]
    assert found.standings[-1].system == "lucky"
    assert "would be detected" not in found.standings[-1].sentence  # it would be more than 100 points


@pytest.mark.parametrize("shared", [0, 1, 9])
def test_systems_with_few_common_questions_are_not_ranked(shared: int) -> None:
    """Each has a grade for half of its questions or more, but fewer than half have one for both."""
    found = overview({"grade": {"a": [1.0] * 10 + [None] * 10, "b": [None] * (10 - shared) + [-1.0] * (10 + shared)}})
    assert found.headline.startswith(
        f"The systems can't be ranked: only {shared} of 20 questions have a value of correct for all systems (a 10 of "
        f"20, b {10 + shared} of 20). To decide more, let a model judge the answers"
    )
    assert not found.ranking.versus
    assert answer_record(found, "out")["ranking"] == []
    assert found.standings[0].group == "–" and outcome_table(found).caption == "Answers, not ranked"


def test_a_system_that_was_asked_few_questions_does_not_decide_on_which_the_others_are_ranked() -> None:
    found = overview({"grade": {"a": [1.0] * 20, "b": [1.0] * 15 + [-1.0] * 5, "c": [1.0] * 4}})
    assert found.headline.startswith(
        "The systems can't be ranked: only 4 of 20 questions have a value of correct for all systems (a 20 of 20, b 20 "
        "of 20, c 4 of 4); leave out systems to have more. "
    )


def test_systems_with_few_grades_are_not_ranked_and_the_headline_says_what_to_do() -> None:
    """The one with most grades isn't the best: its answers are right least often, and nobody has grades for half."""
    grades = {
        system: [1.0] * right + [-1.0] * (n - right) + [None] * (86 - n) for system, (right, n) in DECIDED.items()
    }
    found = overview({"grade": grades})
    assert found.headline == (
        "The systems can't be ranked: fewer than half of the questions have a value of correct (old 30 of 86, new 29 "
        "of 86, third 28 of 86, fourth 28 of 86). To decide more, let a model judge the answers against accepted ones "
        "(judge = true under [grades] of a ragworth.toml), or let people grade them: ragworth label new "
        "RESULTS --task answer-grade."
    )
    assert found.standings[0].sentence == (
        "old: 27 % correct by text comparison (of the 30 decided of 86 asked, which aren't a random part; 9 to 74 % of "
        "all; 95 % interval 14 to 44 %)."
    )
    assert answer_record(found, "out")["ranking"] == [] and not found.ranking.versus
    assert {each.group for each in found.standings} == {"–"}
    assert outcome_table(found).caption == "Answers, not ranked"
    assert found.comparison is not None
    assert found.comparison.differences["p_holm"].null_count() == found.comparison.differences.height


CLAIMS = r".{0,50}\b(?:leads?|best|beats|trails|ahead|significantly|most of all)\b"


def test_no_output_ranks_systems_with_few_values() -> None:
    """Neither by grades nor by a metric: every system has values for a third of its 86 questions."""
    queries = [f"q{number:02}" for number in range(86)]
    rows = [
        (system, query, 1.0 if number < right else -1.0 if number < n else None)
        for system, (right, n) in DECIDED.items()
        for number, query in enumerate(queries)
    ]
    values = pl.DataFrame(rows, schema=["system", "query", "value"], orient="row").with_columns(
        status=pl.when(pl.col("value").is_null()).then(pl.lit("undecided")).otherwise(pl.lit(OK))
    )
    scores = Scores(
        values.with_columns(metric=pl.lit("nDCG@3"), value=pl.col("value").abs() * pl.col("system").str.len_chars() / 9)
    )
    outcomes = Outcomes(values.with_columns(aspect=pl.lit("grade"), source=pl.lit("deterministic")))
    labels = Judgments([{"query": query, "passage": query, "value": 1.0} for query in queries])
    shown = Contexts([{"system": s, "query": query, "passage": query, "rank": 1} for s, query, _ in rows])
    given = Results(ragworth.Collection(), shown, labels, None, None, outcomes, scores)
    made = page.build(given)
    assert made.answers is not None
    blocks = "".join(render_block(block) for each in made.document.sections for block in each.blocks)
    found = Evaluation([], given, Path("out"), Path("out/report.html"), made)
    record = json.dumps(evaluation_record(found))
    compared = compare(given, all_pairs=True)
    texts = {
        "HTML": blocks,
        "Markdown": made.markdown.partition("# Provenance")[0],
        "JSON": record,
        "notebook": made._repr_html_(),
        "terminal": "\n".join([repr(found), *(each.sentence for each in made.overview.standings)]),
        "compare": render(difference_table(compared), "csv").decode() + " ".join(difference_notes(compared)),
        "comparison": compared._repr_html_(),
        "results": given._repr_html_(),
    }
    claims = {name: re.findall(CLAIMS, re.sub(r' title="[^"]*"', "", text)) for name, text in texts.items()}
    assert claims == {name: [] for name in texts}
    assert compared.differences["p"].null_count() == compared.differences.height == 6 * 5
    assert "ragworth label new . --task answer-grade. Run it in the folder of this report." in texts["Markdown"]
    assert "ragworth label new out --task answer-grade" in texts["terminal"]
    assert "ragworth label new out --task answer-grade" in record and '"ranking": []' in record
    assert {each.group for each in made.answers.standings} == {each.group for each in made.overview.standings} == {"–"}
    for name in ("HTML", "Markdown"):
        assert "30 of 86, so 9 to 74 % of all" in texts[name] and "old 30 of 86, new 29 of 86" in texts[name]
    assert summary_table(summarise(given), 0.95).row(0, named=True)["of all"] == "9 to 74 %"


def test_questions_without_any_grade_count() -> None:
    """Each has grades for 30 of its 80 answers, and the other 50 are in no table of outcomes."""
    rows = [
        (system, f"q{number:02}", "grade", value, OK, "deterministic")
        for system, value in (("a", 1.0), ("b", -1.0))
        for number in range(30)
    ]
    answers = Answers([{"system": system, "query": f"q{n:02}", "text": "x"} for system in "ab" for n in range(80)])
    outcomes = Outcomes(pl.DataFrame(rows, schema=Outcomes.schema, orient="row"))
    given = replace(results(["nDCG@3"], GRADES), outcomes=outcomes, answers=answers, said={}, manifest={})
    found = build_answers(given, 0)
    assert found is not None
    assert "(a 30 of 80, b 30 of 80)" in found.headline
    assert found.standings[0].means["correct"].missing == "50 not-graded"
    assert compare(given).differences.filter(pl.col("metric") == "correct")["p"].to_list() == [None]


def test_equal_systems_do_not_lead() -> None:
    found = overview({"grade": {"a": [1.0, -1.0] * 10, "b": [1.0, -1.0] * 10}})
    assert found.headline == "a and b score the same: 50 % of their answers are correct by text comparison."
    assert not found.scales["grade"].share and found.scales["correct"].share


def test_systems_that_share_the_lead_lead_together() -> None:
    good, poor, fair = [1.0] * 20, [-1.0] * 20, [1.0] * 19 + [-1.0]
    found = overview({"grade": {"a": good, "b": good, "c": poor}})
    assert found.headline == (
        "a and b lead with the same score: 100 % of their answers are correct by text comparison. They are "
        "significantly better than c."
    )
    assert overview({"grade": {"a": good, "b": good, "c": poor, "d": fair}}).headline.endswith(
        "than c, but not than d."
    )
    assert overview({"grade": {"a": good, "b": good, "d": fair}}).headline.endswith("not significantly better than d.")


def test_few_questions_are_only_a_hint() -> None:
    assert overview({"grade": {"a": [1.0]}}).headline.endswith("comparison. With 1 question this is only a hint.")
    assert overview({"grade": {"a": [1.0] * 5, "b": [-1.0] * 5}}).headline.endswith(
        "With 5 questions this is only a hint."
    )
    assert "hint" not in overview({"grade": {"a": [1.0] * 6, "b": [-1.0] * 6}}).headline


def test_few_questions_for_many_systems_can_show_nothing() -> None:
    # 7 questions: p is at least 2/2⁷, and 6 times that for 6 pairs, of correct and of wrong answers alike.
    found = overview({"grade": {"a": [1.0] * 7, **dict.fromkeys("bcd", [-1.0] * 7)}}).headline
    assert found.endswith(
        "it is not significantly better than any other system. With 7 questions, no difference can be significant "
        "among 6 pairs of systems."
    )
    enough = overview({"grade": {"a": [1.0] * 8, **dict.fromkeys("bcd", [-1.0] * 8)}}).headline
    assert enough.endswith("significantly more than for every other system.")


def test_few_conversations_are_only_a_hint_however_many_turns_they_have() -> None:
    rows = [
        (system, f"c{c}t{t}", "correct", float(t < most), OK)
        for c in range(4)
        for t in range(10)
        for system, most in (("a", 8), ("b", 3))
    ]
    scores = Scores(pl.DataFrame(rows, schema=Scores.schema, orient="row"))
    turns = {query: query[:2] for query in scores.distinct("query")}
    means = read_means(summarise(scores, conversations=turns))
    ranking = rank_systems(scores, means, "correct", 0, conversations=turns)
    said = AnswerSentences(ranking, means, "correct", OutcomeScale(share=True), "us").headline(ranking.order)
    assert said.endswith("not significantly better than b. With 4 conversations this is only a hint.")


def test_the_interval_of_a_difference_shows_that_it_leaves_out_0() -> None:
    scale = OutcomeScale(share=True)
    assert scale.difference_interval(-0.43, -0.004) == "95 % interval −43.0 to −0.4 points"
    assert scale.difference_interval(-0.43, 0.004) == "95 % interval −43 to 0 points"


def test_other_grades_that_contradict_the_verdict_are_named() -> None:
    high, low = [4.0, 5.0] * 10, [1.0, 2.0] * 10
    found = overview(
        {"score": {"a": high, "b": low}, "faithfulness": {"a": low, "b": high}, "pace": {"a": high, "b": low}}
    )
    assert found.headline.startswith("a answers best")
    assert found.headline.endswith("By faithfulness as computed here, b is significantly better than a.")


def test_our_grades_do_not_speak_against_peoples() -> None:
    """One sentence, one source: by people a is better, by our grader b, which has fewer wrong answers."""
    good, poor = [1.0] * 16 + [-1.0] * 4, [1.0] * 4 + [-1.0] * 16
    found = overview({"human": {"a": good, "b": poor}, "grade": {"a": poor, "b": good}})
    assert found.main == "human-correct"
    assert found.headline == (
        "a answers best: 80 % of its answers are correct by people's grades, significantly more than for b."
    )
    verdicts = overview({"correct": {"a": [1.0] * 20, "b": [1.0] * 20}, "grade": {"a": poor, "b": good}})
    assert {"correct", "grade-correct", "grade-wrong"} <= set(verdicts.outcomes)
    assert "wrong" not in verdicts.outcomes  # it would look like the rest of what is correct by another grader


def test_wrong_answers_are_told_from_declined_ones() -> None:
    found = overview({"grade": {"a": [-1.0] * 20, "b": [0.0] * 20}})
    assert found.headline.endswith(
        "a gives wrong answers significantly more often than b by text comparison, by 100 points."
    )
    assert "wrong" not in overview({"grade": {"a": [-1.0] * 20, "b": [1.0] * 20}}).headline


def test_ungraded_answers_are_counted_and_their_systems_named() -> None:
    found = overview({"grade": {"a": [None] * 20, "b": [1.0] * 7 + [None] * 13}})
    assert "(b 7 of 20, a 0 of 20)" in found.headline
    assert "of the 7 decided of 20 asked, which aren't a random part; 35 to 100 % of all" in found.standings[0].sentence
    alone = overview({"grade": {"b": [1.0] * 7 + [None] * 13}}).headline
    assert alone.startswith("b: 100 % of its answers are correct by text comparison (of the 7 decided of 20 asked")


def test_people_who_graded_one_system_alone_do_not_decide() -> None:
    right, wrong = [1.0] * 15 + [-1.0] * 5, [1.0] * 6 + [-1.0] * 14
    found = overview({"grade": {"rag": right, "closed": wrong}, "human": {"rag": [1.0] * 20}})
    assert found.main == "correct"
    assert "People's grades cover only some systems or questions" in " ".join(found.notes)


def test_an_interval_that_leaves_out_0_without_a_significant_test_is_explained() -> None:
    found = overview({"grade": {"a": [1.0] * 20, "b": [1.0] * 15 + [-1.0] * 5}})
    assert "the interval leaves out 0, but the test doesn't confirm it: p = 0.06" in found.standings[1].sentence


def test_correctness_on_a_scale_is_no_share() -> None:
    found = overview({"correct": {"a": [4.0, 5.0] * 10, "b": [1.0, 2.0] * 10}})
    assert found.headline == "a answers best: it has a mean correct of 4.50, significantly more than for b."


def test_an_outcome_of_unknown_direction_decides_nothing() -> None:
    marks = {"a": [4.0, 5.0] * 10, "b": [1.0, 2.0] * 10}
    found = overview({"complexity": marks, "lower_mistakes": marks})
    assert found.headline == "b answers best: it has a mean lower_mistakes of 1.50, significantly less than for a."
    assert "nothing says which way they are better: complexity" in " ".join(found.notes)


def test_means_that_differ_by_rounding_are_the_same() -> None:
    found = overview({"f1": {"a": [0.1, 0.2, 0.3] * 5, "b": [0.3, 0.1, 0.2] * 5}})
    assert found.headline.startswith("a and b score the same") or found.headline.startswith("b and a score the same")


def test_each_sentence_names_who_graded() -> None:
    """Verdicts in the data say nothing of most questions, so our grades order the systems, and a note says that."""
    good, poor = [1.0] * 16 + [-1.0] * 4, [1.0] * 4 + [-1.0] * 16
    grades = [
        (system, f"q{number:02}", aspect, value, OK if value is not None else "no-value", source)
        for aspect, source, values in (
            ("grade", "deterministic ← log.csv", {"a": good, "b": poor}),
            ("correct", "log.csv", {"a": [0.0] * 4 + [None] * 16, "b": [1.0] * 4 + [None] * 16}),
        )
        for system, several in values.items()
        for number, value in enumerate(several)
    ]
    outcomes = Outcomes(pl.DataFrame(grades, schema=Outcomes.schema, orient="row"))
    found = build_answers(replace(results(["nDCG@3"], GRADES), outcomes=outcomes, said={}, manifest={}), 0)
    assert found is not None and found.main == "grade-correct"
    assert found.headline.startswith(
        "a answers best: 80 % of its answers are correct by text comparison, significantly"
    )
    assert "The grades in the data (correct) cover only some systems or questions" in " ".join(found.notes)
    judged = outcomes.frame.filter(aspect="grade").with_columns(source=pl.lit("openai:big@1f · grade@3 · label"))
    assert grader_of(Outcomes(judged), "wrong") == "the judge openai:big"
    assert grader_of(outcomes, "correct") == "the grades in the data"
    written = outcomes.frame.with_columns(source=pl.lit("deterministic ← openai:big@1f · answer@87 · k 5"))
    assert grader_of(Outcomes(written.filter(aspect="grade")), "wrong") == "text comparison"


def test_without_metrics_nothing_is_said_of_passages() -> None:
    """Outcomes in the place of metrics would be means of the decided answers, without a word on who decided."""
    given = results(["nDCG@3"], GRADES)
    assert page.build(given).judges_passages
    made = page.build(replace(given, scores=Scores.trusted(given.scores.frame.clear())))
    assert not made.judges_passages
    assert "has a mean" not in made.markdown and "## What the passages are worth" not in made.markdown
