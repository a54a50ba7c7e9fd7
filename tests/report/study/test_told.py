"""Tables of a study as they are shown: p-values as such, and what was left out in its own units."""

from __future__ import annotations

import polars as pl

from ragworth.report.render import render
from ragworth.report.renderers.html import render_page
from ragworth.report.renderers.markdown import render_markdown
from ragworth.report.study import Findings, study_document, study_text
from ragworth.report.study.findings import display_left_out, display_table, left_out_table, left_out_words


def test_a_p_value_is_never_0_and_other_numbers_stay_numbers() -> None:
    frame = pl.DataFrame(
        {"metric": ["a", "b", "c"], "p": [1e-9, 0.03, None], "p_holm": [0.5, 1.0, None], "P": [0.0] * 3}
    )
    shown = display_table(frame)
    assert shown["p"].to_list() == ["< 0.0001", "0.0300", "–"] and shown["p_holm"].to_list() == [
        "0.5000",
        "1.0000",
        "–",
    ]
    assert shown["P"].to_list() == [0.0, 0.0, 0.0]


def test_names_of_columns_cannot_move_the_cursor() -> None:
    frame = pl.DataFrame({"a\x1b[2J": [1]})
    for look in ("text", "markdown", "latex"):
        assert b"\x1b" not in render(frame, look)


def test_what_was_left_out_is_summed_by_unit() -> None:
    rows = [("a", "no label", 2, "queries"), ("a", "one judge", 1200, "things"), ("b", "no label", 3, "queries")]
    frame = left_out_table([*rows, ("b", "too short", 1, "contexts"), ("b", "no value", 1, "queries of one measure")])
    summed = "5 queries, 1,200 things, 1 context, 1 query of one measure left out"
    assert left_out_words(frame) == f"{summed}; one and the same can be counted for several reasons and cases."
    shown = display_left_out(frame)
    assert shown.columns == ["case", "reason", "number", "unit"]
    found = Findings("Title", "Lead.", (), (), (), frame)
    document = study_document(found)
    assert summed in render_markdown(document) and summed in render_page(document)
    for said in (study_text(found), render_markdown(document), render_page(document)):
        assert "things" in said and "number" in said and "one judge" in said


def test_queries_are_the_unit_where_none_is_named() -> None:
    frame = left_out_table([("a", "no label", 2, "queries")])
    plain = frame.drop("unit")
    told_of = "2 queries left out; the same query can be counted for several reasons and cases."
    assert left_out_words(frame) == left_out_words(plain) == told_of
    assert display_left_out(frame).equals(plain.drop("case")) and display_left_out(plain).equals(plain.drop("case"))
    some = pl.concat([plain, left_out_table([("b", "lone", 4, "things")])], how="diagonal")
    assert (
        left_out_words(some).startswith("2 queries, 4 things left out")
        and display_left_out(some)["unit"][0] == "queries"
    )
