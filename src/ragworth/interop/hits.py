"""Convert the results of other libraries' retrievers to hits.

A hit is a passage id, with its text and score if available. Accepted forms:

* an id: text or a whole number
* ``(id, score)``
* a dict with an id (``passage``, ``doc_id``, ``docno``, ``id``, …), a ``text`` (``content``, ``page_content``) or both,
  and optionally a ``score``
* a document of LangChain, LlamaIndex or Haystack, recognized by its attributes

They come in a list or another ordered container, as a dict ``{id: score}``, or as the rows of a data frame whose
columns are named like the entries of a dict. A passage without an id gets one from its text, so equal texts are the
same passage.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, NamedTuple

from ragworth.core.errors import TableError, format_count, quote_short, with_article
from ragworth.data.coercion import ID_ALIASES, to_frame
from ragworth.data.collection import text_id

ID_FIELDS = (*ID_ALIASES["passage"], "id", "_id")
TEXT_FIELDS = ("text", "content", "page_content", "contents")
EXPECTED_FORM = (
    'a list of ids, of (id, score), or of dicts such as {"id": …, "text": …, "score": …}; a dict {id: score}; '
    "or a data frame with such columns"
)


class WrongShapeError(Exception):
    """A problem with a retriever's result; callers add the query."""


class Hit(NamedTuple):
    """A retrieved passage."""

    passage: str
    score: float | None = None
    text: str | None = None


class RankedHits(NamedTuple):
    """The hits of a query in order, each passage once, and the number of repeats."""

    hits: list[Hit]
    again: int
    trend: int = 0
    """1 if the scores rise in the order given, −1 if they fall, 0 if they do both or neither, or don't count."""


def parse_hits(returned: Any, identity: str = "", *, name: Callable[[str], str] = text_id) -> list[Hit]:
    """The hits of a retriever's result, in the order given. All have a score, or none.

    ``identity`` names the id field, and ``name`` makes an id for a text without one.
    """
    if hasattr(type(returned), "columns"):
        returned = _frame_rows(returned)
    if isinstance(returned, set | frozenset):
        raise WrongShapeError(f"{with_article(type(returned).__name__)} was returned, which has no order")
    if isinstance(returned, Mapping):
        hits = [Hit(_read_id(key, "the id"), _read_score(value)) for key, value in returned.items()]
    elif isinstance(returned, Iterable) and not isinstance(returned, str | bytes):
        hits = [_read_hit(item, identity, place, name) for place, item in enumerate(returned, 1)]
    else:
        raise WrongShapeError(f"{with_article(type(returned).__name__)} was returned: {quote_short(returned, 40)}")
    scored = sum(hit.score is not None for hit in hits)
    if 0 < scored < len(hits):
        raise WrongShapeError(f"{format_count(scored, 'hit')} of {len(hits)} have a score, the others don't")
    return hits


def order_hits(hits: list[Hit], *, by_place: bool = False) -> list[Hit]:
    """Hits with scores are sorted by these; equal scores by id, descending.

    Without scores, or with ``by_place``, the order given is the order shown, and scores that don't agree with it are
    dropped.
    """
    if not hits or hits[0].score is None:
        return hits
    if by_place:
        falls = all(_score_of(a) >= _score_of(b) for a, b in pairwise(hits))
        return hits if falls else [hit._replace(score=None) for hit in hits]
    return sorted(hits, key=lambda hit: (_score_of(hit), hit.passage), reverse=True)


def score_trend(hits: Sequence[Hit]) -> int:
    """1 if the scores of hits rise, −1 if they fall, 0 if they do both or neither, or if there are none."""
    steps = list(pairwise([hit.score for hit in hits if hit.score is not None]))
    return any(b > a for a, b in steps) - any(b < a for a, b in steps)


def rank_hits(hits: Sequence[Hit], k: int) -> RankedHits:
    """The first ``k`` hits, each passage at its first position. Two texts for an id are an error."""
    kept: dict[str, Hit] = {}
    for hit in hits:
        first = kept.setdefault(hit.passage, hit)
        if None not in (first.text, hit.text) and first.text != hit.text:
            raise WrongShapeError(f"two texts have the same id, {quote_short(hit.passage, 40)}")
    return RankedHits(list(kept.values())[:k], len(hits) - len(kept))


def _frame_rows(given: Any) -> list[dict[str, Any]]:
    try:
        frame = to_frame(given)
    except TableError as error:
        raise WrongShapeError(error.found) from error
    if "score" in frame.columns and frame["score"].null_count():  # NaN in pandas
        raise WrongShapeError(f"the score of hit {frame['score'].is_null().arg_true()[0] + 1} is missing")
    return frame.to_dicts()


def _read_hit(item: Any, identity: str, place: int, name: Callable[[str], str]) -> Hit:
    what = f"hit {place}"
    if isinstance(item, str) or (isinstance(item, Integral) and not isinstance(item, bool)):
        return Hit(_read_id(item, what))
    if isinstance(item, tuple | list) and len(item) == 2:
        if hasattr(item[0], "page_content"):  # LangChain's similarity_search_with_score
            return _read_hit(item[0], identity, place, name)._replace(score=_read_score(item[1], what))
        return Hit(_read_id(item[0], what), _read_score(item[1], what))
    fields = _read_fields(item)
    if fields is None:
        raise WrongShapeError(f"{what} is {with_article(type(item).__name__)}: {quote_short(item, 40)}")
    own, others = fields
    text = next((own[key] for key in TEXT_FIELDS if own.get(key) is not None), None)
    if text is not None and not isinstance(text, str):
        raise WrongShapeError(f"the text of {what} is {with_article(type(text).__name__)}: {quote_short(text, 40)}")
    score = _read_score(own["score"], what) if own.get("score") is not None else None
    if identity:
        found = next((part[identity] for part in (own, others) if part.get(identity) is not None), None)
        if found is None:
            names = ", ".join(quote_short(key, 24) for key in [*own, *others][:12])
            raise WrongShapeError(f"{what} has no field {quote_short(identity, 24)}; there are {names}")
    else:
        found = next((own[key] for key in ID_FIELDS if own.get(key) is not None), None)
    if found is None and text is None:
        raise WrongShapeError(f"{what} has neither an id nor a text: {quote_short(item, 40)}")
    return Hit(_read_id(found, what) if found is not None else name(text or ""), score, text)


class HitFields(NamedTuple):
    """Fields of a hit, and of its metadata, which is searched for an id only if one is named."""

    own: Mapping[str, Any]
    others: Mapping[str, Any]


def _read_fields(item: Any) -> HitFields | None:
    """Fields of a hit, or None if it has no fields."""
    if isinstance(item, Mapping):
        others = item.get("metadata") or item.get("meta")
        return HitFields(item, others if isinstance(others, Mapping) else {})
    if hasattr(item, "page_content"):  # LangChain: Document(id, page_content, metadata)
        return HitFields({"id": getattr(item, "id", None), "text": item.page_content}, item.metadata)
    if hasattr(item, "node") and hasattr(item, "score"):  # LlamaIndex: NodeWithScore(node, score)
        node = item.node
        return HitFields({"id": node.node_id, "text": node.get_content(), "score": item.score}, node.metadata)
    if hasattr(item, "content") and hasattr(item, "meta"):  # Haystack: Document(id, content, meta, score)
        return HitFields({"id": item.id, "text": item.content, "score": item.score}, item.meta)
    return None


def _read_id(value: Any, what: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | Integral):
        raise WrongShapeError(f"the id of {what} is {with_article(type(value).__name__)}: {quote_short(value, 40)}")
    text = str(value)
    if not text:
        raise WrongShapeError(f"the id of {what} is empty")
    return text


def _read_score(value: Any, what: str = "a hit") -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(float(value)):
        raise WrongShapeError(f"the score of {what} is {quote_short(value, 40)}, not a finite number")
    return float(value)


def _score_of(hit: Hit) -> float:
    assert hit.score is not None
    return hit.score
