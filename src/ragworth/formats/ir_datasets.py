"""Read collections by their ``ir_datasets`` identifier, such as ``ir_datasets:beir/scifact/test`` (extra)."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import polars as pl

from ragworth.core.errors import FormatError, MissingExtraError, RagworthError
from ragworth.data import Contexts, Judgments, Ratings
from ragworth.data.collection import Collection
from ragworth.data.ranking import Ties
from ragworth.formats.contract import Format, LoadedCollection
from ragworth.formats.values import as_id, as_number

F = TypeVar("F", bound=Callable[..., Any])


def _dataset(name: str) -> Any:
    try:
        import ir_datasets
    except ImportError as error:
        raise MissingExtraError("ir_datasets", "ir-datasets", f"reading the collection {name!r}") from error
    try:
        return ir_datasets.load(name)
    except KeyError as error:
        raise FormatError(
            f"ir_datasets has no collection {name!r}",
            remedy="look up the identifier in its catalogue",
            expected="beir/scifact/test",
        ) from error


def _provides(dataset: Any, what: str) -> bool:
    return bool(getattr(dataset, f"has_{what}")())


def _ids(item: Any) -> tuple[str, str]:
    return as_id(item.query_id, "query_id"), as_id(item.doc_id, "doc_id")


def _text(item: Any) -> str:
    """Return the text of a query or document: ir_datasets' default text if it has one."""
    if hasattr(item, "default_text"):
        return str(item.default_text())
    return str(getattr(item, "text", getattr(item, "title", "")))


def _translate_errors(read: F) -> F:
    """Wrap ``read`` so that every failure is one of our errors."""

    @wraps(read)
    def reported(name: str, **options: Any) -> Any:
        try:
            return read(name, **options)
        except RagworthError:
            raise
        except Exception as error:  # anything a collection may raise while it is downloaded or read
            raise FormatError(
                f"ir_datasets cannot read {name!r}: {str(error).partition(chr(10))[0][:200]}",
                remedy="it may need network access once, or a file named in its documentation",
            ) from error

    return cast(F, reported)


@_translate_errors
def read_judgments(name: str, *, skip_bad_lines: bool = False) -> Judgments:
    """Read relevance judgments; with sub-topics, a passage gets its highest relevance to any."""
    dataset = _dataset(str(name))
    if not _provides(dataset, "qrels"):
        raise FormatError(f"the collection {name!r} has no relevance judgments")
    frame = pl.DataFrame(
        [(*_ids(q), as_number(q.relevance, "relevance")) for q in dataset.qrels_iter()],
        schema={"query": pl.String, "passage": pl.String, "value": pl.Float64},
        orient="row",
    )
    frame = frame.group_by("query", "passage", maintain_order=True).agg(pl.col("value").max())
    return Judgments(frame, source=f"ir_datasets:{name}")


@_translate_errors
def read_ratings(name: str, *, skip_bad_lines: bool = False) -> Ratings:
    """Read relevance to sub-topics as ratings."""
    dataset = _dataset(str(name))
    rows = [
        (*_ids(q), as_id(q.subtopic_id, "subtopic_id"), as_number(q.relevance, "relevance"))
        for q in (dataset.qrels_iter() if _provides(dataset, "qrels") else ())
        if hasattr(q, "subtopic_id")
    ]
    if not rows:
        raise FormatError(f"the collection {name!r} has no sub-topic judgments")
    return Ratings(
        pl.DataFrame(rows, schema=["query", "passage", "subquestion", "value"], orient="row"),
        source=f"ir_datasets:{name}",
    )


@_translate_errors
def read_contexts(
    name: str, *, system: str | None = None, ties: Ties = "float64", skip_bad_lines: bool = False
) -> Contexts:
    """Read the run of a re-ranking collection."""
    dataset = _dataset(str(name))
    if not _provides(dataset, "scoreddocs"):
        raise FormatError(f"the collection {name!r} has no run")
    rows = [(*_ids(s), as_number(s.score, "score")) for s in dataset.scoreddocs_iter()]
    frame = pl.DataFrame(rows, schema=["query", "passage", "score"], orient="row")
    return Contexts(frame, system=system or str(name), ties=ties, source=f"ir_datasets:{name}")


@_translate_errors
def load(name: str, *, skip_bad_lines: bool = False) -> LoadedCollection:
    """Read queries, relevance judgments and all documents, which takes a while for large collections."""
    dataset = _dataset(str(name))
    texts = {
        "queries": ("query", "query_id") if _provides(dataset, "queries") else None,
        "passages": ("passage", "doc_id") if _provides(dataset, "docs") else None,
    }
    parts: dict[str, Any] = {}
    for part, (kind, key) in ((p, k) for p, k in texts.items() if k is not None):
        items = dataset.queries_iter() if part == "queries" else dataset.docs_iter()
        parts[part] = pl.DataFrame(
            [(str(getattr(i, key)), _text(i)) for i in items], schema={kind: pl.String, "text": pl.String}, orient="row"
        )
    if _provides(dataset, "qrels"):
        parts["relevance"] = read_judgments(name)
    contexts = read_contexts(name) if _provides(dataset, "scoreddocs") else None
    return LoadedCollection(Collection.of(**parts, source=f"ir_datasets:{name}"), contexts)


FORMAT = Format(
    name="ir_datasets",
    title="collection by its ir_datasets identifier",
    contexts=read_contexts,
    judgments=read_judgments,
    ratings=read_ratings,
    load=load,
)
