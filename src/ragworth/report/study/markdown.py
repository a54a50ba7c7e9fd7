"""A study as Markdown, with its figures beside it: for repositories, issues and letters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import polars as pl

from ragworth.report import render
from ragworth.report.page.markdown import line
from ragworth.report.study.document import ROWS
from ragworth.report.study.findings import Findings, Shown, left_shown, missing, told


def markdown(findings: Findings) -> str:
    """Everything that the page says."""
    parts = [f"# {line(findings.title)}", line(findings.lead)]
    if findings.sentences:
        first, *others = findings.sentences
        parts.append(f"**{line(first)}**")
        parts += ["\n".join(f"- {line(each)}" for each in others)] if others else []
    for figure in findings.figures:
        parts += [
            f"## {line(figure.title)}",
            f"![{line(figure.title)}](figures/{quote(figure.name)}.svg)",
            line(figure.caption),
        ]
    for table in findings.tables:
        parts += [f"## {line(table.title)}", *_table(table)]
    parts.append("## Left out")
    left = findings.left_out
    if left.height:
        parts += [line(missing(left)), render.markdown(left_shown(left)).rstrip()]
    else:
        parts.append("Nothing was left out.")
    if findings.notes:
        parts += ["## Notes", "\n".join(f"- {line(note)}" for note in findings.notes)]
    settings = list(flat(findings.record["settings"]))
    if settings:
        frame = pl.DataFrame(settings, schema={"setting": pl.String, "value": pl.String}, orient="row")
        parts += ["## Provenance", render.markdown(frame).rstrip()]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(table: Shown) -> list[str]:
    rows = table.frame.height
    parts = [render.markdown(told(table.frame.head(ROWS))).rstrip()]
    if rows > ROWS:
        parts.append(
            f"The first {ROWS} of {rows:,} rows; all are in [{line(table.name)}.csv]({quote(table.name)}.csv)."
        )
    return [*parts, line(table.note)]


def flat(value: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """Nested settings as pairs: ``models.0.name`` and what it is."""
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from flat(each, f"{before}.{key}" if before else str(key))
    else:
        yield before, str(value)
