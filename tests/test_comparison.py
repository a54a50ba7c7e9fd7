"""Summaries, comparisons and agreement of metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import ragworth
from ragworth.core.errors import InputError, MetricError
from ragworth.data import Scores
from ragworth.report.summary_tables import difference_table


def scores_of(values: Mapping[str, Sequence[float | None]], metric: str = "nDCG@10") -> Scores:
    """Scores of several systems on the same queries; None is a value that could not be had."""
    rows = [
        (system, f"q{i}", metric, value, "ok" if value is not None else "unjudged")
        for system, column in values.items()
        for i, value in enumerate(column)
    ]
    return Scores(pl.DataFrame(rows, schema=["system", "query", "metric", "value", "status"], orient="row"))


def test_a_summary_counts_what_it_covers() -> None:
    summary = ragworth.summarise(scores_of({"a": [0.0, 0.5, 1.0, None]}))
    row = summary.row(0, named=True)
    assert (row["mean"], row["n"], row["total"], row["missing"]) == (0.5, 3, 4, "1 unjudged")
    assert row["low"] < 0.5 < row["high"]


def test_a_mean_of_nothing_is_null_and_not_0() -> None:
    row = ragworth.summarise(scores_of({"a": [None, None]})).row(0, named=True)
    assert row["mean"] is None
    assert row["low"] is None
    assert row["n"] == 0


def test_one_query_has_a_mean_and_no_interval() -> None:
    row = ragworth.summarise(scores_of({"a": [0.25]})).row(0, named=True)
    assert (row["mean"], row["low"], row["high"]) == (0.25, None, None)


def test_differences_by_hand() -> None:
    # b − a: +0.5, +0.25, 0, −0.25 → mean 0.125; two wins, a tie, a loss.
    result = ragworth.compare(scores_of({"a": [0.0, 0.25, 0.5, 0.75], "b": [0.5, 0.5, 0.5, 0.5]}))
    row = result.differences.row(0, named=True)
    assert (row["baseline"], row["system"]) == ("a", "b")
    assert row["difference"] == pytest.approx(0.125)
    assert (row["wins"], row["ties"], row["losses"], row["n"], row["total"]) == (2, 1, 1, 4, 4)
    # Signs of 0.5, 0.25, 0.25 flipped: |sum| ≥ 0.5 in 6 of 8 (±1, ±0.5, ±0.5; not ±0).
    assert row["p"] == pytest.approx(6 / 8)
    assert result.changes["query"].to_list() == ["q0", "q1", "q3"]
    assert result.changes["difference"].to_list() == [0.5, 0.25, -0.25]


def test_wins_follow_the_direction_of_the_metric() -> None:
    result = ragworth.compare(scores_of({"a": [0.5] * 12, "b": [0.1] * 12}, metric="Distraction@5"))
    row = result.differences.row(0, named=True)
    assert (row["wins"], row["losses"]) == (12, 0)
    assert result.worse("Distraction@5").height == 0
    other = ragworth.compare(scores_of({"a": [0.1] * 12, "b": [0.5] * 12}, metric="Distraction@5"))
    assert other.worse("Distraction@5").height == 1


def test_only_queries_that_both_have_count() -> None:
    result = ragworth.compare(scores_of({"a": [0.0, 0.5, None], "b": [1.0, None, 1.0]}))
    row = result.differences.row(0, named=True)
    assert (row["n"], row["total"], row["difference"], row["mean_baseline"]) == (1, 3, 1.0, 0.0)


def test_a_system_with_far_fewer_values_is_lacking() -> None:
    full: list[float | None] = [0.5] * 20
    result = ragworth.compare(scores_of({"a": full, "b": [*full[:17], *[None] * 3], "c": [*full[:18], None, None]}))
    assert result.lacking("nDCG@10").select("system", "n_baseline", "n_system").rows() == [("b", 20, 17)]


def test_nothing_in_common_is_null() -> None:
    row = ragworth.compare(scores_of({"a": [0.0, None], "b": [None, 1.0]})).differences.row(0, named=True)
    assert (row["n"], row["difference"], row["p"], row["p_holm"]) == (0, None, None, None)


def test_rounding_noise_is_a_tie() -> None:
    row = ragworth.compare(scores_of({"a": [0.1 + 0.2, 0.5], "b": [0.3, 0.5]})).differences.row(0, named=True)
    assert (row["ties"], row["p"], row["difference"]) == (2, 1.0, 0.0)


def test_holm_goes_over_the_systems_of_a_metric_or_over_everything() -> None:
    rng = np.random.default_rng(0)
    first = scores_of({s: list(rng.random(30)) for s in "abc"}, "nDCG@10").frame
    second = scores_of({s: list(rng.random(30)) for s in "abc"}, "AP").frame
    scores = Scores(pl.concat([first, second]))
    by_metric = ragworth.compare(scores).differences
    over_all = ragworth.compare(scores, family="all").differences
    for part in by_metric.partition_by("metric"):
        p = np.sort(part["p"].to_numpy())
        assert part["p_holm"].min() == pytest.approx(min(1.0, 2 * p[0]))
    smallest = by_metric["p"].to_numpy().min()
    assert over_all["p_holm"].to_numpy().min() == pytest.approx(min(1.0, 4 * smallest))


def test_all_pairs_and_named_baseline() -> None:
    scores = scores_of({"a": [0.1, 0.2], "b": [0.2, 0.3], "c": [0.3, 0.5]})
    pairs = ragworth.compare(scores, all_pairs=True).differences.select("baseline", "system").rows()
    assert pairs == [("a", "b"), ("a", "c"), ("b", "c")]
    named = ragworth.compare(scores, baseline="c").differences.select("baseline", "system").rows()
    assert named == [("c", "a"), ("c", "b")]


def test_t_test_equals_scipy() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.random(40), rng.random(40)
    result = ragworth.compare(scores_of({"a": list(a), "b": list(b)}), test="t")
    assert result.differences["p"][0] == pytest.approx(stats.ttest_rel(b, a).pvalue)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"baseline": "z"}, "unknown baseline 'z'"),
        ({"test": "chi"}, "unknown test 'chi'"),
        ({"level": 95}, "confidence level is 95"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ragworth.compare(scores_of({"a": [0.1], "b": [0.2]}), **arguments)  # type: ignore[arg-type]


def test_one_system_cannot_be_compared() -> None:
    with pytest.raises(InputError, match="only one system to compare"):
        ragworth.compare(scores_of({"a": [0.1]}))


def test_a_gate_on_a_metric_that_was_not_compared_is_an_error() -> None:
    with pytest.raises(MetricError, match="P@5 was not compared"):
        ragworth.compare(scores_of({"a": [0.1], "b": [0.2]})).worse("P@5")


def test_systems_and_queries_may_be_called_anything() -> None:
    scores = scores_of({"query": [0.1, 0.2], "metric": [0.2, 0.3], "value": [0.0, 1.0]})
    assert ragworth.summarise(scores)["system"].to_list() == ["query", "metric", "value"]
    assert ragworth.compare(scores).differences.height == 2


def test_correlation_over_systems_and_over_queries() -> None:
    rng = np.random.default_rng(2)
    systems = [f"s{i}" for i in range(8)]
    x = {s: list(rng.random(5)) for s in systems}
    y = {s: [v + rng.random() for v in x[s]] for s in systems}
    scores = Scores(pl.concat([scores_of(x, "A").frame, scores_of(y, "B").frame]))
    means = [[float(np.mean(c[s])) for s in systems] for c in (x, y)]
    over_systems = ragworth.correlate(scores).row(0, named=True)
    assert over_systems["n"] == 8
    assert over_systems["kendall"] == pytest.approx(stats.kendalltau(*means).statistic)
    over_queries = ragworth.correlate(scores, over="queries").row(0, named=True)
    assert over_queries["n"] == 40
    flat = [[v for s in systems for v in c[s]] for c in (x, y)]
    assert over_queries["pearson"] == pytest.approx(stats.pearsonr(*flat).statistic)


def test_a_constant_metric_correlates_with_nothing() -> None:
    scores = Scores(
        pl.concat([scores_of({"a": [1.0], "b": [1.0]}, "A").frame, scores_of({"a": [0.1], "b": [0.3]}, "B").frame])
    )
    row = ragworth.correlate(scores).row(0, named=True)
    assert (row["pearson"], row["spearman"], row["kendall"]) == (None, None, None)
    with pytest.raises(InputError, match="over 'weeks'"):
        ragworth.correlate(scores, over="weeks")  # type: ignore[arg-type]


CLUSTERED: dict[str, list[float | None]] = {
    "a": [0.1, 0.2, 0.3, 0.9, 0.8, 0.7] * 4,
    "b": [0.4, 0.4, 0.6, 0.9, 0.9, 0.9] * 4,
}
"""24 queries."""


def conversations_of_three(queries: int = 24) -> dict[str, str]:
    return {f"q{i}": f"c{i // 3}" for i in range(queries)}


def test_turns_of_conversations_are_drawn_together() -> None:
    scores = scores_of(CLUSTERED)
    plain, turns = (ragworth.compare(scores, conversations=each) for each in ({}, conversations_of_three()))
    one, other = plain.differences.row(0, named=True), turns.differences.row(0, named=True)
    assert other["difference"] == pytest.approx(one["difference"])
    assert (other["n"], other["wins"], other["conversations"]) == (24, 20, 8)
    assert "conversations" not in one
    # Sums of the conversations are 0.8 and 0.3, all above 0: of 2⁸ flips, two are as far from 0.
    assert other["p"] == pytest.approx(2 / 2**8)
    assert one["p"] < other["p"]
    assert other["high"] - other["low"] > one["high"] - one["low"]
    assert other["detectable"] > one["detectable"]
    means = ragworth.summarise(scores, conversations=conversations_of_three())
    assert means["conversations"].to_list() == [8, 8]
    assert means["n"].to_list() == [24, 24]


def test_queries_without_a_shared_conversation_keep_their_numbers() -> None:
    """Collections without conversations, and those with one turn in each, have the numbers that they always had."""
    scores = scores_of({"a": [0.1, 0.25, 0.5, None, 0.75, 0.3], "b": [0.5, 0.5, 0.4, 0.2, 0.5, 0.9]})
    alone = {f"q{i}": f"c{i}" for i in range(6)}
    for test in ("randomisation", "t", "wilcoxon", "sign", "bootstrap", "bounded"):
        plain, single = (ragworth.compare(scores, test=test, conversations=each) for each in (None, alone))
        assert plain.differences.equals(single.differences)
    assert ragworth.summarise(scores).equals(ragworth.summarise(scores, conversations=alone))


def test_queries_outside_conversations_stand_for_themselves() -> None:
    """A query that is no turn isn't merged with a conversation of its name."""
    scores = scores_of({"a": [0.1, 0.2, 0.3, 0.9], "b": [0.4, 0.4, 0.6, 0.8]})
    row = ragworth.compare(scores, conversations={"q0": "q3", "q1": "q3"}).differences.row(0, named=True)
    assert row["conversations"] == 3  # q0 with q1, q2, and q3


def test_few_conversations_have_a_mean_and_no_interval() -> None:
    found = ragworth.compare(scores_of(CLUSTERED), conversations={f"q{i}": f"c{i % 4}" for i in range(24)})
    row = found.differences.row(0, named=True)
    assert (row["low"], row["high"], row["detectable"], row["conversations"]) == (None, None, None, 4)
    assert "too few conversations" in str(difference_table(found).row(0))


def test_a_difference_that_the_interval_would_not_show_is_not_called_detectable() -> None:
    """One outlier among six: the interval allows for more of them, and the spread alone doesn't."""
    first: list[float | None] = [0.51123, 0.500881, 0.544384, 0.504513, 0.516687, 0.505695]
    second: list[float | None] = [0.472872, 0.501329, 0.544971, 0.498329, 0.528812, 0.50738]
    found = ragworth.compare(scores_of({"a": first, "b": second}, "UDCG@5")).differences.row(0, named=True)
    assert found["low"] < -0.05 and found["high"] > 0.05
    assert found["detectable"] == pytest.approx((found["high"] - found["low"]) / 2)


@pytest.mark.slow
def test_so_many_comparisons_draw_enough_resamples_to_find_a_difference() -> None:
    # 37 systems are 666 pairs; with 10,000 resamples, the smallest corrected p is 666/10,001 > 0.05.
    noise = np.random.default_rng(0).normal(scale=0.01, size=(37, 30))
    values = {f"s{i}": [*map(float, (0.1 if i == 36 else 0.6) + noise[i])] for i in range(37)}
    result = ragworth.compare(scores_of(values), all_pairs=True, changes=0)
    assert result.resamples == 40 * 666
    assert (result.differences.filter(pl.col("system") == "s36")["p_holm"] < 0.05).all()
    few = ragworth.compare(scores_of(values), all_pairs=True, changes=0, resamples=10_000).differences
    assert (few["p_holm"] > 0.05).all()
    assert few["detectable"].null_count() == few.height


def test_nothing_is_detectable_where_no_corrected_p_can_be_small() -> None:
    rng = np.random.default_rng(1)
    values = {f"s{i}": rng.random(6).tolist() for i in range(3)}
    found = ragworth.compare(scores_of(values)).differences
    assert found["detectable"].null_count() == 2  # 6 queries: p is at least 2/2⁶, twice that for two comparisons
    two = ragworth.compare(scores_of({name: values[name] for name in ("s0", "s1")})).differences
    assert two["detectable"].null_count() == 0
    assert ragworth.compare(scores_of(values), test="t").differences["detectable"].null_count() == 0


def test_what_is_detectable_allows_for_the_other_comparisons() -> None:
    """Of 10 systems, 45 pairs are compared, so each needs p below 0.05/45."""
    rng = np.random.default_rng(1)
    values = {f"s{i}": rng.random(40).tolist() for i in range(10)}
    many = ragworth.compare(scores_of(values), all_pairs=True, changes=0).differences.row(0, named=True)
    pair = scores_of({name: values[name] for name in ("s0", "s1")})
    alone, chosen = (ragworth.compare(pair, corrected_for=n).differences.row(0, named=True) for n in (1, 45))
    strict = ragworth.compare(pair, level=1 - 0.05 / 45).differences["detectable"].item()
    assert alone["detectable"] < many["detectable"] == chosen["detectable"] == pytest.approx(strict)
    assert chosen["p_holm"] == pytest.approx(min(1.0, 45 * alone["p"]))


@pytest.mark.parametrize(("test", "gated"), [("sign", False), ("wilcoxon", False), ("t", True)])
def test_a_lower_mean_isnt_worse_by_a_test_that_finds_the_system_better(test: Any, gated: bool) -> None:
    # Slightly better on 50 of 60 queries, far worse on 10: the mean falls by 0.025, or by 0.1 with larger losses.
    small = scores_of({"old": [0.9] * 60, "new": [0.95] * 50 + [0.5 if not gated else 0.0] * 10})
    result = ragworth.compare(small, test=test)
    row = result.differences.row(0, named=True)
    assert row["difference"] < 0 < row["wins"] - row["losses"]
    assert row["p_holm"] < 0.05
    assert result.worse("nDCG@10").height == gated
    assert (("nDCG@10", "old", "new") in result.opposed) == (not gated)


def test_a_system_that_loses_most_queries_is_worse_by_the_sign_test() -> None:
    result = ragworth.compare(scores_of({"old": [0.6] * 60, "new": [0.5] * 50 + [0.7] * 10}), test="sign")
    assert result.worse("nDCG@10").height == 1
