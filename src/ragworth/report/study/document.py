"""A study as a document."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ragworth.report import document as doc
from ragworth.report.charts.channels import spec_numbers
from ragworth.report.study.findings import (
    Findings,
    StudyFigure,
    StudyTable,
    display_left_out,
    display_table,
    left_out_words,
)


def study_document(findings: Findings, back: str = "") -> doc.Document:
    """What a study says; ``back`` is the address of the report that it belongs to."""
    found = [
        doc.Section("findings", "Findings", _sentences(findings)),
        doc.Section("figures", "Figures", _gallery(findings.figures)),
        doc.Section("tables", "Tables", [doc.Group("shown", [_table(each)]) for each in findings.tables]),
        doc.Section("left-out", "Left out", _left_out(findings)),
        doc.Section("notes", "Notes", [doc.Notes(findings.notes)] if findings.notes else []),
        doc.Section("provenance", "Provenance", _provenance(findings)),
    ]
    first, *others = found
    return doc.Document(
        "study", findings.title, findings.lead, [first, *(each for each in others if each.blocks)], back
    )


def _sentences(findings: Findings) -> list[doc.DocumentBlock]:
    """What came out: the first sentence large, the others below it."""
    first, rest = findings.sentences[:1], findings.sentences[1:]
    return [*(doc.Paragraph(each, "first") for each in first), *([doc.Bullets(rest, "sentences")] if rest else [])]


def _gallery(figures: Sequence[StudyFigure]) -> list[doc.DocumentBlock]:
    return [doc.Group("gallery", [_figure(each) for each in figures])] if figures else []


def _figure(each: StudyFigure) -> doc.Figure:
    frame = spec_numbers(each.spec)
    panels = [doc.ChartPanel(each.name, "", each.spec)]
    numbers = pl.DataFrame() if frame is None else display_table(frame)
    return doc.Figure(each.name, each.title, each.caption, panels, numbers, limit=doc.ROWS, files=True)


def _table(each: StudyTable) -> doc.TableBlock:
    """The first rows of a table of the study."""
    shown = display_table(each.frame)
    return doc.TableBlock.of(shown, each.title, file=each.name, note=each.note, aside=each.aside)


def _left_out(findings: Findings) -> list[doc.DocumentBlock]:
    frame = findings.left_out
    if not frame.height:
        return [doc.Paragraph("Nothing was left out.")]
    shown = display_left_out(frame)
    return [doc.Paragraph(left_out_words(frame)), doc.TableBlock.of(shown, "Left out, and why", limit=shown.height)]


def _provenance(findings: Findings) -> list[doc.DocumentBlock]:
    """What it takes to do it again."""
    where = doc.Paragraph(
        ["Everything needed to do this again; also in ", doc.TextSpan("study.json", link="study.json"), "."]
    )
    return [doc.Only("html", [where]), doc.DataBlock("This study", findings.record["settings"], open=True)]
