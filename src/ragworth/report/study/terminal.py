"""What a study says, in a terminal."""

from __future__ import annotations

from ragworth.errors import format_count
from ragworth.report.render import format_cell, printable, render
from ragworth.report.study.findings import Findings, display_left_out, display_table

ROWS = 24
"""Rows of a table that are printed."""


def study_text(findings: Findings, rows: int = ROWS) -> str:
    """Title, lead, tables, what was left out; what came out of it stands last, where a terminal ends.

    Of a table with more than ``rows`` rows the first ones are printed, and how many more its file has.
    """
    parts = [f"{format_cell(findings.title)}\n{printable(findings.lead)}\n"]
    for table in findings.tables:
        if not table.frame.height:
            continue
        if table.aside:
            parts.append(
                f"{format_cell(table.title)}: {format_count(table.frame.height, 'row')} in "
                f"{format_cell(table.name)}.csv\n"
            )
            continue
        note = f"{printable(table.note)}\n" if table.note else ""
        more = table.frame.height - rows
        rest = f"… and {format_count(more, 'more row')} in {format_cell(table.name)}.csv\n" if more > 0 else ""
        shown = render(display_table(table.frame.head(rows)), "text").decode()
        parts.append(f"{format_cell(table.title)}\n\n{shown}{rest}{note}")
    if findings.left_out.height:
        parts.append(f"Left out\n\n{render(display_left_out(findings.left_out), 'text').decode()}")
    parts += ["".join(f"note: {printable(note)}\n" for note in findings.notes)] if findings.notes else []
    parts += ["".join(f"{printable(sentence)}\n" for sentence in findings.sentences)] if findings.sentences else []
    return "\n".join(parts)
