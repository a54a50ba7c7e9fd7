"""Classical metrics against trec_eval itself, through pytrec_eval, on random qrels and runs."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ragworth
from ragworth.metrics.parsing import parse
from tests.strategies import examples, values

pytrec_eval = pytest.importorskip("pytrec_eval")

Qrels = dict[str, dict[str, int]]
Run = dict[str, dict[str, float]]

CUTOFFS = (1, 2, 5, 10, 30)
LEVELLED = {
    "AP": "map",
    "RR": "recip_rank",
    "Rprec": "Rprec",
    "Bpref": "bpref",
    "P": "set_P",
    "R": "set_recall",
    "F1": "set_F",
}
"""Ours and theirs, where a minimum level of relevance is taken; nDCG takes none."""

CUT = {"AP": "map_cut", "P": "P", "R": "recall", "Success": "success"}


def theirs(qrels: Qrels, run: Run, level: int) -> dict[str, dict[str, float]]:
    cut = ",".join(str(k) for k in CUTOFFS)
    measures = {"ndcg", f"ndcg_cut.{cut}", *LEVELLED.values(), *(f"{name}.{cut}" for name in CUT.values())}
    found: dict[str, dict[str, float]] = pytrec_eval.RelevanceEvaluator(
        qrels, measures, relevance_level=level
    ).evaluate(run)
    return found


def pairs(level: int) -> dict[str, str]:
    """Our written form → their name."""
    written = {"nDCG": "ndcg"} | {f"nDCG@{k}": f"ndcg_cut_{k}" for k in CUTOFFS}
    written |= {f"{ours}(rel={level})": name for ours, name in LEVELLED.items()}
    return written | {f"{ours}(rel={level})@{k}": f"{name}_{k}" for ours, name in CUT.items() for k in CUTOFFS}


def compare(qrels: Qrels, run: Run, level: int, contexts: ragworth.Contexts | None = None) -> None:
    wanted = theirs(qrels, run, level)
    named = {str(parse(ours)): name for ours, name in pairs(level).items()}
    # trec_eval leaves out the queries that a run has nothing for.
    scores = values(ragworth.score(contexts or ragworth.Contexts(run), qrels, list(named), complete=False))
    got = {key: value for key, value in scores.items() if run.get(key[1])}
    assert {query for _, query, _ in got} == {query for query in wanted if run[query]}
    for (_, query, metric), (value, status) in got.items():
        assert status == "ok"
        assert value == pytest.approx(wanted[query][named[metric]], rel=1e-9, abs=1e-9), (query, metric)


def test_a_level_of_one_is_the_default() -> None:
    assert str(parse("AP(rel=1)@5")) == "AP@5"


PASSAGES = ("d1", "d10", "d2", "d20", "D3", "é", "z", "-", "d100", "aa")

# pytrec_eval compares scores in single precision. Quarters are exact there, so a tie is a tie on both sides.
quarters = st.integers(-8, 8).map(lambda n: n / 4)
context = st.dictionaries(st.sampled_from(PASSAGES), quarters, min_size=1)
grade = st.integers(-2, 4)
# pytrec_eval crashes on a query whose judgments are all negative.
judged = st.dictionaries(st.sampled_from(PASSAGES), grade, min_size=1).filter(lambda found: max(found.values()) >= 0)


@given(
    qrels=st.fixed_dictionaries({"q1": judged}, optional={"q2": judged, "q3": judged}),
    run=st.fixed_dictionaries({"q1": context}, optional={"q2": context, "q4": context}),
    level=st.integers(1, 3),
)
@examples(150)
def test_small_qrels_and_runs(qrels: Qrels, run: Run, level: int) -> None:
    compare(qrels, run, level)


def collection(seed: int) -> tuple[Qrels, Run]:
    """Deep runs over many judged and unjudged passages, with about four passages to a score."""
    rng = random.Random(seed)
    passages = [f"doc{rng.randrange(10**6)}" for _ in range(400)]
    qrels = {str(q): {p: rng.choice((-1, 0, 0, 0, 1, 1, 2, 3)) for p in rng.sample(passages, 80)} for q in range(30)}
    run = {str(q): {p: rng.randrange(50) / 4 for p in rng.sample(passages, 200)} for q in range(30)}
    return qrels, run


@pytest.mark.parametrize("level", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_deep_runs(seed: int, level: int) -> None:
    compare(*collection(seed), level)


@given(
    scores=st.dictionaries(st.sampled_from(PASSAGES), st.floats(0.5, 1).map(lambda x: 1 + x * 2**-22), min_size=2),
    grades=judged,
)
@examples(60)
def test_ties_in_single_precision(scores: Mapping[str, float], grades: dict[str, int]) -> None:
    """Scores that differ in the last bits only, which trec_eval does not see; nor do we where that is asked for."""
    run = {"q": dict(scores)}
    compare({"q": grades}, run, 1, ragworth.Contexts(run, ties="float32"))
    precise = ragworth.Contexts(run).frame["passage"].to_list()
    assert [scores[p] for p in precise] == sorted(scores.values(), reverse=True)


def test_negative_relevance_gains_nothing() -> None:
    # DCG: 0/log2(2) + 2/log2(3); ideal 2/log2(2).
    qrels, run = {"q": {"a": -2, "b": 2}}, {"q": {"a": 2.0, "b": 1.0}}
    value = ragworth.score(run, qrels, "nDCG").frame["value"].item()
    assert value == pytest.approx(0.6309297535714575)
    assert value == pytest.approx(theirs(qrels, run, 1)["q"]["ndcg"])
