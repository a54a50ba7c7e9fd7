"""α-nDCG against ndeval, through pyndeval, on random sub-topic qrels and runs."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ragworth
from tests.strategies import examples, values
from tests.tiers import slow

pyndeval = pytest.importorskip("pyndeval")

Qrel = tuple[str, str, str, int]
"""Query, sub-topic, passage, relevance: ndeval's order."""

Run = dict[str, list[str]]

CUTOFFS = (1, 3, 5, 10, 20)


def ratings(qrels: list[Qrel]) -> ragworth.Ratings:
    names = ("query", "subquestion", "passage", "value")
    return ragworth.Ratings({name: [row[i] for row in qrels] for i, name in enumerate(names)})


def scored(run: Run) -> list[tuple[str, str, float]]:
    """Scores of their own for all passages: pyndeval breaks ties by id ascending, ndeval and we descending."""
    return [(query, p, float(len(order) - i)) for query, order in run.items() for i, p in enumerate(order)]


def compare(qrels: list[Qrel], run: Run, alpha: float) -> None:
    theirs = pyndeval.ndeval(qrels, scored(run), [f"alpha-nDCG@{k}" for k in CUTOFFS], alpha=alpha)
    answerable = {query for query, _, _, relevance in qrels if relevance}
    contexts = {query: {p: score for q, p, score in scored(run) if q == query} for query in run}
    metrics = {k: ragworth.parse(f"alpha_nDCG(alpha={alpha}, eta=1)@{k}") for k in CUTOFFS}
    got = values(ragworth.score(contexts, None, list(metrics.values()), ratings=ratings(qrels), complete=False))
    assert {query for (_, query, _), (_, status) in got.items() if status != "left-out"} == set(theirs)
    for query, wanted in theirs.items():
        for k, metric in metrics.items():
            value, status = got["run", query, str(metric)]
            if query not in answerable:
                # ndeval scores 0 where nothing can be found; a query that cannot be answered has no value here.
                assert (value, status, wanted[f"alpha-nDCG@{k}"]) == (None, "no-answerable", 0.0)
            else:
                assert value == pytest.approx(wanted[f"alpha-nDCG@{k}"], rel=1e-9, abs=1e-9), (query, k)


PASSAGES = ("d1", "d10", "d2", "D3", "z", "-", "d100")
order = st.lists(st.sampled_from(PASSAGES), min_size=1, unique=True)
rows = st.dictionaries(
    st.tuples(st.sampled_from(("q1", "q2")), st.sampled_from("abcd"), st.sampled_from(PASSAGES)),
    st.integers(0, 1),
    min_size=1,
)


@given(
    found=rows,
    run=st.fixed_dictionaries({"q1": order, "q2": order}),
    # Powers of these are exact: where passages gain the same, both sides must see that they do.
    alpha=st.sampled_from((0.5, 0.25, 0.75, 0.0, 1.0)),
)
@examples(150)
def test_small_qrels_and_runs(found: dict[tuple[str, str, str], int], run: Run, alpha: float) -> None:
    compare([(*key, relevance) for key, relevance in found.items()], run, alpha)


@pytest.mark.parametrize("seed", range(4))
def test_deep_runs(seed: int) -> None:
    rng = random.Random(seed)
    passages = [f"doc{i}" for i in range(60)]
    qrels: list[Qrel] = [
        (str(q), str(topic), passage, int(rng.random() < 0.3))
        for q in range(10)
        for topic in range(rng.randint(1, 8))
        for passage in rng.sample(passages, 25)
    ]
    compare(qrels, {str(q): rng.sample(passages, 40) for q in range(10)}, 0.5)


def tied(seed: int, queries: int) -> tuple[list[Qrel], Run]:
    """Few passages and many sub-topics, so that gains are often equal but for rounding."""
    rng = random.Random(seed)
    passages = [f"doc{i}" for i in range(12)]
    qrels: list[Qrel] = [
        (str(q), str(topic), passage, int(rng.random() < 0.5))
        for q in range(queries)
        for topic in range(rng.randint(3, 12))
        for passage in passages
    ]
    return qrels, {str(q): rng.sample(passages, 12) for q in range(queries)}


@pytest.mark.parametrize("alpha", [0.3, *slow(0.1, 0.7, 0.9)])
def test_gains_that_rounding_makes_unequal(alpha: float) -> None:
    """Of passages that gain the same but for rounding ndeval takes the larger sum, added sub-topic by sub-topic.

    That decides what follows and with it the ideal, so the sum must be taken in the same order.
    """
    compare(*tied(1, 60), alpha)


MORE = (0.0, 0.1, 0.3, 1 / 3, 0.5, 2 / 3, 0.7, 0.99, 1.0)


@pytest.mark.parametrize("alpha", [0.9, *slow(*MORE)])
def test_the_order_of_the_rows_does_not_matter(alpha: float) -> None:
    """Not even in the last digit. Of equal sums that are rounded in another order, another one may be the largest."""
    qrels, run = tied(2, 20)
    contexts = {query: {p: score for q, p, score in scored(run) if q == query} for query in run}
    metrics = [ragworth.parse("alpha_nDCG").declaration.bind(k, alpha=alpha, eta=1.0) for k in (3, 10, 20)]

    def scores(rows: list[Qrel]) -> dict[tuple[str, str, str], tuple[float | None, str]]:
        return values(ragworth.score(contexts, None, metrics, ratings=ratings(rows)))

    wanted = scores(qrels)
    for seed in range(4):
        assert scores(random.Random(seed).sample(qrels, len(qrels))) == wanted


@pytest.mark.parametrize("alpha", [0.6, *slow(0.3, 0.9)])
def test_shuffled_rows_are_still_equal_to_ndeval(alpha: float) -> None:
    """ndeval has sub-topics in the order of their numbers; pyndeval has them as they come, so it gets them sorted."""
    qrels, run = tied(3, 50)
    wanted = pyndeval.ndeval(qrels, scored(run), ["alpha-nDCG@10"], alpha=alpha)
    mixed = random.Random(0).sample(qrels, len(qrels))
    contexts = {query: {p: score for q, p, score in scored(run) if q == query} for query in run}
    got = ragworth.score(contexts, None, f"alpha_nDCG(alpha={alpha}, eta=1)@10", ratings=ratings(mixed))
    found = dict(got.frame.select("query", "value").rows())
    assert found == pytest.approx({query: row["alpha-nDCG@10"] for query, row in wanted.items()}, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        # Gains of the ideal order d0, d1: 2, then 1/2 because sub-topic 0 was there before.
        # d0 alone: 2 / (2 + 0.5/log2(3)).
        ("d0", 0.8637574337885664),
        # d1 alone: 1 / (2 + 0.5/log2(3)).
        ("d1", 0.4318787168942832),
    ],
)
def test_published_example(shown: str, wanted: float) -> None:
    """The figures of ir_measures issue 61."""
    qrels: list[Qrel] = [("q0", "0", "d0", 1), ("q0", "1", "d0", 1), ("q0", "0", "d1", 1)]
    scores = ragworth.score({"q0": {shown: 1.0}}, None, "alpha_nDCG(eta=1)@10", ratings=ratings(qrels))
    assert scores.frame["value"].to_list() == pytest.approx([wanted], rel=1e-12)
    compare(qrels, {"q0": [shown]}, 0.5)
