"""Write TREC runs and qrels, and sub-topic qrels (ndeval)."""

from __future__ import annotations

import re

import polars as pl

from ragworth.core.errors import FormatError, format_count, quote_short
from ragworth.data import OK, Contexts, Judgments, Ratings
from ragworth.data.ranking import order_contexts
from ragworth.formats.files import PathOrStr, create_file

PLAIN_ITERATIONS = ("0", "Q0", "q0")
"""Second column of plain qrels, where ratings have a sub-topic."""


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
    _require_writable(frame, ["system", "query", "passage"], path)
    last = frame.group_by("query", maintain_order=True).agg(pl.len(), pl.col("rank").max())
    gaps = last.filter(pl.col("len") != pl.col("rank"))
    if gaps.height:
        raise FormatError(
            f"the ranks of query {quote_short(gaps['query'][0])} have gaps, which a TREC run can't represent",
            file=str(path),
            remedy="write Parquet",
        )
    if not _ordered_by_score(frame):
        frame = frame.with_columns((1 / pl.col("rank").cast(pl.Float64)).alias("score"))
    text = frame.select("query", pl.lit("Q0").alias("Q0"), "passage", "rank", pl.col("score"), "system")
    with create_file(path) as stream:
        text.write_csv(stream, include_header=False, separator=" ", quote_style="never")


def _ordered_by_score(frame: pl.DataFrame) -> bool:
    if frame["score"].null_count():
        return False
    by_score = order_contexts(frame.drop("rank"), ties="float64").frame
    return by_score.select("query", "passage", "rank").equals(frame.select("query", "passage", "rank"))


def write_qrels(judgments: Judgments, path: PathOrStr) -> None:
    """Write relevance judgments as TREC qrels. Judgments without a value can't be written."""
    frame = judgments.of("relevance")
    if not frame.height:
        raise FormatError("there are no judgments of relevance to write", file=str(path), remedy="write Parquet")
    _require_values(frame, path)
    _require_writable(frame, ["query", "passage"], path)
    _write_rows(frame.select("query", pl.lit("0").alias("iteration"), "passage", _format_number("value")), path)


def write_ratings(ratings: Ratings, path: PathOrStr) -> None:
    """Write ratings as TREC sub-topic qrels. Ratings without a value can't be written."""
    _require_values(ratings.frame, path)
    _require_writable(ratings.frame, ["query", "passage", "subquestion"], path)
    if ratings.frame.height and ratings.frame["subquestion"].is_in(PLAIN_ITERATIONS).all():
        raise FormatError(
            f"every sub-question is called {ratings.frame['subquestion'][0]!r}, so the file would look like qrels",
            file=str(path),
            remedy="write Parquet or JSONL, or rename the sub-questions",
        )
    _write_rows(ratings.frame.select("query", "subquestion", "passage", _format_number("value")), path)


def _format_number(column: str) -> pl.Expr:
    """Format whole numbers without a decimal point, as other programs expect, and others in full."""
    value = pl.col(column)
    whole = (value == value.round()) & (value.abs() < 2**53)
    return pl.when(whole).then(value.cast(pl.Int64, strict=False).cast(pl.String)).otherwise(value.cast(pl.String))


def _write_rows(frame: pl.DataFrame, path: PathOrStr) -> None:
    with create_file(path) as stream:
        frame.write_csv(stream, include_header=False, separator=" ", quote_style="never")


def _require_values(frame: pl.DataFrame, path: PathOrStr) -> None:
    missing = frame.filter(pl.col("status") != OK)
    if missing.height:
        raise FormatError(
            f"{format_count(missing.height, 'value')} missing ({missing['status'][0]}), which TREC files can't "
            "represent",
            file=str(path),
            remedy="write Parquet, or filter the rows with status 'ok'",
        )


def fits_trec(frame: pl.DataFrame) -> bool:
    """Whether TREC files can have the queries and passages of a table."""
    try:
        _require_writable(frame, ["query", "passage"], "")
    except FormatError:
        return False
    return True


SPACE = re.compile(r"[ \t\n\r\x0b\x0c]")


def _require_writable(frame: pl.DataFrame, columns: list[str], path: PathOrStr) -> None:
    comments = frame.filter(pl.col("query").str.starts_with("#"))
    if comments.height:
        raise FormatError(
            f"the query {quote_short(comments['query'][0])} starts with '#', so its lines would be comments",
            file=str(path),
            remedy="write Parquet or JSONL, or rename it",
        )
    for column in columns:
        bad = frame.filter(pl.col(column).str.contains(SPACE.pattern) | pl.col(column).str.starts_with("\ufeff"))
        if bad.height:
            raise FormatError(
                f"the {column} {quote_short(bad[column][0])} contains white space (or a byte-order mark), which TREC "
                "files "
                "cannot have in an id",
                file=str(path),
                remedy="write Parquet or JSONL, or rename it",
            )
