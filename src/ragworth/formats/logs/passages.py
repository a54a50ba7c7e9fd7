"""Read the passages of a RAG log, whatever a vector store or library calls their parts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from ragworth.core.errors import format_names, quote_short
from ragworth.formats.logs.fields import plain_name
from ragworth.formats.logs.records import LoggedPassage
from ragworth.formats.logs.search_hits import find_hits
from ragworth.formats.logs.values import as_grade, as_row, is_given, parse_cell
from ragworth.formats.values import WrongLineError, as_id, as_number, as_text

TEXT_KEYS = (
    *("text", "content", "page_content", "contents", "document.content", "passage", "chunk", "segment", "body"),
    *("snippet", "chunk_text", "passage_text"),
)


ID_KEYS = ("doc_id", "id", "_id", "id_", "node_id", "passage_id", "docid", "docno", "chunk_id", "document.id", "uuid")


SCORE_KEYS = (
    *("score", "_score", "similarity", "document.score", "certainty", "@search.reranker_score", "@search.score"),
)


RELEVANCE_KEYS = ("relevance", "is_relevant", "relevant")


# In what LangChain's dumpd writes (with "lc"), the id is the path of a class.
WRAPPERS = ("node", "document", "doc", "chunk", "passage", "kwargs", "init_parameters")
"""Keys of a passage that hold the passage itself, as in LlamaIndex's NodeWithScore."""


STORED = ("_source", "payload", "entity", "properties", "metadata", "content")
"""Keys under which vector stores and search engines keep the text of a hit: Elasticsearch, Qdrant, Milvus, Weaviate,
Pinecone, and Bedrock."""


KNOWN_KEYS = frozenset((*TEXT_KEYS, *ID_KEYS, *SCORE_KEYS, *RELEVANCE_KEYS, *WRAPPERS, *STORED))


PLACE = re.compile(
    r"https?://\S+|(?:\S{1,50} ){0,5}\S{1,150}\.(?:pdf|docx?|pptx?|xlsx?)(?:[#:]\S{1,150})?|"
    r"\S{1,150}\.(?:md|txt|html?|csv|json|xml)(?:[#:]\S{1,150})?|"
    r"\w{1,20}_\d+|(?:doc(?:ument)?|chunk|passage|node|page|section|p|d)-\d+",
    re.IGNORECASE,
)
"""The address or file name of a passage, or a name such as ``doc_17``. If all passages are such, they are no texts."""


def as_passages(value: Any) -> list[LoggedPassage] | None:
    """Passages in the order shown: texts, objects with a text or an id, or ``{id: passage}``; also written as text."""
    value = parse_cell(value, "passage")
    if value is None:
        return None
    if isinstance(value, str):
        return as_passages([value]) if value.strip() else []
    hits = find_hits(value)
    if hits is not None:
        value = hits
    if isinstance(value, Mapping):
        if not value:
            return []
        if all(isinstance(each, str) for each in value.values()) and not set(value) & {*TEXT_KEYS, *ID_KEYS}:
            return [LoggedPassage(as_text(text, "passage"), as_id(name, "id")) for name, text in value.items()]
        if not KNOWN_KEYS & set(value) and all(isinstance(each, Mapping) for each in value.values()):
            named = [as_passage({"id": name, **each}, rank) for rank, (name, each) in enumerate(value.items(), 1)]
            if all(each.text is not None for each in named):
                return named
        value = [value]
    if not isinstance(value, Sequence):
        raise WrongLineError(f"the passages are {quote_short(value, 24)}, not a list")
    if value and all(isinstance(each, str) and PLACE.fullmatch(each.strip()) for each in value):
        return [LoggedPassage(None, each.strip()) for each in value]
    return [as_passage(each, rank) for rank, each in enumerate(value, 1)]


def as_passage(item: Any, rank: int) -> LoggedPassage:
    """One passage: a text, an object, ``(document, score)``, or ``[title, [sentence, …]]``."""
    if isinstance(item, str):
        return LoggedPassage(as_text(item, f"text of passage {rank}"))
    if isinstance(item, list | tuple) and len(item) == 2:
        first, second = item
        if isinstance(first, str) and isinstance(second, list) and all(isinstance(each, str) for each in second):
            return LoggedPassage(as_text("\n".join([first, " ".join(each.strip() for each in second)]), "passage"))
        if as_row(first) is not None and isinstance(second, int | float):
            return as_passage(first, rank)._replace(score=as_number(second, f"score of passage {rank}"))
    row = _with_plain_keys(as_row(item))
    if row is None:
        raise WrongLineError(f"passage {rank} is {quote_short(item, 24)}, not an object")
    if "_additional" in row:  # Weaviate's id and distance
        row = {**(as_row(row["_additional"]) or {}), **row}
    outer = _own_fields(row, rank)
    for key in WRAPPERS:
        if (outer.text is None or key == "node") and (inner := as_row(row.get(key))) is not None:
            inside = as_passage(inner, rank)
            return outer._replace(
                **{name: value for name, value in inside._asdict().items() if getattr(outer, name) is None}
            )
    for key in STORED:
        if outer.text is None and (inner := as_row(row.get(key))) is not None:
            stored = _own_fields(inner, rank)
            outer = outer._replace(text=stored.text, id=outer.id if outer.id is not None else stored.id)
    if outer.text is None and isinstance(row.get("document"), str):
        outer = outer._replace(text=as_text(row["document"], f"text of passage {rank}"))
    if outer.text is None and outer.id is None and not _is_empty_search(row):
        raise WrongLineError(
            f"passage {rank} has neither doc_id nor text; it has {format_names(list(map(str, row)), 8)}"
        )
    return outer


def _with_plain_keys(row: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The row with the keys of a passage as we write them: ``pageContent`` and ``Content`` are renamed."""
    other = _other_spellings(tuple(row)) if row else {}
    return {other.get(key, key): value for key, value in row.items()} if row and other else row


@lru_cache(maxsize=1024)
def _other_spellings(names: tuple[str, ...]) -> dict[str, str]:
    """Names in another spelling of a key that a passage may have and these names lack."""
    found: dict[str, str] = {}
    for name in names:
        plain = plain_name(name)
        if name not in KNOWN_KEYS and plain in KNOWN_KEYS and plain not in names and plain not in found.values():
            found[name] = plain
    return found


def _is_empty_search(row: Mapping[str, Any]) -> bool:
    """Whether a row has a hop and a search, and nothing else: a passage under another name is no empty search."""
    given = {key for key, value in row.items() if is_given(value)}
    return {"hop", "search"} <= given <= {"hop", "search", "turn"}


@lru_cache(maxsize=1024)
def _passage_keys(names: tuple[object, ...]) -> tuple[tuple[str, ...], ...]:
    """The keys of a passage that may have its text, id, score and relevance, in order of preference."""
    fields = (TEXT_KEYS, () if "lc" in names else ID_KEYS, SCORE_KEYS, RELEVANCE_KEYS)
    return tuple(tuple(key for key in keys if key in names) for keys in fields)


def _own_fields(row: Mapping[str, Any], rank: int) -> LoggedPassage:
    text, name, score, relevance = (
        next((row[key] for key in keys if is_given(row[key]) and not isinstance(row[key], Mapping)), None)
        for keys in _passage_keys(tuple(row))
    )
    if isinstance(relevance, bool):
        relevance = float(relevance)
    return LoggedPassage(
        None if text is None else as_text(text, f"text of passage {rank}"),
        None if name is None else as_id(name, "doc_id"),
        _minus_distance(row) if score is None else _as_score(score, f"score of passage {rank}"),
        None if relevance is None else _as_score(relevance, f"relevance of passage {rank}"),
        *_found_by(row, rank),
    )


def _as_score(value: Any, what: str) -> float:
    """A number, which may be written as text."""
    number = as_grade(value, what)
    return as_number(value if number is None else number, what)


def _minus_distance(row: Mapping[str, Any]) -> float | None:
    """The score of a hit that has a distance, which is better if lower. Milvus calls similarities a distance, too."""
    distance = row.get("distance")
    known = isinstance(distance, int | float) and not isinstance(distance, bool) and "entity" not in row
    return -as_number(distance, "distance") if known and is_given(distance) else None


def _found_by(row: Mapping[str, Any], rank: int) -> tuple[int | None, str | None]:
    """In which hop of an agent a passage was found, and by which search."""
    hop = row.get("hop")
    if isinstance(hop, float) and hop.is_integer():
        hop = int(hop)
    if not isinstance(hop, int) or isinstance(hop, bool) or hop < 0:
        return None, None  # a field of that name may mean something else
    return hop, as_text(row["search"], f"search of passage {rank}") if is_given(row.get("search")) else None
