"""Haystack's retrievers as systems."""

from __future__ import annotations

import os
from typing import Any

import pytest

from ragworth import retrieval
from ragworth.core.errors import InputError
from ragworth.retrieval import retrieve
from tests.retrieval.samples import PASSAGES, passages, world

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")
pytest.importorskip("haystack", reason="haystack-ai is not installed")
from haystack import Document, Pipeline, component
from haystack.components.retrievers.in_memory import (
    InMemoryBM25Retriever,
    InMemoryEmbeddingRetriever,
)
from haystack.document_stores.in_memory import InMemoryDocumentStore


@component
class Other:
    """A component that retrieves nothing."""

    @component.output_types(words=list[str])  # type: ignore[untyped-decorator]
    def run(self, query: str) -> dict[str, Any]:
        return {"words": query.split()}


def stored() -> InMemoryDocumentStore:
    store = InMemoryDocumentStore()
    store.write_documents(
        [Document(id=key, content=text, meta={"docno": f"d-{key}"}) for key, text in PASSAGES.items()]
    )
    return store


def test_a_retriever() -> None:
    one = InMemoryBM25Retriever(stored())
    made = retrieve({"hs": one, "two": retrieval.called(one) % 2}, world())
    assert passages(made, "hs")["q1"][0] == "p1"
    assert passages(made, "two")["q1"] == passages(made, "hs")["q1"][:2]
    assert made.only("hs").frame["score"].null_count() == 0


def test_texts_and_fields() -> None:
    context = world({})
    made = retrieve({"hs": retrieval.called(InMemoryBM25Retriever(stored()), id="docno") % 1}, context)
    assert passages(made, "hs")["q1"] == ["d-p1"]
    assert dict(context.texts.passages.iter_rows())["d-p1"] == PASSAGES["p1"]


def test_a_function_around_a_pipeline() -> None:
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(stored(), top_k=2))

    def search(text: str) -> list[Document]:
        found: list[Document] = pipeline.run({"retriever": {"query": text}})["retriever"]["documents"]
        return found

    assert passages(retrieve({"hs": search}, world()), "hs")["q1"][0] == "p1"
    with pytest.raises(InputError, match=r"hs: Pipeline is no component: [^$]*pass a function"):
        retrieve({"hs": pipeline}, world())


def test_components_that_do_not_fit() -> None:
    with pytest.raises(InputError, match="takes query_embedding instead of a query text"):
        retrieve({"hs": InMemoryEmbeddingRetriever(stored())}, world())
    with pytest.raises(InputError, match=r"hs: Other fails for the query 'q1' .* returned words instead"):
        retrieve({"hs": Other()}, world())
