"""Real conversations: what the readers find in them, and rules against human rewrites with BM25."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import ragworth
from ragworth import formats
from ragworth.data.collection import Collection
from ragworth.data.conversations import turns_of
from ragworth.retrieval import StepContext, retrieve

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def mtrag(data: Path) -> Collection:
    return formats.load(f"mtrag:{data / 'mtrag'}").collection


def test_sizes(data: Path, mtrag: Collection) -> None:
    canard = formats.load(data / "canard" / "dev.json.gz").collection
    cast = formats.load(f"cast:{data / 'cast19'}").collection
    assert (mtrag.turns.height, mtrag.turns["rewrite"].count(), mtrag.passages.height) == (786, 777, 350)
    assert (canard.turns.height, canard.turns["conversation"].n_unique()) == (3430, 490)
    assert (cast.turns.height, cast.turns["rewrite"].count()) == (479, 479)
    assert cast.relevance is not None
    assert len(cast.relevance) == 29350


def test_histories_end_before_their_turn(data: Path) -> None:
    for turn in turns_of(formats.load(data / "canard" / "dev.json.gz").collection):
        assert len(turn.history) == 1 + 2 * (turn.number - 1)


def test_rules_and_human_rewrites_on_mtrag(mtrag: Collection) -> None:
    assert mtrag.relevance is not None
    labels = mtrag.relevance.frame
    known = labels.group_by("query", maintain_order=True).agg(
        pl.col("passage").is_in(mtrag.passages["passage"].implode()).all().alias("all")
    )
    queries = known.filter("all")["query"].to_list()
    assert len(queries) == 153
    rules = ("last", "human", "all", "first+last", "history-terms")
    systems = {by: f'rewritten(by="{by}") >> bm25' for by in rules} | {"plain": "bm25"}
    contexts = retrieve(systems, StepContext.of(mtrag, queries))
    judged = ragworth.Judgments(labels.filter(pl.col("query").is_in(queries)))
    scores = ragworth.score(contexts, judged, ["RR", "R@10"]).frame
    means = {
        (system, metric): value
        for system, metric, value in scores.group_by("system", "metric").agg(pl.col("value").mean()).iter_rows()
    }
    expected = {"last": (0.618, 0.693), "human": (0.623, 0.769), "all": (0.419, 0.620)}
    for system, (rank, recall) in expected.items():
        assert means[system, "RR"] == pytest.approx(rank, abs=0.01)
        assert means[system, "R@10"] == pytest.approx(recall, abs=0.01)
    assert means["plain", "RR"] == pytest.approx(means["last", "RR"])
    # Context helps recall, and a search for everything that was said drowns the turn.
    assert means["human", "R@10"] > means["last", "R@10"] > means["all", "R@10"]
