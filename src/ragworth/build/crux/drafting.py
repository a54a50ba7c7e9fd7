"""From what the writer wrote to drafts of passages, sub-questions and requests, each with its status."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import polars as pl

from ragworth.build.crux.topics import Topic
from ragworth.build.crux.writing import WritingItem
from ragworth.build.drafts import KEPT, Draft
from ragworth.data import OK
from ragworth.text_match.sentences import sentence_starts

PASSAGE_KIND, QUESTION_KIND, REQUEST_KIND = "passage", "subquestion", "request"
DUPLICATE = "duplicate"
SURPLUS = "surplus"
NO_QUESTION = "no-question"
NOT_FROM_DOCUMENT = "not-from-document"
_WORD = re.compile(r"\w+")


LONGEST = 1024
"""Words of a document that is shown to the writer as a whole."""

PIECE = 512
"""Words of the pieces that a longer document is cut into."""

PASSAGE = 200
"""Words of a passage."""


def document_id(topic: Topic, number: int) -> str:
    return f"{topic.id}:{number}"


def passage_items(topics: Sequence[Topic]) -> list[WritingItem]:
    """The pieces that passages are written from. The id of a piece is its document's, with its number after a slash."""
    return [
        WritingItem(f"{document_id(topic, number)}/{place}", {"document": piece})
        for topic in topics
        for number, text in enumerate(topic.documents)
        for place, piece in enumerate(pieces(text))
    ]


def summary_items(topics: Sequence[Topic], **values: Any) -> list[WritingItem]:
    return [WritingItem(topic.id, {"summary": topic.summary, **values}) for topic in topics]


def written_passages(
    topics: Sequence[Topic], items: Sequence[WritingItem], frame: pl.DataFrame, overlap: float
) -> list[Draft]:
    """Drafts of passages, numbered through each topic: ``TOPIC:DOCUMENT#NUMBER``.

    A passage is dropped if an earlier one of its topic is the same, or if fewer than ``overlap`` of its words occur in
    the piece that it was written from.
    """
    sources = {item.id: item.values["document"] for item in items}
    rows = list(frame.iter_rows(named=True))
    drafts: list[Draft] = []
    for topic in topics:
        mine = [row for row in rows if row["id"].rpartition(":")[0] == topic.id]
        found = ((row, row["id"].rpartition("/")[0], text) for row in mine for text in row["texts"] or [None])
        seen: set[str] = set()
        for number, (row, document, text) in enumerate(found):
            share = None if text is None else _shared_words(text, sources[row["id"]])
            draft = _draft(f"{document}#{number}", PASSAGE_KIND, topic, row, text, {"document": document})
            if text is not None and share is not None:
                if share < overlap:
                    draft = draft.drop(NOT_FROM_DOCUMENT, f"{share:.0%} of its words are in the document")
                draft = _drop_copy(draft, text, seen)
            drafts.append(draft)
    return drafts


def cut_passages(topics: Sequence[Topic]) -> list[Draft]:
    """Passages of about 200 words, cut from the documents word for word; no model is asked."""
    drafts: list[Draft] = []
    for topic in topics:
        parts = [(n, part) for n, text in enumerate(topic.documents) for part in cut(text, PASSAGE)]
        seen: set[str] = set()
        for number, (document, text) in enumerate(parts):
            name = document_id(topic, document)
            draft = Draft(f"{name}#{number}", PASSAGE_KIND, topic.id, {"text": text, "document": name})
            drafts.append(_drop_copy(draft, text, seen))
    return drafts


def question_drafts(topics: Sequence[Topic], frame: pl.DataFrame, count: int) -> list[Draft]:
    """Drafts of sub-questions, numbered from 1: the first ``count`` different questions of each topic are kept."""
    drafts: list[Draft] = []
    for topic, row in _by_topic(topics, frame):
        seen: set[str] = set()
        kept = 0
        for number, text in enumerate(row["texts"] or [None], 1):
            draft = _draft(f"{topic.id}?{number}", QUESTION_KIND, topic, row, text, {"subquestion": str(number)})
            if text is not None:
                if "?" not in text:
                    draft = draft.drop(NO_QUESTION, "it has no question mark")
                draft = _drop_copy(draft, text, seen)
                if kept == count:
                    draft = draft.drop(SURPLUS, f"{count} were wanted")
                kept += draft.kept
            drafts.append(draft)
    return drafts


def request_drafts(topics: Sequence[Topic], frame: pl.DataFrame) -> list[Draft]:
    """Drafts of report requests; the first of several is kept."""
    drafts = []
    for topic, row in _by_topic(topics, frame):
        for number, text in enumerate(row["texts"] or [None]):
            draft = _draft(f"{topic.id}!{number}" if number else f"{topic.id}!", REQUEST_KIND, topic, row, text, {})
            drafts.append(draft.drop(SURPLUS, "one was wanted") if number else draft)
    return drafts


def _by_topic(topics: Sequence[Topic], frame: pl.DataFrame) -> Iterator[tuple[Topic, dict[str, Any]]]:
    return zip(topics, frame.iter_rows(named=True), strict=True)


def _draft(
    id: str, kind: str, topic: Topic, row: Mapping[str, Any], text: str | None, more: Mapping[str, Any]
) -> Draft:
    """A draft of one written text, or of the failure to write one, with what the model wrote."""
    facts = {name: row[name] for name in ("seed", "attempts", "source") if row[name] is not None}
    if row["status"] == OK:
        return Draft(id, kind, topic.id, {"text": text, **more, **facts}, KEPT)
    return Draft(id, kind, topic.id, {"raw": row["raw"], **more, **facts}, row["status"], row["reason"] or "")


def _drop_copy(draft: Draft, text: str, seen: set[str]) -> Draft:
    plain = " ".join(_WORD.findall(text.casefold()))
    if plain in seen:
        return draft.drop(DUPLICATE, "an earlier one of the topic is the same")
    if draft.kept:
        seen.add(plain)
    return draft


def _shared_words(text: str, source: str) -> float:
    """Share of the words of a text that occur in its source."""
    known = set(_WORD.findall(source.casefold()))
    words = _WORD.findall(text.casefold())
    return sum(word in known for word in words) / len(words) if words else 0.0


def pieces(text: str) -> list[str]:
    """A document for the writer: as a whole, or in pieces of about 512 words if it has more than 1,024."""
    return [text.strip()] if len(text.split()) <= LONGEST else cut(text, PIECE)


def cut(text: str, size: int) -> list[str]:
    """Parts of at most ``size`` words that end with a sentence. A longer sentence is cut between its words.

    A last part of less than a quarter of the size joins the one before.
    """
    starts = sentence_starts(text)
    sentences = [text[start:end].strip() for start, end in pairwise([*starts, len(text)])]
    parts: list[list[str]] = []
    for sentence in sentences:
        words = sentence.split()
        for at in range(0, len(words), size):
            some = words[at : at + size]
            if parts and len(parts[-1]) + len(some) <= size:
                parts[-1] += some
            else:
                parts.append(some)
    if len(parts) > 1 and len(parts[-1]) < size / 4:
        last = parts.pop()
        parts[-1] += last
    return [" ".join(part) for part in parts]
