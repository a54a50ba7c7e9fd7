"""Studies of real data without any model: the numbers of docs/findings.md; and workspaces for studies with one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from benchmarks import findings, judged_sets, workspaces

import ragworth
from ragworth.evaluation.run import Evaluation, evaluate
from ragworth.report.study import Findings

pytestmark = pytest.mark.real

QUICK: dict[str, Any] = {"resamples": 100, "keep": False}


def tables(found: Findings) -> dict[str, pl.DataFrame]:
    return {shown.name: shown.frame for shown in found.tables}


@pytest.fixture(scope="module")
def aragog_results(aragog: Evaluation) -> Path:
    assert aragog.folder is not None
    return aragog.folder


@pytest.fixture(scope="module")
def dl19(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dl19")
    workspaces.MADE["dl19"](data, folder)
    return folder


@pytest.mark.parametrize(("outcome", "highest", "least"), [("sas", 0.2016, 0.1006), ("f1", 0.2136, 0.0978)])
def test_alignment_of_aragog(
    aragog_results: Path, outcome: str, highest: float, least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "RESAMPLES", 100)
    found = ragworth.study("alignment", aragog_results, outcome=outcome, measure="kendall", **QUICK).findings
    rows = found.tables[0].frame.to_dicts()
    assert (rows[0]["metric"], rows[-1]["metric"]) == ("Success@3", "T_u@3")
    assert (rows[0]["correlation"], rows[-1]["correlation"]) == pytest.approx((highest, least), abs=5e-5)
    assert rows[0]["queries"] == 94
    # The same as by way of the benchmark.
    results = ragworth.results.Results.read(aragog_results)
    systems, queries = results.contexts.systems, results.collection.queries["query"].to_list()
    y = findings.outcome(results, outcome, queries, systems)
    for name, x in list(findings.predictors(results, queries, systems).items())[:10]:
        mine = next(row["correlation"] for row in rows if row["metric"] == name)
        assert mine == pytest.approx(findings.within(x, y).mean.value)


def test_top_k_of_aragog(aragog_results: Path) -> None:
    same = r"__(top_k|chunk_size)=\d+"
    found = ragworth.study("top-k", aragog_results, outcome="f1", least=50, same=same, **QUICK).findings
    rows = tables(found)["correlations"].filter((pl.col("system") == "all systems") & (pl.col("metric") == "Success@3"))
    known = {row["K/N_p"]: row for row in rows.to_dicts()}
    assert (known["narrow"]["contexts"], known["wide"]["contexts"]) == (1785, 555)
    assert known["narrow"]["correlation"] == pytest.approx(0.2987, abs=5e-5)
    assert known["narrow"]["correlation"] > known["wide"]["correlation"]
    assert found.left_out.filter(pl.col("reason") == "no relevant passage")["queries"].to_list() == [10]


def test_coverage_and_relevance_of_dl19(dl19: Path) -> None:
    evaluate(dl19)
    settings: dict[str, Any] = {"sizes": "1,10,20", "measure": "kendall", "against": "Cov(eta=4)"}
    found = ragworth.study("context-size", dl19 / "results", metrics=["nDCG@20"], **settings, **QUICK).findings
    rows = {(row["over"], row["k"]): row["correlation"] for row in found.tables[0].frame.to_dicts()}
    assert rows["systems", 10] == pytest.approx(0.6416, abs=5e-5)
    assert rows["queries", 10] == pytest.approx(0.2597, abs=5e-5)
    assert all(rows["systems", k] > rows["queries", k] for k in (1, 10, 20))


def test_ratings_against_assessors(dl19: Path) -> None:
    found = tables(ragworth.study("judges", dl19 / "relevant.csv", reference="assessors", **QUICK).findings)
    pair = (
        found["pairs"]
        .filter((pl.col("first") == "assessors") & (pl.col("second") == "some rating ≥ 4"))
        .row(0, named=True)
    )
    assert pair["items"] == 9260 and pair["κ"] == pytest.approx(0.2924, abs=5e-5)
    row = (
        found["reference"]
        .filter((pl.col("judge") == "some rating ≥ 4") & (pl.col("label") == "yes"))
        .row(0, named=True)
    )
    assert (row["precision"], row["recall"]) == pytest.approx((0.4181, 0.7565), abs=5e-5)


def test_models_of_nomiracl(data: Path, tmp_path: Path) -> None:
    kinds = Counter((one.model, one.answerable, one.kind) for one in judged_sets.nomiracl_answers(data))
    assert len({model for model, _, _ in kinds}) == 11 and kinds.total() == 11 * 500
    cells = ((True, "correct"), (True, "abstained"), (False, "abstained"), (False, "wrong"))
    assert [kinds[("gpt-4-azure", *cell)] for cell in cells] == [237, 13, 144, 106]
    assert [kinds[("Mistral-7B-Instruct-v0.2", *cell)] for cell in cells] == [101, 149, 228, 22]
    workspaces.MADE["nomiracl"](data, tmp_path)
    found = tables(ragworth.study("judges", tmp_path / "nomiracl.csv", reference="truth", **QUICK).findings)
    assert found["together"]["value"][0] == pytest.approx(0.1191, abs=5e-5)
    row = found["reference"].filter((pl.col("judge") == "gpt-4-azure") & (pl.col("label") == "yes")).row(0, named=True)
    assert (row["precision"], row["recall"]) == pytest.approx((237 / 343, 237 / 250))


@pytest.mark.parametrize(
    ("name", "things", "alphas"),
    [
        ("clapnq", 400, {"faithfulness": 0.4554, "fluency": 0.0634, "answer_relevance": -0.0378}),
        (
            "mtrag",
            477,
            {"faithfulness": 0.4700, "naturalness": 0.3178, "completeness": 0.2635, "appropriateness": 0.0639},
        ),
    ],
)
def test_people(data: Path, tmp_path: Path, name: str, things: int, alphas: dict[str, float]) -> None:
    workspaces.MADE[name](data, tmp_path)
    together = tables(ragworth.study("judges", tmp_path / f"{name}.csv", **QUICK).findings)["together"]
    mine = together.filter(pl.col("measure") == "Krippendorff α, ordinal")
    assert dict(mine.select("aspect", "value").iter_rows()) == pytest.approx(alphas, abs=5e-5)
    assert set(mine["items"]) == {things} and set(mine["judges"]) == {7}


def test_automatic_scores_and_people(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "RESAMPLES", 100)
    lines = [line.split(" | ") for line in findings.automatic(judged_sets.means(judged_sets.clapnq_graded(data)))]
    known = {(line[0].removeprefix("| "), line[1]): line[2] for line in lines}
    assert known["faithfulness", "Bert-KPrec"].startswith("0.77") and known["fluency", "Length"].startswith("−0.20")


@pytest.mark.parametrize(("name", "queries", "labels"), [("rgb", 100, 987), ("multihop", 564, 7626)])
def test_workspaces_of_questions(data: Path, tmp_path: Path, name: str, queries: int, labels: int) -> None:
    workspaces.MADE[name](data, tmp_path)
    rows = [line.split() for line in (tmp_path / "found.run").read_text(encoding="utf-8").splitlines()]
    counts = Counter(query for query, *_ in rows)
    assert len(counts) == queries and set(counts.values()) == {30}
    good: dict[str, set[str]] = {}
    judged = [line.split() for line in (tmp_path / "qrels.txt").read_text(encoding="utf-8").splitlines()]
    for query, _, passage, label in judged:
        good.setdefault(query, set()).update({passage} if label == "1" else ())
    assert len(judged) == labels and len(good) == queries and all(good.values())
    shown: dict[str, set[str]] = {}
    for query, _, passage, *_ in rows:
        shown.setdefault(query, set()).add(passage)
    assert all(good[query] <= shown[query] for query in shown)
