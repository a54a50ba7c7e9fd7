"""Take the hits out of responses of vector stores and search engines.

Hits are in the order of the response. Scores are better if higher: the distances of Chroma, Weaviate and pgvector are
negated, and so are the scores of responses that name a metric which is a distance (``"metric": "euclidean"``), unless
they fall with the rank, as relevance computed from a distance does. Milvus calls distances and similarities
``distance``; without a metric, these are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LISTS = ("matches", "points", "objects", "result", "hits")
"""Lists of hits: of Pinecone, Qdrant, Weaviate, older versions of Qdrant, and Elasticsearch."""

PATHS = (("hits", "hits"), ("result", "points"))
"""Lists of hits inside an object: of Elasticsearch and OpenSearch, and of Qdrant."""

METRIC_KEYS = ("metric", "metric_type", "distance")
"""Fields of a response that may name the metric: of Pinecone, Milvus and Qdrant."""
DISTANCES = {"euclidean", "euclid", "l2", "l2_squared", "squared_euclidean", "manhattan", "l1", "hamming", "jaccard"}
SIMILARITIES = {"cosine", "dotproduct", "dot", "dot_product", "ip", "inner_product"}

CHROMA = ("ids", "documents", "distances", "metadatas", "embeddings", "uris", "data", "included")
SIGNS = {"_source", "payload", "properties", "_additional", "metadata", "content", "score", "_score", "distance"}
SIGNS |= {"entity"}
"""Fields of hits."""


def find_hits(response: Any, *, empty: bool = False) -> list[Any] | None:
    """The hits in a response to one query; None if it isn't one, or has no hits unless it may be ``empty``."""
    if isinstance(response, list):  # Milvus has one for each query
        return response[0] if len(response) == 1 and _are_hits(response[0], empty) else None
    if not isinstance(response, Mapping):
        return None
    if is_chroma(response):
        of_queries = chroma_hits(response)
        return of_queries[0] if len(of_queries) == 1 else None
    classes = _follow(response, ("data", "Get"))  # Weaviate's GraphQL
    lists = [*(response.get(name) for name in LISTS), *(_follow(response, path) for path in PATHS)]
    lists += list(classes.values()) if isinstance(classes, Mapping) else []
    return next((_with_sure_scores(each, _metric_of(response)) for each in lists if _are_hits(each, empty)), None)


def _metric_of(response: Mapping[str, Any]) -> str:
    """The metric that a response names, as in ``"metric": "euclidean"``; empty if it names none that is known."""
    places = [response, *(each for each in response.values() if isinstance(each, Mapping))]
    named = (str(place.get(key)).lower() for place in places for key in METRIC_KEYS)
    return next((name for name in named if name in DISTANCES | SIMILARITIES), "")


def _follow(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _are_hits(value: Any, empty: bool) -> bool:
    if not isinstance(value, list) or (not value and not empty):
        return False
    return all(isinstance(hit, Mapping) and SIGNS & set(hit) and "role" not in hit for hit in value)  # no messages


def _with_sure_scores(hits: list[Any], metric: str) -> list[Any]:
    """Hits with scores that are better if higher, without those of which nothing says which way they are better."""
    if metric:
        scores = [score for hit in hits if (score := _score_of(hit)) is not None]
        falling = scores == sorted(scores, reverse=True) and len(set(scores)) > 1
        sign = -1 if metric in DISTANCES and not falling else 1
        return [_with_score(hit, sign) for hit in hits]
    doubtful = bool(hits) and "entity" in hits[0]
    return [{name: each for name, each in hit.items() if name != "distance"} for hit in hits] if doubtful else hits


def _score_of(hit: Mapping[str, Any]) -> float | None:
    """The score of a hit, if it is a number; Milvus calls it ``distance``."""
    score = hit.get("distance" if "entity" in hit else "score")
    return score if isinstance(score, int | float) and not isinstance(score, bool) else None


def _with_score(hit: Mapping[str, Any], sign: int) -> Mapping[str, Any]:
    """A hit with its score times a sign."""
    score = _score_of(hit)
    if score is None:
        return hit
    return {name: each for name, each in hit.items() if name != "distance"} | {"score": sign * score}


def is_chroma(response: Any) -> bool:
    """Whether a response is one of Chroma: in each column a list for each query, or the hits of one query."""
    ids = response.get("ids") if isinstance(response, Mapping) else None
    if not isinstance(ids, list) or not ids:
        return False
    columns = CHROMA[1:4] if all(isinstance(each, list) for each in ids) else ("distances",)
    return any(isinstance(response.get(name), list) for name in columns)


def chroma_hits(response: Mapping[str, Any]) -> list[list[dict[str, Any]]]:
    """The hits of each query in a response of Chroma."""
    nested = all(isinstance(each, list) for each in response["ids"])
    columns = {name: response.get(name) if nested else [response.get(name)] for name in CHROMA[:3]}

    def cell(name: str, query: int, place: int) -> Any:
        column = columns[name]
        row = column[query] if isinstance(column, list) and query < len(column) else None
        return row[place] if isinstance(row, list) and place < len(row) else None

    return [
        [
            {"id": name, "text": cell("documents", query, place), "distance": cell("distances", query, place)}
            for place, name in enumerate(names)
        ]
        for query, names in enumerate(columns["ids"] or [])
    ]
