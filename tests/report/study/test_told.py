"""p-values in the tables of a study are shown as such."""

from __future__ import annotations

import polars as pl

from ragworth.report.render import render
from ragworth.report.study.findings import told


def test_a_p_value_is_never_0_and_other_numbers_stay_numbers() -> None:
    frame = pl.DataFrame(
        {"metric": ["a", "b", "c"], "p": [1e-9, 0.03, None], "p_holm": [0.5, 1.0, None], "P": [0.0] * 3}
    )
    shown = told(frame)
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
