"""A study on disk and in the terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

from ragworth.core.errors import InputError, TableError
from ragworth.core.file_record import RECORD_NAME as RECORD
from ragworth.report.renderers.html import render_page, source_hash
from ragworth.report.study import StudyTable, study_document, study_text, write_study
from tests.report.page.odd_samples import BAD
from tests.report.page.test_page import island, visible
from tests.report.study import samples

Study = Callable[[str], Path]


def names(folder: Path) -> set[str]:
    """All files but the record of them."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} - {RECORD}


def test_everything_is_written_and_reads_back(study: Study) -> None:
    folder, given = study("realistic"), samples.realistic()
    figures = {f"figures/{each.name}.{end}" for each in given.figures for end in ("svg", "png")}
    tables = {f"{each.name}.{end}" for each in given.tables for end in ("csv", "parquet")}
    assert names(folder) == {"study.html", "study.md", "study.json"} | figures | tables
    for table in given.tables:
        assert pl.read_parquet(folder / f"{table.name}.parquet").equals(table.frame)
        assert pl.read_csv(folder / f"{table.name}.csv").columns == table.frame.columns
    for figure in given.figures:
        ElementTree.fromstring((folder / f"figures/{figure.name}.svg").read_text(encoding="utf-8"))
        assert (folder / f"figures/{figure.name}.png").read_bytes().startswith(b"\x89PNG")
    record = json.loads((folder / "study.json").read_text(encoding="utf-8"))
    assert record["title"] == given.title
    assert record["sentences"] == list(given.sentences)
    assert record["tables"] == ["metrics", "full"]
    assert record["settings"]["study"] == {"contexts": 10, "k": 5, "depth": 25}
    assert record["left_out"][0] == {"case": "RGB", "reason": "every context has the same grade", "queries": 61}


def test_page_and_markdown_say_all_of_it(study: Study) -> None:
    folder, given = study("realistic"), samples.realistic()
    shown = visible((folder / "study.html").read_text(encoding="utf-8"))
    plain = (folder / "study.md").read_text(encoding="utf-8").replace("\\", "")
    for said in (
        given.title, given.lead, *given.sentences, *given.notes, *(each.caption for each in given.figures),
        *(each.title for each in given.tables), "Missing: no query has both sides varying.",
        "every context has the same grade", "76 queries left out", "SmolLM2-135M-Instruct",
    ):  # fmt: skip
        assert said in shown
        assert said in plain
    assert all(f"](figures/{each.name}.svg)" in plain for each in given.figures)
    assert plain.index(given.sentences[0]) < plain.index(given.sentences[1]) < plain.index("figures/")
    assert f'<p class="first">{given.sentences[0]}</p>' in (folder / "study.html").read_text(encoding="utf-8")


def test_next_to_nothing_is_a_study_too(study: Study) -> None:
    folder = study("bare")
    shown = visible((folder / "study.html").read_text(encoding="utf-8"))
    assert "Nothing was left out." in shown
    assert "Figures" not in shown
    assert (folder / "study.md").read_text(encoding="utf-8").startswith("# Bare\n\nNothing was done.\n\n## Left out")
    assert study_text(samples.bare()) == "Bare\nNothing was done.\n"


def test_the_page_carries_each_chart_and_allows_only_itself(study: Study) -> None:
    html = (study("realistic") / "study.html").read_text(encoding="utf-8")
    specs = island(html, "charts")["specs"]
    assert isinstance(specs, dict)
    assert (
        set(specs) == set(re.findall(r'data-chart="([\w-]+)"', html)) == {f.name for f in samples.realistic().figures}
    )
    policy = unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1])  # type: ignore[index]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    scripts = re.findall(r"<script>(.*?)</script>", html, flags=re.DOTALL)
    assert len(scripts) == 2
    assert all(source_hash(script) in policy for script in scripts)
    assert source_hash(re.search(r"<style>(.*?)</style>", html, flags=re.DOTALL)[1]) in policy  # type: ignore[index]
    bare = re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
    assert not re.search(r"<[^>]+\s(style|on\w+)=", bare)
    assert all((study("realistic") / link).exists() for link in re.findall(r'href="([^#"][^"]*)"', bare)[1:])


def test_the_page_links_back_only_to_a_report_that_is_named(study: Study) -> None:
    assert 'href="../../report.html"' in (study("realistic") / "study.html").read_text(encoding="utf-8")
    assert "← Report" not in render_page(study_document(samples.bare()))


def test_hostile_texts_are_shown_as_texts_everywhere(study: Study) -> None:
    folder = study("hostile")
    html = (folder / "study.html").read_text(encoding="utf-8")
    assert html.count("</script>") == html.count("<script") == 3
    assert "<img" not in re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)
    assert "<script>window.hacked=1</script><img src=x onerror=" in visible(html)
    assert "{{style}}" in visible(html)
    assert not set("\u202e\x07\x1b\x01") & set(html)
    markdown = (folder / "study.md").read_text(encoding="utf-8")
    assert "<script>" not in markdown
    assert "<img" not in markdown
    assert r"\[x\](javascript:" in markdown
    assert "\n```" not in markdown
    assert not set("\u202e\x07\x1b") & set(markdown)
    said = study_text(samples.hostile())
    assert "<script>window.hacked=1</script>" in said
    assert not set("\u202e\x07\x1b") & set(said)
    record = json.loads((folder / "study.json").read_text(encoding="utf-8"))
    assert record["settings"][BAD][BAD] == [BAD, None, None]


def test_what_an_earlier_study_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    given = samples.realistic()
    write_study(given, tmp_path)
    (tmp_path / "contexts.parquet").write_bytes(b"somebody's")
    (tmp_path / "cases").mkdir()
    write_study(replace(given, tables=given.tables[:1], figures=given.figures[-1:]), tmp_path)
    assert names(tmp_path) == {
        "study.html", "study.md", "study.json", "contexts.parquet", "metrics.csv", "metrics.parquet",
        "figures/wins.svg", "figures/wins.png",
    }  # fmt: skip
    assert (tmp_path / "cases").is_dir()


@pytest.mark.parametrize("record", ['["tables"]', "{", '{"tables": ["../outside", 7], "figures": ["/etc/x"]}'])
def test_a_record_that_nobody_wrote_removes_nothing(tmp_path: Path, record: str) -> None:
    folder = tmp_path / "study"
    folder.mkdir()
    (tmp_path / "outside.csv").write_text("kept")
    (folder / "study.json").write_text(record)
    with pytest.raises(InputError, match="1 file in the way"):
        write_study(samples.bare(), folder)
    assert names(folder) == {"study.json"}
    assert (tmp_path / "outside.csv").read_text() == "kept"
    assert (folder / "study.json").read_text() == record


@pytest.mark.parametrize("name", ["../up", "a/b", "", ".hidden", "-x", "study html", BAD])
def test_names_that_are_no_file_names_are_refused_before_anything_is_written(tmp_path: Path, name: str) -> None:
    table = StudyTable(name, "title", pl.DataFrame({"a": [1]}))
    with pytest.raises(TableError, match="cannot name a file"):
        write_study(replace(samples.bare(), tables=(table,)), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_two_tables_of_one_name_are_refused(tmp_path: Path) -> None:
    tables = tuple(StudyTable(name, "title", pl.DataFrame({"a": [1]})) for name in ("one", "One"))
    with pytest.raises(TableError, match="names two tables"):
        write_study(replace(samples.bare(), tables=tables), tmp_path)


def test_long_tables_are_cut_where_people_read_and_whole_in_files(tmp_path: Path) -> None:
    table = StudyTable("long", "Long", pl.DataFrame({"row": [f"r{i}" for i in range(5321)]}))
    given = replace(samples.bare(), tables=(table,))
    write_study(given, tmp_path)
    html = (tmp_path / "study.html").read_text(encoding="utf-8")
    assert "Long: the first 200 of 5,321 rows" in html
    assert 'href="long.csv"' in html
    assert "r199<" in html and "r200<" not in html
    markdown = (tmp_path / "study.md").read_text(encoding="utf-8")
    assert "The first 200 of 5,321 rows; all are in [long.csv](long.csv)." in markdown
    assert pl.read_csv(tmp_path / "long.csv").height == 5321
    assert "… and 5,297 more rows in long.csv" in study_text(given)


def test_the_terminal_ends_with_what_came_out() -> None:
    given = samples.realistic()
    said = study_text(given)
    parts = (given.title, given.lead, "Mean correlation", "Left out", "note: ", *given.sentences)
    places = [said.index(part) for part in parts]
    assert places == sorted(places)
    assert said.endswith(f"{given.sentences[-1]}\n")
