"""Relevance by containment of an accepted answer, and relevance that the reader judged itself."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

import ragworth
from ragworth.cli import main
from ragworth.data import Contexts, Judgments, Outcomes
from ragworth.data.collection import Collection
from ragworth.diagnosis import diagnose, gather_facts
from ragworth.judging.runner import annotate
from ragworth.llm.scripted import Scripted
from ragworth.metrics.utility import reader_judged

TEXTS = Collection.of(
    queries={"query": ["q1", "q2", "q3"], "text": ["Who built the mill?", "Did it burn?", "When?"]},
    passages={
        "passage": ["p1", "p2", "p3"],
        "text": ["The mill was built by Ann Lee in 1820.", "It burned. Yes.", "Nothing of the kind."],
    },
    answers={"query": ["q1", "q2"], "text": ["Ann Lee", "Yes, it burned"]},
)
RUN = {"q1": {"p1": 3.0, "p3": 1.0}, "q2": {"p2": 1.0}, "q3": {"p1": 1.0}}


def test_a_passage_that_contains_an_accepted_answer_is_relevant_and_no_model_is_asked() -> None:
    found = annotate("containment", RUN, TEXTS, "hf:no-such-model")
    rows = {(row["query"], row["passage"]): row for row in found.frame.iter_rows(named=True)}
    assert (rows["q1", "p1"]["value"], rows["q1", "p3"]["value"]) == (1.0, 0.0)
    assert rows["q1", "p1"]["aspect"] == "relevance"
    assert rows["q1", "p1"]["source"] == "containment of an accepted answer"
    assert "Ann Lee" in rows["q1", "p1"]["why"]


def test_what_a_passage_cannot_contain_is_not_called_irrelevant() -> None:
    rows = {
        row["query"]: (row["value"], row["status"])
        for row in annotate("containment", RUN, TEXTS).frame.filter(pl.col("query") != "q1").iter_rows(named=True)
    }
    assert rows == {"q2": (None, "undecided"), "q3": (None, "no-accepted-answers")}


LONG = "The works council must be heard before every dismissal, or it has no effect."
SHOWN_WITH_GRADES = Contexts({"query": ["q"], "passage": ["p"], "rank": [1]}, system="s")


@pytest.mark.parametrize("answers", [[LONG], ["the works council", LONG], ["the works council", "Yes."]])
def test_without_a_long_answer_word_for_word_a_passage_is_undecided(answers: list[str]) -> None:
    """A passage that gives a sentence in other words was irrelevant, and misled, and the retriever was to blame."""
    texts = Collection.of(
        queries={"query": ["q"], "text": ["What does a dismissal need?"]},
        passages={
            "passage": ["p"],
            "text": ["It is void if the employee representatives were not consulted."],
        },
        answers={"query": ["q"] * len(answers), "text": answers},
    )
    relevance = annotate("containment", {"q": {"p": 1.0}}, texts)
    assert relevance.frame.select("value", "status").rows() == [(None, "undecided")]
    declines = Judgments([{"query": "q", "passage": "p", "aspect": "abstention", "value": 0.05, "source": "m:r · a"}])
    judged = Judgments(pl.concat([relevance.frame.drop("why"), declines.frame], how="diagonal"))
    assert ragworth.utilities(judged)["class"].to_list() == [None]
    wrong = Outcomes([{"query": "q", "system": "s", "aspect": "grade", "value": -1.0}])
    facts = gather_facts(SHOWN_WITH_GRADES, judgments=judged, outcomes=wrong)
    assert set(diagnose(facts).frame["finding"]) == {"unexplained"}


def test_a_long_answer_that_a_passage_contains_makes_it_relevant() -> None:
    texts = Collection.of(
        queries={"query": ["q"], "text": ["What does a dismissal need?"]},
        passages={"passage": ["p"], "text": [f"§ 102: {LONG}"]},
        answers={"query": ["q"], "text": [LONG]},
    )
    assert annotate("containment", {"q": {"p": 1.0}}, texts).frame["value"].to_list() == [1.0]


def test_on_the_command_line_it_needs_no_model(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"_id": "q1", "text": "Who?", "answers": ["Ann"]}\n')
    (tmp_path / "p.jsonl").write_text('{"_id": "p1", "text": "Ann did."}\n{"_id": "p2", "text": "Who knows?"}\n')
    (tmp_path / "r.run").write_text("q1 Q0 p1 1 2 x\nq1 Q0 p2 2 1 x\n")
    texts = ["--queries", str(tmp_path / "q.jsonl"), "--passages", str(tmp_path / "p.jsonl")]
    texts += ["--answers", str(tmp_path / "q.jsonl"), str(tmp_path / "r.run"), "-o", str(tmp_path / "out.csv")]
    result = CliRunner().invoke(main, ["annotate", "containment", *texts])
    assert result.exit_code == 0, result.stderr
    assert ragworth.read_judgments(tmp_path / "out.csv").frame["value"].to_list() == [1.0, 0.0]


# What the reader says of itself


def judgments(relevance_source: str, abstention_source: str = "m:reader@1 · abstention@2") -> Judgments:
    """The reader would answer from p1 and p2, and p2 is not relevant; it declines p3."""
    rows = [("p1", 1.0, 0.1), ("p2", 0.0, 0.05), ("p3", 0.0, 0.9)]
    return Judgments(
        [
            {"query": "q", "passage": p, "aspect": aspect, "value": value, "source": source}
            for p, relevance, declines in rows
            for aspect, value, source in (
                ("relevance", relevance, relevance_source),
                ("abstention", declines, abstention_source),
            )
        ]
    )


SHOWN = Contexts({"query": ["q"] * 3, "passage": ["p1", "p2", "p3"], "rank": [1, 2, 3]}, system="s")
OWN = "m:reader@1 · abstention@2 · answerability"


@pytest.mark.parametrize(
    "source",
    [
        "given",
        "qrels.txt",
        "m:other@1 · relevance@1 · labels",
        "m:reader@1 · relevance@1 · labels · accepted answers shown",
    ],
)
def test_others_labels_show_distraction(source: str) -> None:
    scores = ragworth.score(SHOWN, judgments(source), ["Distraction@3", "UDCG@3"])
    assert scores.frame["value"].to_list()[0] == pytest.approx(1 / 3)
    assert reader_judged(judgments(source)).is_empty()
    kinds = ragworth.utilities(judgments(source))
    assert kinds["class"].to_list() == ["relevant", "hard-distractor", "weak-distractor"]


@pytest.mark.parametrize("source", [OWN, "m:reader@1 · relevance@1 · labels"])
def test_the_readers_own_relevance_shows_none(source: str) -> None:
    """Before, its opinion made distraction 0 whatever was shown."""
    found = ragworth.score(SHOWN, judgments(source), ["Distraction@3", "UDCG@3", "nDCG@3"])
    rows = {row["metric"]: row for row in found.frame.iter_rows(named=True)}
    assert (rows["Distraction@3"]["value"], rows["Distraction@3"]["status"]) == (None, "reader-judged")
    assert rows["UDCG@3"]["status"] == rows["nDCG@3"]["status"] == "ok"
    assert any("also judged their relevance" in note for note in found.notes)
    kinds = ragworth.utilities(judgments(source))
    assert set(kinds["status"]) == {"reader-judged"} and kinds["utility"].null_count() == 3


def test_only_contexts_with_such_passages_lose_their_value() -> None:
    mixed = pl.concat([judgments(OWN).frame, judgments("given").frame.with_columns(query=pl.lit("r"))])
    shown = Contexts({"query": ["q", "r", "r"], "passage": ["p1", "p1", "p2"], "rank": [1, 1, 2]}, system="s")
    shown.empty = frozenset({("t", "q"), ("t", "r")})
    found = ragworth.score(shown, Judgments(mixed), "Distraction@3").frame
    assert {(row[0], row[1]): (row[3], row[4]) for row in found.iter_rows()} == {
        ("s", "q"): (None, "reader-judged"),
        ("s", "r"): (0.5, "ok"),
        ("t", "q"): (0.0, "ok"),  # nothing was shown, so nothing misled
        ("t", "r"): (0.0, "ok"),
    }


def test_a_judge_that_sees_the_accepted_answers_says_so() -> None:
    model = Scripted(lambda request: {"YES": 0.9, "NO": 0.1})
    sources = dict(annotate("relevance", RUN, TEXTS, model).frame.select("query", "source").iter_rows())
    assert sources["q1"].endswith("accepted answers shown")
    assert not sources["q3"].endswith("accepted answers shown")
