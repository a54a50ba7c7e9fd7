"""Every metric on a case that can be worked out by hand; the arithmetic stands beside the number."""

from __future__ import annotations

import math

import pytest

import ragworth
from ragworth.metrics import METRICS
from ragworth.metrics.parsing import parse
from tests.metrics.cases import answers, judged, lengths, rated, shown

# Shown: a b c d. Relevant b, d and e (N_p = 3), irrelevant a and g, x not pooled, c not judged.
RELEVANCE = {"a": 0.0, "b": 2.0, "d": 1.0, "e": 1.0, "g": 0.0, "x": -1.0}
# Distracting effect of a 0.8 and of c 0.5; utility of b 0.9 and of d 0.4.
ABSTENTION = {"a": 0.2, "b": 0.1, "c": 0.5, "d": 0.6}
# Answers from c are best, from e next; e is not shown. Likelihoods are logarithms.
DOWNSTREAM = {"a": 0.5, "b": 0.0, "c": 1.0, "d": 0.25, "e": 0.75}
LIKELIHOOD = {"a": -1.0, "b": -4.0, "c": -0.5, "d": -2.5, "e": 0.0}
KNOWN = judged(RELEVANCE, ABSTENTION, downstream=DOWNSTREAM, likelihood=LIKELIHOOD)

JUDGED = {
    "P": 2 / 4,  # b and d of four
    "P@2": 1 / 2,
    "P@10": 2 / 10,  # by k, though only four were shown
    "P(rel=2)": 1 / 4,
    "R": 2 / 3,
    "R@2": 1 / 3,
    "R(rel=2)@2": 1 / 1,
    "F1": 4 / 7,  # 2·2 / (4 + 3)
    "F1@2": 2 / 5,  # 2·1 / (2 + 3)
    "F1@10": 4 / 13,  # 2·2 / (10 + 3)
    "AP": 1 / 3,  # (1/2 + 2/4) / 3
    "AP@2": 1 / 6,  # (1/2) / 3
    "AP(ideal=retrieved)": 1 / 2,  # (1/2 + 2/4) / 2
    "AP(ideal=retrieved)@2": 1 / 2,  # (1/2) / 1
    "RR": 1 / 2,
    "RR@1": 0,
    "nDCG": 0.540585768,  # (2/log2(3) + 1/log2(5)) / (2 + 1/log2(3) + 1/log2(4)) = 1.692536 / 3.130930
    "nDCG@2": 0.479624933,  # (2/log2(3)) / (2 + 1/log2(3)) = 1.261860 / 2.630930
    "nDCG(gain=exponential)@2": 0.521296029,  # (3/log2(3)) / (3 + 1/log2(3)) = 1.892789 / 3.630930
    "nDCG(ideal=retrieved)": 0.643322408,  # 1.692536 / (2 + 1/log2(3))
    "Success@1": 0,
    "Success@2": 1,
    "Success": 1,
    "Rprec": 1 / 3,  # b among a b c
    "Bpref": 1 / 3,  # R = 3, N = 2: b and d both stand below a: (1 − 1/2 + 1 − 1/2) / 3
    "Judged": 3 / 4,
    "Judged@3": 2 / 3,
    "Judged@10": 3 / 4,  # by what was shown
    "F": 4 / 7,  # 2 / (4/2 + 3/2)
    "F@10": 4 / 7,  # K is what was shown
    "F(alpha=1)": 2 / 4,  # precision
    "F(alpha=0)": 2 / 3,  # recall
    "F(alpha=0.25)@2": 4 / 11,  # 1 / (2/4 + 3·3/4)
    "F_e@2": 1 / 2,  # two relevant in the top 4: 1 / (2/2 + 2/2)
    "F_e(whole=true)@3": 2 / 5,  # two in the top 6, which ends at 4: 1 / (3/2 + 2/2)
    "F_e@1": 0,
    "F_e(estimate=growth)@2": 1 / 6,  # from 1 to 2 doubles: 2·(10/2)¹ = 10, 1 / (2/2 + 10/2)
    "F_e(estimate=growth, whole=true)": 2 / 3,  # from 2 to 2 does not grow: 2·(10/2)⁰ = 2, 2 / (4/2 + 2/2)
    "F_e(estimate=growth, depth=2)@2": 1 / 2,  # 2·(2/2)¹ = 2
    "T": 0.75,  # 2/2 − (2/4)/2
    "T@2": 0.25,  # 1/2 − (1/2)/2
    "T@1": -0.5,  # 0 − (1/1)/2
    "T(alpha=0.25)": 1.375,  # 2·3/4 − (2/4)/4
    "T_u": 0,  # 2/2 − 2/2
    "T_u@3": -0.5,  # 1/2 − 2/2
    "T_u(alpha=0.25)": 1,  # 2·3/4 − 2/4
    "UDCG": 0.553955755,  # σ(1.3/4 − 1.3/4/3) = σ(0.216667)
    "UDCG(raw=true)": 0.65 / 3,
    "UDCG(raw=true)@2": 0.95 / 3,  # 0.9/2 − 0.8/2/3
    "UDCG(gamma=0)": 0.580542305,  # σ(1.3/4)
    "UDCG(gamma=1, raw=true, rel=2)": -0.2,  # (0.9 − 0.8 − 0.5 − 0.4)/4
    "Utility": 0,  # (−0.8 + 0.9 − 0.5 + 0.4)/4
    "Utility@3": -0.4 / 3,
    "Distraction": 0,  # 0.8 is not above 0.8
    "Distraction(threshold=0.5)": 1 / 4,  # a
    "Distraction(threshold=0.4)": 2 / 4,  # a and c
    "Distraction(threshold=0.5)@1": 1,
    "eRAG": 0.4375,  # 1.75/4
    "eRAG@2": 0.25,
    "eRAG@10": 0.4375,  # by what was shown
    "eRAG(of=max)": 1,
    "eRAG(of=max)@2": 0.5,
    # (0.5 + 1/log2(4) + 0.25/log2(5)) / (1 + 0.75/log2(3) + 0.5/log2(4) + 0.25/log2(5)) = 1.107669 / 1.830866
    "eRAG_nDCG": 0.604997233,
    "eRAG_nDCG@2": 0.339397849,  # 0.5 / (1 + 0.75/log2(3)): e is in the ideal, though not shown
    "eRAG_nDCG(ideal=retrieved)": 0.768966434,  # 1.107669 / (1 + 0.5/log2(3) + 0.25/log2(4))
    "eRAG_nDCG(ideal=retrieved)@2": 1,  # a before b
    # Rank 1: 0.5. 2: 0. 3: (0.5 + 0 + 1)/3. 4: (0.25 + 0 + 0.25 + 0.25)/4. In all 1.1875, of 2.5.
    "eRAG_AP": 0.475,
    "eRAG_AP@2": 0.2,  # 0.5 / 2.5
    "eRAG_AP(ideal=retrieved)": 0.678571429,  # 1.1875 / 1.75
    "eRAG_AP(ideal=retrieved)@2": 1,
    "Likelihood": -2,  # −8/4
    "Likelihood@2": -2.5,
    "Likelihood(of=max)": -0.5,
    "Likelihood(of=max)@2": -1,
}


@pytest.mark.parametrize("metric", JUDGED)
def test_judged(metric: str) -> None:
    scores = ragworth.score(shown(A="abcd"), KNOWN, metric)
    assert answers(scores) == pytest.approx([JUDGED[metric]], abs=5e-10)


def test_judged_together() -> None:
    """In one call each metric sees more of the ranking than its own cutoff, and must not look."""
    scores = ragworth.score(shown(A="abcd"), KNOWN, list(JUDGED))
    assert scores.frame["metric"].to_list() == list(JUDGED)
    assert answers(scores) == pytest.approx(list(JUDGED.values()), abs=5e-10)


@pytest.mark.parametrize(
    ("metric", "a", "b"),
    [
        # A finds b and d, B finds e and b: three in all. A shows one of them first, B two.
        ("F_e(estimate=pool)@2", 1 / 2.5, 2 / 2.5),  # n / (2/2 + 3/2)
        ("F_e(estimate=pool)", 2 / 3.5, 2 / 3),  # 2 / (4/2 + 3/2), 2 / (3/2 + 3/2)
        # One of two and two is in both: 3·3/2 − 1 = 3.5.
        ("F_e(estimate=chapman)@2", 1 / 2.75, 2 / 2.75),
        # At level 2 there is b alone, in both: 2·2/2 − 1 = 1.
        ("F_e(estimate=chapman, rel=2)@2", 1 / 1.5, 1 / 1.5),
    ],
)
def test_estimates_from_several_runs(metric: str, a: float, b: float) -> None:
    scores = ragworth.score(shown(A="abcd", B="ebf"), judged(RELEVANCE), metric)
    assert answers(scores) == pytest.approx([a, b])


def test_three_runs_are_one_and_the_others_together() -> None:
    # A finds b and d, B b, C e and b. For A: 2 and {b, e}, b in both: 3·3/2 − 1 = 3.5 and 2 / (4/2 + 3.5/2).
    scores = ragworth.score(shown(A="abcd", B="b", C="eb"), judged(RELEVANCE), "F_e(estimate=chapman)")
    assert answers(scores, "A") == pytest.approx([2 / 3.75])


# Sub-questions s, t, u can be answered; v cannot. Required: b answers s and u, then c answers t.
RATED = rated(a={"s": 3.0, "t": 2.0}, b={"s": 5.0, "u": 4.0}, c={"t": 3.0}, e={"v": 1.0})
TOKENS = lengths(a=10, b=20, c=5, d=15, e=40)


@pytest.mark.parametrize(
    ("context", "metric", "value"),
    [
        ("ad", "Cov", 1 / 3),  # s
        ("ab", "Cov", 2 / 3),  # s and u
        ("ab", "Cov@1", 1 / 3),
        ("bc", "Cov", 1),
        ("e", "Cov", 0),
        ("e", "Cov(eta=1)", 1 / 4),  # now v can be answered, by e
        ("a", "Cov(eta=5)", 0),  # s alone can be, and only by b
        # Gains 1 and 0.5 + 1; the ideal is b, c, a with 2, 1 and 0.5:
        # (1 + 1.5/log2(3)) / (2 + 1/log2(3) + 0.5/log2(4)) = 1.946395 / 2.880930.
        ("ab", "alpha_nDCG", 0.67561336),
        ("ab", "alpha_nDCG@1", 1 / 2),
        # b and c are required: cut at 2, the ideal is 2 + 1/log2(3), and what a adds doesn't count.
        ("ab", "alpha_nDCG(at=required)", (1 + 1.5 / math.log2(3)) / (2 + 1 / math.log2(3))),
        ("ba", "alpha_nDCG(at=required)", (2 + 0.5 / math.log2(3)) / (2 + 1 / math.log2(3))),
        ("dbc", "alpha_nDCG(at=required)", (2 / math.log2(3)) / (2 + 1 / math.log2(3))),
        ("ab", "alpha_nDCG(at=required)@1", 1 / 2),
        ("bca", "alpha_nDCG", 1),
        # Nothing lost by repetition: (1 + 2/log2(3)) / (2 + 1/log2(3) + 1/log2(4)).
        ("ab", "alpha_nDCG(alpha=0)", 0.722424227),
        # All lost: (1 + 1/log2(3)) / (2 + 1/log2(3)).
        ("ab", "alpha_nDCG(alpha=1)", 0.619906233),
        ("d", "alpha_nDCG", 0),
        # The required subset has 25 tokens and coverage 1.
        ("ad", "Den", 0.577350269),  # ((1/3)/25 · 25)^½
        ("ad", "Den(w=1)", 1 / 3),
        ("ad", "Den(w=0)", 1),
        ("bc", "Den", 1),
        ("c", "Den(w=1)", 5 / 3),  # (1/3)/5 · 25: denser than the required subset
        ("ca", "Den(w=1)@1", 5 / 3),
        ("de", "Den", 0),  # answers nothing
    ],
)
def test_rated(context: str, metric: str, value: float) -> None:
    scores = ragworth.score(shown(A=context), None, metric, ratings=RATED, tokens=TOKENS)
    assert answers(scores) == pytest.approx([value], abs=5e-10)


def test_the_first_rated_of_equals_is_required() -> None:
    # a and b answer the same; the first one given, of 10 tokens or of 40, is what contexts are measured by.
    first = rated(a={"s": 4.0}, b={"s": 4.0})
    last = rated(b={"s": 4.0}, a={"s": 4.0})
    tokens = lengths(a=10, b=40)
    found = [answers(ragworth.score(shown(A="a"), None, "Den(w=1)", ratings=r, tokens=tokens)) for r in (first, last)]
    assert found == [[1.0], [4.0]]


@pytest.mark.parametrize("order", ["xyz", "zyx", "yzx"])
def test_the_ideal_order_takes_the_last_id_of_equals(order: str) -> None:
    # x, y and z all gain 2 at first. As in ndeval z comes first, and leaves 1.5 for either of the others, where x
    # would have left 2 for y. So y, x is better than the ideal: (2 + 2/log2(3)) / (2 + 1.5/log2(3)).
    grades = {"x": {"t": 3.0, "v": 3.0}, "y": {"s": 3.0, "u": 3.0}, "z": {"s": 3.0, "t": 3.0}}
    ratings = rated(**{passage: grades[passage] for passage in order})
    assert answers(ragworth.score(shown(A="yx"), None, "alpha_nDCG@2", ratings=ratings)) == pytest.approx([1.1070681])
    assert answers(ragworth.score(shown(A="zy"), None, "alpha_nDCG@2", ratings=ratings)) == pytest.approx([1.0])


def test_the_bound_of_alpha_ndcg_is_that_of_a_greedy_order() -> None:
    """k passages that share nothing cover everything. One after the other, greedy picks take 1/k of what is left."""
    k, size = 3, 27
    left, tables = size, {}
    for i in range(k):
        for block in range(k):
            tables[f"o{block}"] = {f"{block}-{n}": 5.0 for n in range(size)}
        part = left // k
        tables[f"z{k - i}"] = {f"{b}-{n}": 5.0 for b in range(k) for n in range(size - left, size - left + part)}
        left -= part
    rows = [
        {"query": "q", "passage": passage, "subquestion": name, "value": value}
        for passage, row in tables.items()
        for name, value in row.items()
    ]
    metric = "alpha_nDCG(alpha=1)@3"
    run = {"query": ["q"] * k, "passage": ["o0", "o1", "o2"], "rank": [1, 2, 3], "system": ["A"] * k}
    [value] = answers(ragworth.score(run, None, metric, ratings=rows))
    assert value == pytest.approx((1 + 1 / math.log2(3) + 1 / 2) / (1 + (2 / 3) / math.log2(3) + (4 / 9) / 2))
    assert isinstance(value, float)
    assert value <= parse(metric).bounds(math.inf)[1] == pytest.approx(27 / 19)
    assert parse("alpha_nDCG@2").bounds(math.inf) == pytest.approx((0, 4 / 3))
    assert parse("alpha_nDCG").bounds(math.inf) == pytest.approx((0, math.e / (math.e - 1)))
    assert parse("alpha_nDCG@1").bounds(math.inf) == parse("alpha_nDCG(alpha=0)").bounds(9) == (0, 1)


def test_every_metric_is_worked_by_hand_here() -> None:
    names = {parse(metric).name for metric in JUDGED} | {"Cov", "alpha_nDCG", "Den"}
    assert names == set(METRICS.names())


@pytest.mark.parametrize("name", METRICS.names())
def test_an_empty_context_scores_0(name: str) -> None:
    """``r`` is judged and rated, and not in the run.

    UDCG is σ(0), neither help nor harm; a likelihood of 0 would be certainty.
    """
    scores = ragworth.score(
        shown(A="abcd"),
        ragworth.Judgments.concat(
            [KNOWN, judged(RELEVANCE, ABSTENTION, "r", downstream=DOWNSTREAM, likelihood=LIKELIHOOD)]
        ),
        name,
        ratings=ragworth.Ratings([*RATED.frame.to_dicts(), *rated("r", a={"s": 5.0}).frame.to_dicts()]),
        tokens=TOKENS,
    )
    assert answers(scores)[1] == {"UDCG": 0.5, "Likelihood": "empty-context"}.get(name, 0.0)
    assert scores.frame["query"].to_list() == ["q", "r"]


def test_an_empty_context_has_no_raw_utility() -> None:
    judgments = ragworth.Judgments.concat([judged(RELEVANCE, ABSTENTION), judged(RELEVANCE, query="r")])
    assert answers(ragworth.score(shown(A="b"), judgments, "UDCG(raw=true)"))[1] == 0.0


@pytest.mark.parametrize("grades", [{"a": 0.0, "b": 0.0}, {"a": -1.0}], ids=["irrelevant", "not pooled"])
def test_a_query_without_relevant_passages_scores_0(grades: dict[str, float]) -> None:
    metrics = ["P", "R", "F1", "AP", "AP(ideal=retrieved)", "RR", "nDCG", "nDCG(ideal=retrieved)", "Success"]
    metrics += ["Rprec", "Bpref", "F", "F_e@1", "F_e(estimate=growth)@1"]
    scores = ragworth.score(shown(A="abc"), judged(grades), [*metrics, "T", "T_u"])
    # T: −(3/3)/2; T_u: −3/2.
    assert answers(scores) == [*[0.0] * len(metrics), -0.5, -1.5]


def test_relevance_may_be_a_fraction() -> None:
    # (0.25 + 0.5/log2(3)) / (0.5 + 0.25/log2(3)) = 0.565465 / 0.657732
    scores = ragworth.score(shown(A="ab"), judged({"a": 0.25, "b": 0.5}), ["nDCG", "P(rel=0.5)", "P"])
    assert answers(scores) == pytest.approx([0.859719, 0.5, 0.0], abs=5e-7)
