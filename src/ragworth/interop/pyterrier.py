"""Use PyTerrier transformers and pipelines that retrieve (``bm25 >> rerank``, ``a + b``, ``a % 10``).

All queries go through at once. The order is that of PyTerrier's ranks, or else of the scores. A ``text`` column in the
results provides the texts of passages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ragworth.core.errors import InputError, MissingExtraError, format_names
from ragworth.data import coercion
from ragworth.interop.callables import describe_callable
from ragworth.interop.hits import WrongShapeError
from ragworth.interop.retrievers import Retriever, RetrieverQuery


def adopt(retriever: Any, identity: str = "") -> Retriever:
    """Wrap a transformer from queries (qid, query) to results (qid, docno, score, rank)."""

    def ask_all(asked: Sequence[RetrieverQuery], k: int) -> Mapping[str, Any]:
        return _hits(retriever.transform(_topics(asked)), identity or "docno")

    return Retriever(describe_callable(retriever), ask_all=ask_all, by_place=True)


def _topics(asked: Sequence[RetrieverQuery]) -> Any:
    """The queries as a pandas data frame, as transformers expect."""
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingExtraError("pandas", "pandas", "asking a PyTerrier transformer") from error
    return pd.DataFrame({"qid": [each.query for each in asked], "query": [each.text for each in asked]})


def _hits(results: Any, identity: str) -> dict[str, list[dict[str, Any]]]:
    """The hits of each query, in order."""
    try:
        columns = [name for name in ("qid", identity, "score", "rank", "text") if name in results.columns]
        frame = coercion.to_frame(results[columns])
    except (InputError, TypeError, AttributeError) as error:
        raise WrongShapeError(f"the result is not a table: {str(error)[:200]}") from error
    if not {"qid", identity} <= set(columns) or not {"score", "rank"} & set(columns):
        raise WrongShapeError(f"a table with {format_names(list(results.columns))} was returned")
    order = [pl.col("rank")] if "rank" in columns else [-pl.col("score"), pl.col(identity)]
    descending = [False] if "rank" in columns else [False, True]
    found: dict[str, list[dict[str, Any]]] = {}
    for row in frame.sort(order, descending=descending, maintain_order=True).iter_rows(named=True):
        found.setdefault(str(row.pop("qid")), []).append({"id": row.pop(identity), **row})
    return found
