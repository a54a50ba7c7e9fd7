"""Tables of a study as they are shown: p-values as such, and what was left out in its own units."""

from __future__ import annotations

import polars as pl

from ragworth.report.document import AnswerToken
from ragworth.report.render import render
from ragworth.report.renderers.html import render_page
from ragworth.report.renderers.markdown import render_markdown
from ragworth.report.study import Findings, study_document, study_text, token_views
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


def test_answers_are_shown_token_by_token_with_their_query_and_arm() -> None:
    rows = [
        {"system": "random", "query": "q1", "answer_tokens": ["is ", "Ann"], "entropies": [0.1, 0.9]}
        | {"entropies_alone": [0.1, 1.5], "surprisals": [0.2, 0.3], "surprisals_alone": [0.2, 0.4]}
        | {"key": [False, True], "status": "ok", "reason": None},
        {"system": "near", "query": "q1", "answer_tokens": ["Bea"], "entropies": None, "entropies_alone": None}
        | {"surprisals": [0.7], "surprisals_alone": None, "key": None, "status": "ok", "reason": None},
        dict.fromkeys(("answer_tokens", "entropies", "entropies_alone", "surprisals", "surprisals_alone", "key"))
        | {"system": "near", "query": "q2", "status": "refused", "reason": "withheld"},
    ]
    views = token_views(pl.DataFrame(rows), [("random", "q1"), ("near", "q1"), ("near", "q2")])
    assert [view.title for view in views] == ["q1 · random", "q1 · near", "q2 · near"]
    assert views[0].tokens == (AnswerToken("is ", 0.1, 0.1, False), AnswerToken("Ann", 0.9, 1.5, True))
    assert (views[1].quantity, views[1].tokens[0].value, views[1].tokens[0].key) == ("surprisal", 0.7, False)
    assert token_views(pl.DataFrame(rows).drop("answer_tokens"), [("random", "q1")]) == ()
    assert "key tokens is unknown" in views[1].note and views[2].note == "There is no answer to show: withheld."
    found = Findings("Title", "Lead.", ("Said.",), (), (), left_out_table([]), answers=views)
    document = study_document(found)
    page, text, said = render_page(document), render_markdown(document), study_text(found)
    assert "How sure the model was, token by token" in page and '<a href="#tokens">Tokens</a>' in page
    assert "shades begin at 0.05, 0.2, 0.5, 1, 2 nats" in page and "Key tokens are bold." not in page
    assert "## How sure the model was, token by token\n\nThe number after a token" in text
    assert "is (0.10) **Ann** (0.90)" in text and "is (0.10) *Ann* (0.90)" in said
    assert all("withheld" in each for each in (page, text, said))
    assert "token by token" not in render_page(study_document(Findings("T", "L.", (), (), (), left_out_table([]))))
