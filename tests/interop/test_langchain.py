"""LangChain's retrievers, chains and vector stores as systems."""

from __future__ import annotations

from typing import Any

import pytest

from ragworth import retrieval
from ragworth.data.collection import text_id
from ragworth.retrieval import retrieve
from tests.retrieval.samples import PASSAGES, passages, world

pytest.importorskip("langchain_core", reason="langchain-core is not installed")
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore


class Sharing(BaseRetriever):  # type: ignore[misc]
    """Documents that share a word with the query, those with more of them first."""

    numbered: bool = True

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        wanted = set(query.lower().strip("?").split())
        shared = {key: len(wanted & set(text.lower().strip(".").split())) for key, text in PASSAGES.items()}
        best = sorted((key for key in shared if shared[key]), key=lambda key: -shared[key])
        return [
            Document(id=key if self.numbered else None, page_content=PASSAGES[key], metadata={"docno": key, "n": n})
            for n, key in enumerate(best)
        ]


def test_a_retriever() -> None:
    context = world()
    made = retrieve({"lc": Sharing(), "two": [Sharing(), "top(2)"]}, context)
    assert passages(made, "lc")["q1"] == ["p1", "p2", "p4"]
    assert passages(made, "two")["q1"] == ["p1", "p2"]
    assert passages(made, "lc")["q4"] == []
    assert made.frame["score"].null_count() == made.frame.height
    assert not context.returned_texts


def test_documents_without_ids_get_them_from_their_texts() -> None:
    context = world({})
    made = retrieve({"lc": Sharing(numbered=False)}, context)
    assert passages(made, "lc")["q2"] == [text_id(PASSAGES["p3"])]
    assert PASSAGES["p3"] in context.texts.passages["text"].to_list()
    named = retrieve({"lc": retrieval.called(Sharing(numbered=False), id="docno")}, world())
    assert passages(named, "lc")["q2"] == ["p3"]


def test_a_chain_and_a_vector_store() -> None:
    chain = Sharing() | RunnableLambda(lambda documents: documents[::-1])
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents([Document(id=key, page_content=text) for key, text in PASSAGES.items() if text])
    with_scores = store.similarity_search_with_score
    made = retrieve({"chain": chain, "store": retrieval.called(store) % 3, "scores": with_scores}, world())
    assert passages(made, "chain")["q1"] == ["p4", "p2", "p1"]
    assert len(passages(made, "store")["q3"]) == 3
    assert passages(made, "scores")["q3"][:3] == passages(made, "store")["q3"]
    assert made.only("scores").frame["score"].null_count() == 0
