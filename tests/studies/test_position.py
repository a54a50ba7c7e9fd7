"""``ragworth study position``: planted weights of positions are found, and every number is what it should be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from benchmarks.simulated_reader import Reader, collection

import ragworth
from ragworth.core.errors import InputError
from ragworth.data import Scores
from ragworth.studies.position import Position
from ragworth.studies.run import StudyResult
from tests.studies.conftest import Opened
from tests.studies.planted import contexts, expected, given, grades, wilcoxon

WEIGHTS = (1.0, 0.7, 0.5, 0.6, 0.9)


def right(found: StudyResult, places: int = 5) -> npt.NDArray[np.float64]:
    """Correct or not, queries × positions, out of the case's tables."""
    graded = grades(found.cases[0])
    queries = sorted({query for _, query in graded})
    return np.array([[graded[f"p{place + 1:02d}", query] == 1 for place in range(places)] for query in queries], float)


@pytest.mark.slow
def test_the_planted_curve_is_found(tmp_path: Path, opened: Opened) -> None:
    opened.reader = Reader(weights=WEIGHTS, noise=0.0)
    found = ragworth.study("position", collection(tmp_path / "w", queries=80), keep=False)
    case = found.cases[0]
    assert grades(case) == expected(case, WEIGHTS)
    shown = contexts(case)
    for (system, query), passages in shown.items():
        place = int(system[1:]) - 1
        assert len(passages) == 5 and "gold" in passages[place]
        moved = shown["p01", query]
        assert passages[place] == moved[0] and passages[:place] + passages[place + 1 :] == moved[1:]
    correct = right(found)
    table = found.findings.tables[0].frame
    assert table["position"].to_list() == [1, 2, 3, 4, 5]
    assert table["correct"].to_list() == pytest.approx(correct.mean(axis=0))
    assert np.argsort(np.argsort(correct.mean(axis=0))).tolist() == np.argsort(np.argsort(WEIGHTS)).tolist()
    differences = found.findings.tables[1].frame
    assert differences["second"].to_list() == [*(f"position {at}" for at in (2, 3, 4, 5)), "the positions between"]
    ends = correct[:, [0, 4]].mean(axis=1) - correct[:, 1:4].mean(axis=1)
    sides = [*(correct[:, 0] - correct[:, at] for at in (1, 2, 3, 4)), ends]
    p = [wilcoxon(side) for side in sides]
    assert differences["difference"].to_list() == pytest.approx([side.mean() for side in sides])
    assert differences["p"].to_list() == pytest.approx(p)
    order = np.argsort(p)
    steps = np.maximum.accumulate(np.array(p)[order] * np.arange(5, 0, -1))
    assert differences["p_holm"].to_numpy()[order] == pytest.approx(np.minimum(steps, 1))
    assert found.findings.sentences[0].startswith("Position matters: accuracy ")
    assert "at position 1, " in found.findings.sentences[0] and "at position 3," in found.findings.sentences[0]


@pytest.mark.slow
def test_metrics_by_position_and_those_that_are_blind(tmp_path: Path, opened: Opened) -> None:
    opened.reader = Reader(weights=(1.0, 0.8, 0.6, 0.4, 0.2), noise=0.0)
    found = ragworth.study("position", collection(tmp_path / "w", queries=40), keep=False)
    metrics = found.findings.tables[2].frame
    for name, values in (
        ("RR@5", [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5]),
        ("nDCG(ideal=retrieved)@5", [1 / np.log2(place + 1) for place in range(1, 6)]),
        ("P@5", [0.2] * 5),
    ):
        assert metrics.filter(pl.col("metric") == name)["mean"].to_list() == pytest.approx(values)
    assert any(
        "UDCG@5, Distraction@5, P@5, R@5 do not depend on the position" in each for each in found.findings.sentences
    )


def test_metrics_are_shown_as_they_are_and_rounding_is_no_dependence(tmp_path: Path, opened: Opened) -> None:
    opened.reader = Reader(weights=(1.0, 0.8, 0.6, 0.4, 0.2), noise=0.0)
    place = collection(tmp_path / "w", queries=12)
    first = ragworth.study("position", place, keep=False, metrics=["RR@5", "P@5", "Distraction@5"]).cases[0]
    frame, low, even = first.results.scores.frame, pl.col("metric") == "Distraction@5", pl.col("metric") == "P@5"
    ranked = pl.col("system").str.slice(1).cast(pl.Float64)  # the later, the more distraction, which is worse
    noise = pl.when(ranked % 2 == 0).then(1e-16).otherwise(0.0)
    value = pl.when(low).then(ranked).when(even).then(pl.col("value") + noise).otherwise(pl.col("value"))
    frame = frame.with_columns(value.alias("value"))
    case = replace(first, results=replace(first.results, scores=Scores.trusted(frame)))
    found = Position().find([case])
    assert any("P@5 does not depend on the position" in each for each in found.sentences)
    shown = found.tables[2].frame.filter(pl.col("metric") == "Distraction@5")
    assert shown["mean"].to_list() == [1.0, 2.0, 3.0, 4.0, 5.0]  # as they are


def test_what_cannot_be_is_refused(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=6)
    with pytest.raises(InputError, match="names no numbers"):
        ragworth.study("position", place, positions="1,9")
    with pytest.raises(InputError, match="two positions"):
        ragworth.study("position", place, positions="2")
    with pytest.raises(InputError, match="k is 1"):
        ragworth.study("position", place, k=1)
    with pytest.raises(InputError, match="depth ≥ k − 1"):
        ragworth.study("position", place, k=9, depth=5)
    with pytest.raises(
        InputError, match=r"no query is left to study \(fewer than 19 passages that are not relevant: 6\)"
    ):
        ragworth.study("position", place, k=20, keep=False)
    assert opened.calls == 0
    given(tmp_path / "given")
    with pytest.raises(InputError, match="results of an evaluation"):
        ragworth.study("position", tmp_path / "given")
    with pytest.raises(InputError, match="no outcome 'f1'"):
        ragworth.study("position", place, outcome="f1", keep=False)


def test_one_query_has_no_interval_and_no_nan(tmp_path: Path, opened: Opened) -> None:
    findings = ragworth.study("position", collection(tmp_path / "w", queries=1), keep=False).findings
    assert findings.tables[0].frame["low"].null_count() == 5
    for table in findings.tables:
        floats = [name for name, kind in table.frame.schema.items() if kind.is_float()]
        assert not table.frame.select(pl.col(floats).is_nan().any()).to_numpy().any()


def test_the_design_of_grogu_has_the_confidence_in_the_graded_answers(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=6)
    found = ragworth.study("position", place, keep=False, protocol="grogu")
    assert set(found.cases[0].design["position"]) == {1, 5, 10}
    assert {"KeyEntropy", "Entropy"} <= set(found.findings.tables[2].frame["metric"])
    answers = found.cases[0].results.said["answers"]
    assert answers["entropies"].null_count() == 0
