"""The results of a workspace, query by query, for the reading room."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl
from django.conf import settings

from ragworth.comparison import summarise
from ragworth.results import MANIFEST, Results


def find_results_folder() -> Path | None:
    """The results beside the site: those of its workspace, or the folder that it was created in."""
    workspace = Path(settings.RAGWORTH_FOLDER).resolve().parent
    return next((each for each in (workspace / "results", workspace) if (each / MANIFEST).is_file()), None)


def read_results(folder: Path) -> Results:
    """Results, read again only if they changed."""
    return _read(folder, (folder / MANIFEST).stat().st_mtime_ns)


@lru_cache(maxsize=2)
def _read(folder: Path, changed: int) -> Results:
    return Results.read(folder)


def summary_rows(folder: Path) -> list[dict[str, Any]]:
    """Means of all metrics and outcomes by system."""
    return _summary(folder, (folder / MANIFEST).stat().st_mtime_ns)


@lru_cache(maxsize=2)
def _summary(folder: Path, changed: int) -> list[dict[str, Any]]:
    return summarise(_read(folder, changed)).to_dicts()


def find_queries(results: Results, words: str) -> pl.DataFrame:
    """The queries whose id or text contains some words."""
    frame = results.collection.queries
    if not words:
        return frame
    wanted = words.casefold()
    texts = zip(frame["query"], frame["text"], strict=True)
    return frame.filter(pl.Series([wanted in f"{query}\n{text}".casefold() for query, text in texts], dtype=pl.Boolean))


def query_view(results: Results, query: str) -> dict[str, Any] | None:
    """Everything that the results have on one query; None if there is no such query."""
    mine = results.collection.queries.filter(pl.col("query") == query)
    if not mine.height:
        return None
    return {
        "query": query,
        "text": mine["text"][0],
        "accepted": _of(results.collection.answers, query)["text"].to_list(),
        "subquestions": _of(results.collection.subquestions, query)["text"].to_list(),
        "systems": list(_systems(results, query)),
    }


def _systems(results: Results, query: str) -> Iterator[dict[str, Any]]:
    contexts = _of(results.contexts.frame, query)
    judged = _judgments(results, query)
    texts = dict(results.collection.passages.filter(pl.col("passage").is_in(contexts["passage"].implode())).iter_rows())
    for system in dict.fromkeys(results.contexts.frame["system"]):
        shown = contexts.filter(pl.col("system") == system).sort("rank")
        yield {
            "system": system,
            "values": [
                *_values(results.scores.frame, query, system, "metric"),
                *(_values(results.outcomes.frame, query, system, "aspect") if results.outcomes is not None else []),
            ],
            "answers": _answers(results, query, system),
            "passages": [
                {"rank": row["rank"], "id": row["passage"], "text": texts.get(row["passage"], ""),
                 "judgments": judged.get(row["passage"], [])}
                for row in shown.iter_rows(named=True)
            ],
        }  # fmt: skip


def _answers(results: Results, query: str, system: str) -> list[str]:
    if results.answers is None:
        return []
    mine = _of(results.answers.frame, query).filter(pl.col("system") == system)
    return [row["text"] if row["text"] is not None else f"({row['status']})" for row in mine.iter_rows(named=True)]


def _judgments(results: Results, query: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    frame = _of(results.judgments.frame, query) if results.judgments is not None else pl.DataFrame()
    for row in frame.iter_rows(named=True):
        found.setdefault(row["passage"], []).append({"name": row["aspect"], **_value(row)})
    return found


def _values(frame: pl.DataFrame, query: str, system: str, name: str) -> list[dict[str, Any]]:
    mine = _of(frame, query).filter(pl.col("system") == system)
    return [{"name": row[name], **_value(row)} for row in mine.iter_rows(named=True)]


def _value(row: dict[str, Any]) -> dict[str, Any]:
    """A value, or the reason why there is none."""
    return {"value": f"{row['value']:.4g}" if row["value"] is not None else row["status"]}


def _of(frame: pl.DataFrame, query: str) -> pl.DataFrame:
    return frame.filter(pl.col("query") == query)
