"""The studies that lie beside a report, and the place in it where they are listed.

A study is often done long after the report was written. The place is between two marks, which no text of a report can
hold since all of them are escaped, so that what stands there can be written anew without the rest: the tables need
not be read again, and the report says what it said, whatever it was built with.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from ragworth.errors import FormatError
from ragworth.report.page.html import SafeHtml, tag
from ragworth.results import results_record

FOLDER = "studies"
PLACE = "<!--studies--><!--/studies-->"
NAVIGATION = "<!--studies-link--><!--/studies-link-->"


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
    said = json.loads(file.read_text(encoding="utf-8"))
    title = said.get("title") if isinstance(said, dict) else None
    sentences = said.get("sentences") if isinstance(said, dict) else None
    if not isinstance(title, str) or not isinstance(sentences, list):
        raise ValueError("it has no title and no sentences")
    if not file.with_name("study.html").is_file():
        raise ValueError("there is no study.html beside it")
    return StudyEntry(file.parent.name, title, str(sentences[0]) if sentences else "")


def insert_in_page(html: str, found: StudyList) -> str:
    """A page that lists these studies, and no others."""
    link = tag("a", "Studies", href="#studies") if any(found) else SafeHtml("")
    return _replace_between(_replace_between(html, PLACE, _section(found)), NAVIGATION, link)


def _section(found: StudyList) -> SafeHtml:
    if not any(found):
        return SafeHtml("")
    items = [
        tag("li", tag("a", each.title, href=each.address), tag("p", each.sentence) if each.sentence else "")
        for each in found.listed
    ]
    return tag(
        "section",
        tag("h2", "Studies", id="studies-title"),
        tag("ul", *items, class_="studies") if items else "",
        *(tag("p", note, class_="note") for note in found.notes),
        id="studies",
        aria_labelledby="studies-title",
    )


def insert_in_markdown(text: str, found: StudyList) -> str:
    """The Markdown beside it, with the same list."""
    from ragworth.report.page.markdown import escape_line

    items = [f"- [{escape_line(each.title)}]({each.address}): {escape_line(each.sentence)}" for each in found.listed]
    lines = ["\n".join(items), *map(escape_line, found.notes)]
    return _replace_between(text, PLACE, "\n\n".join(["\n## Studies", *filter(None, lines), ""]) if any(found) else "")


def _replace_between(text: str, place: str, content: str) -> str:
    """``content`` between the marks of a place, in place of what stands there."""
    begin, end = (f"{mark}>" for mark in place.split(">")[:2])
    return re.sub(
        f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: f"{begin}{content}{end}", text, count=1, flags=re.DOTALL
    )


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
        if PLACE.split(">")[0] not in text:
            continue
        results_record(report.parent).write(file.name, fill(text, found).encode(), adopt=True)
        changed = True
    return changed
