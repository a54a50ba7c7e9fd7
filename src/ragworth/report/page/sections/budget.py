"""What a better judge of some queries says of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ragworth.core.errors import format_count, format_list
from ragworth.report import summary_tables
from ragworth.report.document import (
    Cell,
    Details,
    DocumentBlock,
    Notes,
    Paragraph,
    Section,
    TableBlock,
    TableColumn,
    TextSpan,
)
from ragworth.report.page.overview import Overview
from ragworth.report.page.rankings import LEVEL
from ragworth.report.page.view import ReportView
from ragworth.report.wording import signed
from ragworth.results import ESTIMATE_TABLES, Results
from ragworth.two_judges import estimate_warnings

METHOD_NOTE = (
    "Estimate: the mean of the sample, moved by λ times what the cheap judge says of all queries against those of the "
    "sample (prediction-powered inference). r is the correlation of the judges in the sample, and λ is r times the "
    f"ratio of their spreads. In brackets {100 * LEVEL:g} % intervals over queries. Cheap alone: off by however that "
    "judge errs, which its interval does not know. Stands for: queries that the sample alone would have needed for an "
    "interval as short. Saved: expensive judgments of the system's passages that these would have taken besides."
)


Row = Mapping[str, Any]


@dataclass(frozen=True)
class TwoJudgesSummary:
    """What is said of it."""

    sentences: list[str]
    rows: Sequence[Row]
    """Estimates, the main metric first, systems as in the leaderboard."""
    differences: pl.DataFrame
    notes: list[str]


def summarise_two_judges(results: Results, view: Overview) -> TwoJudgesSummary | None:
    """The estimates in words and rows; None where all judgments are by one judge."""
    frame, differences = (results.estimates.get(name) for name in ESTIMATE_TABLES)
    if frame is None or differences is None:
        return None
    metrics = [metric for metric in view.metrics if metric in frame["metric"]]
    places = {each.system: place for place, each in enumerate(view.standings)}
    mine = [row for row in frame.iter_rows(named=True) if row["metric"] in metrics]
    rows = sorted(mine, key=lambda row: (metrics.index(row["metric"]), places.get(row["system"], len(places))))
    if not rows:
        return None
    main = [row for row in rows if row["metric"] == metrics[0]]
    return TwoJudgesSummary(
        [_spent_sentence(main), *_bias_sentences(rows), *_judge_sentences(results)],
        rows,
        differences.filter(pl.col("metric").is_in(metrics)),
        estimate_warnings(pl.DataFrame(rows, schema=frame.schema)),
    )


def _spent_sentence(rows: Sequence[Row]) -> str:
    """How many expensive judgments were made, how many they stand for, and how many that saved."""
    metric, asked, n = rows[0]["metric"], rows[0]["asked"], max(row["n"] for row in rows)
    total = max(row["total"] for row in rows)
    judgments = "expensive judgment was" if asked == 1 else "expensive judgments were"
    made = f"{asked:,} {judgments} made, for {n:,} of {format_count(total, 'query', 'queries')}."
    known = [row for row in rows if row["effective"] is not None]
    if not known:
        return f"{made} That is too little for an interval by {metric}."
    stand = sorted((round(asked * row["effective"] / row["n"]), row["system"]) for row in known)
    (least, first), (most, last) = stand[0], stand[-1]
    if most <= asked:
        return f"{made} They saved none: by {metric} the sample alone would have been as sure."
    if least == most:
        many, saved = f"{most:,}", f"{most - asked:,}"
    else:
        many = f"{least:,} ({first}) to {most:,} ({last})"
        saved = f"{max(least - asked, 0):,} to {most - asked:,}"
    return f"{made} For intervals as short by {metric} the sample alone would have taken {many}: {saved} were saved."


def _bias_sentences(rows: Sequence[Row]) -> list[str]:
    """Whether the cheap judge alone, by whom the leaderboard is, would have misled."""
    known = [row for row in rows if row["low"] is not None and row["cheap"] is not None]
    off = [row for row in known if not row["low"] <= row["cheap"] <= row["high"]]
    if not known:
        return []
    board = "The leaderboard is by the cheap judge alone"
    if not off:
        return [f"{board}; its means lie within the intervals below."]
    named = [
        f"{row['system']} by {row['metric']} ({signed(row['cheap'], 3)} for {signed(row['estimate'], 3)})"
        for row in off
    ]
    return [f"{board}, whose mean lies outside the interval of {format_list(named, 3)}."]


def _judge_sentences(results: Results) -> list[str]:
    """Who the better judge was, for each kind of judgment."""
    made = []
    for name, frame in results.said.items():
        if name.endswith("-expensive") and "source" in frame.columns:
            sources = format_list(frame["source"].unique(maintain_order=True).to_list(), 3)
            made.append(f"Expensive judge of {name.removesuffix('-expensive')}: {sources}.")
    return made


def section(view: ReportView) -> Section | None:
    """Estimates, what they rest on, and what they saved; None where all judgments are by one judge."""
    found = summarise_two_judges(view.results, view.overview)
    if found is None:
        return None
    first, *rest = found.sentences
    blocks: list[DocumentBlock] = [Paragraph(first, "lead"), *map(Paragraph, rest), _estimates(found.rows)]
    blocks.append(Paragraph(METHOD_NOTE, "note"))
    if found.notes:
        blocks.append(Notes(found.notes, "note warn"))
    if found.differences.height:
        shown = summary_tables.estimated_difference_table(found.differences, LEVEL)
        title = "Differences between systems, query by query"
        blocks.append(Details(title, [TableBlock.of(shown, title)]))
    return Section("budget", "Judged on a budget", blocks, "Budget")


def _estimates(found: Sequence[Row]) -> TableBlock:
    heads = ["Estimate", "Sample alone", "Cheap alone, biased", "λ", "r", "Stands for", "Saved"]
    several = len({row["metric"] for row in found}) > 1
    rows: list[list[Cell]] = [
        [
            row["system"],
            *([row["metric"]] if several else []),
            [*_mean(row, "estimate", "low", "high"), _count(row)],
            _mean(row, "sample", "sample_low", "sample_high"),
            _mean(row, "cheap", "cheap_low", "cheap_high"),
            *("–" if row[name] is None else signed(row[name], 2) for name in ("weight", "correlation")),
            "–" if row["effective"] is None else format_count(row["effective"], "query", "queries"),
            "–" if row["saved"] is None else f"{row['saved']:,}".replace("-", "−"),
        ]
        for row in found
    ]
    columns = [
        TableColumn("System"),
        *([TableColumn("Metric")] if several else []),
        *(TableColumn(name, True) for name in heads),
    ]
    caption = "Estimates by the expensive judge" + ("" if several else f", {found[0]['metric']}")
    return TableBlock(caption, columns, rows, "board")


def _count(row: Row) -> TextSpan:
    """Queries of the sample that could be used, of all; it stands out where some could not."""
    return TextSpan(
        f"{row['n']:,} of {row['total']:,}", "warn" if row["missing"] else "small", title=row["missing"] or ""
    )


def _mean(row: Row, value: str, low: str, high: str) -> list[str | TextSpan]:
    if row[value] is None:
        return ["–"]
    ends = "" if row[low] is None else f"[{signed(row[low], 3)}, {signed(row[high], 3)}]"
    return [signed(row[value], 3), TextSpan(ends, "small")]
