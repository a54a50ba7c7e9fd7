"""Our metrics inside ir_measures and PyTerrier, and its measures inside ours."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import pytest

ir_measures = pytest.importorskip("ir_measures")
pd = pytest.importorskip("pandas")

import ragworth  # noqa: E402
from ragworth.core.errors import MetricError, TableError  # noqa: E402
from ragworth.interop.ir_measures import PROVIDER, RagworthWarning, find_measure  # noqa: E402
from ragworth.metrics import METRICS  # noqa: E402

QRELS = pd.DataFrame(
    {"query_id": ["1", "1", "2"], "doc_id": ["a", "b", "a"], "relevance": [1, 0, 1], "abstention": [0.1, 0.3, 0.5]}
)
RUN = pd.DataFrame({"query_id": ["1", "1", "2"], "doc_id": ["a", "b", "a"], "score": [2.0, 1.0, 3.0]})


class Doc(NamedTuple):
    query_id: str
    doc_id: str
    score: float


@pytest.mark.parametrize("name", METRICS.names())
def test_every_name_parses_there(name: str) -> None:
    at = "@5" if METRICS.get(name).takes_cutoff else ""
    assert str(ir_measures.parse_measure(f"{name}{at}")) == f"{name}{at}"


def test_parameters_and_cutoffs_carry_over() -> None:
    measure = ir_measures.parse_measure("UDCG(gamma=0.5)@1")
    values = {m.query_id: m.value for m in ir_measures.iter_calc([measure], QRELS, RUN)}
    ours = ragworth.score(
        {"1": {"a": 2.0, "b": 1.0}, "2": {"a": 3.0}},
        QRELS.rename(columns={"abstention": "p_abstain"}),
        "UDCG(gamma=0.5)@1",
    )
    assert list(values.values()) == ours.frame["value"].to_list()


def test_all_kinds_of_input_that_it_takes() -> None:
    measure = ir_measures.parse_measure("T@5")
    qrels = {"1": {"a": 1, "b": 0}, "2": {"a": 1}}
    runs: list[Any] = [
        RUN,
        {"1": {"a": 2.0, "b": 1.0}, "2": {"a": 3.0}},
        [Doc("1", "a", 2.0), Doc("1", "b", 1.0), Doc("2", "a", 3.0)],
    ]
    # Query 1: 0.5·1 − 0.5·1/2 = 0.25; query 2: 0.5·1 − 0 = 0.5.
    for run in runs:
        assert ir_measures.calc_aggregate([measure], qrels, run)[measure] == pytest.approx(0.375)
    assert ir_measures.calc_aggregate([measure], qrels, [])[measure] == 0.0


def test_missing_judgments_are_left_out_loudly() -> None:
    measure = ir_measures.parse_measure("UDCG@5")
    run = pd.concat([RUN, pd.DataFrame({"query_id": ["2"], "doc_id": ["new"], "score": [1.0]})])
    with pytest.warns(RagworthWarning, match=r"UDCG@5: 1 query has no value \(unjudged\)"):
        values = list(ir_measures.iter_calc([measure], QRELS, run))
    assert [v.query_id for v in values] == ["1"]


def test_sub_topics_come_from_the_iteration_column() -> None:
    qrels = [
        ir_measures.Qrel("q", "d0", 1, "0"),
        ir_measures.Qrel("q", "d0", 1, "1"),
        ir_measures.Qrel("q", "d1", 1, "0"),
    ]
    measure = ir_measures.parse_measure("Cov(eta=1)@1")
    assert ir_measures.calc_aggregate([measure], qrels, [Doc("q", "d1", 1.0)])[measure] == pytest.approx(0.5)


def test_classical_measures_run_with_us_alone_and_agree() -> None:
    names = [
        "nDCG@2",
        "nDCG(dcg='exp-log2')@2",
        "P@1",
        "P(rel=2)@1",
        "R@1",
        "AP",
        "RR",
        "Success@1",
        "Rprec",
        "Bpref",
        "Judged@2",
    ]
    qrels = {"1": {"a": 2, "b": 0, "c": 1}, "2": {"a": 1, "d": 0}}
    run = {"1": {"b": 3.0, "a": 2.0, "x": 1.0}, "2": {"d": 2.0, "a": 1.0}}
    measures = [ir_measures.parse_measure(name) for name in names]
    assert all(PROVIDER.supports(measure) for measure in measures)
    ours = PROVIDER.calc_aggregate(measures, qrels, run)
    assert ours[ir_measures.parse_measure("Judged@2")] == 1.0
    if ir_measures.pytrec_eval.is_available():
        theirs = ir_measures.pytrec_eval.calc_aggregate(
            [m for m in measures if m.NAME not in ("Judged",) and "exp" not in str(m)], qrels, run
        )
        for measure, value in theirs.items():
            assert ours[measure] == pytest.approx(value, abs=1e-9), measure


def test_their_measures_by_name() -> None:
    judgments = {"1": {"a": 1, "b": 0}, "2": {"a": 1}}
    contexts = {"1": {"a": 1.0, "b": 2.0}, "2": {"a": 1.0}}
    scores = ragworth.score(contexts, judgments, ["RR", "Compat(p=0.9)"])
    assert scores.frame["metric"].to_list() == ["RR", "RR", "Compat(p=0.9)", "Compat(p=0.9)"]
    assert find_measure("nonsense") is None
    assert find_measure("UDCG(gamma=7)@5") is None
    with pytest.raises(MetricError, match="unknown metric"):
        ragworth.score(contexts, judgments, "nonsense@3")
    with pytest.raises(MetricError, match="whole-number relevance"):
        ragworth.score(contexts, {"1": {"a": 0.5}}, "Compat(p=0.9)")


def test_their_measures_take_any_ids() -> None:
    # The program behind ERR takes numbers as ids of queries, and splits lines at spaces.
    judgments = {"q 1": {"a doc": 2, "b": 0}, "q2": {"c": 1}}
    contexts = {"q 1": {"b": 2.0, "a doc": 1.0}, "q2": {"c": 1.0}}
    found = ragworth.score(contexts, judgments, "ERR@10").frame
    # (2² − 1)/2⁴ at rank 2; (2¹ − 1)/2⁴ at rank 1
    assert dict(found.select("query", "value").iter_rows()) == pytest.approx({"q 1": 3 / 32, "q2": 1 / 16}, abs=1e-5)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("BPM@10", "BPM of ir_measures needs max_rel"),
        ("RBP(p=2)", "RBP of ir_measures can't have p=2"),
        ("NERR10(max_rel=2)@5", "NERR10 of ir_measures has no parameter cutoff"),
    ],
)
def test_wrong_parameters_of_their_measures(text: str, said: str) -> None:
    with pytest.raises(MetricError, match=re.escape(said)):
        find_measure(text)


def test_their_measures_are_checked_like_ours() -> None:
    judgments = ragworth.Judgments(
        {"query": ["1", "2"], "passage": ["a", "a"], "value": [1, None], "status": ["ok", "refused"]}
    )
    contexts = ragworth.Contexts({"1": {"a": 1.0}, "2": {"a": 1.0}, "x": {"a": 1.0}}, notes=("a note",))
    scores = ragworth.score(contexts, judgments, "Compat(p=0.9)")
    assert scores.frame.select("query", "status").rows() == [("1", "ok"), ("2", "unjudged")]
    assert scores.notes == ("a note", "run: 1 query not judged and so not scored ('x')")
    with pytest.raises(TableError, match="none of its 1 query is judged"):
        ragworth.score({"x": {"a": 1.0}}, judgments, "Compat(p=0.9)")
    with pytest.raises(MetricError, match="a metric lacks its input"):
        ragworth.score(contexts, {"query": ["1"], "passage": ["a"], "abstention": [0.1]}, "Compat(p=0.9)")


def test_in_a_pyterrier_experiment() -> None:
    pt = pytest.importorskip("pyterrier")
    topics = pd.DataFrame({"qid": ["1", "2"], "query": ["x", "y"]})
    qrels = QRELS.rename(columns={"query_id": "qid", "doc_id": "docno", "relevance": "label"})
    results = RUN.rename(columns={"query_id": "qid", "doc_id": "docno"}).assign(rank=[0, 1, 0], query=["x", "x", "y"])
    table = pt.Experiment([results], topics, qrels, [ir_measures.parse_measure("UDCG@5")], names=["ours"])
    expected = ragworth.summarise(
        ragworth.score(
            {"1": {"a": 2.0, "b": 1.0}, "2": {"a": 3.0}}, QRELS.rename(columns={"abstention": "p_abstain"}), "UDCG@5"
        )
    )
    assert table["UDCG@5"][0] == pytest.approx(expected["mean"][0])
