"""A study as Markdown, with its figures beside it: for repositories, issues and letters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import polars as pl

from ragworth.report import render
from ragworth.report.page.markdown import escape_line
from ragworth.report.study.document import ROWS
from ragworth.report.study.findings import Findings, StudyTable, display_left_out, display_table, left_out_words


def study_markdown(findings: Findings) -> str:
    """Everything that the page says."""
    parts = [f"# {escape_line(findings.title)}", escape_line(findings.lead)]
    if findings.sentences:
        first, *others = findings.sentences
        parts.append(f"**{escape_line(first)}**")
        parts += ["\n".join(f"- {escape_line(each)}" for each in others)] if others else []
    for figure in findings.figures:
        parts += [
            f"## {escape_line(figure.title)}",
            f"![{escape_line(figure.title)}](figures/{quote(figure.name)}.svg)",
            escape_line(figure.caption),
        ]
    for table in findings.tables:
        parts += [f"## {escape_line(table.title)}", *_table(table)]
    parts.append("## Left out")
    left = findings.left_out
    if left.height:
        parts += [escape_line(left_out_words(left)), render.markdown_table(display_left_out(left)).rstrip()]
    else:
        parts.append("Nothing was left out.")
    if findings.notes:
        parts += ["## Notes", "\n".join(f"- {escape_line(note)}" for note in findings.notes)]
    settings = list(flatten_settings(findings.record["settings"]))
    if settings:
        frame = pl.DataFrame(settings, schema={"setting": pl.String, "value": pl.String}, orient="row")
        parts += ["## Provenance", render.markdown_table(frame).rstrip()]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(table: StudyTable) -> list[str]:
    rows = table.frame.height
    parts = [render.markdown_table(display_table(table.frame.head(ROWS))).rstrip()]
    if rows > ROWS:
        parts.append(
            f"The first {ROWS} of {rows:,} rows; all are in [{escape_line(table.name)}.csv]({quote(table.name)}.csv)."
        )
    return [*parts, escape_line(table.note)]


def flatten_settings(value: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """Nested settings as pairs: ``models.0.name`` and what it is."""
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from flatten_settings(each, f"{before}.{key}" if before else str(key))
    else:
        yield before, str(value)
