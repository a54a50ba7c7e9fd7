"""Answers come first: a closed-book system, given answers and labels; and relevance without labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

import ragworth
from ragworth.cli import main
from ragworth.llm.contract import Choose
from ragworth.results import Results
from tests.evaluation.samples import TOML, Models, change, lines, workspace

UNLABELLED = TOML.replace('qrels = "qrels.txt"\n', "").replace(
    "abstention = true", "abstention = true\nrelevance = true"
)
DEFAULT_METRICS = ('[metrics]\nuse = ["UDCG@2", "nDCG@2"]\n', "")


def unlabelled(folder: Path) -> Path:
    made = workspace(folder, UNLABELLED.replace(*DEFAULT_METRICS))
    change(made, "judge = true", "")
    return made


def test_accepted_answers_go_before_the_readers_opinion(
    tmp_path: Path, models: Models, undrawn: list[dict[str, Any]]
) -> None:
    found = ragworth.evaluate(unlabelled(tmp_path / "w"))
    assert not [each for _, each in models.taken() if isinstance(each, Choose) and "YES" in each.labels]
    assert found.results is not None and found.results.judgments is not None and found.page is not None
    relevance = found.results.judgments.of("relevance")
    assert set(relevance["source"]) == {"containment of an accepted answer"}
    (stage,) = [each for each in found.stages if each["name"] == "annotate.containment"]
    assert "contains an accepted answer" in stage["notes"][0]
    statuses = found.results.scores.having("metric", ["Distraction@2"]).frame["status"]
    assert set(statuses) == {"ok"}
    assert found.page.overview.standings[0].misleading is not None
    assert "relevant passages that no system found" in found.page.markdown


def test_without_accepted_answers_what_misleads_has_a_status_and_never_0_percent(
    tmp_path: Path, models: Models, undrawn: list[dict[str, Any]]
) -> None:
    folder = unlabelled(tmp_path / "w")
    for old in ('answers = "answers.jsonl"\n', "[grades]\ndeterministic = true\n"):
        change(folder, old, "")
    found = ragworth.evaluate(folder)
    assert found.results is not None and found.page is not None
    scores = found.results.scores.having("metric", ["Distraction@2"]).frame
    assert set(scores["status"]) == {"reader-judged"} and scores["value"].null_count() == scores.height
    for standing in found.page.overview.standings:
        assert standing.misleading is None
        assert "how many of its passages mislead can't be measured" in standing.sentence
    text = found.page.markdown
    assert "Which passages mislead can't be measured, because the model that reads the passages also judged" in text
    assert "0 % of its passages mislead" not in text
    board = next(line for line in text.splitlines() if line.startswith("| 1 "))
    assert "reader-judged" in board
    assert "also judged their relevance" in found.page.diagnosis.absent["misled"]


def test_the_settings_may_ask_the_reader_all_the_same(tmp_path: Path, models: Models) -> None:
    folder = unlabelled(tmp_path / "w")
    change(folder, "relevance = true", 'relevance = {how = "auto"}')
    ragworth.evaluate(folder, until="annotate")
    assert [each for _, each in models.taken() if isinstance(each, Choose) and "YES" in each.labels]


def test_another_model_judges_and_is_asked(tmp_path: Path, models: Models) -> None:
    folder = unlabelled(tmp_path / "w")
    change(folder, "relevance = true", 'relevance = {model = "hf:judge"}')
    ragworth.evaluate(folder, until="annotate")
    asked = [spec for spec, each in models.taken() if isinstance(each, Choose) and "YES" in each.labels]
    assert asked and set(asked) == {"hf:judge"}


# A closed-book system


@pytest.fixture
def closed_book(tmp_path: Path) -> Path:
    """A RAG system, one that retrieves nothing, answers of both, and people's labels."""
    folder = workspace(tmp_path / "w", TOML.replace("judge = true\n", 'files = ["human.csv"]\n'))
    change(folder, 'second = {run = "second.run"}', 'closed = {run = "closed.jsonl"}')
    change(folder, "[answers]\nlength = 8", '[answers]\nfile = "answers.csv"')
    queries = ["q1", "q2", "q3"]
    lines(folder / "closed.jsonl", [{"query_id": query, "retrieved_context": []} for query in queries])
    rows = ["system,query,text", *(f"first,{query},Ann in 1820 ground rye" for query in queries)]
    rows += [f"closed,{query},{'Ann' if query == 'q1' else 'I think it was Bob'}" for query in queries]
    (folder / "answers.csv").write_text("\n".join(rows) + "\n")
    labels = ["system,query,aspect,value", *(f"first,{query},human,1" for query in queries)]
    labels += [f"closed,{query},human,{int(query == 'q1')}" for query in queries]
    (folder / "human.csv").write_text("\n".join(labels) + "\n")
    return folder


def test_a_closed_book_system_is_compared_by_peoples_labels(
    closed_book: Path, models: Models, undrawn: list[dict[str, Any]]
) -> None:
    found = ragworth.evaluate(closed_book)
    assert found.page is not None and found.results is not None and found.page.answers is not None
    answers = found.page.answers
    assert answers.main == "human"
    assert [each.system for each in answers.standings] == ["first", "closed"]
    assert answers.standings[1].means["human"].mean == pytest.approx(1 / 3)
    # Right without a context, and not only "partially": there was none that could have supported it.
    assert answers.standings[1].means["correct"].mean == pytest.approx(1 / 3)
    assert found.results.outcomes is not None
    grade = found.results.outcomes.frame.filter(
        (pl.col("system") == "closed") & (pl.col("query") == "q1") & (pl.col("aspect") == "grade")
    )
    assert grade["value"].to_list() == [1.0]
    first, *_ = found.page.document.sections
    assert (first.id, found.page.document.sections[2].title) == ("answers", "What the passages are worth")
    summary = pl.read_parquet(closed_book / "results" / "comparison.parquet")
    assert {"human", "correct", "wrong", "UDCG@2"} <= set(summary["metric"])


def test_the_folder_and_its_contexts_keep_the_closed_book_system(
    closed_book: Path, models: Models, undrawn: list[dict[str, Any]]
) -> None:
    ragworth.evaluate(closed_book)
    results = closed_book / "results"
    contexts = ragworth.read_contexts(results / "contexts.parquet")
    assert contexts.systems == ["first", "closed"]
    assert contexts == Results.read(results).contexts
    given = ["-j", str(results / "judgments.parquet"), "-m", "nDCG@2", "--fail-if-worse", "nDCG@2"]
    run = CliRunner().invoke(main, ["compare", str(results / "contexts.parquet"), *given])
    assert run.exit_code in (0, 3), run.stderr
    assert "closed − first" in run.stdout
    run = CliRunner().invoke(main, ["compare", str(results), "--fail-if-worse", "human"])
    assert run.exit_code == 0, run.stderr  # three questions can't show it
    assert "human" in run.stdout and "closed − first" in run.stdout
