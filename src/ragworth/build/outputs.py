"""Write a built collection: as a workspace that ``ragworth evaluate`` runs on at once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from ragworth.build.card import CARD_FILE, CollectionCard
from ragworth.build.drafts import Draft, Drafts
from ragworth.build.question_set import DRAFTS_FILE
from ragworth.core.file_record import FileRecord
from ragworth.workspace.config import WORKSPACE_FILE
from ragworth.workspace.toml import toml_string

Files = dict[str, bytes]
QUESTIONS, PASSAGES, LABELS, CHECKS = "queries.jsonl", "passages.jsonl", "qrels.txt", "checks.jsonl"
FILES = (QUESTIONS, PASSAGES, LABELS, WORKSPACE_FILE, DRAFTS_FILE, CHECKS, CARD_FILE)
"""What a build writes."""
RUBRIC = ("type", "style")


def _lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    return b"".join((json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8", "replace") for row in rows)


def _labels(kept: Sequence[Draft]) -> Iterator[tuple[str, str]]:
    for draft in kept:
        if draft.fields["answerable"]:
            relevant = dict.fromkeys((*draft.fields["passages"], *draft.fields.get("copies", ())))
            yield from ((draft.id, passage) for passage in relevant)


def workspace_files(kept: Sequence[Draft], passages: pl.DataFrame, title: str, dense: bool) -> Files:
    """The files of a workspace: queries with answers, passages, relevance, and a ``ragworth.toml``."""
    queries = [
        {
            "_id": draft.id,
            "text": draft.fields["question"],
            "answers": list(draft.fields["answers"]),
            "answerable": draft.fields["answerable"],
            **{name: draft.fields[name] for name in RUBRIC},
        }
        for draft in kept
    ]
    texts = ({"_id": id, "text": text, "document": document} for id, text, document in _texts(passages))
    return {
        QUESTIONS: _lines(queries),
        PASSAGES: _lines(texts),
        LABELS: "".join(f"{query} 0 {passage} 1\n" for query, passage in _labels(kept)).encode(),
        WORKSPACE_FILE: _toml(title, dense).encode(),
    }


def _texts(passages: pl.DataFrame) -> Iterator[tuple[str, str, str]]:
    return passages.select("passage", "text", "document").iter_rows()


def _toml(title: str, dense: bool) -> str:
    systems = ["bm25 = 'bm25(stopwords=\"english\") % 5'", *(["dense = 'dense % 5'"] if dense else [])]
    return (
        f"# Built with ragworth build questions. card.json says from what, by which models, and what to keep in mind.\n"
        f"title = {toml_string(title)}\nk = 5\n\n[collection]\n"
        'queries = "queries.jsonl"\npassages = "passages.jsonl"\nanswers = "queries.jsonl"\nqrels = "qrels.txt"\n\n'
        "[systems]\n" + "\n".join(systems) + "\n\n[judgments]\nabstention = true\n\n[answers]\nlength = 64\n\n"
        "[grades]\ndeterministic = true\n"
    )


def write_collection(
    folder: str | Path,
    drafts: Drafts,
    passages: pl.DataFrame,
    checks: pl.DataFrame,
    card: CollectionCard,
    *,
    dense: bool = True,
) -> list[str]:
    """Write everything and return the names of the files. Files that ragworth didn't write are never replaced."""
    kept = drafts.kept
    files = workspace_files(kept, passages, card.title, dense)
    files[DRAFTS_FILE] = drafts.encode()
    files[CHECKS] = _lines(checks.iter_rows(named=True))
    record = FileRecord(folder, remedy="move it away, or name another folder")
    record.refuse_foreign([*files, CARD_FILE])
    for name, data in files.items():
        record.write(name, data)
    record.write(CARD_FILE, card.encode())  # last: a folder with a card is complete
    record.finish()
    return [*files, CARD_FILE]
