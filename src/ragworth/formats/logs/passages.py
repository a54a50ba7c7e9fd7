"""Read the passages of a RAG log, whatever a library, a vector store or a search engine calls their parts.

Passages are in the order of the log. Scores are better if higher, so distances are negated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ragworth.core.errors import format_names, quote_short
from ragworth.formats.logs.names import plain_name
from ragworth.formats.logs.paths import follow
from ragworth.formats.logs.values import as_grade, as_row, is_given, parse_cell
from ragworth.formats.values import WrongLineError, as_id, as_number, as_text

TEXT_KEYS = (
    *("text", "content", "page_content", "contents", "document.content", "passage", "chunk", "segment", "body"),
    *("snippet", "chunk_text", "passage_text", "document"),
)
ID_KEYS = ("doc_id", "id", "_id", "id_", "node_id", "passage_id", "docid", "docno", "chunk_id", "document.id", "uuid")
SCORE_KEYS = (
    *("score", "_score", "similarity", "document.score", "certainty", "@search.reranker_score", "@search.score"),
)
RELEVANCE_KEYS = ("relevance", "is_relevant", "relevant")

WRAPPERS = ("node", "document", "doc", "chunk", "passage", "kwargs", "init_parameters")
"""Keys of a passage that hold the passage itself, as in LlamaIndex's NodeWithScore."""

STORED = ("_source", "payload", "entity", "properties", "metadata", "content")
"""Keys under which Elasticsearch, Qdrant, Milvus, Weaviate, Pinecone and Bedrock keep the text of a hit."""

KNOWN_KEYS = frozenset((*TEXT_KEYS, *ID_KEYS, *SCORE_KEYS, *RELEVANCE_KEYS, *WRAPPERS, *STORED))

HITS = ("matches", "points", "hits", "result", "hits.hits", "result.points")
"""Where the responses of Pinecone, Qdrant and Elasticsearch have their hits."""

SIGNS_OF_HITS = {"_source", "payload", "metadata", "content", "score", "_score", "distance", "entity"}
DISTANCES = {"euclidean", "euclid", "l2", "l2_squared", "squared_euclidean", "manhattan", "l1", "hamming", "jaccard"}
"""Metrics that a response may name and of which lower values are better."""


NAME = re.compile(r"\S*(?:/|_\d|\.[a-z]{2,4}(?:#|$))\S*|(?:doc|chunk|passage|node|page)\w*-?\d+")
"""An address, the name of a file or ``doc_17``: if all passages of a context are such, they are ids and no texts."""


class LoggedPassage(NamedTuple):
    """A passage in the order shown. It has a text, an id, or both; neither stands for a search that found nothing."""

    text: str | None
    id: str | None = None
    score: float | None = None
    relevance: float | None = None
    hop: int | None = None
    """Which of an agent's searches found it, from 1."""
    search: str | None = None


def as_passages(value: Any) -> list[LoggedPassage] | None:
    """Read texts, objects with a text or an id, or a response of a vector store."""
    value = parse_cell(value, "passage")
    if value is None:
        return None
    if isinstance(value, str):
        value = [value] if value.strip() else []
    if isinstance(value, Mapping):
        value = _find_hits(value) or ([value] if value else [])
    if not isinstance(value, Sequence):
        raise WrongLineError(f"the passages are {quote_short(value, 24)}, not a list")
    if value and all(isinstance(each, str) and NAME.fullmatch(each.strip()) for each in value):
        return [LoggedPassage(None, each.strip()) for each in value]
    return [as_passage(each, rank) for rank, each in enumerate(value, 1)]


def are_passages(value: Any) -> bool:
    """Return whether a value is a list of passages with texts."""
    try:
        return isinstance(value, list) and all(each.text is not None for each in as_passages(value) or ())
    except WrongLineError:
        return False


def _find_hits(response: Mapping[str, Any]) -> list[Any] | None:
    """Return the hits in a response to one query; None if it isn't one."""
    if isinstance(response.get("ids"), list) and any(name in response for name in ("documents", "distances")):
        return _chroma_hits(response)
    hits = next((inner for path in HITS if _are_hits(inner := follow(response, path))), None)
    metric = next((name for key in ("metric", "result.distance") if (name := follow(response, key))), "")
    if hits is None or str(metric).lower() not in DISTANCES:
        return hits
    return [{**hit, "score": None, "distance": hit.get("score", hit.get("distance"))} for hit in hits]


def _are_hits(hits: Any) -> bool:
    objects = isinstance(hits, list) and all(isinstance(hit, Mapping) and SIGNS_OF_HITS & set(hit) for hit in hits)
    return objects and bool(hits)


def _chroma_hits(response: Mapping[str, Any]) -> list[Any] | None:
    """Return the hits in the columns of Chroma, which may be in a list for each query; None for several queries."""
    columns: dict[str, Any] = {}
    for name, key in (("id", "ids"), ("text", "documents"), ("distance", "distances")):
        column = response.get(key) or []
        if column and all(isinstance(each, list) for each in column):
            if len(column) > 1:
                return None
            column = column[0]
        columns[name] = column
    return [{name: column[n] for name, column in columns.items() if n < len(column)} for n in range(len(columns["id"]))]


def as_passage(item: Any, rank: int) -> LoggedPassage:
    """Read one passage: a text, an object, ``(document, score)``, or ``[title, [sentence, …]]``."""
    if isinstance(item, str):
        return LoggedPassage(as_text(item, f"text of passage {rank}"))
    if isinstance(item, list | tuple) and len(item) == 2:
        first, second = item
        if isinstance(first, str) and isinstance(second, list) and all(isinstance(each, str) for each in second):
            return LoggedPassage(as_text("\n".join([first, " ".join(each.strip() for each in second)]), "passage"))
        if as_row(first) is not None and isinstance(second, int | float):
            return as_passage(first, rank)._replace(score=as_number(second, f"score of passage {rank}"))
    row = as_row(item)
    if row is None:
        raise WrongLineError(f"passage {rank} is {quote_short(item, 24)}, not an object")
    keys = _passage_keys(tuple(row))
    passage = _own_fields(row, keys, rank)
    if passage.text is None or "node" in row:
        passage = _inner_fields(passage, row, keys, rank)
    if passage.text is None and passage.id is None and not _is_empty_search(row):
        names = format_names(list(map(str, row)), 8)
        raise WrongLineError(f"passage {rank} has neither doc_id nor text; it has {names}")
    return passage


def _is_empty_search(row: Mapping[str, Any]) -> bool:
    """Return whether a row has a hop and a search, and nothing else."""
    return {"hop", "search"} <= {key for key, value in row.items() if is_given(value)} <= {"hop", "search", "turn"}


class PassageKeys(NamedTuple):
    """The keys of a passage that may have its text, id, score, relevance and inner objects, in order of preference."""

    text: tuple[str, ...]
    id: tuple[str, ...]
    score: tuple[str, ...]
    relevance: tuple[str, ...]
    wrappers: tuple[str, ...]
    stored: tuple[str, ...]


@lru_cache(maxsize=1024)
def _passage_keys(names: tuple[object, ...]) -> PassageKeys:
    """Return the keys among these names, also in another spelling: ``pageContent`` and ``Content``."""
    there = {plain_name(name): str(name) for name in reversed(names)} | {str(name): str(name) for name in names}
    # In what LangChain's dumpd writes (with "lc"), the id is the path of a class.
    fields = (TEXT_KEYS, () if "lc" in names else ID_KEYS, SCORE_KEYS, RELEVANCE_KEYS, WRAPPERS, STORED)
    return PassageKeys(*(tuple(there[key] for key in keys if key in there) for keys in fields))


def _own_fields(row: Mapping[str, Any], keys: PassageKeys, rank: int) -> LoggedPassage:
    text, name = _first_value(row, keys.text), _first_value(row, keys.id, objects=True)
    score, relevance = _first_value(row, keys.score), _first_value(row, keys.relevance)
    hop, search = _hop_of(row), row.get("search")
    return LoggedPassage(
        None if text is None else as_text(text, f"text of passage {rank}"),
        None if name is None else as_id(name, "doc_id"),
        _minus_distance(row) if score is None else _as_score(score, f"score of passage {rank}"),
        None if relevance is None else float(_as_score(relevance, f"relevance of passage {rank}", truth=True)),
        hop,
        as_text(search, f"search of passage {rank}") if hop is not None and is_given(search) else None,
    )


def _first_value(row: Mapping[str, Any], keys: Iterable[str], *, objects: bool = False) -> Any:
    for key in keys:
        if is_given(value := row[key]) and (objects or not isinstance(value, dict)):
            return value
    return None


def _inner_fields(own: LoggedPassage, row: Mapping[str, Any], keys: PassageKeys, rank: int) -> LoggedPassage:
    """Add what an object inside a passage has: a document beside its score, or what a vector store keeps."""
    for key in keys.wrappers:
        if (inner := as_row(row[key])) is not None:
            inside = as_passage(inner, rank)._asdict()
            return own._replace(**{name: inside[name] for name in inside if getattr(own, name) is None})
    for key in keys.stored:
        if own.text is None and (inner := as_row(row[key])) is not None:
            stored = _own_fields(inner, _passage_keys(tuple(inner)), rank)
            own = own._replace(text=stored.text, id=stored.id if own.id is None else own.id)
    return own


def _hop_of(row: Mapping[str, Any]) -> int | None:
    """Return in which of an agent's searches a passage was found. A field of that name may mean something else."""
    hop = row.get("hop")
    whole = isinstance(hop, int | float) and not isinstance(hop, bool) and hop >= 0 and float(hop).is_integer()
    return int(hop) if whole else None  # type: ignore[arg-type]


def _as_score(value: Any, what: str, *, truth: bool = False) -> float:
    """Return a number, which may be written as text; true and false are numbers only if this is about ``truth``."""
    if truth and isinstance(value, bool):
        return float(value)
    number = as_grade(value, what) if isinstance(value, str) else value
    return as_number(value if number is None else number, what)


def _minus_distance(row: Mapping[str, Any]) -> float | None:
    """Return the score of a hit with a distance, which is better if lower. Milvus calls similarities so, too."""
    distance = row.get("distance")
    if "entity" in row or not is_given(distance) or isinstance(distance, bool | str):
        return None
    return -as_number(distance, "distance")
