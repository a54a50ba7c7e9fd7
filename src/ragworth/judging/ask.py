"""Apply a prompt to each row of a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from ragworth.core.errors import MAX_NAMED, FormatError, InputError, format_list
from ragworth.data import OK, TRUNCATED
from ragworth.formats.values import read_values
from ragworth.judging.labels import REFUSED
from ragworth.llm.contract import LENGTH, Choose, Chosen, Failure, Generate, Generated, Request, Response, Score, Scored
from ragworth.llm.prompts.template import Template


@dataclass(frozen=True, slots=True)
class AskOptions:
    """What to ask for each row: labels to choose from, a column to score, or else a text to generate."""

    labels: tuple[str, ...] = ()
    estimator: str = "first-token"
    score: str = ""
    max_tokens: int = 256
    temperature: float = 0.0
    seed: int = 0
    n: int = 1

    def __post_init__(self) -> None:
        if self.labels and self.score:
            raise InputError("both labels and a column to score were given", remedy="choose one of them")
        if not (isfinite(self.temperature) and self.temperature >= 0):
            raise InputError(f"the temperature is {self.temperature}", expected="a finite number from 0")
        if len(set(self.labels)) < len(self.labels) or len(self.labels) == 1 or "" in self.labels:
            raise InputError(f"the labels are {', '.join(map(repr, self.labels))}", expected="two or more, each once")


def read_rows(path: str) -> list[dict[str, Any]]:
    """Read rows of a JSONL, CSV, TSV or Parquet file."""
    suffixes = Path(path).name.lower().removesuffix(".gz").removesuffix(".zst")
    if suffixes.endswith((".jsonl", ".ndjson", ".json")):
        rows = []
        expected = 'a JSON object a line, such as {"query": "…", "passage": "…"}'
        try:
            for line, value in read_values(path, [], skip=False, expected=expected):
                if not isinstance(value, dict):
                    raise FormatError("this is not a JSON object", file=path, line=line, expected=expected)
                rows.append(value)
        except FormatError as error:  # its remedy is an option that doesn't exist here
            raise FormatError(error.found, file=path, line=error.line, more=error.more, expected=expected) from None
        return rows
    import polars as pl

    from ragworth.formats.files import read_chunks, read_parquet

    if suffixes.endswith(".parquet"):
        return read_parquet(path).to_dicts()
    try:
        if suffixes.endswith(".csv"):
            return pl.read_csv(b"".join(read_chunks(path)), infer_schema=False).fill_null("").to_dicts()
        if suffixes.endswith(".tsv"):
            frame = pl.read_csv(b"".join(read_chunks(path)), infer_schema=False, separator="\t", quote_char=None)
            return frame.fill_null("").to_dicts()
    except pl.exceptions.PolarsError as error:
        raise FormatError(f"it cannot be read: {str(error)[:200]}", file=path) from error
    raise FormatError("unknown file extension", file=path, expected="JSONL, CSV, TSV or Parquet")


def _result_columns(way: AskOptions) -> tuple[str, ...]:
    """Columns added to the results."""
    own: tuple[str, ...]
    if way.labels:
        own = ("probabilities", "mass", "estimator", "bounds")
    elif way.score:
        own = ("logprob", "mean_logprob", "tokens")
    else:
        own = ("text", "finish") if way.n == 1 else ("texts", "finishes")
    return ("status", "detail", "cut", *own)


def build_requests(
    template: Template, rows: Sequence[Mapping[str, Any]], settings: AskOptions, file: str
) -> list[Request]:
    """Build one request per row, ignoring columns without a slot. Invalid rows are reported together."""
    requests: list[Request] = []
    problems: list[str] = []
    expected = ""
    for number, row in enumerate(rows, 1):
        try:
            requests.append(_request(template, row, settings))
        except InputError as error:
            problems.append(f"row {number}: {error.found}")
            expected = expected or error.expected
    if problems:
        shown = tuple(problems[1:MAX_NAMED])
        rest = len(problems) - MAX_NAMED
        raise InputError(
            problems[0],
            file=file,
            expected=expected,
            more=(*shown, *((f"… and {rest:,} more",) if rest > 0 else ())),
        )
    return requests


def _request(template: Template, row: Mapping[str, Any], way: AskOptions) -> Request:
    taken = [name for name in _result_columns(way) if name in row]
    if taken:
        raise InputError(f"these columns are reserved for results: {format_list(taken)}", expected="other column names")
    prompt = template.render({name: row[name] for name in template.names if name in row})
    if way.labels:
        return Choose(prompt, way.labels, way.estimator)  # type: ignore[arg-type]
    if not way.score:
        stop = template.reply.stop
        return Generate(prompt, way.max_tokens, way.temperature, stop=stop, seed=way.seed, n=way.n)
    if not isinstance(row.get(way.score), str):
        raise InputError(f"no text in the column {way.score!r}", expected="a text to score")
    return Score(prompt, row[way.score])


def outcome_row(row: Mapping[str, Any], request: Request, outcome: Response | Failure) -> dict[str, Any]:
    """Add the outcome to a row: ``status`` is ``ok``, or why the result is incomplete or missing."""
    found: dict[str, Any] = dict(row)
    if isinstance(outcome, Failure):
        return found | {"status": outcome.reason, "detail": outcome.detail}
    found["status"] = OK
    if isinstance(outcome, Chosen):
        labels = request.labels if isinstance(request, Choose) else ()
        found["probabilities"] = dict(zip(labels, outcome.probabilities, strict=True))
        found["mass"] = outcome.mass
        found["estimator"] = outcome.estimator
        if outcome.low != outcome.high:
            found["bounds"] = dict(zip(labels, zip(outcome.low, outcome.high, strict=True), strict=True))
    elif isinstance(outcome, Scored):
        logs = outcome.trace.logprobs
        found |= {"logprob": sum(logs), "mean_logprob": sum(logs) / max(1, len(logs)), "tokens": len(logs)}
    else:
        found["status"] = _status(outcome)
        texts = [output.text for output in outcome.outputs]
        ends = [output.finish for output in outcome.outputs]
        found |= {"text": texts[0], "finish": ends[0]} if len(texts) == 1 else {"texts": texts, "finishes": ends}
    if outcome.usage.cut:
        found["cut"] = outcome.usage.cut
    return found


def _status(made: Generated) -> str:
    """``refused`` or ``truncated`` if any output is."""
    if made.is_withheld:
        return REFUSED
    return TRUNCATED if any(output.finish == LENGTH for output in made.outputs) else OK


def to_jsonl(row: Mapping[str, Any], *, plain: bool) -> bytes:
    """Format a row as a line of JSONL; ``plain`` escapes everything but ASCII, for terminals."""
    text = json.dumps(row, ensure_ascii=plain, default=str) + "\n"
    return text.encode("utf-8", "backslashreplace")  # a lone surrogate becomes a JSON escape
