"""LlamaIndex' retrievers and indexes as systems."""

from __future__ import annotations

import pytest

from ragworth import retrieval
from ragworth.retrieval import retrieve
from tests.retrieval.samples import PASSAGES, passages, world

pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
from llama_index.core import MockEmbedding, QueryBundle, VectorStoreIndex
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

NODES = [TextNode(id_=key, text=text, metadata={"docno": f"d-{key}"}) for key, text in PASSAGES.items() if text]


class Fixed(BaseRetriever):  # type: ignore[misc]
    """The same nodes for every query, with these scores."""

    def __init__(self, *scores: float | None) -> None:
        self.scores = scores
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=node, score=score) for node, score in zip(NODES, self.scores, strict=False)]


def test_a_retriever() -> None:
    made = retrieve({"falling": Fixed(0.9, 0.5), "laid out": Fixed(0.5, 0.9, 0.1), "bare": Fixed(None)}, world())
    assert passages(made, "falling")["q3"] == ["p1", "p2"]
    assert made.only("falling").frame["score"].to_list()[:2] == [0.9, 0.5]
    assert passages(made, "laid out")["q3"] == ["p1", "p2", "p3"], "the order is the one shown"
    assert made.only("laid out").frame["score"].null_count() == 9
    assert passages(made, "bare")["q1"] == ["p1"]


def test_texts_and_fields() -> None:
    context = world({})
    made = retrieve({"li": retrieval.called(Fixed(0.9), id="docno")}, context)
    assert passages(made, "li")["q1"] == ["d-p1"]
    assert context.texts.passages.rows() == [("d-p1", PASSAGES["p1"])]


def test_an_index() -> None:
    index = VectorStoreIndex(NODES, embed_model=MockEmbedding(embed_dim=4))
    made = retrieve({"li": retrieval.called(index) % 3, "two": index.as_retriever(similarity_top_k=2)}, world())
    assert len(set(passages(made, "li")["q1"])) == 3
    assert len(passages(made, "two")["q1"]) == 2
