"""Write results for other tools: OpenTelemetry evaluation events, Langfuse scores, ragas datasets.

A score or outcome without a value is not exported; the notes count them. If the log that was evaluated had traces,
scores carry their ids, so that they appear next to the traces. Otherwise the id of a trace is made from system and
query, as Langfuse's ``create_trace_id(seed="SYSTEM/QUERY")`` makes it.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import polars as pl

from ragworth.core.errors import InputError, format_count, format_list, quote_short
from ragworth.data import OK, Answers, Contexts, Judgments, Outcomes, Scores
from ragworth.data.collection import Collection
from ragworth.formats import load
from ragworth.formats.files import create_file
from ragworth.formats.logs.tables import TRACE_SOURCE
from ragworth.metrics.utility import UNLABELLED_SOURCES
from ragworth.results import Results

Target = Literal["otel", "langfuse", "ragas"]


class _Exportable(NamedTuple):
    """What can be exported, from results or from a log."""

    collection: Collection
    contexts: Contexts | None
    answers: Answers | None
    outcomes: Outcomes | None
    scores: Scores | None
    relevance: Judgments | None


class ExportedValue(NamedTuple):
    """A score or outcome of a system on a query."""

    system: str
    query: str
    name: str
    value: float


def export(results: Results | str | Path, path: str | Path, to: Target) -> tuple[str, ...]:
    """Write results, a folder of results, or a RAG log for another tool; return notes on what could not be written.

    ``otel`` is OTLP JSON with a ``gen_ai.evaluation.result`` event for each value, ``langfuse`` a JSON list for
    Langfuse's scores API, and ``ragas`` JSON lines that ``EvaluationDataset.from_jsonl`` reads.
    """
    if to not in WRITERS:
        raise InputError(f"unknown target {quote_short(to, 24)}", expected=", ".join(WRITERS))
    lines: list[str] = []
    notes: list[str] = []
    lines += WRITERS[to](_read(results), notes)
    with create_file(path) as stream:
        stream.writelines(line.encode() + b"\n" for line in lines)
    return tuple(notes)


def _read(results: Results | str | Path) -> _Exportable:
    if not isinstance(results, Results):
        if not Path(results).is_dir():
            loaded = load(results)
            known = loaded.contexts, loaded.answers, loaded.outcomes
            return _Exportable(loaded.collection, *known, None, loaded.collection.relevance)
        results = Results.read(results)
    known = results.contexts, results.answers, results.outcomes
    return _Exportable(results.collection, *known, results.scores, results.judgments)


def _values(given: _Exportable, notes: list[str]) -> Iterator[ExportedValue]:
    """All scores and outcomes that have a value."""
    missing = 0
    for table, kind in ((given.scores, "metric"), (given.outcomes, "aspect")):
        if table is None:
            continue
        rows = table.frame.select("system", "query", kind, "value", "status").iter_rows()
        for system, query, name, value, status in rows:
            if status == OK:
                yield ExportedValue(system, query, name, value)
            else:
                missing += 1
    if missing:
        notes.append(f"{format_count(missing, 'value')} missing, and not exported")


def _traces(given: _Exportable) -> dict[tuple[str, str], str]:
    """Ids of the traces that answers came from."""
    if given.answers is None:
        return {}
    rows = given.answers.frame.select("system", "query", "source").iter_rows()
    return {(s, q): source.removeprefix(TRACE_SOURCE) for s, q, source in rows if source.startswith(TRACE_SOURCE)}


def trace_id(system: str, query: str) -> str:
    """The id of a trace that is made from a system and a query."""
    return hashlib.sha256(f"{system}/{query}".encode()).hexdigest()[:32]


def _require_values(values: list[ExportedValue]) -> None:
    if not values:
        raise InputError("there are no scores and no outcomes to export", remedy="evaluate first, and give the results")


def _write_otel(given: _Exportable, notes: list[str]) -> Iterator[str]:
    """One document with an event for each value; systems are services."""
    from ragworth import __version__

    traces, values, now = _traces(given), list(_values(given, notes)), str(time.time_ns())
    _require_values(values)
    records: dict[str, list[dict[str, Any]]] = {}
    for value in values:
        trace = traces.get((value.system, value.query), "")
        facts: dict[str, Any] = {
            "gen_ai.evaluation.name": {"stringValue": value.name},
            "gen_ai.evaluation.score.value": {"doubleValue": value.value},
            "ragworth.system": {"stringValue": value.system},
            "ragworth.query": {"stringValue": value.query},
        }
        records.setdefault(value.system, []).append(
            {
                "timeUnixNano": now,
                "observedTimeUnixNano": now,
                "eventName": "gen_ai.evaluation.result",
                **({"traceId": trace.lower()} if re.fullmatch(r"[0-9a-fA-F]{32}", trace) else {}),
                "attributes": [{"key": key, "value": each} for key, each in facts.items()],
            }
        )
    document = {
        "resourceLogs": [
            {
                "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": system}}]},
                "scopeLogs": [{"scope": {"name": "ragworth", "version": __version__}, "logRecords": rows}],
            }
            for system, rows in records.items()
        ]
    }
    yield json.dumps(document, ensure_ascii=False, allow_nan=False)


def _write_langfuse(given: _Exportable, notes: list[str]) -> Iterator[str]:
    """Bodies of ``POST /api/public/scores``. The same results make the same ids, so a second upload updates."""
    traces, values = _traces(given), list(_values(given, notes))
    _require_values(values)
    unknown = len({value[:2] for value in values} - set(traces))
    if unknown:
        notes.append(f"{format_count(unknown, 'answer')} without a trace; the ids were made from system and query")
    bodies = [
        {
            "id": hashlib.sha256("\0".join(value[:3]).encode()).hexdigest()[:32],
            "traceId": traces.get((value.system, value.query)) or trace_id(value.system, value.query),
            "name": value.name,
            "value": value.value,
            "dataType": "NUMERIC",
            "metadata": {"system": value.system, "query": value.query},
        }
        for value in values
    ]
    yield json.dumps(bodies, ensure_ascii=False, allow_nan=False, indent=1)


def _write_ragas(given: _Exportable, notes: list[str]) -> Iterator[str]:
    """A line for each system and query, with passages in the order shown."""
    shown: dict[tuple[str, str], list[str]] = {}
    if given.contexts is not None:
        shown = {pair: [] for pair in sorted(given.contexts.empty)}
        for system, query, passage in given.contexts.frame.select("system", "query", "passage").iter_rows():
            shown.setdefault((system, query), []).append(passage)
    answers: dict[tuple[str, str], str | None] = {}
    if given.answers is not None:
        first = given.answers.frame.filter(given.answers.frame["repeat"] == 0)
        answers = {(system, query): text for system, query, text in first.select("system", "query", "text").iter_rows()}
        if first.height < len(given.answers):
            notes.append(f"{format_count(len(given.answers) - first.height, 'repeat')} of answers not exported")
    questions = dict(given.collection.queries.iter_rows())
    texts = dict(given.collection.passages.select("passage", "text").iter_rows())
    accepted: dict[str, list[str]] = {}
    for query, text in given.collection.answers.iter_rows():
        accepted.setdefault(query, []).append(text)
    _check_texts(questions, texts, shown, {*shown, *answers})
    several = sum(len(each) > 1 for each in accepted.values())
    if several:
        queries = format_count(several, "query has", "queries have")
        notes.append(f"{queries} several accepted answers; the first is the reference")
    relevant = _relevant(given, texts)
    for key in dict.fromkeys([*shown, *answers]):
        system, query = key
        line: dict[str, Any] = {"system": system, "query_id": query, "user_input": questions[query]}
        if key in shown:
            line |= {"retrieved_contexts": [texts[name] for name in shown[key]], "retrieved_context_ids": shown[key]}
        if answers.get(key) is not None:
            line["response"] = answers[key]
        if query in accepted:
            line["reference"] = accepted[query][0]
        if query in relevant:
            line["reference_contexts"] = relevant[query]
        yield json.dumps(line, ensure_ascii=False)


def _relevant(given: _Exportable, texts: dict[str, str]) -> dict[str, list[str]]:
    """Texts of the passages labelled as relevant, by query; what a model or a match of words says is no label."""
    found: dict[str, list[str]] = {}
    if given.relevance is not None:
        labels = given.relevance.of("relevance").filter(~pl.col("source").str.contains(UNLABELLED_SOURCES))
        for query, passage, value in labels.select("query", "passage", "value").iter_rows():
            if value is not None and value > 0 and passage in texts:
                found.setdefault(query, []).append(texts[passage])
    return found


def _check_texts(
    questions: dict[str, str],
    texts: dict[str, str],
    shown: dict[tuple[str, str], list[str]],
    keys: set[tuple[str, str]],
) -> None:
    """ragas needs the texts of everything."""
    lost = {
        "query": sorted({query for _, query in keys} - set(questions)),
        "passage": sorted({name for names in shown.values() for name in names} - set(texts)),
    }
    if not keys:
        raise InputError("there are no contexts and no answers to export")
    for kind, names in lost.items():
        if names:
            plural = "queries" if kind == "query" else "passages"
            few = format_list([quote_short(name, 24) for name in names], 3)
            raise InputError(
                f"{format_count(len(names), kind, plural)} without text ({few})",
                expected="texts of all queries and passages, which a ragas dataset needs",
            )


WRITERS: dict[str, Callable[[_Exportable, list[str]], Iterator[str]]] = {
    "otel": _write_otel,
    "langfuse": _write_langfuse,
    "ragas": _write_ragas,
}
