"""A document in its three media: every kind of block, untrusted texts, cut tables and replaceable sections."""

from __future__ import annotations

import re
from types import SimpleNamespace
from urllib.parse import quote

import polars as pl
import pytest

pytest.importorskip("vl_convert")

from ragworth.report import document as doc
from ragworth.report.answer_views import AnswerPassage, AnswerSentence, AnswerView, HopStep, HopTimeline
from ragworth.report.page import sections
from ragworth.report.renderers import html, markdown, terminal
from tests.report.page.odd_samples import BAD

CHART = doc.ChartPanel("chart", BAD, {"mark": "bar", "width": "container"})
BLOCKS = (
    doc.Paragraph([BAD, doc.TextSpan(BAD, "strong", f"studies/{quote(BAD)}", BAD)], "note"),
    doc.Heading(BAD, count=BAD),
    doc.Bullets([BAD, [BAD, doc.TextSpan(BAD, "code")]], shown=1, unit="item"),
    doc.Notes([BAD]),
    doc.TableBlock(
        BAD, [doc.TableColumn(BAD)] * 2, [[BAD, [BAD, doc.TextSpan(BAD, "warn", title=BAD)]]], note=BAD
    ),
    doc.Figure("chart", BAD, BAD, [CHART], pl.DataFrame({BAD: [BAD]}), files=True),
    doc.Group("finding", [doc.Paragraph(BAD)]),
    doc.Details(BAD, [doc.Paragraph(BAD)]),
    doc.DataBlock(BAD, {BAD: {BAD: [BAD, {BAD: BAD}, {BAD: [BAD]}, None, 1.5]}, "plain": BAD}),
    doc.Preformatted(BAD, f"{BAD}\n{BAD}"),
    doc.Only("html", [doc.Paragraph(BAD)]),
    doc.Fragment("explorer.html"),
    AnswerView("a", [AnswerSentence(BAD, (1,), (1,), BAD, (1,))], [AnswerPassage(1, BAD, BAD, -1.0, 0.1, BAD)]),
    HopTimeline([HopStep(BAD, BAD, 1.0, 1.0, 1.0)], 0),
)  # fmt: skip


def document(*blocks: doc.DocumentBlock) -> doc.Document:
    first = doc.Section("first", "First", [doc.Paragraph("Said first.", "first")])
    return doc.Document("report", BAD, BAD, [first, doc.Section("second", BAD, blocks)], back="report.html")


def test_the_list_above_has_every_kind_of_block() -> None:
    assert {type(block) for block in BLOCKS} == set(doc.DocumentBlock.__subclasses__())


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: type(block).__name__)
def test_untrusted_texts_stay_texts_in_every_medium(block: doc.DocumentBlock) -> None:
    made = html.render_block(block)
    assert "<script" not in made and "<img" not in made
    assert not set("\u202e\x07\x1b\x01") & set(made)
    for text in (markdown.render_markdown(document(block)), terminal.render_text(document(block))):
        assert not set("\u202e\x07\x1b") & set(text)
    text = markdown.render_markdown(document(block))
    assert "<script" not in text and "<img" not in text


def test_each_medium_has_its_form_of_a_table() -> None:
    frame = pl.DataFrame({"system": [f"s{i}" for i in range(300)], "score": [i / 7 for i in range(300)]})
    table = doc.TableBlock.of(frame, "Scores", file="scores", note="Of all queries.")
    page = html.render_block(table)
    assert "<caption>Scores: the first 200 of 300 rows</caption>" in page
    assert '<tr><th scope="row">s1</th><td class="n">0.143</td></tr>' in page
    assert '<a href="scores.csv">scores.csv</a>, <a href="scores.parquet">' in page
    text = markdown.render_markdown(document(table))
    assert "**Scores**\n\n| system | score |\n| --- | ---: |\n| s0 | 0.0000 |\n| s1 | 0.1429 |\n" in text
    assert "The first 200 of 300 rows; all are in [scores.csv](scores.csv).\n\nOf all queries.\n" in text
    said = terminal.render_text(document(table))
    assert "s23     3.2857\n… and 276 more rows in scores.csv\nOf all queries.\n" in said
    assert said.endswith("\nSaid first.\n")


def test_links_inside_the_page_are_plain_words_elsewhere() -> None:
    block = doc.Paragraph(
        ["See ", doc.TextSpan("it", link="#systems"), " and ", doc.TextSpan("that", link="a.html"), "."]
    )
    assert html.render_block(block) == '<p>See <a href="#systems">it</a> and <a href="a.html">that</a>.</p>'
    assert "\nSee it and [that](a.html).\n" in markdown.render_markdown(document(block))


def test_what_is_for_one_medium_is_in_no_other() -> None:
    blocks = (doc.Only("html", [doc.Paragraph("clicks")]), doc.Only("markdown", [doc.Paragraph("beside")]))
    page, text = html.render_page(document(*blocks)), markdown.render_markdown(document(*blocks))
    assert ("<p>clicks</p>" in page, "<p>beside</p>" in page) == (True, False)
    assert ("clicks" in text, "beside" in text) == (False, True)


@pytest.mark.parametrize("blocks", [[], [doc.Paragraph("later")]])
def test_a_replaceable_section_is_marked_whether_or_not_it_says_anything(blocks: list[doc.DocumentBlock]) -> None:
    first, second = document().sections
    marked = doc.Section("later", "Later", blocks, replaceable=True)
    given = doc.Document("report", "T", "L", [first, second, marked])
    page, text = html.render_page(given), markdown.render_markdown(given)
    for made, form in ((page, html.render_section(marked)), (text, markdown.render_section(marked))):
        assert f"<!--later-->{form}<!--/later-->" in made
    assert f"<!--later-link-->{html.render_link(marked)}<!--/later-link-->" in page
    assert bool(html.render_section(marked)) == bool(blocks)


def test_a_section_of_ones_own_is_in_the_navigation_the_page_and_the_markdown(monkeypatch: pytest.MonkeyPatch) -> None:
    """All it takes is an entry in the list of sections."""
    first = doc.Section("verdict", "Verdict", [])
    mine = doc.Section("prices", "What it would cost", [doc.Paragraph("Nothing.")], "Prices")
    entries = [SimpleNamespace(build=lambda view, section=section: section) for section in (first, None, mine)]
    monkeypatch.setattr(sections, "SECTIONS", entries)
    monkeypatch.setattr(sections.verdict, "lead", lambda view: "Lead.")
    made = sections.build_document(type("View", (), {"title": "Title"})())
    page = html.render_page(made)
    assert re.findall(r'<a href="#(\w+)">(\w+)</a>', page) == [("verdict", "Verdict"), ("prices", "Prices")]
    assert '<h2 id="prices-title">What it would cost</h2>\n<p>Nothing.</p>' in page
    assert markdown.render_markdown(made) == "# Title\n\nLead.\n\n## What it would cost\n\nNothing.\n"
