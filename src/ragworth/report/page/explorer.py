"""The data of the query explorer: an index that is read when the page opens, and the rest in pieces, read on demand.

Tables travel as columns: a column of repeated values is a list of the distinct ones and a number for each row. Queries
and systems are numbers in the order of the index; the pieces hold whole queries.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from ragworth.core.errors import RagworthError
from ragworth.data import OK
from ragworth.data.conversations import Turn, turns_of
from ragworth.diagnosis import FINDINGS, ContextFacts, Diagnosis, passage_kind
from ragworth.diagnosis.rules import CONTRIBUTION_FINDINGS
from ragworth.metrics.parsing import parse
from ragworth.report.charts.base import shorten_names
from ragworth.report.page.overview import Overview
from ragworth.report.page.rankings import evaluation_settings
from ragworth.report.page.survey import select_queries
from ragworth.report.renderers.html import pack_json
from ragworth.results import Results

DEEPEST = 20
"""How far the page goes where nothing else says it."""


def shown_depth(results: Results) -> int | None:
    """How many passages the model is shown; metrics may look deeper. None where the settings do not say."""
    k = evaluation_settings(results.manifest).get("k")
    return k if isinstance(k, int) and not isinstance(k, bool) and k > 0 else None


def listed_depth(results: Results, metrics: Sequence[str]) -> int:
    """How many passages of a context the page lists: as far as the model and cutoffs go."""
    deepest = shown_depth(results) or DEEPEST
    for written in metrics:
        try:
            deepest = max(deepest, parse(written).cutoff or 0)
        except RagworthError:
            continue  # a measure of another package
    return deepest


PIECE = 400_000
"""Characters of passages in one piece, about."""
LIMIT = 14_000_000
"""Size of all pieces together, packed; texts of passages are cut to keep it."""
TEXT_CUTS = (None, 4000, 2000, 1000, 500, 250, 120)
"""Lengths that texts of passages are cut to, in turn, until the page is small enough."""
SAMPLE = 8
"""Pieces that the size of all is estimated from."""

Span = tuple[int, int]
"""The number of the first query of a piece, and of the first one after it."""


@dataclass(frozen=True)
class ExplorerData:
    """What the page carries for its explorer."""

    index: bytes
    pieces: Sequence[bytes]
    cut: int | None
    """Characters that texts of passages were cut to; None where all are whole."""


def build_explorer(results: Results, known: ContextFacts, view: Overview, diagnosis: Diagnosis) -> ExplorerData:
    """Everything, packed."""
    queries = list(dict.fromkeys(query for _, query in known.shown))
    if len(queries) < view.queries:
        results = select_queries(results, pl.Series(queries, dtype=pl.String))
    results = replace(results, contexts=results.contexts.cut(listed_depth(results, view.metrics)))
    systems = [each.system for each in view.standings]
    tables = _tables(results, known, queries, diagnosis)
    spans = _spans(results, queries)
    index = _index(results, known, view, diagnosis, queries, systems)
    index["pieces"] = [low for low, _ in spans]
    pieces, cut = _pack_pieces(tables, spans)
    index["cut"] = cut
    return ExplorerData(pack_json(index), pieces, cut)


def _pack_pieces(tables: Mapping[str, pl.DataFrame], spans: Sequence[Span]) -> tuple[list[bytes], int | None]:
    """All pieces, and what texts were cut to so that they fit. Packing takes long, so some pieces are tried first."""
    longest = tables["passages"]["text"].str.len_chars().max() or 0
    some = spans[:: -(-len(spans) // SAMPLE) or 1]
    *cuts, last = [cut for cut in TEXT_CUTS if cut is None or cut < longest]  # type: ignore[operator]
    for cut in cuts:
        tried = {span: pack_json(_piece(tables, span, cut)) for span in some}
        if sum(map(len, tried.values())) * len(spans) > LIMIT * len(some):
            continue
        pieces = [tried.get(span) or pack_json(_piece(tables, span, cut)) for span in spans]
        if sum(map(len, pieces)) <= LIMIT:
            return pieces, cut
    return [pack_json(_piece(tables, span, last)) for span in spans], last


def pack_columns(frame: pl.DataFrame) -> dict[str, Any]:
    """A frame as columns; those that say nothing are left out, repeated values are numbered."""
    made: dict[str, Any] = {}
    for series in frame:
        if series.null_count() == len(series):
            continue
        if series.dtype.is_float():
            made[series.name] = {"v": series.round_sig_figs(6).to_list()}
        elif series.dtype == pl.String and series.n_unique() < 0.5 * len(series):
            distinct = series.unique(maintain_order=True)
            place = {value: i for i, value in enumerate(distinct)}
            made[series.name] = {"d": distinct.to_list(), "i": [place[value] for value in series.to_list()]}
        else:
            made[series.name] = {"v": series.to_list()}
    return {"n": frame.height, "columns": made}


def _index(
    results: Results, known: ContextFacts, view: Overview, diagnosis: Diagnosis, queries: list[str], systems: list[str]
) -> dict[str, Any]:
    texts = dict(results.collection.queries.select("query", "text").iter_rows())
    number = {query: i for i, query in enumerate(queries)}
    place = {system: i for i, system in enumerate(systems)}
    values: dict[str, list[list[float | None]]] = {m: [[None] * len(queries) for _ in systems] for m in view.metrics}
    missing: dict[str, list[dict[int, str]]] = {m: [{} for _ in systems] for m in view.metrics}
    for system, query, metric, value, status in results.scores.frame.iter_rows():
        if metric in values and query in number and system in place:
            values[metric][place[system]][number[query]] = None if value is None else float(f"{value:.6g}")
            if status != OK:
                missing[metric][place[system]][number[query]] = status
    there = set(diagnosis.frame["finding"].unique())
    findings = FINDINGS | {name: words for name, words in CONTRIBUTION_FINDINGS.items() if name in there}
    names = list(findings)
    bits = [[0] * len(queries) for _ in systems]
    for system, query, finding in diagnosis.frame.select("system", "query", "finding").iter_rows():
        bits[place[system]][number[query]] |= 1 << names.index(finding)
    grades = [[known.grades.get((system, query)) for query in queries] for system in systems]
    return {
        "systems": systems,
        "short": list(shorten_names(systems).values()),
        "metrics": view.metrics,
        "main": view.main,
        "queries": queries,
        "unasked": [[number[query] for query in queries if (system, query) not in known.shown] for system in systems],
        "total": view.queries,
        "texts": [texts.get(query) for query in queries],
        "turns": _turns(results, queries),
        "scores": values,
        "missing": missing,
        "findings": findings,
        "found": bits,
        "grades": grades,
        "graded": not known.ungraded,
        "eta": known.eta,
        "k": shown_depth(results),
        "prompts": _prompts(results),
    }


def _turns(results: Results, queries: list[str]) -> list[dict[str, Any] | None]:
    """Where each query is in its conversation, and what was said before; empty without turns."""
    known = {turn.query: turn for turn in turns_of(results.collection)}
    return [_turn(known.get(query)) for query in queries] if known else []


def _turn(turn: Turn | None) -> dict[str, Any] | None:
    if turn is None:
        return None
    return {
        "conversation": turn.conversation,
        "number": turn.number,
        "history": [[message.role, message.text] for message in turn.history],
        "rewrite": turn.rewrite,
    }


def _prompts(results: Results) -> dict[str, Any]:
    """The prompts that the manifest names, as far as they have the form that is expected."""
    given = results.manifest.get("prompts")
    return {
        str(name): {"version": str(prompt.get("version", "")), "messages": [list(each) for each in prompt["messages"]]}
        for name, prompt in (given.items() if isinstance(given, Mapping) else ())
        if isinstance(prompt, Mapping) and isinstance(prompt.get("messages"), list)
    }


def _spans(results: Results, queries: list[str]) -> list[Span]:
    """Where pieces begin and end, in numbers of queries."""
    lengths = results.collection.passages.select("passage", pl.col("text").str.len_chars().alias("length"))
    sizes = dict(
        results.contexts.frame.select("query", "passage")
        .unique()
        .join(lengths, on="passage")
        .group_by("query")
        .agg(pl.col("length").sum())
        .iter_rows()
    )
    spans, low, size = [], 0, 0
    for i, query in enumerate(queries):
        size += sizes.get(query, 0) + 2000
        if size >= PIECE:
            spans.append((low, i + 1))
            low, size = i + 1, 0
    return [*spans, (low, len(queries))] if low < len(queries) else spans


def _tables(results: Results, known: ContextFacts, queries: list[str], diagnosis: Diagnosis) -> dict[str, pl.DataFrame]:
    """All that is known of queries, each table with the number of its query as ``q``, in that order."""
    collection = results.collection
    utility = pl.DataFrame(
        [
            (
                query,
                each.passage,
                each.relevant,
                each.utility,
                passage_kind(each.utility) if each.utility is not None else None,
            )
            for (_, query), passages in known.shown.items()
            for each in passages
        ],
        schema={
            "query": pl.String,
            "passage": pl.String,
            "relevant": pl.Boolean,
            "utility": pl.Float64,
            "kind": pl.String,
        },
        orient="row",
    ).unique(["query", "passage"], maintain_order=True)
    shown = utility.select("query", "passage")
    tables = {
        "contexts": results.contexts.frame,
        "worth": utility,
        "accepted": collection.answers,
        "findings": diagnosis.frame,
        "subquestions": _subquestions(results, known.eta),
    }
    if results.judgments is not None:
        keys = ["query", "passage", "aspect"]
        tables["judgments"] = _with_model_output(
            results, results.judgments.frame.join(shown, on=["query", "passage"], how="semi"), keys
        )
    if results.ratings is not None:
        keys = ["query", "passage", "subquestion"]
        tables["ratings"] = _with_model_output(
            results, results.ratings.frame.join(shown, on=["query", "passage"], how="semi"), keys
        )
    if results.answers is not None:
        tables["answers"] = _with_model_output(results, results.answers.frame, ["system", "query", "repeat"])
    if "searches" in results.said:
        tables["searches"] = results.said["searches"]
    if results.outcomes is not None:
        tables["outcomes"] = _with_model_output(results, results.outcomes.frame, ["system", "query", "aspect"])
    numbers = pl.DataFrame({"query": queries}).with_row_index("q")
    made = {
        name: frame.join(numbers, on="query", maintain_order="left").drop("query").sort("q", maintain_order=True)
        for name, frame in tables.items()
    }
    made["passages"] = (
        made["contexts"]
        .select("q", "passage")
        .unique(maintain_order=True)
        .join(collection.passages.select("passage", "text"), on="passage", how="left", maintain_order="left")
    )
    return made


def _with_model_output(results: Results, frame: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """A table with what the model said in the steps that made it: reason, raw output and details."""
    fits = [
        each
        for each in results.said.values()
        if _table_kind(each) == _table_kind(frame) and set(keys) <= set(each.columns)
    ]
    if not fits:
        return frame
    typed = [pl.col(key).cast(frame.schema[key]) for key in keys]
    details = [each.select(*typed, pl.exclude(frame.columns)).with_columns(_plain(each)) for each in fits]
    said = pl.concat(details, how="diagonal_relaxed").unique(keys, keep="first", maintain_order=True)
    return frame.join(said, on=keys, how="left", maintain_order="left")


def _table_kind(frame: pl.DataFrame) -> str:
    """Which of the tables a frame of rows belongs to, by its columns."""
    if "passage" in frame.columns:
        return "ratings" if "subquestion" in frame.columns else "judgments"
    return "outcomes" if "aspect" in frame.columns else "answers"


def _plain(frame: pl.DataFrame) -> list[pl.Series]:
    """Columns of lists and the like as JSON, but for lists of texts."""
    return [
        pl.Series(series.name, [None if v is None else json.dumps(v, default=str) for v in series.to_list()], pl.String)
        for series in frame
        if series.dtype.is_nested() and series.dtype != pl.List(pl.String)
    ]


def _subquestions(results: Results, eta: float) -> pl.DataFrame:
    """Sub-questions with whether any rated passage answers them."""
    frame = results.collection.subquestions
    if results.ratings is None:
        return frame.with_columns(pl.lit(None, pl.Boolean).alias("answerable"))
    rated = results.ratings.frame
    best = rated.group_by("query", "subquestion", maintain_order=True).agg(
        (pl.col("value").max() >= eta).alias("answerable")
    )
    names = pl.concat([frame.select("query", "subquestion"), best.select("query", "subquestion")]).unique(
        maintain_order=True
    )
    keys = ["query", "subquestion"]
    return names.join(frame, on=keys, how="left", maintain_order="left").join(
        best, on=keys, how="left", maintain_order="left"
    )


def _piece(tables: Mapping[str, pl.DataFrame], span: Span, cut: int | None) -> dict[str, Any]:
    low, high = span
    made = {name: _queries_between(frame, low, high) for name, frame in tables.items()}
    texts = made["passages"].drop("q").unique("passage", keep="first", maintain_order=True)
    if cut is not None:
        long = pl.col("text").str.len_chars() > cut
        texts = texts.with_columns(
            pl.when(long).then(pl.col("text").str.slice(0, cut) + "…").otherwise(pl.col("text")).alias("text")
        )
    return {name: pack_columns(frame) for name, frame in (made | {"passages": texts}).items()}


def _queries_between(frame: pl.DataFrame, low: int, high: int) -> pl.DataFrame:
    """The rows of some queries; the frame is in their order."""
    begin, end = np.searchsorted(frame["q"].to_numpy(), [low, high]).tolist()
    return frame.slice(begin, end - begin)
