"""Write a built collection: as a workspace that ``ragworth evaluate`` runs on at once, and for other tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from ragworth.build.card import CARD_FILE, PAGE_FILE, CollectionCard
from ragworth.build.drafts import Draft, Drafts
from ragworth.build.question_set import DRAFTS_FILE
from ragworth.config import WORKSPACE_FILE
from ragworth.init.toml_writer import toml_string
from ragworth.storage.file_record import FileRecord

Files = dict[str, bytes]
RUBRIC = ("type", "style", "cluster")


def _lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    return b"".join((json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8", "replace") for row in rows)


def _labels(kept: Sequence[Draft]) -> Iterator[tuple[str, str]]:
    for draft in kept:
        if draft.fields["answerable"]:
            relevant = dict.fromkeys((*draft.fields["passages"], *draft.fields.get("copies", ())))
            yield from ((draft.id, passage) for passage in relevant)


def workspace_files(kept: Sequence[Draft], passages: pl.DataFrame, title: str, dense: bool) -> Files:
    """The files of a workspace: queries with answers, passages, relevance, and a ``ragworth.toml``."""
    conversations = any(draft.fields.get("history") for draft in kept)  # then every line has to be a turn
    queries = [
        {
            "_id": draft.id,
            "text": draft.fields["question"],
            "answers": list(draft.fields["answers"]),
            "answerable": draft.fields["answerable"],
            **{name: draft.fields[name] for name in RUBRIC},
            **(_turn(draft) if conversations else {}),
        }
        for draft in kept
    ]
    texts = ({"_id": id, "text": text, "document": document} for id, text, document in _texts(passages))
    return {
        "queries.jsonl": _lines(queries),
        "passages.jsonl": _lines(texts),
        "qrels.txt": "".join(f"{query} 0 {passage} 1\n" for query, passage in _labels(kept)).encode(),
        WORKSPACE_FILE: _toml(title, dense).encode(),
    }


def _turn(draft: Draft) -> dict[str, Any]:
    """A question in a file with follow-ups: they are turn 2 of a conversation of their own, other questions turn 1."""
    history = draft.fields.get("history") or []
    turn = {"query": draft.id, "conversation": draft.id, "turn": 2 if history else 1, "history": history}
    return turn | ({"rewrite": draft.fields["rewrite"]} if history else {})


def _texts(passages: pl.DataFrame) -> Iterator[tuple[str, str, str]]:
    return passages.select("passage", "text", "document").iter_rows()


def _toml(title: str, dense: bool) -> str:
    systems = ["bm25 = 'bm25(stopwords=\"english\") % 5'", *(["dense = 'dense % 5'"] if dense else [])]
    return (
        f"# Built with ragworth build questions. card.md says from what, by which models, and what to keep in mind.\n"
        f"title = {toml_string(title)}\nk = 5\n\n[collection]\n"
        'queries = "queries.jsonl"\npassages = "passages.jsonl"\nanswers = "queries.jsonl"\nqrels = "qrels.txt"\n\n'
        "[systems]\n" + "\n".join(systems) + "\n\n[judgments]\nabstention = true\n\n[answers]\nlength = 64\n\n"
        "[grades]\ndeterministic = true\n"
    )


def beir_files(kept: Sequence[Draft], passages: pl.DataFrame) -> Files:
    """A BEIR folder: corpus, queries, qrels. Questions without a relevant passage stay in the queries."""
    corpus = ({"_id": id, "title": "", "text": text} for id, text, _ in _texts(passages))
    rows = "".join(f"{query}\t{passage}\t1\n" for query, passage in _labels(kept))
    return {
        "beir/corpus.jsonl": _lines(corpus),
        "beir/queries.jsonl": _lines({"_id": draft.id, "text": draft.fields["question"]} for draft in kept),
        "beir/qrels/test.tsv": f"query-id\tcorpus-id\tscore\n{rows}".encode(),
    }


def trec_files(kept: Sequence[Draft], passages: pl.DataFrame) -> Files:
    """Topics and collection as tab-separated texts on one line, and qrels."""

    def line(id: str, text: str) -> str:
        return f"{id}\t{' '.join(text.split())}\n"

    return {
        "trec/topics.tsv": "".join(line(draft.id, draft.fields["question"]) for draft in kept).encode(),
        "trec/collection.tsv": "".join(line(id, text) for id, text, _ in _texts(passages)).encode("utf-8", "replace"),
        "trec/qrels.txt": "".join(f"{query} 0 {passage} 1\n" for query, passage in _labels(kept)).encode(),
    }


def ragas_files(kept: Sequence[Draft], passages: pl.DataFrame) -> Files:
    """A ragas dataset: user_input, reference, reference_contexts. An unanswerable question has no reference."""
    texts = {id: text for id, text, _ in _texts(passages)}
    rows = []
    for draft in kept:
        row = {
            "user_input": draft.fields.get("rewrite") or draft.fields["question"],
            "query_style": draft.fields["style"],
        }
        if draft.fields["answerable"]:
            ids = list(draft.fields["passages"])
            row |= {"reference": draft.fields["answers"][0], "reference_contexts": [texts[id] for id in ids]}
            row |= {"reference_context_ids": ids}
        rows.append(row)
    return {"ragas.jsonl": _lines(rows)}


def crux_files(kept: Sequence[Draft], passages: pl.DataFrame) -> Files:
    """A CRUX folder: each question is a request, with a sub-question for every passage that it needs.

    The run lists these passages in order. Each is rated 5 for its own sub-question and 0 for the others, since a
    question on several passages can't be answered without any of them.
    """
    needed = {draft.id: list(draft.fields["passages"]) if draft.fields["answerable"] else [] for draft in kept}
    texts = {draft.id: draft.fields.get("rewrite") or draft.fields["question"] for draft in kept}
    requests = ({"id": id, "request": text} for id, text in texts.items())
    ratings = {id: [[5 * (row == column) for column in ids] for row in ids] for id, ids in needed.items()}
    run = (
        f"{id} Q0 {passage} {rank} {1 / rank:.4f} sources\n"
        for id, ids in needed.items()
        for rank, passage in enumerate(ids, 1)
    )
    return {
        "crux/questions.request.jsonl": _lines(requests),
        "crux/subquestions.json": _lines([{id: _parts(text, len(needed[id])) for id, text in texts.items()}]),
        "crux/sources.run": "".join(run).encode(),
        "crux/ratings.sources.json": _lines([ratings]),
    }


def _parts(question: str, number: int) -> list[str]:
    """The question itself, or a text for each of its parts."""
    return [question] if number < 2 else [f"{question} (part {part} of {number})" for part in range(1, number + 1)]


OUTPUTS: dict[str, Callable[[Sequence[Draft], pl.DataFrame], Files]] = {
    "beir": beir_files,
    "trec": trec_files,
    "crux": crux_files,
    "ragas": ragas_files,
}
"""Formats besides the workspace."""


def collection_files(also: Sequence[str] = ()) -> list[str]:
    """Names of the files that a build writes, to see beforehand that nothing is in the way."""
    names = ["queries.jsonl", "passages.jsonl", "qrels.txt", WORKSPACE_FILE, DRAFTS_FILE, "checks.jsonl"]
    names += [name for kind in also for name in OUTPUTS[kind]([], _NO_PASSAGES)]
    return [*names, CARD_FILE, PAGE_FILE]


_NO_PASSAGES = pl.DataFrame(schema=dict.fromkeys(("passage", "text", "document"), pl.String))


def write_collection(
    folder: str | Path,
    drafts: Drafts,
    passages: pl.DataFrame,
    checks: pl.DataFrame,
    card: CollectionCard,
    *,
    also: Sequence[str] = (),
    dense: bool = True,
) -> list[str]:
    """Write everything and return the names of the files. Files that ragworth didn't write are never replaced."""
    kept = drafts.kept
    files = workspace_files(kept, passages, card.title, dense)
    for kind in also:
        files |= OUTPUTS[kind](kept, passages)
    files[DRAFTS_FILE] = drafts.encode()
    files["checks.jsonl"] = _lines(checks.iter_rows(named=True))
    record = FileRecord(folder, remedy="move it away, or name another folder")
    record.refuse_foreign([*files, CARD_FILE, PAGE_FILE])
    for name, data in files.items():
        record.write(name, data)
    for name, data in card.files().items():  # last: a folder with a card is complete
        record.write(name, data)
    record.finish()
    return [*files, CARD_FILE, PAGE_FILE]
