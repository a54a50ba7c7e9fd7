"""Real conversations: what the readers find in them, and rules against human rewrites with BM25."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import polars as pl
import pytest

import ragworth
from ragworth import Judgments, formats
from ragworth.data.collection import Collection
from ragworth.data.conversations import Message, Turn, turns_of
from ragworth.formats import conversations
from ragworth.retrieval import StepContext, retrieve

pytestmark = pytest.mark.real


def texts(folder: Path, name: str) -> dict[str, list[str]]:
    """The turns of the user by the id of the last one."""
    (path,) = folder.glob(f"*_{name}.jsonl.gz")
    rows = pl.read_ndjson(gzip.decompress(path.read_bytes())).iter_rows(named=True)
    return {row["_id"]: [text.strip() for text in row["text"].split("|user|:")[1:]] for row in rows}


def retrieval_turns(folder: Path) -> Iterator[Turn]:
    """The turns of MT-RAG's retrieval task, as docs/howto/conversations.md converts them."""
    said, rewrites = texts(folder, "questions"), texts(folder, "rewrite")
    for query, (text,) in texts(folder, "lastturn").items():
        conversation, _, number = query.rpartition("<::>")
        history = tuple(Message("user", each) for each in said.get(query, [])[:-1])
        yield Turn(query, conversation, int(number), text, history, rewrites.get(query, [None])[0])


@pytest.fixture(scope="module")
def mtrag(data: Path) -> Collection:
    folders = sorted(folder for folder in (data / "mtrag").iterdir() if folder.is_dir())
    turns = [turn for folder in folders for turn in retrieval_turns(folder)]
    tasks = formats.load(data / "mtrag" / "reference_subset_with_human_evaluations.json.gz").collection
    assert (tasks.turns.height, tasks.answers.height) == (159, 159)
    rows = [asdict(turn) for turn in turns]
    return Collection.of(
        queries=[{"query": turn.query, "text": turn.question} for turn in turns],
        turns=pl.DataFrame(rows, infer_schema_length=None).drop("question"),
        passages=tasks.passages,
        relevance=Judgments.concat([formats.read_judgments(folder / "dev.tsv.gz") for folder in folders]),
    )


def test_sizes(data: Path, mtrag: Collection) -> None:
    canard = formats.load(data / "canard" / "dev.json.gz").collection
    cast = formats.load(data / "cast19" / "evaluation_topics_v1.0.json.gz").collection
    assert (mtrag.turns.height, mtrag.turns["rewrite"].count(), mtrag.passages.height) == (777, 777, 350)
    assert (canard.turns.height, canard.turns["conversation"].n_unique()) == (3430, 490)
    assert cast.turns.height == 479


def test_joined_rewrites(data: Path, tmp_path: Path) -> None:
    topics = formats.load(data / "cast19" / "evaluation_topics_v1.0.json.gz").collection
    path = data / "cast19" / "evaluation_topics_annotated_resolved_v1.0.tsv.gz"
    columns = ["query", "rewrite"]
    rewrites = pl.read_csv(path, separator="\t", has_header=False, new_columns=columns, quote_char=None)
    turns = topics.turns.drop("rewrite").join(rewrites, on="query", how="left", maintain_order="left")
    conversations.write(Collection.of(queries=topics.queries, turns=turns), tmp_path / "conversations.jsonl")
    assert formats.load(tmp_path / "conversations.jsonl").collection.turns["rewrite"].count() == 479


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
