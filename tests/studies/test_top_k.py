"""``ragworth study top-k``: sizes, cells and correlations are what plain Python makes of the same tables."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from benchmarks.simulated_reader import Reader, collection
from scipy import stats

import ragworth
from ragworth.core.errors import InputError
from ragworth.llm.contract import Choose, Generate, Request
from ragworth.llm.scripted import ScriptedReply
from ragworth.report.study.findings import left_out_words
from ragworth.results import Results
from ragworth.stats.bins import bin_values
from ragworth.studies.contract import Case
from ragworth.studies.run import StudyResult
from tests.studies.conftest import Opened
from tests.studies.planted import alike, contexts, expected, grades
from tests.tiers import slow

QUICK: dict[str, Any] = {"least": 20, "sizes": "1,2,3,6", "resamples": 100}


def table(found: StudyResult, name: str) -> pl.DataFrame:
    return next(each.frame for each in found.findings.tables if each.name == name)


def hits(case: Case) -> dict[tuple[str, str], tuple[int, int]]:
    """How many passages, and how many relevant ones, each context has."""
    return {key: (len(shown), sum("gold" in each for each in shown)) for key, shown in contexts(case).items()}


@pytest.mark.slow
def test_every_context_is_scored_at_its_own_k(tmp_path: Path, opened: Opened) -> None:
    opened.reader = Reader(noise=0.0)
    found = ragworth.study("top-k", collection(tmp_path / "w", queries=30), keep=False, **QUICK)
    case = found.cases[0]
    assert grades(case) == expected(case)
    assert case.design.rows() == [(f"first@{k}", "first", k, 0) for k in (1, 2, 3, 6)]
    scores = {
        (s, q, m): v for s, q, m, v in case.results.scores.frame.select("system", "query", "metric", "value").rows()
    }
    whole = case_ranking(tmp_path / "w")
    for (system, query), (k, good) in hits(case).items():
        assert scores[system, query, "P"] == pytest.approx(good / k)
        assert scores[system, query, "R"] == pytest.approx(good / 3)
        assert scores[system, query, "F"] == pytest.approx(good / (0.5 * k + 0.5 * 3))
        assert scores[system, query, "T"] == pytest.approx(0.5 * good - 0.5 * (k - good) / k)
        # The estimate looks at twice as many passages as are shown.
        twice = sum("gold" in each for each in whole[query][: 2 * k])
        assert scores[system, query, "F_e"] == pytest.approx(good / (0.5 * k + 0.5 * twice) if good else 0)
        # The ideal ranking is that of the passages shown.
        gains = [1 / np.log2(at + 2) for at, each in enumerate(whole[query][:k]) if "gold" in each]
        ideal = sum(1 / np.log2(at + 2) for at in range(good))
        assert scores[system, query, "nDCG(ideal=retrieved)"] == pytest.approx(sum(gains) / ideal if good else 0)


def case_ranking(place: Path) -> dict[str, list[str]]:
    made: dict[str, list[str]] = {}
    for line in (place / "run.txt").read_text().splitlines():
        query, _, passage, *_ = line.split()
        made.setdefault(query, []).append(passage)
    return made


@pytest.mark.slow
def test_correlations_and_outcomes_of_parts_and_cells(tmp_path: Path, opened: Opened) -> None:
    found = ragworth.study("top-k", collection(tmp_path / "w", queries=30), keep=False, **QUICK)
    case, findings = found.cases[0], found.findings
    graded, counts = grades(case), hits(case)
    rows = table(found, "correlations")
    for place, wanted in (("narrow", (1, 2)), ("wide", (3, 6)), ("all", (1, 2, 3, 6)), ("0.7", (2,)), ("2.0", (6,))):
        keys = [key for key, (k, _) in counts.items() if k in wanted]
        x, y = [counts[key][1] / counts[key][0] for key in keys], [graded[key] for key in keys]
        row = rows.filter((pl.col("K/N_p") == place) & (pl.col("metric") == "P")).row(0, named=True)
        assert row["correlation"] == pytest.approx(stats.spearmanr(x, y).statistic)
        assert row["Kendall τ-b"] == pytest.approx(stats.kendalltau(x, y).statistic)
        assert row["Kendall τ-c"] == pytest.approx(stats.kendalltau(x, y, variant="c").statistic)
        assert row["Pearson r"] == pytest.approx(np.corrcoef(x, y)[0, 1])
        assert row["contexts"] == len(keys) and row["queries"] == 30 and row["low"] <= row["correlation"] <= row["high"]
    cell = table(found, "cells").row(by_predicate=pl.col("K/N_p") == "0.3", named=True)
    told = Counter(graded[key] for key, (k, _) in counts.items() if k == 1)
    names = {-1.0: "wrong", 0.0: "abstained", 1.0: "correct"}
    assert cell["contexts"] == 30 and cell["used"]
    for value, name in names.items():
        assert cell[name] * 30 == pytest.approx(told[value])
    gaps = table(found, "differences")
    pairs = {("T", "F"), ("T_u", "T"), ("nDCG(ideal=retrieved)", "F"), ("F_e", "F"), ("T", "nDCG(ideal=retrieved)")}
    assert set(gaps.select("first", "second").iter_rows()) == pairs
    # A heatmap for every metric, and for every pair.
    drawn = [figure.title for figure in findings.figures]
    assert [f"How well {metric} predicts the answers" for metric in rows["metric"].unique(maintain_order=True)] == [
        title for title in drawn if title.startswith("How well")
    ]
    assert sum(" minus " in title for title in drawn) == 5
    one = gaps.filter((pl.col("K/N_p") == "wide") & (pl.col("first") == "T_u")).row(0, named=True)
    both = {row["metric"]: row["correlation"] for row in rows.filter(pl.col("K/N_p") == "wide").to_dicts()}
    assert one["difference"] == pytest.approx(both["T_u"] - both["T"])
    assert not any(frame.select(pl.selectors.float().is_nan().any()).row(0)[0] for frame in (rows, gaps))


def unwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the tables of cases are written."""
    monkeypatch.setattr("ragworth.studies.cases.write_study", lambda findings, folder, back=None: folder / "study.html")


@pytest.mark.slow
def test_what_is_left_out_is_counted(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=20)
    labels = (place / "qrels.txt").read_text()
    for at in range(3):
        labels = labels.replace(f"q003-gold{at} 1", f"q003-gold{at} 0")
    (place / "qrels.txt").write_text(labels, encoding="utf-8")
    rows = (place / "run.txt").read_text().splitlines()
    short = [line for line in rows if not (line.startswith("q005") and int(line.split()[3]) > 4)]
    (place / "run.txt").write_text("\n".join(short) + "\n", encoding="utf-8")
    found = ragworth.study("top-k", place, keep=False, **{**QUICK, "least": 19})
    left = {row["reason"]: (row["queries"], row["unit"]) for row in found.findings.left_out.to_dicts()}
    assert left == {
        "no relevant passage": (1, "queries"),
        "fewer than 6 passages found": (1, "contexts"),
        "in no cell of 19 contexts or more": (18, "contexts"),
    }
    assert left_out_words(found.findings.left_out).startswith("1 query, 19 contexts left out; ")
    # Cells that are too small are counted all the same.
    cells = table(found, "cells").select("K/N_p", "contexts", "used").rows()
    assert cells == [("0.3", 19, True), ("0.7", 19, True), ("1.0", 19, True), ("2.0", 18, False)]
    none = ragworth.study("top-k", place, keep=False, **{**QUICK, "least": 300})
    left = {row["reason"]: (row["queries"], row["unit"]) for row in none.findings.left_out.to_dicts()}
    assert left["in no cell of 300 contexts or more"] == (75, "contexts")
    assert [figure.name for figure in none.findings.figures] == ["parts"]


@pytest.mark.slow
def test_metrics_and_n_p_go_by_the_same_level(tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    unwritten(monkeypatch)
    place = collection(tmp_path / "w", queries=20)
    labels = (place / "qrels.txt").read_text()
    (place / "qrels.txt").write_text(re.sub(r"(-gold[12]) 1", r"\1 2", labels), encoding="utf-8")
    found = ragworth.study("top-k", place, level_relevant=2, resamples=100, least=20, sizes="1,2,3,6")
    case, rows = found.cases[0], table(found, "correlations")
    without = {name for name in rows["metric"] if "rel=2" not in name}
    assert "P(rel=2)" in set(rows["metric"]) and without == {"nDCG(ideal=retrieved)"}
    scores = case.results.scores.frame.filter(pl.col("metric") == "R(rel=2)")
    mine = {(s, q): v for s, q, v in scores.select("system", "query", "value").rows()}
    for key, shown in contexts(case).items():
        assert mine[key] == pytest.approx(sum("gold1" in each or "gold2" in each for each in shown) / 2)
    # K/N_p is of the same two passages, and the pairs are found by their plain names.
    assert set(rows["K/N_p"]) >= {"0.5", "1.0", "1.5", "3.0"}
    pairs = set(table(found, "differences").select("first", "second").iter_rows())
    assert ("T(rel=2)", "F(rel=2)") in pairs and ("nDCG(ideal=retrieved)", "F(rel=2)") in pairs
    again = place / "results/studies/top-k/cases/01"
    taken = ragworth.study("top-k", again, level_relevant=2, resamples=100, least=20, keep=False)
    assert alike(found.findings, taken.findings)
    with pytest.raises(InputError, match=r"F\(rel=2\).* relevant from 2 on, and N_p counts from 1 on"):
        ragworth.study("top-k", again, keep=False)
    asked = opened.calls
    with pytest.raises(InputError, match=r"P\(rel=3\): relevant from 3 on, and N_p counts from 2 on"):
        ragworth.study("top-k", place, keep=False, metrics=["P(rel=3)", "R"], level_relevant=2)
    assert opened.calls == asked
    ragworth.evaluate(place)
    with pytest.raises(InputError, match="relevant from 1 on, and N_p counts from 2 on"):
        ragworth.study("top-k", place / "results", keep=False, level_relevant=2)
    names = ["nDCG@5", "P(rel=2)@5"]
    ragworth.study("top-k", place / "results", keep=False, level_relevant=2, metrics=names, resamples=100)


@pytest.mark.slow
def test_systems_of_an_evaluation_that_differ_in_k_are_one(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=20)
    toml = (place / "ragworth.toml").read_text()
    cut = "".join(f'"first-{k}" = \'run("run.txt") % {k}\'\n' for k in (1, 3, 5))
    (place / "ragworth.toml").write_text(toml.replace('first = { run = "run.txt" }\n', cut), encoding="utf-8")
    ragworth.evaluate(place)
    settings = {**QUICK, "same": r"-\d+$"}
    found = ragworth.study("top-k", place / "results", keep=False, **settings)
    rows = table(found, "correlations")
    assert set(rows["system"]) == {"first"} and {"narrow", "wide", "all", "0.3", "1.0", "1.7"} == set(rows["K/N_p"])
    apart = table(ragworth.study("top-k", place / "results", keep=False, **QUICK), "correlations")
    assert set(apart["system"]) == {"all systems", "first-1", "first-3", "first-5"}


@pytest.mark.slow
def test_the_best_alpha_in_sample_and_cross_validated(tmp_path: Path, opened: Opened) -> None:
    """Every figure by hand: α on a grid, over all contexts of a part, and on folds of queries."""
    place = collection(tmp_path / "w", queries=30)
    found = ragworth.study("top-k", place, **QUICK)
    case = found.cases[0]
    graded, counts, whole = grades(case), hits(case), case_ranking(place)
    grid = [at / 20 for at in range(21)]

    def score(name: str, key: tuple[str, str], alpha: float) -> float:
        (k, good), query = counts[key], key[1]
        total = {"F": 3, "F_e": sum("gold" in each for each in whole[query][: 2 * k])}.get(name, 0)
        if name in ("F", "F_e"):
            return round(good / (alpha * k + (1 - alpha) * total), 9) if good else 0.0
        return round((1 - alpha) * good - alpha * (k - good) / (k if name == "T" else 1), 9)

    def rho(name: str, keys: list[tuple[str, str]], alpha: float) -> float:
        x, y = [score(name, key, alpha) for key in keys], [graded[key] for key in keys]
        return float(stats.spearmanr(x, y).statistic) if len(set(x)) > 1 and len(set(y)) > 1 else np.nan

    rows = table(found, "alpha")
    assert set(rows["metric"]) == {"F", "F_e", "T", "T_u"} and set(rows["K/N_p"]) == {"narrow", "wide", "all"}
    queries = sorted({query for _, query in counts})
    fold = dict(zip(queries, np.random.default_rng(0).permutation(30) % 5, strict=True))
    for row in rows.iter_rows(named=True):
        name, keys = row["metric"], [key for key, (k, _) in counts.items() if row["K/N_p"] in part_of(k)]
        every = {alpha: rho(name, keys, alpha) for alpha in grid}
        assert row["in-sample"] == pytest.approx(np.nanmax(list(every.values())))
        assert every[round(row["best α"], 2)] == pytest.approx(row["in-sample"])
        held = []
        for number in range(5):
            inside = [key for key in keys if fold[key[1]] != number]
            others = [key for key in keys if fold[key[1]] == number]
            learned = {alpha: round(rho(name, inside, alpha), 12) for alpha in grid}
            known = [alpha for alpha in grid if not np.isnan(learned[alpha])]
            best = min(known, key=lambda alpha: (-learned[alpha], abs(alpha - 0.5)))
            three = [rho(name, others, alpha) for alpha in (best, 0.5, row["best α"])]
            held += three[:1] if not np.isnan(three).any() else []  # a fold whose outcomes are the same says nothing
        assert row["cross-validated"] == pytest.approx(np.mean(held)) and row["queries"] == 30
        assert row["low"] < row["cross-validated"] < row["high"] and row["contexts"] == len(keys)
    assert found.findings.sentences[3].startswith("With the best α, cross-validated, over all contexts: F ")
    # From the tables that were written, whose contexts are cut, F_e is what it was over the whole ranking.
    taken = ragworth.study("top-k", place / "results/studies/top-k/cases/01", keep=False, **QUICK)
    assert table(taken, "alpha").equals(rows)
    highest = ragworth.study("top-k", place, keep=False, alpha="best", **QUICK)
    chosen = {(r["K/N_p"], r["metric"]): (r["best α"], r["in-sample"]) for r in rows.iter_rows(named=True)}
    for row in table(highest, "correlations").filter(pl.col("metric").is_in(["F", "F_e", "T", "T_u"])).to_dicts():
        if (row["K/N_p"], row["metric"]) in chosen:
            assert (row["α"], row["correlation"]) == pytest.approx(chosen[row["K/N_p"], row["metric"]])


def part_of(k: int) -> tuple[str, str]:
    return ("narrow" if k < 3 else "wide", "all")


class IdealJudge(Reader):
    """Answers with all right words that it hears, and grades from 1 to 5 by how many of the ideal answer are there."""

    def __call__(self, request: Request) -> ScriptedReply:
        last = request.prompt.messages[-1].content
        if isinstance(request, Choose) and len(request.labels) == 5:
            given, ideal = (set(re.findall(r"gold(\d)", part)) for part in last.split("Ideal answer:"))
            return {request.labels[1 + len(given & ideal) if given else 0]: 0.9}
        if isinstance(request, Generate):
            return " ".join(f"gold{at}" for at in re.findall(r"says right\d+x(\d)", last)) or "nothing"
        return super().__call__(request)


@pytest.mark.parametrize("accepted", [False, *slow(True)])
def test_the_outcome_may_be_the_comparison_with_an_ideal_answer(tmp_path: Path, opened: Opened, accepted: bool) -> None:
    opened.reader = IdealJudge()
    place = collection(tmp_path / "w", queries=12)
    for name, old, new in (
        ("passages.jsonl", r"(q(\d+)-gold(\d).*?says right\d+)", r"\1x\3"),
        *((("queries.jsonl", r', "answers": \["right\d+"\]', ""),) if not accepted else ()),
        *((("ragworth.toml", r'answers = "queries.jsonl"\n', ""),) if not accepted else ()),
        *((("ragworth.toml", r"deterministic = true\n", ""),) if not accepted else ()),
    ):
        text = (place / name).read_text(encoding="utf-8")
        (place / name).write_text(re.sub(old, new, text), encoding="utf-8")
    found = ragworth.study("top-k", place, keep=False, outcome="ideal", **{**QUICK, "least": 10})
    case = found.cases[0]
    assert case.results.outcomes is not None
    frame = case.results.outcomes.frame.filter((pl.col("aspect") == "ideal") & (pl.col("status") == "ok"))
    values = {(system, query): value for system, query, value in frame.select("system", "query", "value").iter_rows()}
    assert values == {key: 1.0 + (good + (good > 0)) * (good > 0) for key, (_, good) in hits(case).items()}
    cells = table(found, "cells")
    assert cells.columns[-5:] == ["1", "2", "3", "4", "5"]
    assert cells.select(pl.sum_horizontal("1", "2", "3", "4", "5")).to_series().to_list() == pytest.approx([1] * 4)
    assert "with the outcome 'ideal'" in found.findings.lead


def test_values_that_are_no_grades_are_put_into_bins() -> None:
    kinds, names = bin_values(np.array([0.0, 0.1, 0.2, 0.35, 0.5, 0.99, 1.0]))
    assert names == ["0–0.2", "0.2–0.4", "0.4–0.6", "0.6–0.8", "0.8–1"] and kinds.tolist() == [0, 0, 1, 1, 2, 4, 4]
    assert bin_values(np.array([1.0, 4.0, 1.0]))[1] == ["1", "4"]
    assert bin_values(np.array([0.0, 1.0]), names={0.0: "abstained", 1.0: "correct"})[1] == ["abstained", "correct"]
    kinds, names = bin_values(np.array([5.0, 2.0]), (1, 2, 3, 4, 5))
    assert names == ["1", "2", "3", "4", "5"] and kinds.tolist() == [4, 1]


def test_bad_input(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=5)
    for settings, words in (
        ({"sizes": "0,2"}, "names no numbers"),
        ({"compare": "T"}, "pairs of metrics"),
        ({"same": "("}, "no regular expression"),
        ({"least": 1}, "least is 1"),
        ({"sizes": "50"}, "no query is left"),
    ):
        with pytest.raises(InputError, match=words):
            ragworth.study("top-k", place, keep=False, **settings)
    with pytest.raises(InputError, match="has a cutoff"):
        ragworth.study("top-k", place, keep=False, metrics=["nDCG@5"])
    assert opened.calls == 0
    ragworth.evaluate(place)
    results = Results.read(place / "results")
    bare = Case(
        "bare", Results(results.collection, results.contexts, None, None, None, results.outcomes, results.scores)
    )
    with pytest.raises(InputError, match="no relevance labels"):
        ragworth.studies.STUDIES.get("top-k")().take(bare)
