"""Read the released files of CRUX: a collection, and the log of its required passages.

``crux:FOLDER`` is a collection: ``*.request.jsonl`` (report requests), ``subquestions*.json`` (a list of sub-questions
for each request), ``*.run`` (TREC runs) and ``ratings*.RUN.json``. The last one has a matrix for each request, whose
rows are the passages of the run RUN in its order, and whose columns are the sub-questions. ``crux:FILE.log`` has the
ratings of the required passages. Sub-questions are numbered from 0 in all files.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from ragworth.core.errors import BadLine, FormatError, format_list, quote_short
from ragworth.core.nested_text import parse_json
from ragworth.data import Contexts, Ratings
from ragworth.data.collection import Collection
from ragworth.formats.contract import Format, LoadedCollection
from ragworth.formats.files import PathOrStr, bad_lines_error, read_chunks, read_lines, run_name
from ragworth.formats.trec import read_run
from ragworth.formats.values import WrongLineError, as_dict, as_id, as_list, as_object, as_rating, as_text, read_values

FOLDER = "a folder with *.request.jsonl, subquestions*.json, *.run and ratings*.RUN.json"
REQUESTS = '{"id": …, "request": …} on each line'
LISTS = '{"QUERY": [sub-question, …], …}, or [[rating, …], …] for each query'
LOG = "for each topic its name, then ['passage', …] and the line after it [[rating, …], …]"
TOPIC_NAME = re.compile(r"[^\s\[\]]+")

Row = TypeVar("Row")
RatingRow = tuple[str, str, str, float]
"""Query, passage, sub-question and rating."""


def load(path: PathOrStr, *, skip_bad_lines: bool = False) -> LoadedCollection:
    """Read a folder of released files: requests as queries, sub-questions, runs and ratings."""
    folder = Path(path)
    requests, questions, run_files, matrices = (
        sorted(file for file in folder.glob(pattern) if file.is_file())
        for pattern in ("*.request.jsonl*", "subquestions*.json*", "*.run*", "ratings*.json*")
    )
    if len(requests) != 1 or len(questions) != 1:
        raise FormatError("not one file of requests and one of sub-questions", file=str(folder), expected=FOLDER)
    runs = [read_run(file, skip_bad_lines=skip_bad_lines) for file in run_files]
    collection = Collection.of(
        queries=[row for _, row in read_values(requests[0], [], skip=False, expected=REQUESTS, parse=_parse_request)],
        subquestions=_read_lists(questions[0], _subquestions),
        ratings=_read_matrices(matrices[0], runs) if matrices else None,
        source=str(folder),
        notes=(f"{folder}: {format_list([file.name for file in matrices[1:]])} not read",) if matrices[1:] else (),
    )
    return LoadedCollection(collection, Contexts.concat(runs) if runs else None)


def _parse_request(value: Any) -> dict[str, str]:
    item = as_object(value)
    return {"query": as_id(item.get("id"), "id"), "text": as_text(item.get("request"), "request")}


def _read_lists(path: Path, rows_of: Callable[[str, list[Any]], list[Row]]) -> list[Row]:
    """Read an object with a list for each query, of which ``rows_of`` makes rows."""
    try:
        document = as_dict(parse_json(b"".join(read_chunks(path))), "the file")
        lists = {query: as_list(value, f"the value of {query!r}") for query, value in document.items()}
        return [row for query, values in lists.items() for row in rows_of(query, values)]
    except (ValueError, WrongLineError) as error:
        raise FormatError(str(error)[:120], file=str(path), expected=LISTS) from error


def _subquestions(query: str, texts: list[Any]) -> list[dict[str, str]]:
    return [
        {"query": query, "subquestion": str(number), "text": as_text(text, "sub-question")}
        for number, text in enumerate(texts)
    ]


def _read_matrices(path: Path, runs: list[Contexts]) -> Ratings:
    """Read the matrices for the passages of the run that the file's name ends in; the shortest name of several."""
    name = run_name(path).rpartition(".")[2]
    rated = sorted((run for run in runs if run.systems[0].startswith(name)), key=lambda run: len(run.systems[0]))
    if not rated:
        raise FormatError(f"there is no run {name!r}, whose passages are rated", file=str(path), expected=FOLDER)
    passages = dict(rated[0].frame.group_by("query", maintain_order=True).agg("passage").iter_rows())
    return _ratings(_read_lists(path, lambda query, rows: _matrix_rows(query, passages.get(query, []), rows)), path)


def _matrix_rows(query: str, passages: list[str], matrix: list[Any]) -> list[RatingRow]:
    name = quote_short(query, 24)
    if len(matrix) != len(passages):
        raise WrongLineError(f"{len(matrix)} rows of ratings for {len(passages)} passages of {name}")
    return [
        (query, passage, str(number), as_rating(value, f"rating of {name}"))
        for passage, row in zip(passages, matrix, strict=True)
        for number, value in enumerate(as_list(row, f"a row of {name}"))
    ]


def read_ratings(path: PathOrStr, *, skip_bad_lines: bool = False) -> Ratings:
    """Read the ratings of a folder, or those of the required passages from a log."""
    if Path(path).is_dir():
        ratings = load(path, skip_bad_lines=skip_bad_lines).collection.ratings
        if ratings is None:
            raise FormatError("no ratings*.json in this folder", file=str(path), expected=FOLDER)
        return ratings
    rows: list[RatingRow] = []
    name, passages = "", ""
    for number, line in read_lines(path):
        text = line.decode("utf-8", "replace").strip()
        if passages:  # the line after the passages has their ratings
            try:
                ids, matrix = (as_list(ast.literal_eval(each), "the line") for each in (passages, text))
                rows += _matrix_rows(name, [as_id(each, "passage") for each in ids], matrix)
            except (WrongLineError, ValueError, SyntaxError, MemoryError, RecursionError) as error:
                problem = f"topic {quote_short(name, 24)}: {str(error)[:80]}"
                raise bad_lines_error(path, [BadLine(number, problem)], LOG) from error
        passages = text if text.startswith("['") else ""
        name = text if TOPIC_NAME.fullmatch(text) else name
    if passages:
        raise FormatError(f"the ratings of the last topic, {quote_short(name, 24)}, are missing", file=str(path))
    if not rows:
        raise FormatError("no topics in the file", file=str(path), expected=LOG)
    return _ratings(rows, path)


def _ratings(rows: list[RatingRow], path: PathOrStr) -> Ratings:
    frame = pl.DataFrame(rows, schema=["query", "passage", "subquestion", "value"], orient="row")
    return Ratings(frame.with_columns(source=pl.lit(str(path))), source=str(path))


FORMAT = Format(name="crux", title="CRUX folder, or its log of required passages", ratings=read_ratings, load=load)
