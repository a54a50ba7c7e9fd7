"""Preference pairs from labels: what is paired, what is dropped and why."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from ragworth.core.errors import InputError
from ragworth.rewriting import pairs as made
from ragworth.rewriting.pairs import build_pairs, shuffle_pairs
from ragworth.rewriting.tables import LABELS, check_rewriting_table


def labels(*rows: tuple[str, str, str, float | None]) -> pl.DataFrame:
    """Labels from (query, text, context, value)."""
    found: list[dict[str, Any]] = [
        {
            "query": query,
            "candidate": f"c{number}",
            "text": text,
            "context": context,
            "utility": "u",
            "value": value,
            "status": "ok" if value is not None else "failed",
        }
        for number, (query, text, context, value) in enumerate(rows)
    ]
    return check_rewriting_table(found, LABELS)


def test_the_best_is_paired_with_the_worst_and_the_larger_gaps_stay() -> None:
    frame = labels(
        ("a", "good", "1", 0.9), ("a", "middle", "2", 0.5), ("a", "bad", "3", 0.1),
        ("b", "good", "1", 0.6), ("b", "bad", "2", 0.5),
        ("c", "good", "1", 0.9), ("c", "bad", "2", 0.6),
    )  # fmt: skip
    found = build_pairs(frame, keep=0.5)
    assert found.pairs.select("query", "chosen", "rejected").rows() == [("a", "good", "bad"), ("c", "good", "bad")]
    assert found.pairs["gap"].to_list() == pytest.approx([0.8, 0.3])  # 0.9 − 0.1 and 0.9 − 0.6; that of b is 0.1
    assert found.dropped == {made.SMALL_GAP: 1}
    assert found.best["query"].to_list() == ["a", "b", "c"]  # the warm-up doesn't look at gaps
    assert set(found.random["query"]) == {"a", "b", "c"}
    assert "2 pairs of 3 turns" in str(found)


def test_turns_without_a_pair_are_counted_by_reason() -> None:
    frame = labels(
        ("ok", "x", "1", 1.0), ("ok", "y", "2", 0.0),
        ("single", "x", "1", 1.0),
        ("unlabelled", "x", "1", 1.0), ("unlabelled", "y", "2", None),
        ("same", "x", "1", 1.0), ("same", "y", "1", 1.0),
        ("tied", "x", "1", 0.5), ("tied", "y", "2", 0.5),
        ("identical", "x", "1", 0.5), ("identical", "x", "1", 0.5),
    )  # fmt: skip
    found = build_pairs(frame, keep=1)
    assert found.pairs["query"].to_list() == ["ok"]
    assert found.dropped == {made.ONE_CANDIDATE: 2, made.NO_VALUES: 1, made.SAME_CONTEXT: 1, made.TIED: 1}


def test_without_any_pair_there_is_an_error_that_says_why() -> None:
    with pytest.raises(InputError, match="only one rewrite: 1 turn"):
        build_pairs(labels(("a", "x", "1", 1.0)))


def test_shuffled_pairs_are_the_same_pairs_with_some_sides_swapped() -> None:
    rows = [(f"q{n}", text, text, value) for n in range(40) for text, value in (("good", 1.0), ("bad", 0.0))]
    pairs = build_pairs(labels(*rows), keep=1).pairs
    shuffled = shuffle_pairs(pairs, 1)
    assert shuffled["query"].to_list() == pairs["query"].to_list()
    assert shuffled.equals(shuffle_pairs(pairs, 1))
    assert not shuffled.equals(shuffle_pairs(pairs, 2))
    swapped = shuffled.filter(pl.col("swapped"))
    assert 8 < swapped.height < 32
    assert set(swapped["chosen"]) == {"bad"}
    assert swapped["gap"].to_list() == pytest.approx([-1.0] * swapped.height)
    kept = shuffled.filter(~pl.col("swapped"))
    assert set(kept["chosen"]) == {"good"}


def test_several_kinds_of_labels_must_be_told_apart() -> None:
    frame = labels(("a", "x", "1", 1.0), ("a", "y", "2", 0.0))
    both = pl.concat([frame, frame.with_columns(pl.lit("v").alias("utility"))])
    with pytest.raises(InputError, match="labels by u, v"):
        build_pairs(both)
    assert build_pairs(both, utility="v").pairs.height == 1


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"status": "ok", "value": None}, "the status is 'ok' and the value None"),
        ({"status": "failed", "value": 1.0}, "the status is 'failed' and the value 1.0"),
        ({"status": "ok", "value": "nan"}, "value is 'nan': input should be a finite number"),
        ({"status": "ok", "value": "high"}, "value is 'high': input should be a valid number"),
    ],
)
def test_bad_labels_are_refused_with_their_row(row: dict[str, Any], words: str) -> None:
    good = {"query": "a", "candidate": "c", "text": "x", "utility": "u"}
    with pytest.raises(InputError) as error:
        check_rewriting_table([good | row], LABELS, "labels.csv")
    assert words in str(error.value)
    assert "labels.csv: row 1" in str(error.value)
