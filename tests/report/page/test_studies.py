"""The studies that a report lists."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

from ragworth.core.errors import FormatError
from ragworth.report import page
from tests.report.page import odd_samples
from tests.report.page.odd_samples import BAD
from tests.report.page.test_page import visible


def study(results: Path, name: str, title: str, *sentences: str) -> Path:
    """The record of a study, with an empty page."""
    folder = results / "studies" / name
    folder.mkdir(parents=True)
    (folder / "study.json").write_text(json.dumps({"title": title, "sentences": sentences}))
    (folder / "study.html").write_text("")
    return folder


@pytest.fixture
def report(tmp_path: Path) -> Path:
    page.write(odd_samples.minimal(), tmp_path / "report.html")
    return tmp_path / "report.html"


def test_a_report_without_studies_says_nothing_of_them(report: Path) -> None:
    assert "Studies" not in visible(report.read_text(encoding="utf-8"))
    assert "Studies" not in report.with_suffix(".md").read_text(encoding="utf-8")


def test_studies_that_are_there_are_listed_when_the_report_is_written(tmp_path: Path) -> None:
    study(tmp_path, "position", "Position", "It matters.")
    page.write(odd_samples.minimal(), tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert '<a href="studies/position/study.html">Position</a>: It matters.</li>' in html
    assert '<a href="#studies">Studies</a>' in html
    plain = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "\n## Studies\n\n- [Position](studies/position/study.html): It matters.\n" in plain


def test_a_study_done_later_is_listed_and_the_rest_of_the_report_stays(report: Path) -> None:
    before = {file: file.read_text(encoding="utf-8") for file in (report, report.with_suffix(".md"))}
    study(report.parent, "alignment", "Alignment", r"Use \1 and \g<0>.", "More.")
    assert page.update_study_list(report)
    assert r"Use \1 and \g&lt;0&gt;." in report.read_text(encoding="utf-8")
    assert "More." not in report.read_text(encoding="utf-8")
    once = report.read_bytes()
    assert page.update_study_list(report)
    assert report.read_bytes() == once
    (report.parent / "studies" / "alignment" / "study.json").unlink()
    assert page.update_study_list(report)
    assert {file: file.read_text(encoding="utf-8") for file in before} == before


def test_hostile_studies_are_shown_as_texts_and_lead_nowhere_else(report: Path) -> None:
    study(report.parent, '"><img src=x> #?', BAD, f"<!--/studies-->{BAD}")
    page.update_study_list(report)
    page.update_study_list(report)
    html = report.read_text(encoding="utf-8")
    assert "<img" not in re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
    assert 'href="studies/%22%3E%3Cimg%20src%3Dx%3E%20%23%3F/study.html"' in html
    assert html.count("<!--/studies-->") == 1
    assert visible(html).count("<script>window.hacked=1</script>") == 2
    assert "<script>window" not in report.with_suffix(".md").read_text(encoding="utf-8")


def test_what_is_no_study_is_left_out_with_the_reason(report: Path) -> None:
    study(report.parent, "good", "Good", "Fine.")
    (study(report.parent, "broken", "x") / "study.json").write_text("{")
    (study(report.parent, "list", "x") / "study.json").write_text("[1]")
    (study(report.parent, "bytes", "x") / "study.json").write_bytes(b"\xff\xfe{")
    (study(report.parent, "unfinished", "x") / "study.html").unlink()
    assert page.update_study_list(report)
    shown = visible(report.read_text(encoding="utf-8"))
    assert "Good" in shown
    for name, reason in {
        "broken": "Expecting",
        "list": "it has no title and no sentences",
        "bytes": "'utf-8' codec can't decode",
        "unfinished": "there is no study.html beside it",
    }.items():
        assert f"studies/{name}/study.json is left out: {reason}" in shown


def test_where_there_is_no_report_or_no_place_in_it_nothing_is_written(tmp_path: Path) -> None:
    assert not page.update_study_list(tmp_path / "report.html")
    (tmp_path / "report.html").write_text("<p>of another day</p>")
    assert not page.update_study_list(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text() == "<p>of another day</p>"
    (tmp_path / "report.html").write_bytes(b"\xff")
    with pytest.raises(FormatError, match="cannot be read"):
        page.update_study_list(tmp_path / "report.html")
