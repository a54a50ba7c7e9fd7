"""BM25 on a real collection: 11,429 abstracts, 93 queries, 2,083 relevance labels."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from ragworth import score, summarise
from ragworth.data.collection import Collection
from ragworth.formats import read_judgments
from ragworth.retrieval import StepContext, retrieve

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def vaswani(data: Path) -> Collection:
    def texts(name: str, form: str) -> tuple[list[str], list[str]]:
        with gzip.open(data / "vaswani" / name, "rt", encoding="utf-8") as stream:
            found = re.findall(form, stream.read(), re.S)
        return [number for number, _ in found], [text for _, text in found]

    passages = texts("doc-text.trec.gz", r"<DOCNO>\s*(\S+?)\s*</DOCNO>(.*?)</DOC>")
    queries = texts("query-text.trec.gz", r"<num>\s*(\S+?)\s*</num>\s*<title>(.*?)</title>")
    made = Collection.of(
        queries={"query": queries[0], "text": queries[1]},
        passages={"passage": passages[0], "text": passages[1]},
        relevance=read_judgments(data / "vaswani" / "qrels.gz"),
    )
    assert (made.passages.height, made.queries.height) == (11429, 93)
    return made


def test_bm25_and_controlled_contexts(vaswani: Collection, tmp_path: Path) -> None:
    systems = {
        "oracle": "oracle % 1000",
        "bm25": "bm25 % 1000",
        "turned": "bm25 % 10 >> reversed",
        "random": "random % 1000",
        "adversary": "bm25 % 1000 >> adversary",
    }
    made = retrieve(systems, StepContext.of(vaswani, cache=tmp_path))
    means = means_of(made, vaswani)
    assert means["oracle", "nDCG@10"] == means["oracle", "AP"] == pytest.approx(1.0)
    assert means["bm25", "nDCG@10"] == pytest.approx(BM25_NDCG, abs=5e-4)
    assert means["bm25", "AP"] == pytest.approx(BM25_AP, abs=5e-4)
    assert means["bm25", "nDCG@10"] > means["turned", "nDCG@10"] > means["random", "nDCG@10"] < 0.02
    assert means["adversary", "nDCG@10"] == means["adversary", "AP"] == 0.0
    assert retrieve(systems, StepContext.of(vaswani, cache=tmp_path)) == made


def test_with_stems_and_stop_words(vaswani: Collection) -> None:
    pytest.importorskip("Stemmer")
    made = retrieve({"s": 'bm25(stemmer="porter", stopwords="english") % 1000'}, StepContext.of(vaswani))
    means = means_of(made, vaswani)
    assert means["s", "AP"] == pytest.approx(STEMMED_AP, abs=5e-4)
    assert means["s", "AP"] == pytest.approx(TERRIER_AP, abs=0.01)
    assert means["s", "nDCG@10"] == pytest.approx(STEMMED_NDCG, abs=5e-4)


def means_of(made: object, collection: Collection) -> dict[tuple[str, str], float]:
    scores = score(made, collection.relevance, ["nDCG@10", "AP"])
    return {
        (row["system"], row["metric"]): row["mean"] for row in summarise(scores, resamples=100).iter_rows(named=True)
    }


BM25_NDCG, BM25_AP = 0.3563, 0.2110
STEMMED_NDCG, STEMMED_AP = 0.4383, 0.2888
TERRIER_AP = 0.2965
"""Terrier's BM25 with Porter's stemmer and its own stop words, in PyTerrier's notebook experiment.ipynb."""
