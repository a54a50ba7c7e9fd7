"""``ragworth study context-size``: numbers by size equal those made one by one, with a model and without."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from benchmarks.simulated_reader import Reader, collection
from scipy import stats

import ragworth
from ragworth import Scores, score
from ragworth.core.errors import InputError
from ragworth.metrics.theta import Theta
from ragworth.results import Results
from ragworth.studies.context_size import ContextSize, SizedCase
from tests.studies.conftest import Opened
from tests.studies.planted import given, grades

SIZES: dict[str, Any] = {"sizes": "1,3,8", "contexts": 6}


def cut(results: Results, metric: str) -> dict[tuple[str, str], float]:
    scores: Scores = score(results.contexts, results.judgments, [metric], ratings=results.ratings, complete=False)
    return {(s, q): v for s, q, v in scores.frame.select("system", "query", "value").iter_rows()}


@pytest.mark.slow
def test_correlations_by_size_are_those_of_scipy(tmp_path: Path, opened: Opened) -> None:
    found = ragworth.study("context-size", collection(tmp_path / "w", queries=20), keep=False, **SIZES)
    case, graded = found.cases[0], grades(found.cases[0])
    table = found.findings.tables[0].frame
    assert sorted(set(table["k"])) == [1, 3, 8] and set(table["over"]) == {"queries"}
    assert (
        case.results.contexts.frame.group_by("system", "query")
        .len()
        .join(case.design, on="system")
        .filter(pl.col("len") != pl.col("size"))
        .is_empty()
    )
    for metric in ("UDCG", "RR", "P"):
        line = {}
        for size in (1, 3, 8):
            names = case.design.filter(pl.col("size") == size)["system"].to_list()
            scores = cut(case.results, f"{metric}@{size}")
            values = []
            for query in sorted({query for _, query in graded}):
                x, y = [scores[name, query] for name in names], [graded[name, query] for name in names]
                if len(set(x)) > 1 and len(set(y)) > 1:
                    values.append(float(stats.spearmanr(x, y).statistic))
            row = table.filter((pl.col("metric") == metric) & (pl.col("k") == size)).row(0, named=True)
            assert row["correlation"] == pytest.approx(np.mean(values)) and row["n"] == len(values)
            assert row["deviation"] == pytest.approx(np.std(values, ddof=1)) and row["left out"] == 20 - len(values)
            line[size] = row["correlation"]
        spread = found.findings.tables[1].frame.filter(pl.col("metric") == metric).row(0, named=True)
        assert spread["mean"] == pytest.approx(np.mean(list(line.values())))
        assert spread["deviation"] == pytest.approx(np.std(list(line.values()), ddof=1))
        assert (spread["lowest"], spread["highest"]) == (min(line.values()), max(line.values()))
        assert line[spread["lowest at k"]] == spread["lowest"]
    stored = set(case.results.scores.frame.join(case.design, on="system").select("size", "metric").unique().rows())
    assert all(metric.endswith(f"@{size}") for size, metric in stored)


@pytest.mark.slow
def test_the_mean_over_sizes_has_an_interval_and_equals_share_the_first_place(tmp_path: Path, opened: Opened) -> None:
    opened.reader = Reader(noise=0.05)
    place = collection(tmp_path / "w", queries=20)
    found = ragworth.study("context-size", place, keep=False, metrics=["RR@5", "P@5", "Success@5"], **SIZES)
    case = found.cases[0]
    table, words = found.findings.tables[0].frame, found.findings.sentences[0]
    mean = {metric: round(float(part["correlation"].mean()), 12) for (metric,), part in table.group_by("metric")}  # type: ignore[arg-type]
    best = max(mean, key=lambda name: mean[name])
    assert words.startswith(f"{best} predicts best over all sizes: mean Spearman ρ {mean[best]:.2f} [")
    one = SizedCase(ContextSize(**SIZES), case).predictions
    found_mean = one.means["queries", best]
    value, span = found_mean.value, found_mean.interval
    assert span is not None and value is not None and span.low < value < span.high and found_mean.n == 20
    assert value == pytest.approx(mean[best])
    each = np.stack([one.by_query[best, size] for size in (1, 3, 8)], axis=1)
    rng = np.random.default_rng(1)
    drawn = [np.nanmean(each[rng.integers(0, 20, 20)], axis=0).mean() for _ in range(2000)]
    assert np.subtract(*span) == pytest.approx(-3.92 * np.std(drawn), rel=0.25)
    # At k = 1 all metrics of relevance are one.
    alone = ragworth.study("context-size", place, keep=False, metrics=["RR@5", "P@5"], contexts=6, sizes="1")
    assert alone.findings.sentences[0].startswith("RR, P predict best: Spearman ρ ")


@pytest.mark.slow
def test_more_misleading_passages_cost_accuracy(tmp_path: Path, opened: Opened) -> None:
    opened.reader = Reader(noise=0.05)
    found = ragworth.study("context-size", collection(tmp_path / "w", queries=40), keep=False, **SIZES)
    graded, design = grades(found.cases[0]), dict(found.cases[0].design.select("system", "size").rows())
    table = found.findings.tables[2].frame
    for size, correct in table.select("k", "correct").iter_rows():
        mine = [value == 1 for (system, _), value in graded.items() if design[system] == size]
        assert correct == pytest.approx(np.mean(mine)) and len(mine) == 240
    assert table["correct"].is_sorted(descending=True) and table["correct"][0] - table["correct"][2] > 0.1
    ends = {}
    for size in (1, 8):
        by_query: dict[str, list[bool]] = {}
        for (system, query), value in sorted(graded.items()):
            if design[system] == size:
                by_query.setdefault(query, []).append(value == 1)
        ends[size] = np.array([np.mean(each) for _, each in sorted(by_query.items())])
    gap = ends[8] - ends[1]
    assert f"a difference of {100 * gap.mean():.1f} points".replace("-", "−") in found.findings.sentences[-1]
    assert [figure.name for figure in found.findings.figures] == ["correlation-queries", "answers"]


@pytest.mark.slow
def test_runs_with_coverage_as_outcome_need_no_model(tmp_path: Path, opened: Opened) -> None:
    results = given(tmp_path / "given")
    found = ragworth.study(
        "context-size", tmp_path / "given", keep=False, sizes="1,2,5,20", against="Cov", measure="kendall"
    )
    notes = found.findings.notes
    assert notes[0] == "No context has 20 passages" and opened.calls == 0
    assert [note.split(" (")[0] for note in notes[1:]] == ["6 of 15 pairs of systems differ significantly by Cov"]
    table = found.findings.tables[0].frame
    systems, queries = [f"s{at}" for at in range(6)], [f"q{at:02d}" for at in range(12)]
    for size in (1, 2, 5):
        metric, outcome = cut(results, f"nDCG@{size}"), cut(results, f"Cov@{size}")
        means = [[np.mean([values[s, q] for q in queries]) for s in systems] for values in (metric, outcome)]
        rows = table.filter((pl.col("metric") == "nDCG") & (pl.col("k") == size))
        over = {row["over"]: row for row in rows.to_dicts()}
        assert over["systems"]["correlation"] == pytest.approx(stats.kendalltau(*means).statistic)
        assert over["systems"]["n"] == 6 and over["systems"]["low"] < over["systems"]["correlation"]
        assert over["systems"]["high"] > over["systems"]["correlation"] and not over["systems"]["left out"]
        values = [
            stats.kendalltau(x, y).statistic
            for q in queries
            if len(set(x := [metric[s, q] for s in systems])) > 1
            and len(set(y := [outcome[s, q] for s in systems])) > 1
        ]
        assert over["queries"]["correlation"] == pytest.approx(np.mean(values))
        mean = found.findings.tables[2].frame.filter(pl.col("k") == size)["mean"].item()
        assert mean == pytest.approx(np.mean(list(outcome.values())))
    line = table.filter((pl.col("metric") == "nDCG") & (pl.col("over") == "systems"))["correlation"]
    said = [each for each in found.findings.sentences if "ver systems, " in each and "Kendall" in each]
    assert len(said) == 1 and re.search(r"mean Kendall τ-b 0\.\d\d \[.* over 6 systems, from", said[0])
    sized = SizedCase(ContextSize(sizes="1,2,5", against="Cov", measure="kendall"), found.cases[0]).predictions
    one = sized.means["systems", "nDCG"]
    assert one.value == pytest.approx(line.mean()) and one.n == 6
    assert one.low is not None and one.high is not None and one.low < line.mean() < one.high  # type: ignore[operator]
    whole = ragworth.study("context-size", tmp_path / "given", keep=False, sizes="1,5", against="Cov@8")
    fixed, metric = cut(results, "Cov@8"), cut(results, "nDCG@1")
    means = [[np.mean([values[s, q] for q in queries]) for s in systems] for values in (metric, fixed)]
    mine = whole.findings.tables[0].frame.filter((pl.col("metric") == "nDCG") & (pl.col("over") == "systems"))
    assert mine["correlation"][0] == pytest.approx(stats.spearmanr(*means).statistic)
    assert whole.findings.tables[2].frame["k"].to_list() == [None]
    assert "of the whole context" in whole.findings.lead


def test_what_cannot_be_is_refused(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=6)
    for wrong in ("", "0", "5-2", "1,x", "2000"):
        with pytest.raises(InputError, match="names no numbers"):
            ragworth.study("context-size", place, sizes=wrong)
    with pytest.raises(InputError, match="outcome or against"):
        ragworth.study("context-size", place, outcome="grade", against="Cov")
    with pytest.raises(InputError, match="Covv"):
        ragworth.study("context-size", place, against="Covv")
    with pytest.raises(InputError, match="depth ≥ the largest size"):
        ragworth.study("context-size", place, sizes="30", keep=False)
    with pytest.raises(
        InputError, match=r"no query is left to study \(fewer than 18 passages[^)]*\)\n.*--sizes below 18"
    ):
        ragworth.study("context-size", place, sizes="1,18", keep=False)
    assert opened.calls == 0
    given(tmp_path / "given")
    with pytest.raises(InputError, match="there are no outcomes"):
        ragworth.study("context-size", tmp_path / "given")
    with pytest.raises(InputError, match="no context has one of the sizes"):
        ragworth.study("context-size", tmp_path / "given", against="Cov", sizes="9")


def test_learned_weights_are_kept_at_their_size(
    tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Theta(k=3, variant="full", alpha=(0.2,) * 3, beta=(0.1,) * 3).write(tmp_path / "theta.json")
    place = collection(tmp_path / "w", queries=8)
    metrics = ["UDCG(theta=theta.json)@3", "P@5"]
    found = ragworth.study("context-size", place, keep=False, metrics=metrics, contexts=4, sizes="1,3")
    rows = found.findings.tables[0].frame.select("metric", "k").rows()
    assert sorted(rows) == [("P", 1), ("P", 3), ("UDCG(theta=theta.json)@3", 3)]
    assert "UDCG(theta=theta.json)@3 is learned for one size" in found.findings.notes[1]
