"""``ragworth study context-size``: numbers by size equal those made one by one, with a model and without."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from benchmarks.simulated_reader import Reader, collection
from scipy import stats

import ragworth
from ragworth import Scores, score
from ragworth.errors import InputError
from ragworth.formats.theta import Theta
from ragworth.results import Results
from ragworth.studies.context_size import ContextSize, SizedCase
from ragworth.studies.contract import Case
from ragworth.studies.run import plan_study
from ragworth.tables import Outcomes
from ragworth.tasks.options import parse_numbers
from tests.studies.conftest import Opened
from tests.studies.planted import alike, given, grades, undrawn

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
def test_an_outcome_of_another_scale_is_no_grade(tmp_path: Path, opened: Opened) -> None:
    """An outcome that is called a grade and goes from 1 to 5 has a mean, and no share of correct answers."""
    first = ragworth.study("context-size", collection(tmp_path / "w", queries=8), keep=False, **SIZES).cases[0]
    assert first.results.outcomes is not None
    frame = first.results.outcomes.frame.with_columns(pl.col("value") * 2 + 3)
    case = replace(first, results=replace(first.results, outcomes=Outcomes.trusted(frame)))
    found = ContextSize(**SIZES).find([case])
    table = found.tables[3].frame
    assert "correct" not in table.columns and table["mean"].to_list() == pytest.approx(
        [2 * mean + 3 for mean in _means(first)]
    )
    assert "Mean grade goes from" in found.sentences[-1] and "%" not in found.sentences[-1]


def _means(case: Case) -> list[float]:
    """The mean grade of the contexts of each size."""
    graded, sizes = grades(case), dict(case.design.select("system", "size").rows())
    return [float(np.mean([v for (s, _), v in graded.items() if sizes[s] == size])) for size in (1, 3, 8)]


@pytest.mark.slow
def test_what_predicts_nothing_is_not_said_to_predict(tmp_path: Path, opened: Opened) -> None:
    """Outcomes by chance: the best of all metrics is named with its interval, and not praised."""
    first = ragworth.study("context-size", collection(tmp_path / "w", queries=8), keep=False, **SIZES).cases[0]
    assert first.results.outcomes is not None
    frame = first.results.outcomes.frame
    drawn = np.random.default_rng(5).choice([-1.0, 1.0], frame.height)
    made = Outcomes.trusted(frame.with_columns(pl.Series("value", drawn)))
    found = ContextSize(**SIZES).find([replace(first, results=replace(first.results, outcomes=made))])
    spread = found.tables[1].frame
    best = spread.filter(pl.col("mean").round(12) == pl.col("mean").round(12).max())["metric"].to_list()
    come = "come" if len(best) > 1 else "comes"
    words = found.sentences[0]
    assert words.startswith(f"No metric reliably predicts the outcome; {', '.join(best)} {come} closest over all sizes")
    assert re.search(r"mean Spearman ρ −?0\.\d\d \[−0\.\d\d, 0\.\d\d\] over [78] queries", words)


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
    table = found.findings.tables[3].frame
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
    change = found.findings.tables[2].frame.filter(pl.col("metric") == "UDCG").row(0, named=True)
    assert (change["from"], change["to"]) == (1, 8) and change["low"] <= change["difference"] <= change["high"]
    assert [figure.name for figure in found.findings.figures] == ["correlation-queries", "answers"]


@pytest.mark.slow
def test_the_same_queries_for_every_size(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=8)
    lines = (place / "run.txt").read_text().splitlines()
    short = [line for line in lines if not line.startswith("q002") or int(line.split()[3]) <= 7]
    (place / "run.txt").write_text("\n".join(short) + "\n", encoding="utf-8")
    found = ragworth.study("context-size", place, keep=False, **SIZES)
    queries = found.cases[0].results.contexts.frame.group_by("system").agg(pl.col("query").n_unique())["query"]
    assert set(queries) == {7} and found.findings.left_out.row(0) == (
        "w",
        "fewer than 8 passages that aren't relevant",
        1,
    )


@pytest.mark.slow
def test_asked_once_and_taken_again_without_a_model(
    tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    undrawn(monkeypatch)
    place = collection(tmp_path / "w", queries=8)
    assert [stage.name for stage in plan_study("context-size", [place], **SIZES)] == ["judged.abstention", "answered"]
    assert opened.calls == 0
    first = ragworth.study("context-size", place, **SIZES)
    asked = opened.calls
    again = ragworth.study("context-size", place, keep=False, **SIZES)
    assert first.folder is not None
    case = first.folder / "cases" / "01"
    taken = ragworth.study("context-size", case, keep=False, **SIZES)
    assert alike(again.findings, first.findings) and alike(taken.findings, first.findings)
    some = ragworth.study("context-size", case, keep=False, metrics=["nDCG@5", "P@9"], sizes="3,4")
    assert some.findings.tables[0].frame.select("metric", "k").rows() == [("nDCG", 3), ("P", 3)]
    assert some.findings.notes[1:] == ("No context has 4 passages",)
    against = ragworth.study("context-size", place, keep=False, against="UDCG", **SIZES)
    assert opened.calls == asked and against.cases[0].results.outcomes is None
    assert "UDCG" not in set(against.findings.tables[0].frame["metric"])


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
        mean = found.findings.tables[3].frame.filter(pl.col("k") == size)["mean"].item()
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
    assert whole.findings.tables[3].frame["k"].to_list() == [None]
    assert "of the whole context" in whole.findings.lead


def test_estimates_look_beyond_the_cut(tmp_path: Path) -> None:
    # F_e counts relevant passages among the first 2k: contexts must not be cut before it is computed.
    results = given(tmp_path / "given")
    found = ragworth.study("context-size", tmp_path / "given", keep=False, sizes="2", against="Cov", metrics=["F_e@2"])
    estimate, outcome = cut(results, "F_e@2"), cut(results, "Cov@2")
    values = []
    for query in {query for _, query in estimate}:
        x, y = ([side[f"s{at}", query] for at in range(6)] for side in (estimate, outcome))
        if len(set(x)) > 1 and len(set(y)) > 1:
            values.append(stats.spearmanr(x, y).statistic)
    mine = found.findings.tables[0].frame.filter(pl.col("over") == "queries")
    assert mine["correlation"].to_list() == pytest.approx([np.mean(values)])
    assert "change" not in {table.name for table in found.findings.tables}  # one size: nothing to change from


@pytest.mark.slow
def test_an_evaluation_keeps_the_outcome_of_the_whole_context(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=8, toml='[metrics]\nuse = ["nDCG@5", "P@5"]\n')
    text = (place / "ragworth.toml").read_text(encoding="utf-8")
    extra = 'back = [\'run("run.txt") % 20\', "reversed"]\nbest = "oracle % 5"\n[judgments]'
    (place / "ragworth.toml").write_text(text.replace("[judgments]", extra), encoding="utf-8")
    ragworth.evaluate(place)
    asked = opened.calls
    found = ragworth.study("context-size", place / "results", keep=False, sizes="1-3")
    assert opened.calls == asked and "'grade' of the whole context" in found.findings.lead
    assert set(found.findings.tables[0].frame["over"]) == {"queries", "systems"}
    assert found.findings.tables[3].frame.height == 1
    assert all(not figure.name.startswith("answers") for figure in found.findings.figures)


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


def test_lists_of_parse_numbers() -> None:
    assert parse_numbers("1-5,10, 15 ,3", "sizes") == [1, 2, 3, 4, 5, 10, 15]
    assert parse_numbers("2 - 3", "sizes") == [2, 3]
    with pytest.raises(InputError, match="sizes: '٣' names no numbers"):
        parse_numbers("1,٣", "sizes")


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


def test_learned_weights_of_a_size_that_is_not_studied_are_refused(
    tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Theta(k=4, variant="full", alpha=(0.2,) * 4, beta=(0.1,) * 4).write(tmp_path / "theta.json")
    place = collection(tmp_path / "w", queries=6)
    with pytest.raises(InputError, match="learned for 4 passages, and the sizes are 1,3"):
        ragworth.study("context-size", place, keep=False, metrics=["UDCG(theta=theta.json)@4"], sizes="1,3")
    assert opened.calls == 0
