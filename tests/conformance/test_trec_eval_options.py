"""trec_eval's -J and -M, and gains of nDCG, against trec_eval through pytrec_eval and against plain Python."""

from __future__ import annotations

import random
from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ragworth
from ragworth.core.errors import InputError, MetricError
from tests.conformance.test_trec_eval import CUT, CUTOFFS, LEVELLED, Qrels, Run, collection, context, judged, pairs
from tests.strategies import examples, values

pytrec_eval = pytest.importorskip("pytrec_eval")


def theirs(qrels: Qrels, run: Run, judged_only: bool, level: int = 1) -> dict[str, dict[str, float]]:
    cut = ",".join(str(k) for k in CUTOFFS)
    measures = {"ndcg", f"ndcg_cut.{cut}", *LEVELLED.values(), *(f"{name}.{cut}" for name in CUT.values())}
    found: dict[str, dict[str, float]] = pytrec_eval.RelevanceEvaluator(
        qrels, measures, relevance_level=level, judged_docs_only_flag=int(judged_only)
    ).evaluate(run)
    return found


def first(run: Run, n: int | None) -> Run:
    """The first n of each query in trec_eval's order: by score, then by id, both descending."""
    return {
        query: dict(sorted(scores.items(), key=lambda item: (item[1], item[0].encode()), reverse=True)[:n])
        for query, scores in run.items()
    }


def compare(qrels: Qrels, run: Run, judged_only: bool, max_rank: int | None) -> None:
    wanted = theirs(qrels, first(run, max_rank), judged_only)
    named = {str(ragworth.parse(ours)): name for ours, name in pairs(1).items()}
    scores = ragworth.score(run, qrels, list(named), complete=False, judged_only=judged_only, max_rank=max_rank)
    for (_, query, metric), (value, status) in values(scores).items():
        if query in run:
            assert status == "ok"
            assert value == pytest.approx(wanted[query][named[metric]], rel=1e-9, abs=1e-9), (query, metric)


depths = st.none() | st.integers(1, 11)


@given(
    qrels=st.fixed_dictionaries({"q1": judged}, optional={"q2": judged, "q3": judged}),
    run=st.fixed_dictionaries({"q1": context}, optional={"q2": context, "q4": context}),
    judged_only=st.booleans(),
    max_rank=depths,
)
@examples(150)
def test_small_qrels_and_runs(qrels: Qrels, run: Run, judged_only: bool, max_rank: int | None) -> None:
    compare(qrels, run, judged_only, max_rank)


@pytest.mark.parametrize("max_rank", [None, 1, 17, 100])
def test_deep_runs(max_rank: int | None) -> None:
    qrels, run = collection(5)
    compare(qrels, run, True, max_rank)
    compare(qrels, run, False, max_rank)


def test_the_depth_counts_before_unjudged_passages_go() -> None:
    # Shown: u (unjudged), a (relevant), n (negative: not judged), b (relevant). The first three are u, a, n; judged
    # among them is a alone, which moves to rank 1: P@2 = 1/2, set precision 1/1, R = 1/2, RR = 1.
    run, qrels = {"q": {"u": 4.0, "a": 3.0, "n": 2.0, "b": 1.0}}, {"q": {"a": 1, "b": 2, "n": -1}}
    scores = ragworth.score(run, qrels, ["P@2", "P", "R", "RR"], judged_only=True, max_rank=3)
    assert scores.frame["value"].to_list() == [0.5, 1.0, 0.5, 1.0]
    assert scores.notes == ("run: 2 of 3 passages are not judged and were removed",)
    # Without a depth b moves to rank 2.
    scores = ragworth.score(run, qrels, ["P@2", "nDCG", "Judged"], judged_only=True)
    assert scores.frame["value"].to_list() == pytest.approx(
        [1.0, (1 + 2 / log2(3)) / (2 + 1 / log2(3)), 1.0], rel=1e-12
    )


def test_a_run_without_judged_passages_scores_0_and_says_why() -> None:
    scores = ragworth.score({"q": {"x": 1.0, "y": 0.5}}, {"q": {"a": 1}}, ["P", "AP", "nDCG@5"], judged_only=True)
    assert scores.frame["value"].to_list() == [0.0, 0.0, 0.0]
    assert "none of the passages it shows is judged" in scores.notes[0]


def test_a_failed_judgment_stays_and_leaves_no_value() -> None:
    judgments = ragworth.Judgments(
        [
            {"query": "q", "passage": "a", "value": 1.0, "status": "ok"},
            {"query": "q", "passage": "b", "value": None, "status": "refused"},
        ]
    )
    scores = ragworth.score({"q": {"x": 3.0, "b": 2.0, "a": 1.0}}, judgments, ["P@1", "Judged"], judged_only=True)
    assert scores.frame.select("value", "status").rows() == [(None, "unjudged"), (0.5, "ok")]


def test_ratings_say_what_is_rated() -> None:
    ratings = ragworth.Ratings([{"query": "q", "passage": "a", "subquestion": "s", "value": 5}])
    run = {"q": {"x": 2.0, "a": 1.0}}
    scores = ragworth.score(run, {"q": {"x": 1}}, ["Cov@1", "P@1"], ratings=ratings, judged_only=True)
    assert dict(scores.frame.select("metric", "value").rows()) == {"Cov@1": 1.0, "P@1": 1.0}
    assert ragworth.score(run, None, "Cov@1", ratings=ratings).frame["value"].to_list() == [0.0]


@pytest.mark.parametrize("wrong", [0, -1, 2.5, True, "10"])
def test_depths_that_cannot_be(wrong: object) -> None:
    with pytest.raises(InputError, match="max_rank is"):
        ragworth.score({"q": {"a": 1.0}}, {"q": {"a": 1}}, "P@1", max_rank=wrong)  # type: ignore[arg-type]


def test_measures_of_ir_measures_see_the_same_passages() -> None:
    pytest.importorskip("ir_measures")
    run, qrels = {"q": {"u": 4.0, "a": 3.0, "n": 2.0, "b": 1.0}}, {"q": {"a": 1, "b": 2, "n": -1}}
    found = [
        ragworth.score(run, qrels, "NumRet", judged_only=judged_only, max_rank=max_rank).frame["value"].item()
        for judged_only, max_rank in ((False, None), (False, 3), (True, None), (True, 3))
    ]
    assert found == [4.0, 3.0, 2.0, 1.0]


GAINS = {"1=3,2=9": {1: 3, 2: 9}, "0=1": {0: 1}, "1=5,2=1,3=2": {1: 5, 2: 1, 3: 2}, "4=0": {4: 0}}


@pytest.mark.parametrize("gains", GAINS)
def test_gains_are_as_if_the_qrels_had_them(gains: str) -> None:
    """trec_eval's nDCG with whole gains is its nDCG of qrels in which these are the relevance."""
    qrels, run = collection(7)
    mapped = {q: {d: GAINS[gains].get(rel, rel) for d, rel in found.items()} for q, found in qrels.items()}
    wanted = theirs(mapped, run, False)
    metrics = {f'nDCG(gains="{gains}")': "ndcg"} | {f'nDCG(gains="{gains}")@{k}': f"ndcg_cut_{k}" for k in CUTOFFS}
    metrics = {str(ragworth.parse(ours)): name for ours, name in metrics.items()}
    scores = values(ragworth.score(run, qrels, list(metrics)))
    assert {metric for _, _, metric in scores} == set(metrics)
    for (_, query, metric), (value, _) in scores.items():
        assert value == pytest.approx(wanted[query][metrics[metric]], rel=1e-9, abs=1e-9), (query, metric)


def test_gains_by_hand() -> None:
    # Shown: x (unjudged), b (0 → 0.5), a (1 → −2), c (2 → 9); d (3, which keeps 3) is not shown.
    # DCG = 0.5/log2(3) − 2/log2(4) + 9/log2(5); ideal: 9, 3, 0.5.
    run = {"q": {"x": 4.0, "b": 3.0, "a": 2.0, "c": 1.0}}
    qrels = {"q": {"a": 1, "b": 0, "c": 2, "d": 3}}
    dcg = 0.5 / log2(3) - 2 / log2(4) + 9 / log2(5)
    ideal = 9 + 3 / log2(3) + 0.5 / log2(4)
    forms = ['nDCG(gains="0=0.5,1=-2,2=9")', 'nDCG(gains="0=0.5,1=-2,2=9", ideal=retrieved)', 'nDCG(gains="1=-2")@3']
    scores = ragworth.score(run, qrels, forms)
    # At 3 the third one has −2/log2(4) alone, against 3 and 2.
    wanted = [dcg / ideal, dcg / (9 + 0.5 / log2(3)), -1 / (3 + 2 / log2(3))]
    assert scores.frame["value"].to_list() == pytest.approx(wanted, rel=1e-12)


def test_gains_with_exponential_gain_are_exceptions_to_it() -> None:
    # a (1 → 4), b (2 → 2² − 1 = 3).
    scores = ragworth.score({"q": {"b": 2.0, "a": 1.0}}, {"q": {"a": 1, "b": 2}}, 'nDCG(gain=exponential, gains="1=4")')
    assert scores.frame["value"].item() == pytest.approx((3 + 4 / log2(3)) / (4 + 3 / log2(3)), rel=1e-12)


@pytest.mark.parametrize(
    "form", ['nDCG(gains="1=3,2=9")@10', "nDCG(gains='2=9.0, 1=3')@10", 'nDCG( gains = "2=9,1=3e0" )@10']
)
def test_gains_have_one_written_form(form: str) -> None:
    metric = ragworth.parse(form)
    assert str(metric) == 'nDCG(gains="1=3,2=9")@10'
    assert metric == ragworth.parse(str(metric)) == metric.declaration.bind(10, gains={2: 9, 1: 3})
    assert hash(metric) == hash(ragworth.parse(str(metric)))


def test_trec_evals_own_form_is_understood() -> None:
    assert str(ragworth.parse("ndcg.1=3.5,2=9.0,4=7.0")) == 'nDCG(gains="1=3.5,2=9,4=7")'
    assert str(ragworth.parse("nDCG(gains=none)@5")) == "nDCG@5"


@pytest.mark.parametrize("gains", ["", "1", "1=", "=1", "1=2,1=3", "1=x", "-1=2", "1=inf", "nan=1", "1=2,", "1:2"])
def test_gains_that_cannot_be(gains: str) -> None:
    with pytest.raises(MetricError, match="is invalid") as caught:
        ragworth.parse(f'nDCG(gains="{gains}")@10')
    assert 'nDCG(gains="1=3,2=9")' in caught.value.expected


def test_scores_of_random_gains_equal_plain_python() -> None:
    rng = random.Random(3)
    qrels, run = collection(11)
    for _ in range(5):
        table = {level: round(rng.uniform(-1, 5), 3) for level in rng.sample(range(4), rng.randint(1, 4))}
        metric = ragworth.parse("nDCG").declaration.bind(20, gains=table)
        for (_, query, _), (value, _) in values(ragworth.score(run, qrels, metric)).items():
            gain = {d: table.get(rel, float(rel)) if rel >= 0 else 0.0 for d, rel in qrels[query].items()}
            order = list(first(run, 20)[query])
            dcg = sum(gain.get(d, 0.0) / log2(i + 2) for i, d in enumerate(order))
            best = sorted((g for g in gain.values() if g > 0), reverse=True)[:20]
            ideal = sum(g / log2(i + 2) for i, g in enumerate(best))
            assert value == pytest.approx(dcg / ideal if ideal else 0.0, rel=1e-9, abs=1e-12)
