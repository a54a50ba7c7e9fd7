"""What a better judge of some queries says of all of them."""

from __future__ import annotations

from collections.abc import Sequence

from ragworth.core.errors import format_count
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
from ragworth.report.page.costs import Row
from ragworth.report.page.rankings import LEVEL
from ragworth.report.page.view import ReportView
from ragworth.report.wording import signed

METHOD_NOTE = (
    "Estimate: the mean of the sample, moved by λ times what the cheap judge says of all queries against those of the "
    "sample (prediction-powered inference). r is the correlation of the judges in the sample, and λ is r times the "
    f"ratio of their spreads. In brackets {100 * LEVEL:g} % intervals over queries. Cheap alone: off by however that "
    "judge errs, which its interval does not know. Stands for: queries that the sample alone would have needed for an "
    "interval as short. Saved: expensive judgments of the system's passages that these would have taken besides."
)


def section(view: ReportView) -> Section | None:
    """Estimates, what they rest on, and what they saved; None where all judgments are by one judge."""
    found = view.budget
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
