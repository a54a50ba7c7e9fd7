"""Rows: a value, or the reason why there is none; and who can be asked at all."""

from __future__ import annotations

import polars as pl
import pytest

from ragworth.calls.programs import NoValue
from ragworth.core.errors import ModelError
from ragworth.judging.findings import (
    CUT,
    AspectValues,
    aspect_rows,
    describe_source,
    missing_notes,
    reject_cut_passage,
    require_abilities,
)
from ragworth.llm import prompts
from ragworth.llm.contract import Card, Usage

KEYS = {"query": "q", "passage": "p"}


def test_a_value_for_each_aspect_with_details_in_the_first_row() -> None:
    found = AspectValues({"A": 1, "B": NoValue("no-b", "why not", "said")}, {"cut": 3}, "by hand")
    first, second = aspect_rows(KEYS, ("A", "B"), found, "m")
    assert first == KEYS | {"aspect": "A", "value": 1.0, "status": "ok", "source": "m · by hand", "cut": 3}
    assert second == KEYS | {
        "aspect": "B",
        "value": None,
        "status": "no-b",
        "source": "m · by hand",
        "reason": "why not",
        "raw": "said",
    }


def test_nothing_for_all_aspects() -> None:
    rows = aspect_rows(KEYS, ("A", "B"), NoValue("timed-out", "late"), "m")
    assert [(row["aspect"], row["value"], row["status"], row["reason"]) for row in rows] == [
        ("A", None, "timed-out", "late"),
        ("B", None, "timed-out", "late"),
    ]
    assert all("raw" not in row for row in rows)


def test_how_many_have_a_value_and_why_others_have_none() -> None:
    frame = pl.DataFrame({"status": ["ok", "late", "odd", "late", "ok", "late"]})
    assert missing_notes(frame, "judgment") == ("2 of 6 judgments have a value; without one: late 3, odd 1",)
    assert missing_notes(frame[1:2], "judgment") == ("0 of 1 judgment has a value; without one: late 1",)
    assert missing_notes(frame.filter(pl.col("status") == "ok"), "judgment") == ()
    assert missing_notes(frame.clear(), "judgment") == ()


def test_a_part_of_a_passage_is_no_passage() -> None:
    reject_cut_passage(Usage(1, 1, 0.0), False)
    reject_cut_passage(Usage(1, 1, 0.0, cut=5), True)
    with pytest.raises(NoValue) as caught:
        reject_cut_passage(Usage(1, 1, 0.0, cut=5), False, "said")
    assert (caught.value.status, caught.value.raw) == (CUT, "said")
    assert "5 characters" in caught.value.detail


def test_a_model_that_lacks_something_is_refused_with_what_to_do() -> None:
    card = Card("x", "small", abilities=frozenset({"generate"}))
    require_abilities(card, ("generate",), "this")
    with pytest.raises(ModelError, match="'small' cannot score, choose") as caught:
        require_abilities(card, ("generate", "score", "choose"), "this")
    assert "ragworth models" in str(caught.value)
    with pytest.raises(ModelError):
        require_abilities(Card("x", "small"), ("generate",), "this")
    require_abilities(Card("x", "far", endpoint="http://localhost"), ("generate",), "this")


def test_where_a_value_comes_from_in_one_line() -> None:
    prompt = prompts.load_prompt("rating")
    card = Card("hf", "owner/name", revision="0123456789abcdef")
    assert (
        describe_source(card, [prompt], "", "by hand")
        == f"hf:owner/name@0123456789ab · rating@{prompt.version} · by hand"
    )
    assert describe_source(Card("scripted", "scripted"), []) == "scripted"
