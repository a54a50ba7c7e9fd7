"""The studies in the folder beside a report.

A study is often done long after the report was written. The section stands between two marks, which no text of a report
can hold since all of them are escaped. So it can be rewritten alone: the tables need not be read again, and the rest of
the report stays as it is.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from ragworth.core.errors import FormatError
from ragworth.core.nested_text import parse_json
from ragworth.report.document import Bullets, Paragraph, RichText, Section, TextSpan
from ragworth.report.page.view import ReportView
from ragworth.report.renderers import html, markdown
from ragworth.results import results_record

FOLDER = "studies"


class StudyEntry(NamedTuple):
    """A study: the name of its folder, what it asks, and the first thing that it says."""

    name: str
    title: str
    sentence: str

    @property
    def address(self) -> str:
        """Its page, from the report."""
        return f"{FOLDER}/{quote(self.name, safe='')}/study.html"


class StudyList(NamedTuple):
    """Those that can be listed, in the order of their names, and what is wrong with the others."""

    listed: list[StudyEntry]
    notes: list[str]


def list_studies(folder: Path) -> StudyList:
    """The studies of a folder ``studies``; none where there is no such folder."""
    found = StudyList([], [])
    for file in sorted(folder.glob("*/study.json")):
        name = file.parent.name
        try:
            found.listed.append(_read(file))
        except (OSError, ValueError) as error:
            found.notes.append(f"{FOLDER}/{name}/study.json is left out: {error}")
    return found


def _read(file: Path) -> StudyEntry:
    said = parse_json(file.read_text(encoding="utf-8"))
    title = said.get("title") if isinstance(said, dict) else None
    sentences = said.get("sentences") if isinstance(said, dict) else None
    if not isinstance(title, str) or not isinstance(sentences, list):
        raise ValueError("it has no title and no sentences")
    if not file.with_name("study.html").is_file():
        raise ValueError("there is no study.html beside it")
    return StudyEntry(file.parent.name, title, str(sentences[0]) if sentences else "")


def section(view: ReportView) -> Section:
    """The place of the studies, which are listed when the report is written."""
    return study_section(StudyList([], []))


def study_section(found: StudyList) -> Section:
    """The studies and what is wrong with the others; empty where there are none."""
    items: list[RichText] = [
        [TextSpan(each.title, link=each.address), f": {each.sentence}" if each.sentence else ""]
        for each in found.listed
    ]
    blocks = [Bullets(items, "studies")] if items else []
    return Section("studies", "Studies", [*blocks, *(Paragraph(n, "note") for n in found.notes)], replaceable=True)


def insert_in_page(text: str, found: StudyList) -> str:
    """A page that lists these studies, and no others."""
    made = study_section(found)
    return _replace(_replace(text, made.id, html.render_section(made)), f"{made.id}-link", html.render_link(made))


def insert_in_markdown(text: str, found: StudyList) -> str:
    """The Markdown beside it, with the same list."""
    made = study_section(found)
    return _replace(text, made.id, markdown.render_section(made))


def _replace(text: str, mark: str, content: str) -> str:
    """``content`` between two marks, in place of what stands there."""
    begin, end = f"<!--{mark}-->", f"<!--/{mark}-->"
    return re.sub(f"{begin}.*?{end}", lambda _: f"{begin}{content}{end}", text, count=1, flags=re.DOTALL)


def update_study_list(report: Path) -> bool:
    """List the studies that now lie beside a report, in it and in the Markdown beside it.

    False where there is no report, or one that has no place for them.
    """
    found = list_studies(report.parent / FOLDER)
    changed = False
    for file, fill in ((report, insert_in_page), (report.with_suffix(".md"), insert_in_markdown)):
        try:
            text = file.read_text(encoding="utf-8")
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise FormatError(f"cannot be read: {error}", file=str(file)) from error
        if "<!--studies-->" not in text:
            continue
        results_record(report.parent).write(file.name, fill(text, found).encode(), adopt=True)
        changed = True
    return changed
