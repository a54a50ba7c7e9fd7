"""A study on disk: its page, the same as Markdown, its tables and figures, and what it was done with."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import quote

import polars as pl

from ragworth.core.errors import TableError, quote_short
from ragworth.core.file_record import FileRecord
from ragworth.report import document as doc
from ragworth.report.charts.drawing import draw_charts
from ragworth.report.charts.planes import spec_numbers
from ragworth.report.render import render
from ragworth.report.renderers.html import render_page
from ragworth.report.renderers.markdown import render_markdown
from ragworth.report.study.findings import (
    Findings,
    StudyFigure,
    StudyTable,
    display_left_out,
    display_table,
    left_out_words,
)

NAME = re.compile(r"\w[\w-]*")
STUDY = "study.json"


def write_study(findings: Findings, folder: str | Path, *, back: str | Path | None = None) -> Path:
    """Write everything to a folder; the path of the page.

    The page ``study.html``, ``study.md``, each table as ``TABLE.parquet`` and ``TABLE.csv``, each figure as
    ``figures/NAME.svg`` and ``.png``, and last ``study.json``. Every file is there whole or not at all. Tables and
    figures that an earlier study wrote there and this one does not have are deleted. Files that ragworth did not write
    are left alone: one that is in the way is an error.
    ``back`` is the report that the page links to.
    """
    folder = Path(folder)
    _check(table.name for table in findings.tables)
    _check(figure.name for figure in findings.figures)
    files = _files(findings, "" if back is None else quote(Path(os.path.relpath(back, folder)).as_posix()))
    record = json.dumps(findings.record, ensure_ascii=False, indent=1) + "\n"
    written = FileRecord(folder, "move it away, or name another folder: --output DIR")
    written.refuse_foreign([*files, STUDY])
    for name, data in files.items():
        written.write(name, data)
    written.remove(written.names - {*files, STUDY})
    written.write(STUDY, record.encode("utf-8", "replace"))
    written.finish()
    return folder / "study.html"


def _check(names: Iterable[str]) -> None:
    """Names of files: safe ones, and never two that a file system may take for one."""
    seen: set[str] = set()
    for name in names:
        if not NAME.fullmatch(name):
            raise TableError(f"{quote_short(name)} cannot name a file", expected="letters, digits, _ and -")
        if name.casefold() in seen:
            raise TableError(f"{quote_short(name)} names two tables or two figures")
        seen.add(name.casefold())


def _files(findings: Findings, back: str) -> dict[str, bytes]:
    """All files but the record, made before the first of them is written."""
    document = study_document(findings, back)
    pages = {"study.html": render_page(document), "study.md": render_markdown(document)}
    made = {name: text.encode("utf-8", "replace") for name, text in pages.items()}
    for table in findings.tables:
        made |= {f"{table.name}.{look}": render(table.frame, look) for look in ("parquet", "csv")}
    return made | draw_charts(
        {f"figures/{figure.name}.{ending}": figure.spec for figure in findings.figures for ending in ("svg", "png")}
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
