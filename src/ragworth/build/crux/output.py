"""Write a CRUX collection as a folder that ``ragworth evaluate`` takes at once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from ragworth import formats
from ragworth.build.card import CARD_FILE, CollectionCard, funnel_facts, model_facts, prompt_versions
from ragworth.build.crux.chain import CruxBuild, CruxChain, draft_collection
from ragworth.build.crux.consistency import answered_subquestions, document_relevance, graded_relevance
from ragworth.build.crux.drafting import PASSAGE_KIND, QUESTION_KIND, REQUEST_KIND, document_id
from ragworth.build.crux.statistics import RatingStatistics, rating_statistics
from ragworth.build.drafts import Drafts
from ragworth.core.errors import InputError
from ragworth.core.files import PART_NAME
from ragworth.data import Ratings
from ragworth.data.collection import Collection
from ragworth.data.tokens import WORDS
from ragworth.formats.csv import write_csv
from ragworth.formats.files import create_file
from ragworth.retrieval.documents import corpus_hash

DRAFTS_FILE = "drafts.jsonl"
COMMAND = "build crux"
DRAFT_KINDS = (PASSAGE_KIND, QUESTION_KIND, REQUEST_KIND)
WORKSPACE = """\
# A collection of report requests with sub-questions, built with ragworth build crux. See card.json.
title = {title}
k = 10

[collection]
queries = "queries.jsonl"
passages = "passages.jsonl"
answers = "answers.jsonl"
subquestions = "subquestions.jsonl"
qrels = "qrels.txt"
ratings = "ratings.parquet"

[systems]
bm25 = "bm25 % 10"
oracle = "oracle % 10"

[metrics]
use = ["Cov@10", "alpha_nDCG@10", "Den@10", "nDCG@10"]
baseline = "bm25"
"""


def check_folder(folder: str | Path) -> None:
    """Reject a folder that holds other files than those of ``build crux``, such as those of ``build questions``."""
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise InputError("this is a file", file=str(folder), expected="a folder to write to")
    ours = _is_ours(place)
    names = [each.name for each in place.iterdir()] if place.is_dir() else []
    others = [name for name in names if "sqlite" not in name and not PART_NAME.fullmatch(name)]
    if others and not ours:
        raise InputError(
            "the folder holds other files", file=str(folder), expected="a new folder, or one of ragworth build crux"
        )


def _is_ours(place: Path) -> bool:
    """Whether ``build crux`` wrote the folder; a chain that stopped early leaves its drafts alone."""
    if (place / CARD_FILE).is_file():
        return CollectionCard.read(place).command == COMMAND
    return (place / DRAFTS_FILE).is_file() and all(
        each.kind in DRAFT_KINDS for each in Drafts.read(place / DRAFTS_FILE)
    )


def write_collection(chain: CruxChain, build: CruxBuild, folder: str | Path, title: str = "") -> RatingStatistics:
    """Write texts, summaries as answers, ratings, labels, all drafts, the card and the workspace.

    Returns the statistics, which are also in ``statistics.csv``.
    """
    place, way = Path(folder), chain.options
    place.mkdir(parents=True, exist_ok=True)
    build.drafts.write(place / DRAFTS_FILE)
    collection = draft_collection(build.drafts)
    kept = set(collection.queries["query"])
    topics = [topic for topic in chain.topics if topic.id in kept]
    documents = {draft.id: draft.fields["document"] for draft in build.drafts.kept if draft.kind == "passage"}
    _write_texts(place, collection, documents)
    rows = [(document_id(t, n), text) for t in topics for n, text in enumerate(t.documents)]
    _write_lines(place / "documents.jsonl", ({"_id": name, "text": text} for name, text in rows))
    _write_lines(place / "answers.jsonl", ({"query_id": t.id, "answers": [t.summary]} for t in topics))
    ratings = build.consistent.ratings
    formats.write(ratings, place / "ratings.parquet")
    with create_file(place / "all-ratings.parquet") as stream:
        build.rated.write_parquet(stream)
    formats.write(_of_kept(build.summary, collection), place / "summary-ratings.parquet")
    if ratings.frame.height:
        grades = graded_relevance(ratings, way.eta, way.redundancy)
        formats.write(grades, f"trec:{place / 'qrels.txt'}")
        formats.write(document_relevance(grades, documents), f"trec:{place / 'document-qrels.txt'}")
        formats.write(answered_subquestions(ratings, way.eta), f"trec:{place / 'subtopic-qrels.txt'}")
    statistics = rating_statistics(
        build.ratings,
        collection.counting(WORDS),
        eta=way.eta,
        redundancy=way.redundancy,
        failed=way.failed,
        summary=build.summary,
        summaries=[topic.summary for topic in topics],
    )
    with create_file(place / "statistics.csv") as stream:
        stream.write(write_csv(statistics.frame))
    _card(chain, build, title or place.name, rows).write(place)
    text = WORKSPACE.format(title=json.dumps(title or place.name, ensure_ascii=False))
    with create_file(place / "ragworth.toml") as stream:
        stream.write(text.encode())
    return statistics


def _of_kept(summary: Ratings, collection: Collection) -> Ratings:
    keys = ["query", "subquestion"]
    return Ratings.trusted(summary.frame.join(collection.subquestions, on=keys, how="semi", maintain_order="left"))


def _write_texts(place: Path, collection: Collection, documents: Mapping[str, str]) -> None:
    queries = ({"_id": query, "text": text} for query, text in collection.queries.iter_rows())
    _write_lines(place / "queries.jsonl", queries)
    passages = collection.passages.select("passage", "text").iter_rows()
    _write_lines(
        place / "passages.jsonl", ({"_id": name, "text": text, "document": documents[name]} for name, text in passages)
    )
    grouped = collection.subquestions.group_by("query", maintain_order=True).agg(pl.struct("subquestion", "text"))
    _write_lines(
        place / "subquestions.jsonl",
        (
            {"query_id": query, "subquestions": [{"id": each["subquestion"], "text": each["text"]} for each in some]}
            for query, some in grouped.iter_rows()
        ),
    )


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with create_file(path) as stream:
        for row in rows:
            stream.write((json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8", "replace"))


def _card(chain: CruxChain, build: CruxBuild, title: str, rows: Sequence[tuple[str, str]]) -> CollectionCard:
    frame = pl.DataFrame(rows, schema={"document": pl.String, "text": pl.String}, orient="row")
    way = chain.options
    settings = {name: value for name, value in way._asdict().items() if name != "sampling"}
    card = CollectionCard(
        title=title,
        command=COMMAND,
        corpus={"topics": len(chain.topics), "documents": frame.height, "sha256": corpus_hash(frame)},
        models={"writer": model_facts(chain.writer.card), "judge": model_facts(chain.judge.card)},
        prompts=prompt_versions(chain.templates),
        seeds={"writer": way.sampling.seed},
        settings=settings | {name: value for name, value in way.sampling._asdict().items() if name != "seed"},
        notes=build.notes,
    )
    return replace(card, **funnel_facts(build.drafts))
