"""Whole workspaces out of real data, evaluated without a model: ARAGOG and Vaswani."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import polars as pl
import pytest
from benchmarks import findings, workspaces

from ragworth.data.collection import text_id
from ragworth.evaluation.run import Evaluation, evaluate
from ragworth.results import Results
from tests.real.conftest import evaluate_with_report

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def vaswani(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    folder = tmp_path_factory.mktemp("vaswani")
    workspaces.MADE["vaswani"](data, folder)
    return evaluate_with_report(folder)


def of(found: Evaluation) -> Results:
    assert found.results is not None
    return found.results


def outcomes(found: Evaluation, aspect: str) -> pl.DataFrame:
    table = of(found).outcomes
    assert table is not None
    return table.frame.filter(pl.col("aspect") == aspect)


def check_report(found: Evaluation) -> str:
    """Both forms of the report are there; no address stands in the page, and nothing may be loaded."""
    assert found.report is not None
    assert found.report.with_suffix(".md").exists()
    html = found.report.read_text(encoding="utf-8")
    bare = re.sub(r"<(script|style)\b.*?</\1>", "", html, flags=re.DOTALL)
    assert "://" not in bare
    assert "<link" not in bare
    assert not re.search(r"\b(src|href)=(?![\"']#)", bare)
    assert "default-src 'none'" in unescape(bare)
    return html


def test_aragog_has_every_context_and_every_answer(aragog: Evaluation) -> None:
    results = of(aragog)
    assert len(results.contexts.systems) == 27
    assert results.contexts.frame.height == 5778  # 27 settings: nine of one, two and three passages × 107
    assert results.contexts.empty == frozenset()
    assert results.collection.queries.height == 107
    assert results.collection.passages.height == 917
    assert all(passage == text_id(text) for passage, text in results.collection.passages.iter_rows())
    assert results.answers is not None
    assert dict(results.answers.frame["status"].value_counts().iter_rows()) == {"ok": 2543, "no-answer": 346}
    assert results.scores.frame.height == 27 * 107 * 10
    assert results.scores.frame["status"].unique().to_list() == ["ok"]


@pytest.mark.parametrize("aspect", ["sas", "f1", "rouge-l"])
def test_an_answer_that_was_not_given_has_no_outcome(aragog: Evaluation, aspect: str) -> None:
    """346 answers are the word None: neither 0 nor what was published of the word."""
    frame = outcomes(aragog, aspect)
    assert frame.height == 2889
    assert dict(frame["status"].value_counts().iter_rows()) == {"ok": 2543, "no-answer": 346}
    assert frame.filter(pl.col("status") == "no-answer")["value"].null_count() == 346
    results = of(aragog)
    assert results.answers is not None
    lost = results.answers.frame.filter(pl.col("status") == "no-answer").select("system", "query")
    assert frame.join(lost, on=["system", "query"])["value"].null_count() == 346


def test_what_is_said_of_the_context_is_kept_without_an_answer(aragog: Evaluation) -> None:
    assert outcomes(aragog, "context_relevance")["value"].null_count() == 0
    faithful = dict(outcomes(aragog, "faithfulness")["status"].value_counts().iter_rows())
    assert faithful == {"ok": 2542, "no-answer": 346, "not-given": 1}


def test_known_values_of_aragog(aragog: Evaluation) -> None:
    """As published, for the answers that were given."""
    name = "all-MiniLM-L6-v2__top_k=1__chunk_size=128"
    mine = outcomes(aragog, "sas").filter((pl.col("system") == name) & (pl.col("status") == "ok"))
    assert mine.height == 107 - 18
    first = outcomes(aragog, "sas").filter(
        (pl.col("system") == "all-mpnet-base-v2__top_k=3__chunk_size=64") & (pl.col("query") == "q001")
    )
    assert first["value"].to_list() == pytest.approx([0.35507267713546753], abs=1e-12)


def test_labels_follow_from_the_accepted_answers(aragog: Evaluation) -> None:
    results = of(aragog)
    assert results.judgments is not None
    labels = results.judgments.of("relevance")
    assert dict(labels["value"].value_counts().iter_rows()) == {0.0: 1732, 1.0: 497}
    # Every passage shown is labelled, and every label is of a passage that somebody shows.
    shown = results.contexts.frame.select("query", "passage").unique()
    assert labels.join(shown, on=["query", "passage"], how="anti").height == 0
    assert shown.join(labels, on=["query", "passage"], how="anti").height == 0


def test_recall_counts_words_that_only_the_answer_has() -> None:
    question, accepted = "What does the model predict?", "The model predicts masked tokens and sentences."
    # Its own are mask, token, sentenc: model and predict stand in the question; the rest are stop words.
    assert workspaces.recall("Tokens that were masked", question, accepted) == pytest.approx(2 / 3)
    assert workspaces.recall("The model and what it predicts", question, accepted) == 0
    assert workspaces.recall("", question, accepted) == 0
    # As PDF files give it: a ligature, and a word broken at the end of a line.
    assert workspaces.recall("a uni\ufb01ed archi-\ntecture", "What is it?", "A unified architecture") == 1


def test_the_report_of_aragog(aragog: Evaluation) -> None:
    html = check_report(aragog)
    assert "Which metric predicts the answers" in html
    assert "(27)" not in html  # more groups than letters
    assert aragog.page is not None
    assert aragog.page.overview.ranking.groups.best


def test_the_finding(aragog: Evaluation) -> None:
    """What docs/findings.md says: any of the metrics predicts better than how much is shown; none is far ahead."""
    results = of(aragog)
    systems, queries = results.contexts.systems, results.collection.queries["query"].to_list()
    known = findings.predictors(results, queries, systems)
    for aspect in ("sas", "f1"):
        y = findings.outcome(results, aspect, queries, systems)
        tau = {name: findings.within(x, y).mean for name, x in known.items()}
        for name in ("nDCG@3", "Success@3", "R@3", "P@3", "RR@3"):
            span = tau[name].span
            assert span is not None
            assert span.low > 0.10
            assert tau[name].value > 2 * max(tau["passages shown"].value, tau["tokens shown"].value)
        assert findings.within(known["nDCG@3"], y).constant == 10  # queries without a relevant passage


def test_vaswani(vaswani: Evaluation) -> None:
    results = of(vaswani)
    assert results.contexts.systems == ["bm25", "bm25-stems", "reversed", "oracle", "adversary", "random"]
    assert results.collection.queries.height == 93
    means = {
        (metric, system): mean
        for metric, system, mean in results.scores.frame.group_by("metric", "system")
        .agg(pl.col("value").mean())
        .iter_rows()
    }
    # The values of docs/retrieval.md.
    assert means["nDCG@10", "bm25"] == pytest.approx(0.356, abs=5e-4)
    assert means["AP", "bm25"] == pytest.approx(0.211, abs=5e-4)
    assert means["nDCG@10", "bm25-stems"] == pytest.approx(0.440, abs=5e-4)
    assert means["AP", "bm25-stems"] == pytest.approx(0.289, abs=5e-4)
    assert means["P@10", "reversed"] == means["P@10", "bm25-stems"]
    assert means["nDCG@10", "oracle"] == pytest.approx(1.0, abs=1e-12)
    assert means["nDCG@10", "adversary"] == 0
    assert means["nDCG@10", "random"] < 0.02
    assert vaswani.page is not None
    assert [each.system for each in vaswani.page.overview.standings] == [
        "oracle", "bm25-stems", "bm25", "reversed", "random", "adversary",
    ]  # fmt: skip
    check_report(vaswani)


def test_nothing_is_done_again(vaswani: Evaluation) -> None:
    assert vaswani.folder is not None
    again = evaluate(vaswani.folder.parent)
    status = {stage["name"]: stage["status"] for stage in again.stages}
    assert status["retrieve"] == status["score"] == "kept"
    assert of(again).scores == of(vaswani).scores
