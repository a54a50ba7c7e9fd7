"""A study as a document."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ragworth.report.document import (
    ROWS,
    Block,
    Bullets,
    ChartPanel,
    Data,
    Document,
    Figure,
    Group,
    Notes,
    Only,
    Paragraph,
    Section,
    Span,
    Table,
)
from ragworth.report.study.channels import spec_numbers
from ragworth.report.study.findings import (
    Findings,
    StudyFigure,
    StudyTable,
    display_left_out,
    display_table,
    left_out_words,
)


def study_document(findings: Findings, back: str = "") -> Document:
    """What a study says; ``back`` is the address of the report that it belongs to."""
    found = [
        Section("findings", "Findings", _sentences(findings)),
        Section("figures", "Figures", _gallery(findings.figures)),
        Section("tables", "Tables", [Group("shown", [_table(each)]) for each in findings.tables]),
        Section("left-out", "Left out", _left_out(findings)),
        Section("notes", "Notes", [Notes(findings.notes)] if findings.notes else []),
        Section("provenance", "Provenance", _provenance(findings)),
    ]
    first, *others = found
    return Document("study", findings.title, findings.lead, [first, *(each for each in others if each.blocks)], back)


def _sentences(findings: Findings) -> list[Block]:
    """What came out: the first sentence large, the others below it."""
    first, rest = findings.sentences[:1], findings.sentences[1:]
    return [*(Paragraph(each, "first") for each in first), *([Bullets(rest, "sentences")] if rest else [])]


def _gallery(figures: Sequence[StudyFigure]) -> list[Block]:
    return [Group("gallery", [_figure(each) for each in figures])] if figures else []


def _figure(each: StudyFigure) -> Figure:
    frame = spec_numbers(each.spec)
    panels = [ChartPanel(each.name, "", each.spec)]
    numbers = pl.DataFrame() if frame is None else display_table(frame)
    return Figure(each.name, each.title, each.caption, panels, numbers, limit=ROWS, files=True)


def _table(each: StudyTable) -> Table:
    """The first rows of a table of the study."""
    shown = display_table(each.frame)
    return Table.of(shown, each.title, file=each.name, note=each.note, aside=each.aside)


def _left_out(findings: Findings) -> list[Block]:
    frame = findings.left_out
    if not frame.height:
        return [Paragraph("Nothing was left out.")]
    shown = display_left_out(frame)
    return [Paragraph(left_out_words(frame)), Table.of(shown, "Left out, and why", limit=shown.height)]


def _provenance(findings: Findings) -> list[Block]:
    """What it takes to do it again."""
    where = Paragraph(["Everything needed to do this again; also in ", Span("study.json", link="study.json"), "."])
    return [Only("html", [where]), Data("This study", findings.record["settings"], open=True)]
