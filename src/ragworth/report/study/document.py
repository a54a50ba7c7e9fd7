"""The page of a study, in the look of the report and under the same policy."""

from __future__ import annotations

import re
from importlib import resources
from urllib.parse import quote

import polars as pl

from ragworth.report.page.document import fill_page
from ragworth.report.page.document import read_asset as shared
from ragworth.report.page.html import SafeHtml, chart_placeholder, details_box, escape_text, html_table, join_html, tag
from ragworth.report.page.pack import pack_json
from ragworth.report.page.provenance import json_tree
from ragworth.report.page.theme import themes
from ragworth.report.study.channels import spec_numbers
from ragworth.report.study.findings import (
    Findings,
    StudyFigure,
    StudyTable,
    display_left_out,
    display_table,
    left_out_words,
)

ROWS = 200
"""Rows of a table that the page shows; the file beside it has all."""
TALL = 560
"""Height from which on a chart has the width of the page for itself: beside it would be nothing."""
SCRIPTS = ("data.js", "theme.js", "charts.js")
NUMBER = re.compile(r"(?:[\d\s.,:;%+−–\-\[\]()<>=≤≥±/†‡*]|of|to)+")
"""What a column made of numbers holds: a mean with its interval, n of N, a p-value with a sign."""


def study_page(findings: Findings, back: str | None = None) -> str:
    """The whole page; ``back`` is the address of the report that it belongs to."""
    parts = _sections(findings)
    links = [tag("a", title, href=f"#{name}") for name, (title, _) in parts.items()]
    filled = {
        "title": escape_text(findings.title),
        "navigation": join_html([tag("a", "Findings", href="#findings"), *links], "\n"),
        "back": tag("a", "← Report", href=back, class_="back") if back else SafeHtml(""),
        "lead": escape_text(findings.lead),
        "sentences": study_sentences_html(findings),
        "sections": join_html([_section(name, title, content) for name, (title, content) in parts.items()], "\n"),
    }
    specs = {figure.name: figure.spec for figure in findings.figures}
    scripts = "\n".join([*map(shared, SCRIPTS), _part("study.js")])
    islands = {"charts": pack_json({"specs": specs, "themes": themes()})}
    return fill_page(_part("template.html"), shared("style.css") + _part("study.css"), scripts, filled, islands)


def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _sections(findings: Findings) -> dict[str, tuple[str, SafeHtml]]:
    """The parts of the page after the findings, by their ids: those that there are."""
    made = {
        "figures": ("Figures", _gallery(findings.figures)),
        "tables": ("Tables", join_html([study_table_html(each) for each in findings.tables])),
        "left-out": ("Left out", _left_out(findings.left_out)),
        "notes": (
            "Notes",
            tag("ul", *(tag("li", note) for note in findings.notes)) if findings.notes else SafeHtml(""),
        ),
        "provenance": ("Provenance", _provenance(findings)),
    }
    return {name: part for name, part in made.items() if part[1]}


def _section(name: str, title: str, content: SafeHtml) -> SafeHtml:
    return tag("section", tag("h2", title, id=f"{name}-title"), content, id=name, aria_labelledby=f"{name}-title")


def study_sentences_html(findings: Findings) -> SafeHtml:
    """What came out: the first sentence large, the others below it."""
    if not findings.sentences:
        return SafeHtml("")
    first, *others = findings.sentences
    rest = tag("ul", *(tag("li", each) for each in others), class_="sentences") if others else ""
    return join_html([tag("p", first, class_="first"), rest])


def _gallery(figures: tuple[StudyFigure, ...]) -> SafeHtml:
    if not figures:
        return SafeHtml("")
    alone = tag("p", "Charts need JavaScript; their numbers are in the tables below each of them.", class_="note")
    return join_html([tag("noscript", alone), tag("div", *map(_figure, figures), class_="gallery")])


def _figure(figure: StudyFigure) -> SafeHtml:
    """A place for the chart, its caption, and its numbers as a table."""
    frame = spec_numbers(figure.spec)
    wide = (figure.spec.get("usermeta") or {}).get("wide")
    tall = figure.spec.get("height", 0) > TALL
    return tag(
        "figure",
        tag("h3", figure.title),
        tag("div", chart_placeholder(figure.name, f"Chart: {figure.title}. {figure.caption}"), class_="panel"),
        tag("figcaption", figure.caption),
        details_box("The numbers as a table", _table(frame, figure.title)) if frame is not None else "",
        tag("p", *_files(f"figures/{figure.name}", "svg", "png"), class_="files"),
        class_="many" if wide else "many tall" if tall else None,
    )


def study_table_html(each: StudyTable) -> SafeHtml:
    """A table of the study, with its files."""
    return tag(
        "div",
        _table(each.frame, each.title),
        tag("p", each.note, class_="note") if each.note else "",
        tag("p", *_files(each.name, "csv", "parquet"), class_="files"),
        class_="shown",
    )


def _table(frame: pl.DataFrame, title: str) -> SafeHtml:
    """The first rows of a table; it says so where there are more."""
    rows = frame.height
    caption = title if rows <= ROWS else f"{title}: the first {ROWS} of {rows:,} rows"
    return html_table(display_table(frame.head(ROWS)), caption, is_numeric)


def is_numeric(column: pl.Series) -> bool:
    """Whether a column is of numbers, or of words made of them."""
    if column.dtype.is_numeric():
        return True
    words = column.drop_nulls().cast(pl.String).to_list() if column.dtype == pl.String else []
    return any(map(str.isdigit, "".join(words))) and all(NUMBER.fullmatch(word) or not word for word in words)


def _files(stem: str, *endings: str) -> list[object]:
    """Links to a file in each of its forms."""
    made: list[object] = []
    for ending in endings:
        made += [", " if made else "", tag("a", f"{stem.split('/')[-1]}.{ending}", href=quote(f"{stem}.{ending}"))]
    return made


def _left_out(frame: pl.DataFrame) -> SafeHtml:
    if not frame.height:
        return tag("p", "Nothing was left out.")
    return join_html(
        [tag("p", left_out_words(frame)), html_table(display_left_out(frame), "Left out, and why", is_numeric)]
    )


def _provenance(findings: Findings) -> SafeHtml:
    """What it takes to do it again."""
    settings = findings.record["settings"]
    plain = {key: value for key, value in settings.items() if not isinstance(value, dict | list)}
    parts = [tag("p", "Everything needed to do this again; also in ", tag("a", "study.json", href="study.json"), ".")]
    parts += [details_box("This study", json_tree(plain), open="")] if plain else []
    parts += [details_box(str(key), json_tree(value)) for key, value in settings.items() if key not in plain]
    return join_html(parts)
