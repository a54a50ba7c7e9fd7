"""TREC runs and qrels, and sub-topic qrels (ndeval): how they are read.

A run line is ``query Q0 passage rank score tag``. As in trec_eval, the score determines the order and not the rank, but
a run whose ranks say the opposite throughout is an error. A qrels line is ``query iteration passage relevance``. In
sub-topic qrels, the second column is the sub-topic.
Lines that start with ``#`` are comments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.core.errors import BadLine, FormatError, Hint, QrelsGivenError, RunGivenError, format_count, quote_short
from ragworth.data import OK, Contexts, Judgments, Ratings, ranking
from ragworth.data.coercion import header_hint
from ragworth.data.parts import with_constant_text
from ragworth.data.ranking import DuplicatePassageError, OrderedContexts, Ties, order_contexts
from ragworth.formats.columns import NUMBER, Column, Layout, is_row, read_columns
from ragworth.formats.contract import FileSample, Format
from ragworth.formats.files import PathOrStr, can_read_again, open_file, read_lines, run_name, skipped_note
from ragworth.formats.grades import check_labels, check_ratings
from ragworth.formats.trec_writing import PLAIN_ITERATIONS, write_qrels, write_ratings, write_run

RUN = Layout(
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
TAGGED_RUN = RUN._replace(columns=(*RUN.columns[:-1], Column("tag", "text")))

QRELS = Layout(
    "TREC qrels file",
    (
        Column("query", "text"),
        Column("iteration", "skip"),
        Column("passage", "text"),
        Column("relevance", "finite"),
    ),
    "q1 0 d7 1",
    QrelsGivenError,
    "give it where qrels belong (--qrels, qrels of a workspace, read_judgments in Python)",
)

SUBTOPICS = Layout(
    "TREC sub-topic qrels file",
    (
        Column("query", "text"),
        Column("subtopic", "text"),
        Column("passage", "text"),
        Column("rating", "finite"),
    ),
    "q1 3 d7 1",
)


def read_run(
    path: PathOrStr,
    *,
    system: str | None = None,
    by_tag: bool = False,
    ties: Ties = "float64",
    skip_bad_lines: bool = False,
) -> Contexts:
    """Read a TREC run.

    Parameters
    ----------
    system: name of the system; by default the file name without extension.
    by_tag: take the system from the last column, so one file may contain several.
    ties: precision in which scores are compared: ``float64`` like trec_eval 10, ``float32`` like 9 and earlier.
    skip_bad_lines: skip bad lines and duplicate passages of a query, and count them in ``notes``.
    """
    with _header_advice(path):
        frame, bad, comments, tags = read_columns(
            path, TAGGED_RUN if by_tag else RUN, skip_bad_lines=skip_bad_lines, unlike=(QRELS,)
        )
    several = "" if by_tag or not tags else _several_tags(tags)
    # As "rank", it would decide the order.
    frame = frame.rename({"rank": WRITTEN_RANK} | ({"tag": "system"} if by_tag else {}))
    try:
        ordered = order_contexts(frame, ties=ties, source=str(path))
    except DuplicatePassageError:
        keys = ["system", "query"] if by_tag else ["query"]
        hint = f"split it if it holds several systems: {SPLIT_COMMAND}" if several else CHUNK_ID_HINT
        frame, bad = _drop_duplicates(path, frame, bad, keys, skip_bad_lines, hint)
        ordered = order_contexts(frame, ties=ties, source=str(path))
    note = _check_order(path, ordered)
    rows = ordered.frame.drop(WRITTEN_RANK)
    if not by_tag:
        rows = with_constant_text(rows, "system", system if system is not None else run_name(path))
    notes = tuple(f"{path}: {each}" for each in (several, note) if each)
    contexts = Contexts.trusted(rows, (*skipped_note(path, bad), *comments.note(path), *notes))
    contexts.starts = ordered.starts
    return contexts


@contextmanager
def _header_advice(path: PathOrStr) -> Iterator[None]:
    """Add advice to errors of a file whose lines have three fields, as runs of MS MARCO do."""
    try:
        yield
    except FormatError as error:
        if error.line is None or not can_read_again(path):
            raise
        with open_file(path) as stream:
            hint = header_hint(stream.readline(FIRST_LINE).decode("utf-8", "replace").split())
        if not hint:
            raise
        raise error.copy(remedy=hint) from error


def _check_order(path: PathOrStr, run: OrderedContexts) -> str:
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
    for wrong, found, remedy in (
        ((agree == 0) & (against > 0), "the first ranks have the lowest scores", f"{DISTANCES}; {OTHER_ORDERS}"),
        (counted, "the scores are 1, 2, 3, …, as ranks are,", OTHER_ORDERS),
    ):
        number = int((queries & wrong).sum())
        if number > REVERSED_SHARE * int(queries.sum()):
            raise FormatError(
                f"{found} in {number:,} of {where}",
                file=str(path),
                expected="the highest score at rank 1",
                remedy=remedy,
            )
    if queries.any() and not (queries & (agree + against > 0)).any():
        return f"the scores of a query's passages are all equal, so their ids decide the order; {RANKS_IGNORED}"
    if mixed := int((queries & (against > 0)).sum()):
        return f"the scores contradict the ranks in {mixed:,} of {where}, and decide the order; {RANKS_IGNORED}"
    return ""


def _several_tags(tags: Sequence[str]) -> str:
    first, second = (quote_short(tag, 24) for tag in tags)
    return (
        f"the tags differ ({first}, {second}), but all lines are read as one run; if it holds several systems, split "
        f"it: {SPLIT_COMMAND}"
    )


WRITTEN_RANK = "written rank"
REVERSED_SHARE = 0.95
"""Share of the queries above which ranks that say the opposite of the scores are an error."""
FIRST_LINE = 1 << 14
"""Bytes of the first line that are looked at after an error."""
BY_RANK_COMMAND = "awk '{$5 = -$4; print}' FILE"
RANKS_IGNORED = f"the ranks are ignored, as by trec_eval; to go by them: {BY_RANK_COMMAND}"
DISTANCES = f"if the scores are distances: {BY_RANK_COMMAND}"
OTHER_ORDERS = (
    "if rank and score are swapped: awk '{t = $4; $4 = $5; $5 = t; print}' FILE; if only the ranks are wrong: "
    "awk '{$4 = 0; print}' FILE"
)
SPLIT_COMMAND = "awk '{print > ($6 \".run\")}' FILE"
CHUNK_ID_HINT = "chunks that share a document's id need different ids"
SUBTOPIC_HINT = "sub-topic qrels, with a row for each sub-topic, are ratings: --ratings, read_ratings in Python"


class UniqueRows(NamedTuple):
    """The rows of a file without duplicates, and all skipped lines."""

    frame: pl.DataFrame
    bad: list[BadLine]


def _drop_duplicates(
    path: PathOrStr, frame: pl.DataFrame, bad: list[BadLine], keys: list[str], skip: bool, hint: str
) -> UniqueRows:
    """Reject passages that occur twice for equal ``keys``, or keep the first and say so."""
    groups = ranking.group_rows(frame, keys)
    order = groups.order
    duplicates = ranking.duplicate_passages(
        frame["passage"] if order is None else frame["passage"].gather(order), groups.starts
    )
    if not len(duplicates):
        return UniqueRows(frame, bad)
    duplicates = duplicates if order is None else np.sort(order[duplicates])
    if not can_read_again(path):
        row = frame.row(int(duplicates[0]), named=True)
        raise FormatError(
            f"passage {quote_short(row['passage'], 40)} occurs twice for query {quote_short(row['query'], 40)}",
            file=str(path),
            expected="each passage once for a query",
            remedy=f"remove the duplicates ({hint}), or save it as a file to see their lines",
        )
    problems = [
        BadLine(line, f"passage {quote_short(passage, 40)} again for query {quote_short(query, 40)}")
        for line, passage, query in zip(
            _line_numbers(path, bad, duplicates),
            frame["passage"].gather(duplicates),
            frame["query"].gather(duplicates),
            strict=True,
        )
    ]
    if not skip:
        raise FormatError(
            problems[0].found,
            file=str(path),
            line=problems[0].line,
            more=tuple(str(p) for p in problems[1:4])
            + ((f"{format_count(len(duplicates), 'duplicate')} in all",) if len(duplicates) > 4 else ()),
            expected="each passage once for a query",
            remedy=Hint(
                f"remove the duplicates ({hint}), or keep the first of each with --skip-bad-lines",
                f"remove the duplicates ({hint})",
                f"remove the duplicates ({hint}), or keep the first of each with skip_bad_lines=True",
                option="skip_bad_lines",
            ),
        )
    keep = np.ones(frame.height, dtype=bool)
    keep[duplicates] = False
    return UniqueRows(frame.filter(pl.Series(keep)), sorted([*bad, *problems], key=lambda b: b.line))


def _line_numbers(path: PathOrStr, bad: list[BadLine], rows: ranking.Ints) -> list[int]:
    """Return the line number of each of ``rows``."""
    skipped = {b.line for b in bad}
    wanted = iter(sorted(int(row) for row in rows))
    target = next(wanted)
    found: list[int] = []
    row = 0
    for number, line in read_lines(path):
        if number in skipped or not is_row(line):
            continue
        if row == target:
            found.append(number)
            if (following := next(wanted, None)) is None:
                break
            target = following
        row += 1
    return found


def read_qrels(path: PathOrStr, *, skip_bad_lines: bool = False) -> Judgments:
    """Read TREC qrels as relevance judgments, including real-valued and negative ones."""
    with _header_advice(path):
        frame, bad, comments, _ = read_columns(path, QRELS, skip_bad_lines=skip_bad_lines, unlike=(RUN,))
    frame, bad = _drop_duplicates(path, frame, bad, ["query"], skip_bad_lines, SUBTOPIC_HINT)
    judgments = Judgments.trusted(
        frame.select(
            "query",
            "passage",
            pl.lit("relevance").alias("aspect"),
            pl.col("relevance").alias("value"),
            pl.lit(OK).alias("status"),
            pl.lit(str(path)).alias("source"),
        ),
        (*skipped_note(path, bad), *comments.note(path)),
    )
    return check_labels(judgments, path, lambda row: _line_of(path, bad, row))


def read_ratings(path: PathOrStr, *, skip_bad_lines: bool = False) -> Ratings:
    """Read TREC sub-topic qrels, or ratings in that form, as ratings of sub-questions. Plain qrels are an error."""
    frame, bad, comments, _ = read_columns(path, SUBTOPICS, skip_bad_lines=skip_bad_lines, unlike=(RUN,))
    _refuse_plain_qrels(path, frame, bad)
    check_ratings(frame["rating"], path, lambda row: _line_of(path, bad, row))
    frame, bad = _drop_duplicates(path, frame, bad, ["query", "subtopic"], skip_bad_lines, CHUNK_ID_HINT)
    return Ratings.trusted(
        frame.select(
            "query",
            "passage",
            pl.col("subtopic").alias("subquestion"),
            pl.col("rating").alias("value"),
            pl.lit(OK).alias("status"),
            pl.lit(str(path)).alias("source"),
        ),
        (*skipped_note(path, bad), *comments.note(path)),
    )


def _line_of(path: PathOrStr, bad: list[BadLine], row: int) -> int | None:
    """The line number of a row; None for a named pipe, which can't be read twice."""
    return _line_numbers(path, bad, np.array([row]))[0] if can_read_again(path) else None


def _refuse_plain_qrels(path: PathOrStr, frame: pl.DataFrame, bad: list[BadLine]) -> None:
    """Reject a file without sub-topics, whose relevance would be read as ratings of one sub-question."""
    if not frame["subtopic"].is_in(PLAIN_ITERATIONS).all():
        return
    raise FormatError(
        f"the second column is {frame['subtopic'][0]!r} in every row: this looks like a {QRELS.what}, "
        f"not a {SUBTOPICS.what}",
        file=str(path),
        line=_line_of(path, bad, 0),
        expected=SUBTOPICS.expected,
        remedy=f"{QRELS.advice}; if they are ratings, give the sub-question another name, such as 1",
    )


def _recognise(sample: FileSample) -> bool:
    """Six fields with a score, or four with a label, in most of the first lines."""
    rows = [line.split() for line in sample.data.split(b"\n")[:20] if is_row(line)]
    fit = [row for row in rows if len(row) in (4, 6) and NUMBER.fullmatch(row[3] if len(row) == 4 else row[4])]
    return sample.kind == "text" and bool(fit) and len(fit) >= 0.8 * (len(rows) - 1)


FORMAT = Format(
    name="trec",
    title="TREC run, qrels and sub-topic qrels",
    contexts=read_run,
    judgments=read_qrels,
    ratings=read_ratings,
    write_contexts=write_run,
    write_judgments=write_qrels,
    write_ratings=write_ratings,
    recognise=_recognise,
)
