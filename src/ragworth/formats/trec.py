"""TREC runs and qrels, and sub-topic qrels (ndeval): how they are read and written.

A run line is ``query Q0 passage rank score tag``. As in trec_eval, the score determines the order and not the rank, but
a run whose ranks say the opposite throughout is an error. A qrels line is ``query iteration passage relevance``. In
sub-topic qrels, the second column is the sub-topic.
Lines that start with ``#`` are comments.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.core.errors import (
    BadLine,
    FormatError,
    QrelsGivenError,
    RunGivenError,
    format_count,
    format_list,
    quote_short,
)
from ragworth.data import OK, Contexts, Judgments, Ratings, ranking
from ragworth.data.coercion import duplicate_rows
from ragworth.data.ranking import DuplicatePassageError, OrderedContexts, Ties, order_contexts
from ragworth.formats.columns import Column, ColumnRows, LineLayout, is_row, read_columns
from ragworth.formats.contract import Format
from ragworth.formats.files import PathOrStr, bad_lines_error, create_file, read_lines, run_name, skipped_note
from ragworth.formats.grades import LABEL, RATING, check_scale
from ragworth.formats.heads import read_head
from ragworth.formats.kinds import trec_kinds

RUN = LineLayout(
    "TREC run",
    (
        Column("query", "text"),
        Column("Q0", "skip"),
        Column("passage", "text"),
        Column("rank", "whole"),
        Column("score", "number"),
        Column("tag", "skip"),
    ),
    "q1 Q0 d7 1 14.25 bm25",
    RunGivenError,
    "give it where a run belongs (an argument of the command, a system of a workspace, read_contexts in Python)",
)

QRELS = LineLayout(
    "TREC qrels file",
    (Column("query", "text"), Column("iteration", "skip"), Column("passage", "text"), Column("relevance", "finite")),
    "q1 0 d7 1",
    QrelsGivenError,
    "give it where qrels belong (--qrels, qrels of a workspace, read_judgments in Python)",
)

SUBTOPICS = LineLayout(
    "TREC sub-topic qrels file",
    (Column("query", "text"), Column("subtopic", "text"), Column("passage", "text"), Column("rating", "finite")),
    "q1 3 d7 1",
)

PLAIN_ITERATIONS = ("0", "Q0", "q0")
"""Second column of plain qrels, where ratings have a sub-topic."""
WRITTEN_RANK = "written rank"
REVERSED_SHARE = 0.95
"""Share of the queries above which ranks that say the opposite of the scores are an error."""
NOT_IN_IDS = r"[ \t\n\r\x0b\x0c]|^\x{FEFF}"

BY_RANK_COMMAND = "awk '{$5 = -$4; print}' FILE"
RANKS_IGNORED = f"the ranks are ignored, as by trec_eval; to go by them: {BY_RANK_COMMAND}"
DISTANCES = f"if the scores are distances: {BY_RANK_COMMAND}"
OTHER_ORDERS = (
    "if rank and score are swapped: awk '{t = $4; $4 = $5; $5 = t; print}' FILE; if only the ranks are wrong: "
    "awk '{$4 = 0; print}' FILE"
)
SPLIT_COMMAND = "awk '{print > ($6 \".run\")}' FILE"
DUPLICATES_HINT = (
    "chunks that share a document's id need different ids; a file of several systems needs a file for each: "
    f"{SPLIT_COMMAND}"
)
SUBTOPIC_HINT = "sub-topic qrels, with a row for each sub-topic, are ratings: --ratings, read_ratings in Python"


def read_run(
    path: PathOrStr, *, system: str | None = None, ties: Ties = "float64", skip_bad_lines: bool = False
) -> Contexts:
    """Read a TREC run.

    Parameters
    ----------
    system: name of the system; by default the file name without extension.
    ties: precision in which scores are compared: ``float64`` like trec_eval 10, ``float32`` like 9 and earlier.
    skip_bad_lines: skip bad lines and duplicate passages of a query, and count them in ``notes``.
    """
    rows = read_columns(path, RUN, other=QRELS, skip_bad_lines=skip_bad_lines)
    # As "rank", it would decide the order.
    frame = rows.frame.rename({"rank": WRITTEN_RANK})
    try:
        ordered = order_contexts(frame, ties=ties, source=str(path))
    except DuplicatePassageError:
        rows = _drop_duplicates(path, rows._replace(frame=frame), ["query"], skip_bad_lines, DUPLICATES_HINT)
        ordered = order_contexts(rows.frame, ties=ties, source=str(path))
    name = system if system is not None else run_name(path)
    table = ordered.frame.drop(WRITTEN_RANK).with_columns(pl.lit(name).alias("system"))
    notes = (*skipped_note(path, rows.bad), *_tag_notes(path), *_check_order(path, ordered))
    contexts = Contexts.trusted(table, notes)
    contexts.starts = ordered.starts
    return contexts


def _tag_notes(path: PathOrStr) -> tuple[str, ...]:
    """Return a note on the tags of several systems in the beginning of a file."""
    rows = [line.split() for line in read_head(path).data.splitlines() if is_row(line)]
    tags = list(dict.fromkeys(row[5].decode("utf-8", "replace") for row in rows if len(row) == len(RUN.columns)))
    if len(tags) < 2:
        return ()
    few = format_list([quote_short(tag, 24) for tag in tags], 3)
    return (f"{path}: the tags differ ({few}), but all lines are read as one run; to split it: {SPLIT_COMMAND}",)


def _check_order(path: PathOrStr, run: OrderedContexts) -> tuple[str, ...]:
    """Compare the ranks in a file with the order of its scores, in which ``run`` is.

    Returns a note if they differ in some queries. That they say the opposite in nearly all is an error.
    """
    ranks, scores = (run.frame[name].to_numpy() for name in (WRITTEN_RANK, "score"))
    heads, ends = run.starts[:-1], run.starts[1:] - 1
    inside = np.ones(len(ranks), dtype=bool)  # the row before is of the same query
    inside[heads] = False

    def count(rows: npt.NDArray[np.bool_]) -> ranking.Ints:
        """The number of rows in each query that compare like this with the row before."""
        return np.asarray(np.add.reduceat(np.append(False, rows) & inside, heads, dtype=np.int64))

    lower, ranked = scores[1:] < scores[:-1], ranks[1:] != ranks[:-1]
    queries = count(ranked) > 1
    agree, against = count(lower & (ranks[1:] > ranks[:-1])), count(lower & (ranks[1:] < ranks[:-1]))
    # Scores that are 1, 2, 3, … beside other ranks are ranks.
    counted = (count(scores[:-1] == scores[1:] + 1) == ends - heads) & (scores[ends] <= 1) & (scores[ends] >= 0)
    counted &= ranks[heads] > 1
    where = format_count(int(queries.sum()), "query", "queries")
    for wrong, problem, remedy in (
        ((agree == 0) & (against > 0), "the first ranks have the lowest scores", f"{DISTANCES}; {OTHER_ORDERS}"),
        (counted, "the scores are 1, 2, 3, …, as ranks are,", OTHER_ORDERS),
    ):
        number = int((queries & wrong).sum())
        if number > REVERSED_SHARE * int(queries.sum()):
            raise FormatError(
                f"{problem} in {number:,} of {where}",
                file=str(path),
                expected="the highest score at rank 1",
                remedy=remedy,
            )
    if queries.any() and not (queries & (agree + against > 0)).any():
        return (
            f"{path}: the scores of a query's passages are all equal, so their ids decide the order; {RANKS_IGNORED}",
        )
    if mixed := int((queries & (against > 0)).sum()):
        problem = f"the scores contradict the ranks in {mixed:,} of {where}, and decide the order"
        return (f"{path}: {problem}; {RANKS_IGNORED}",)
    return ()


def _drop_duplicates(path: PathOrStr, rows: ColumnRows, keys: list[str], skip: bool, hint: str) -> ColumnRows:
    """Reject passages that occur twice for equal ``keys``, or keep the first and say so."""
    duplicates = duplicate_rows(rows.frame, [*keys, "passage"])
    if not len(duplicates):
        return rows
    names = rows.frame.select("query", "passage")[duplicates].iter_rows()
    problems = [
        BadLine(line, f"passage {quote_short(passage, 40)} again for query {quote_short(query, 40)}")
        for line, (query, passage) in zip(_line_numbers(path, rows.bad, duplicates), names, strict=True)
    ]
    if not skip:
        fix = f"remove the duplicates ({hint})"
        raise bad_lines_error(path, problems, "each passage once for a query", fix)
    keep = np.ones(rows.frame.height, dtype=bool)
    keep[duplicates] = False
    bad = sorted([*rows.bad, *problems], key=lambda each: each.line)
    return ColumnRows(rows.frame.filter(pl.Series(keep)), bad)


def _line_numbers(path: PathOrStr, bad: list[BadLine], rows: Sequence[int] | ranking.Ints) -> list[int]:
    """Return the line number of each of ``rows``, which ascend."""
    skipped, numbers = {each.line for each in bad}, set(map(int, rows))
    lines = (number for number, line in read_lines(path) if number not in skipped and is_row(line))
    return [number for row, number in zip(range(int(rows[-1]) + 1), lines, strict=False) if row in numbers]


def read_qrels(path: PathOrStr, *, skip_bad_lines: bool = False) -> Judgments:
    """Read TREC qrels as relevance judgments, including real-valued and negative ones."""
    rows = read_columns(path, QRELS, other=RUN, skip_bad_lines=skip_bad_lines)
    rows = _drop_duplicates(path, rows, ["query"], skip_bad_lines, SUBTOPIC_HINT)
    frame = rows.frame.select("query", "passage", pl.lit("relevance").alias("aspect"), *_values(path, "relevance"))
    check_scale(frame["value"], LABEL, path, lambda row: _line_numbers(path, rows.bad, [row])[0])
    return Judgments.trusted(frame, skipped_note(path, rows.bad))


def read_ratings(path: PathOrStr, *, skip_bad_lines: bool = False) -> Ratings:
    """Read TREC sub-topic qrels, or ratings in that form, as ratings of sub-questions. Plain qrels are an error."""
    rows = read_columns(path, SUBTOPICS, other=RUN, skip_bad_lines=skip_bad_lines)
    if rows.frame["subtopic"].is_in(PLAIN_ITERATIONS).all():  # relevance would be read as ratings
        raise FormatError(
            f"the second column is {rows.frame['subtopic'][0]!r} in every row: this looks like a {QRELS.what}, "
            f"not a {SUBTOPICS.what}",
            file=str(path),
            line=_line_numbers(path, rows.bad, [0])[0],
            expected=SUBTOPICS.expected,
            remedy=f"{QRELS.advice}; if they are ratings, give the sub-question another name, such as 1",
        )
    check_scale(rows.frame["rating"], RATING, path, lambda row: _line_numbers(path, rows.bad, [row])[0])
    rows = _drop_duplicates(path, rows, ["query", "subtopic"], skip_bad_lines, DUPLICATES_HINT)
    frame = rows.frame.select("query", "passage", pl.col("subtopic").alias("subquestion"), *_values(path, "rating"))
    return Ratings.trusted(frame, skipped_note(path, rows.bad))


def _values(path: PathOrStr, column: str) -> tuple[pl.Expr, ...]:
    """The value, status and source of each row."""
    return pl.col(column).alias("value"), pl.lit(OK).alias("status"), pl.lit(str(path)).alias("source")


def write_run(contexts: Contexts, path: PathOrStr) -> None:
    """Write one system's contexts as a TREC run.

    To preserve the order shown, 1/rank replaces the scores if they are missing or don't give that order.
    """
    systems = contexts.systems
    if len(systems) != 1:
        raise FormatError(
            f"{format_count(len(systems), 'system')} cannot go into one TREC run",
            file=str(path),
            remedy="write one file for each: contexts.only(NAME)",
        )
    frame = contexts.frame
    gaps = frame.group_by("query", maintain_order=True).agg(pl.len() != pl.col("rank").max()).filter("len")
    if gaps.height:
        raise FormatError(
            f"the ranks of query {quote_short(gaps['query'][0])} have gaps, which a TREC run can't represent",
            file=str(path),
            remedy="write Parquet",
        )
    columns = ["query", "passage", "rank"]
    scored = not frame["score"].null_count()
    if not scored or not order_contexts(frame.drop("rank"), ties="float64").frame.select(columns).equals(
        frame.select(columns)
    ):
        frame = frame.with_columns((1 / pl.col("rank").cast(pl.Float64)).alias("score"))
    _write(frame.select("query", pl.lit("Q0").alias("Q0"), "passage", "rank", "score", "system"), path)


def write_qrels(judgments: Judgments, path: PathOrStr) -> None:
    """Write relevance judgments as TREC qrels. Judgments without a value can't be written."""
    frame = judgments.of("relevance")
    if not frame.height:
        raise FormatError("there are no judgments of relevance to write", file=str(path), remedy="write Parquet")
    _require_values(frame, path)
    _write(frame.select("query", pl.lit("0").alias("iteration"), "passage", _format_number("value")), path)


def write_ratings(ratings: Ratings, path: PathOrStr) -> None:
    """Write ratings as TREC sub-topic qrels. Ratings without a value can't be written."""
    frame = ratings.frame
    _require_values(frame, path)
    if frame.height and frame["subquestion"].is_in(PLAIN_ITERATIONS).all():
        raise FormatError(
            f"every sub-question is called {frame['subquestion'][0]!r}, so the file would look like qrels",
            file=str(path),
            remedy="write Parquet or JSONL, or rename the sub-questions",
        )
    _write(frame.select("query", "subquestion", "passage", _format_number("value")), path)


def _format_number(column: str) -> pl.Expr:
    """Format whole numbers without a decimal point, as other programs expect, and others in full."""
    value = pl.col(column)
    whole = (value == value.round()) & (value.abs() < 2**53)
    return pl.when(whole).then(value.cast(pl.Int64, strict=False).cast(pl.String)).otherwise(value.cast(pl.String))


def _require_values(frame: pl.DataFrame, path: PathOrStr) -> None:
    missing = frame.filter(pl.col("status") != OK)
    if missing.height:
        raise FormatError(
            f"{format_count(missing.height, 'value')} missing ({missing['status'][0]}), which TREC files can't "
            "represent",
            file=str(path),
            remedy="write Parquet, or filter the rows with status 'ok'",
        )


def _write(frame: pl.DataFrame, path: PathOrStr) -> None:
    """Write rows whose first column is the query."""
    if (wrong := _unwritable_id(frame)) is not None:
        raise FormatError(
            f"TREC files can't have the {wrong[0]} {quote_short(wrong[1])}: ids have no white space and no "
            "byte-order mark, and those of queries don't begin with #",
            file=str(path),
            remedy="write Parquet or JSONL, or rename it",
        )
    with create_file(path) as stream:
        frame.write_csv(stream, include_header=False, separator=" ", quote_style="never")


def _unwritable_id(frame: pl.DataFrame) -> tuple[str, str] | None:
    """A column and an id in it that TREC files can't have; None if all can be written."""
    for column in {"query", "passage", "subquestion", "system"} & set(frame.columns):
        wrong = frame[column].filter(frame[column].str.contains(NOT_IN_IDS + ("|^#" if column == "query" else "")))
        if len(wrong):
            return column, wrong[0]
    return None


def fits_trec(frame: pl.DataFrame) -> bool:
    """Tell whether TREC files can have the queries and passages of a table."""
    return _unwritable_id(frame.select("query", "passage")) is None


FORMAT = Format(
    name="trec",
    title="TREC run, qrels and sub-topic qrels",
    endings=(".trec", ".run", ".qrels", ".txt"),
    contexts=read_run,
    judgments=read_qrels,
    ratings=read_ratings,
    write_contexts=write_run,
    write_judgments=write_qrels,
    write_ratings=write_ratings,
    inspect=trec_kinds,
    general=1,
)
