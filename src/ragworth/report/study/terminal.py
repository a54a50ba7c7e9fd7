"""What a study says, in a terminal."""

from __future__ import annotations

from ragworth.errors import counted
from ragworth.report.render import cell, printable, render
from ragworth.report.study.findings import Findings, left_shown, told

ROWS = 24
"""Rows of a table that are printed."""


def words(findings: Findings, rows: int = ROWS) -> str:
    """Title, lead, tables, what was left out; what came out of it stands last, where a terminal ends.

    Of a table with more than ``rows`` rows the first ones are printed, and how many more its file has.
    """
    parts = [f"{cell(findings.title)}\n{printable(findings.lead)}\n"]
    for table in findings.tables:
        if not table.frame.height:
            continue
        if table.aside:
            parts.append(f"{cell(table.title)}: {counted(table.frame.height, 'row')} in {cell(table.name)}.csv\n")
            continue
        note = f"{printable(table.note)}\n" if table.note else ""
        more = table.frame.height - rows
        rest = f"… and {counted(more, 'more row')} in {cell(table.name)}.csv\n" if more > 0 else ""
        parts.append(f"{cell(table.title)}\n\n{render(told(table.frame.head(rows)), 'text').decode()}{rest}{note}")
    if findings.left_out.height:
        parts.append(f"Left out\n\n{render(left_shown(findings.left_out), 'text').decode()}")
    parts += ["".join(f"note: {printable(note)}\n" for note in findings.notes)] if findings.notes else []
    parts += ["".join(f"{printable(sentence)}\n" for sentence in findings.sentences)] if findings.sentences else []
    return "\n".join(parts)
