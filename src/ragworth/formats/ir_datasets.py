"""Read collections by their ``ir_datasets`` identifier, such as ``ir_datasets:beir/scifact/test`` (extra)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import polars as pl

from ragworth.core.errors import FormatError, MissingExtraError, RagworthError
from ragworth.data import Contexts, Judgments, Ratings
from ragworth.data.collection import Collection
from ragworth.data.ranking import Ties
from ragworth.formats.contract import Format, LoadedCollection
from ragworth.formats.values import as_id, as_number

Row = dict[str, Any]


@contextmanager
def _opened(name: str) -> Iterator[Any]:
    """Open a collection. Whatever it raises while it is downloaded or read is one of our errors."""
    try:
        import ir_datasets
    except ImportError as error:
        raise MissingExtraError("ir_datasets", "ir-datasets", f"reading the collection {name!r}") from error
    try:
        dataset = ir_datasets.load(name)
    except KeyError as error:
        raise FormatError(
            f"ir_datasets has no collection {name!r}",
            remedy="look up the identifier in its catalogue",
            expected="beir/scifact/test",
        ) from error
    try:
        yield dataset
    except RagworthError:
        raise
    except Exception as error:
        raise FormatError(
            f"ir_datasets cannot read {name!r}: {str(error).partition(chr(10))[0][:200]}",
            remedy="it may need network access once, or a file named in its documentation",
        ) from error


def _ids(item: Any) -> Row:
    return {"query": as_id(item.query_id, "query_id"), "passage": as_id(item.doc_id, "doc_id")}


def _text(item: Any) -> str:
    """The text of a query or document: ir_datasets' default text if it has one."""
    if hasattr(item, "default_text"):
        return str(item.default_text())
    return str(getattr(item, "text", getattr(item, "title", "")))


def _read_qrels(name: str) -> list[Row]:
    """Read the qrels, with the sub-topic if they have one."""
    with _opened(str(name)) as dataset:
        return [
            {
                **_ids(item),
                "subquestion": as_id(item.subtopic_id, "subtopic_id") if hasattr(item, "subtopic_id") else None,
                "value": as_number(item.relevance, "relevance"),
            }
            for item in (dataset.qrels_iter() if dataset.has_qrels() else ())
        ]


def read_judgments(name: str, *, skip_bad_lines: bool = False) -> Judgments:
    """Read relevance judgments; with sub-topics, a passage gets its highest relevance to any."""
    rows = _read_qrels(name)
    if not rows:
        raise FormatError(f"the collection {name!r} has no relevance judgments")
    labels = pl.DataFrame(rows, infer_schema_length=None).group_by("query", "passage", maintain_order=True)
    return Judgments(labels.agg(pl.col("value").max()), source=f"ir_datasets:{name}")


def read_ratings(name: str, *, skip_bad_lines: bool = False) -> Ratings:
    """Read relevance to sub-topics as ratings."""
    rows = [row for row in _read_qrels(name) if row["subquestion"] is not None]
    if not rows:
        raise FormatError(f"the collection {name!r} has no sub-topic judgments")
    return Ratings(rows, source=f"ir_datasets:{name}")


def read_contexts(
    name: str, *, system: str | None = None, ties: Ties = "float64", skip_bad_lines: bool = False
) -> Contexts:
    """Read the run of a re-ranking collection."""
    with _opened(str(name)) as dataset:
        if not dataset.has_scoreddocs():
            raise FormatError(f"the collection {name!r} has no run")
        rows = [{**_ids(item), "score": as_number(item.score, "score")} for item in dataset.scoreddocs_iter()]
    return Contexts(rows, system=system or str(name), ties=ties, source=f"ir_datasets:{name}")


def load(name: str, *, skip_bad_lines: bool = False) -> LoadedCollection:
    """Read queries, relevance judgments and all documents, which takes a while for large collections."""
    parts: dict[str, Any] = {}
    with _opened(str(name)) as dataset:
        if dataset.has_queries():
            queries = list(dataset.queries_iter())
            parts["queries"] = {"query": [str(q.query_id) for q in queries], "text": list(map(_text, queries))}
        if dataset.has_docs():
            documents = [(str(document.doc_id), _text(document)) for document in dataset.docs_iter()]
            parts["passages"] = {"passage": [name for name, _ in documents], "text": [text for _, text in documents]}
        has_labels, has_run = dataset.has_qrels(), dataset.has_scoreddocs()
    if has_labels:
        parts["relevance"] = read_judgments(name)
    contexts = read_contexts(name) if has_run else None
    return LoadedCollection(Collection.of(**parts, source=f"ir_datasets:{name}"), contexts)


FORMAT = Format(
    name="ir_datasets",
    title="collection by its ir_datasets identifier",
    contexts=read_contexts,
    judgments=read_judgments,
    ratings=read_ratings,
    load=load,
)
