"""Charts of studies: what is drawn, and that names and numbers of any kind can be."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

from ragworth.core.errors import TableError
from ragworth.report.charts.base import DARK, LIGHT, MARK
from ragworth.report.charts.drawing import render_png, render_svg
from ragworth.report.study import charts
from tests.report.study import samples


def data(spec: Any) -> Iterator[dict[str, Any]]:
    """Every row of data inside a specification."""
    if isinstance(spec, dict):
        for key, value in spec.items():
            if key == "values" and isinstance(value, list) and value and isinstance(value[0], dict):
                yield from value
            else:
                yield from data(value)
    elif isinstance(spec, list):
        for each in spec:
            yield from data(each)


def words(drawing: str) -> list[str]:
    """The texts of an SVG file."""
    return [each.text or "" for each in ElementTree.fromstring(drawing).iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.slow
@pytest.mark.parametrize("findings", [samples.realistic, samples.hostile])
def test_every_kind_is_drawn_in_colours_that_both_themes_have(findings: Any) -> None:
    for figure in findings().figures:
        ElementTree.fromstring(render_svg(figure.spec))
        text = json.dumps(figure.spec, allow_nan=False)
        named = set(re.findall(rf'"{json.dumps(MARK)[1:-1]}([^"]*)"'.replace("\\", "\\\\"), text))
        assert named, figure.name
        assert named <= set(LIGHT) & set(DARK)
        assert "\u202e" not in text and "\\u202e" not in text.replace("\\\\u202e", "")
    assert render_png(findings().figures[0].spec).startswith(b"\x89PNG")


def test_the_numbers_of_a_chart_are_those_of_its_frame_with_names_in_full() -> None:
    table = samples.aligned()
    found = charts.spec_numbers(charts.dot_chart(table, "mean τ-b"))
    assert found is not None
    assert found.rename({"mean τ-b": "value"}).select(table.columns).equals(table)
    cells = samples.matrix()
    names = list(samples.METRICS)
    matrix = charts.spec_numbers(charts.heat_chart(cells, names, names, "ρ", down="first", along="second"))
    assert matrix is not None and matrix.rename({"ρ": "value"}).equals(cells)
    assert charts.spec_numbers({"mark": "bar"}) is None


@pytest.mark.slow
def test_what_is_no_number_is_said_to_be_missing() -> None:
    frame = pl.DataFrame(
        {"label": [*"abc"], "value": [0.5, float("nan"), None], "low": [0.4, 0.0, None], "high": [0.6, 1.0, None]}
    )
    long = frame.with_columns(label=pl.lit("a long name ") + pl.col("label"))
    for spec in (charts.dot_chart(frame, "x"), charts.bar_chart(long, "x")):
        assert words(render_svg(spec)).count("no value") == 2
    assert words(render_svg(charts.bar_chart(frame, "x"))).count("–") == 2


@pytest.mark.slow
def test_cells_without_a_value_are_marked_and_words_can_stand_in_cells() -> None:
    frame = pl.DataFrame({"first": ["a", "a", "b"], "second": ["x", "y", "x"], "value": [-0.001, 0.5, None]})
    drawn = words(render_svg(charts.heat_chart(frame, ["a", "b"], ["x", "y"], "ρ")))
    assert drawn.count("–") == 2
    assert {"0.00", "0.50"} <= set(drawn)
    labelled = frame.with_columns(label=pl.Series(["less", "more", "nothing"]))
    assert {"less", "more"} <= set(words(render_svg(charts.heat_chart(labelled, ["a", "b"], ["x", "y"], "ρ"))))


def test_parts_of_a_bar_follow_each_other_best_first_and_end_at_one() -> None:
    frame = samples.answered().sample(fraction=1.0, shuffle=True, seed=1)
    rows = [row for row in data(charts.outcome_chart(frame)) if "share" in row]
    assert len(rows) == frame.height
    for key in {row["key"] for row in rows}:
        parts = [row for row in rows if row["key"] == key]
        assert [p["kind"] for p in parts] == [k for k in samples.KINDS if k in {p["kind"] for p in parts}]
        assert parts[0]["start"] == 0
        assert [p["start"] for p in parts[1:]] == pytest.approx([p["end"] for p in parts[:-1]])
        assert parts[-1]["end"] == pytest.approx(1.0)


def test_an_outcome_that_there_is_not_is_refused() -> None:
    frame = pl.DataFrame({"label": ["a"], "kind": ["fine"], "share": [1.0], "count": [1]})
    with pytest.raises(TableError, match="fine is no outcome\n  expected: correct, partial, abstained, wrong"):
        charts.outcome_chart(frame)
    named = frame.with_columns(kind=pl.lit("partially-correct"))
    assert {row["kind"] for row in data(charts.outcome_chart(named))} == {"partial"}


def test_lines_are_those_of_least_squares_for_each_group() -> None:
    frame = samples.cloud()
    ends = [row for row in data(charts.point_chart(frame, "x", "y")) if "dash" in row]
    assert len(ends) == 2 * 3
    for group in frame["group"].unique():
        part = frame.filter(pl.col("group") == group)
        slope, start = np.polyfit(part["x"], part["y"], 1)
        mine = [row for row in ends if row["group"] == group]
        assert [row["y"] for row in mine] == pytest.approx([start + slope * row["x"] for row in mine])
    assert not [row for row in data(charts.point_chart(frame, "x", "y", fit=False)) if "dash" in row]
    same = pl.DataFrame({"x": [1.0, 1.0], "y": [0.0, 1.0]})
    assert len(list(data(charts.point_chart(same, "x", "y")))) == 2  # no line through one x


@pytest.mark.slow
def test_of_many_points_some_are_drawn_and_the_chart_says_so() -> None:
    spec = charts.point_chart(samples.cloud(4000).drop("group"), "nDCG@5", "utility", fit=False)
    assert len(list(data(spec))) == 1500
    assert "nDCG@5 (1,500 of 4,000 points drawn)" in words(render_svg(spec))


@pytest.mark.slow
@pytest.mark.parametrize("rows", [0, 1])
def test_one_row_and_none_at_all_can_be_drawn(rows: int) -> None:
    table = samples.aligned().head(rows)
    names = samples.METRICS[:rows]
    made = [
        charts.dot_chart(table, "x", zero=True),
        charts.bar_chart(table, "x"),
        charts.heat_chart(samples.matrix().head(rows), names, names, "x"),
        charts.curve_chart(samples.curves().head(rows), "k", "y", log=True),
        charts.outcome_chart(samples.answered().head(rows)),
        charts.point_chart(samples.cloud().head(rows), "x", "y"),
    ]
    for spec in made:
        ElementTree.fromstring(render_svg(spec))
        found = charts.spec_numbers(spec)
        assert (found is None) if rows == 0 else (found is not None and found.height == 1)


@pytest.mark.slow
def test_a_place_without_a_logarithm_is_drawn_with_the_others() -> None:
    frame = pl.DataFrame({"line": ["a"] * 3, "place": [0, 1, 10], "value": [0.1, 0.2, 0.3]})
    drawn = render_svg(charts.curve_chart(frame, "k", "y", log=True))
    assert "NaN" not in drawn
    assert {"0", "1", "10"} <= set(words(drawn))
