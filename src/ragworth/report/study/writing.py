"""A study on disk: its page, the same as Markdown, its tables and figures, and what it was done with."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from ragworth.errors import TableError, quote_short
from ragworth.report.charts.drawing import draw_charts
from ragworth.report.render import render
from ragworth.report.renderers.html import render_page
from ragworth.report.renderers.markdown import render_markdown
from ragworth.report.study.document import study_document
from ragworth.report.study.findings import Findings
from ragworth.storage.file_record import FileRecord

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
