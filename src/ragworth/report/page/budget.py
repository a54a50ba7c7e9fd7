"""What a better judge of some queries says of all of them: estimates, what they rest on, and what they saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ragworth.errors import format_count, format_list
from ragworth.report import summary_tables
from ragworth.report.page.html import SafeHtml, details_box, html_table, scroll_box, tag
from ragworth.report.page.overview import LEVEL, Overview, format_signed
from ragworth.results import ESTIMATE_TABLES, Results
from ragworth.two_judges import estimate_warnings

TITLE = "Judged on a budget"
METHOD_NOTE = (
    "Estimate: the mean of the sample, moved by λ times what the cheap judge says of all queries against those of the "
    "sample (prediction-powered inference). r is the correlation of the judges in the sample, and λ is r times the "
    f"ratio of their spreads. In brackets {100 * LEVEL:g} % intervals over queries. Cheap alone: off by however that "
    "judge errs, which its interval does not know. Stands for: queries that the sample alone would have needed for an "
    "interval as short. Saved: expensive judgments of the system's passages that these would have taken besides."
)

Row = Mapping[str, Any]


@dataclass(frozen=True)
class TwoJudgesSection:
    """The part of the report on it."""

    sentences: list[str]
    rows: Sequence[Row]
    """Estimates, the main metric first, systems as in the leaderboard."""
    differences: pl.DataFrame
    notes: list[str]


def two_judges_section(results: Results, view: Overview) -> TwoJudgesSection | None:
    """What is said of it; None where all judgments are by one judge."""
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
    return TwoJudgesSection(
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
        f"{row['system']} by {row['metric']} ({format_signed(row['cheap'], 3)} for {format_signed(row['estimate'], 3)})"
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


def two_judges_html(found: TwoJudgesSection | None) -> SafeHtml:
    """The section of the page; nothing where there is nothing to say."""
    if found is None:
        return SafeHtml("")
    first, *rest = found.sentences
    parts: list[object] = [
        tag("h2", TITLE, id="budget-title"),
        tag("p", first, class_="lead"),
        *(tag("p", sentence) for sentence in rest),
        _estimate_table(found),
        tag("p", METHOD_NOTE, class_="note"),
    ]
    if found.notes:
        parts.append(tag("ul", *(tag("li", note) for note in found.notes), class_="note warn"))
    if found.differences.height:
        readable = summary_tables.estimated_difference_table(found.differences, LEVEL)
        shown = html_table(
            readable, "Differences between systems", lambda column: column.name not in ("metric", "system")
        )
        parts.append(details_box("Differences between systems, query by query", shown))
    return tag("section", *parts, id="budget", aria_labelledby="budget-title")


def two_judges_link(found: TwoJudgesSection | None) -> SafeHtml:
    """Its place in the navigation."""
    return tag("a", "Budget", href="#budget") if found is not None else SafeHtml("")


def _estimate_table(found: TwoJudgesSection) -> SafeHtml:
    heads = ["Estimate", "Sample alone", "Cheap alone, biased", "λ", "r", "Stands for", "Saved"]
    several = len({row["metric"] for row in found.rows}) > 1
    head = [
        tag("th", "System", scope="col"),
        *([tag("th", "Metric", scope="col")] if several else []),
        *(tag("th", name, scope="col", class_="n") for name in heads),
    ]
    rows = []
    for row in found.rows:
        cells = [
            tag("th", row["system"], scope="row"),
            *([tag("td", row["metric"])] if several else []),
            _mean(row, "estimate", "low", "high", _count(row)),
            _mean(row, "sample", "sample_low", "sample_high"),
            _mean(row, "cheap", "cheap_low", "cheap_high"),
            *(_cell(None if row[name] is None else format_signed(row[name], 2)) for name in ("weight", "correlation")),
            _cell(_queries(row["effective"])),
            _cell(None if row["saved"] is None else f"{row['saved']:,}".replace("-", "−")),
        ]
        rows.append(tag("tr", *cells))
    caption = "Estimates by the expensive judge" + ("" if several else f", {found.rows[0]['metric']}")
    made = tag("table", tag("caption", caption), tag("thead", tag("tr", *head)), tag("tbody", *rows), class_="board")
    return scroll_box(made, TITLE)


def _queries(number: int | None) -> str | None:
    return None if number is None else format_count(number, "query", "queries")


def _cell(value: str | None) -> SafeHtml:
    return tag("td", "–" if value is None else value, class_="n")


def _count(row: Row) -> SafeHtml:
    """Queries of the sample that could be used, of all; it stands out where some could not."""
    some = row["missing"] or None
    return tag("small", f"{row['n']:,} of {row['total']:,}", title=some, class_="warn" if some else None)


def _mean(row: Row, value: str, low: str, high: str, *more: object) -> SafeHtml:
    if row[value] is None:
        return tag("td", "–", *more, class_="n")
    return tag("td", format_signed(row[value], 3), tag("small", _format_interval(row, low, high)), *more, class_="n")


def _format_interval(row: Row, low: str, high: str) -> str:
    return "" if row[low] is None else f"[{format_signed(row[low], 3)}, {format_signed(row[high], 3)}]"


def two_judges_table(found: TwoJudgesSection) -> pl.DataFrame:
    """The same table in words, for Markdown."""

    def mean(row: Row, value: str, low: str, high: str) -> str:
        return (
            "–" if row[value] is None else f"{format_signed(row[value], 3)} {_format_interval(row, low, high)}".strip()
        )

    rows = [
        {
            "system": row["system"],
            "metric": row["metric"],
            "estimate": mean(row, "estimate", "low", "high"),
            "sample alone": mean(row, "sample", "sample_low", "sample_high"),
            "cheap alone, biased": mean(row, "cheap", "cheap_low", "cheap_high"),
            "λ": "–" if row["weight"] is None else format_signed(row["weight"], 2),
            "r": "–" if row["correlation"] is None else format_signed(row["correlation"], 2),
            "n of N": f"{row['n']:,} of {row['total']:,}",
            "stands for": _queries(row["effective"]) or "–",
            "saved": row["saved"],
        }
        for row in found.rows
    ]
    return pl.DataFrame(rows, schema_overrides={"saved": pl.Int64})
