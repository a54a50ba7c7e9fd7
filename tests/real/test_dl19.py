"""TREC DL 2019 from one file: official nDCG@10, coverage from ratings, and how both rank the systems."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ragworth import Scores, score
from ragworth.formats import load, read_contexts, read_judgments, read_ratings
from ragworth.formats.contract import LoadedCollection

pytestmark = pytest.mark.real

OFFICIAL = {
    "ICT-BERT2": 0.6650,
    "idst_bert_p1": 0.7645,
    "bm25base_p": 0.5058,
    "p_bert": 0.7380,
    "TUW19-p3-f": 0.6884,
}
"""nDCG@10 as the track published it."""

COVERAGE = "Cov(eta=4)@10"


@pytest.fixture(scope="module")
def file(data: Path) -> Path:
    return data / "trecdl19_exam" / "DL19-graded-t5-rating-genq-exam-qrels-runs-with-text.jsonl.gz"


@pytest.fixture(scope="module")
def loaded(file: Path) -> LoadedCollection:
    return load(f"exam:{file}")


@pytest.fixture(scope="module")
def scores(loaded: LoadedCollection) -> Scores:
    contexts, collection = loaded.contexts, loaded.collection
    assert contexts is not None
    return score(contexts, collection.relevance, ["nDCG@10", COVERAGE], ratings=collection.ratings)


def means(scores: Scores, metric: str) -> dict[str, float]:
    frame = scores.frame.filter(pl.col("metric") == metric)
    return dict(frame.group_by("system", maintain_order=True).agg(pl.col("value").mean()).rows())


def test_what_is_in_it(loaded: LoadedCollection) -> None:
    contexts, collection = loaded.contexts, loaded.collection
    assert contexts is not None and collection.relevance is not None and collection.ratings is not None
    assert len(contexts.systems) == 37
    assert contexts.frame["query"].n_unique() == 43
    assert contexts.frame["rank"].max() == 20
    assert collection.relevance.frame["query"].n_unique() == 43
    assert len(collection.relevance) == 9260
    assert sorted(collection.relevance.frame["value"].unique()) == [0.0, 1.0, 2.0, 3.0]
    assert len(collection.ratings) == 10 * 9260
    assert set(collection.ratings.frame["value"].unique()) <= {0.0, 1.0, 2.0, 3.0, 4.0, 5.0}
    # Ten sub-questions a query.
    assert collection.ratings.frame.group_by("query").agg(pl.col("subquestion").n_unique())[
        "subquestion"
    ].unique().to_list() == [10]
    assert collection.notes == ()


def test_parts_are_the_same(file: Path, loaded: LoadedCollection) -> None:
    assert read_contexts(f"exam:{file}") == loaded.contexts
    assert read_judgments(f"exam:{file}") == loaded.collection.relevance
    assert read_ratings(f"exam:{file}") == loaded.collection.ratings


def test_every_rank_of_every_run(file: Path, loaded: LoadedCollection) -> None:
    """The file read with nothing but the standard library. Six of its runs count ranks from 0."""
    listed: list[tuple[str, str, int, str]] = []
    with gzip.open(file, "rt", encoding="utf-8") as stream:
        for line in stream:
            query, passages = json.loads(line)
            for passage in passages:
                for ranking in passage["paragraph_data"]["rankings"]:
                    listed.append((ranking["method"], query, ranking["rank"], passage["paragraph_id"]))
    from_zero = {system for system, _, rank, _ in listed if rank == 0}
    assert sorted(from_zero) == [f"TUW19-p{n}-{kind}" for n in (1, 2, 3) for kind in ("f", "re")]
    expected = [(system, query, rank + (system in from_zero), passage) for system, query, rank, passage in listed]
    assert loaded.contexts is not None
    found = loaded.contexts.frame.select("system", "query", "rank", "passage").rows()
    assert sorted(found) == sorted(expected)


def test_official_ndcg(scores: Scores) -> None:
    """Ranks that the file does not list were not judged either, so they cost nothing but their place."""
    ours = means(scores, "nDCG@10")
    assert {system: round(ours[system], 4) for system in OFFICIAL} == OFFICIAL
    assert len(ours) == 37


def test_every_system_has_every_query(scores: Scores) -> None:
    assert scores.frame.group_by("system", "metric").len()["len"].unique().to_list() == [43]
    assert scores.frame.filter(pl.col("metric") == "nDCG@10")["status"].unique().to_list() == ["ok"]


def test_unlisted_ranks_are_reported(scores: Scores) -> None:
    (note,) = [note for note in scores.notes if "gaps in the ranks" in note]
    assert "and 34 more: 890 contexts" in note


def test_coverage_and_ndcg_rank_systems_alike(scores: Scores) -> None:
    ndcg, coverage = means(scores, "nDCG@10"), means(scores, COVERAGE)
    both = np.array([[ndcg[system], coverage[system]] for system in ndcg])
    assert np.corrcoef(both.T)[0, 1] == pytest.approx(0.853, abs=0.001)
    ranks = np.column_stack([pl.Series(column).rank().to_numpy() for column in both.T])
    assert np.corrcoef(ranks.T)[0, 1] == pytest.approx(0.842, abs=0.001)


def test_coverage_by_hand(loaded: LoadedCollection, scores: Scores) -> None:
    """One system's coverage, counted with sets."""
    contexts, ratings = loaded.contexts, loaded.collection.ratings
    assert contexts is not None and ratings is not None
    answers: dict[tuple[str, str], set[str]] = {}
    for query, passage, question, value in ratings.frame.select("query", "passage", "subquestion", "value").rows():
        if value >= 4:
            answers.setdefault((query, passage), set()).add(question)
    can: dict[str, set[str]] = {}
    for (query, _), questions in answers.items():
        can.setdefault(query, set()).update(questions)
    system = "bm25base_p"
    covered: dict[str, set[str]] = {query: set() for query in can}
    for query, passage in (
        contexts.frame.filter((pl.col("system") == system) & (pl.col("rank") <= 10)).select("query", "passage").rows()
    ):
        covered.get(query, set()).update(answers.get((query, passage), set()))
    expected = {query: len(covered[query]) / len(can[query]) for query in can}
    ours = scores.frame.filter(
        (pl.col("system") == system) & (pl.col("metric") == COVERAGE) & (pl.col("status") == "ok")
    )
    assert dict(ours.select("query", "value").rows()) == pytest.approx(expected, abs=1e-12)
