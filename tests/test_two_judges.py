"""Estimates from two judges: against the formula worked by hand, at the edges, and for tables that do not fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

from ragworth import Contexts, Judgments, score
from ragworth.core.errors import InputError, MetricError, TableError
from ragworth.two_judges import (
    DIFFERENCE_COLUMNS,
    ESTIMATE_COLUMNS,
    PARTLY_JUDGED,
    estimate,
    estimate_warnings,
    metrics_reading,
)
from ragworth.two_judges.strata import check_corrections, check_random_share

N, K = 60, 3
SYSTEMS = ("first", "second")
QUERIES = [f"q{i:02}" for i in range(N)]


def ranking(system: str, query: str) -> list[str]:
    return [f"{query}-{'both' if rank == 2 else f'{system}{rank}'}" for rank in range(1, K + 1)]


def shown(queries: list[str] = QUERIES) -> Contexts:
    """Two systems that share one of their three passages."""
    rows = [
        (system, query, passage, rank)
        for system in SYSTEMS
        for query in queries
        for rank, passage in enumerate(ranking(system, query), 1)
    ]
    return Contexts(pl.DataFrame(rows, schema=["system", "query", "passage", "rank"], orient="row"))


def passages(query: str) -> list[str]:
    return list(dict.fromkeys(passage for system in SYSTEMS for passage in ranking(system, query)))


def table(values: Mapping[tuple[str, str], float], aspect: str = "abstention") -> Judgments:
    rows = [(query, passage, aspect, value) for (query, passage), value in values.items()]
    return Judgments(pl.DataFrame(rows, schema=["query", "passage", "aspect", "value"], orient="row"))


def world(like: float = 0.9, seed: int = 0) -> tuple[dict[tuple[str, str], float], dict[tuple[str, str], float]]:
    """Abstention by a cheap and by an expensive judge, of all passages; a query's passages are alike."""
    rng = np.random.default_rng(seed)
    cheap, dear = {}, {}
    for query in QUERIES:
        common, other = rng.random(2)
        for passage in passages(query):
            base = 0.7 * common + 0.3 * rng.random()
            noise = 0.7 * other + 0.3 * rng.random()
            dear[query, passage] = base
            cheap[query, passage] = 0.4 + 0.55 * (like * base + (1 - like) * noise)
    return cheap, dear


def relevance() -> Judgments:
    return table({(q, p): float(i % 2) for q in QUERIES for i, p in enumerate(passages(q))}, "relevance")


def of(values: Mapping[tuple[str, str], float], queries: list[str]) -> dict[tuple[str, str], float]:
    return {(query, passage): value for (query, passage), value in values.items() if query in queries}


SAMPLE = [QUERIES[i] for i in np.random.default_rng(4).permutation(N)[:24]]


def values(judgments: Mapping[tuple[str, str], float], system: str) -> dict[str, float]:
    """UDCG@3 by hand: σ of the mean of helpful utilities and a third of that of harmful ones."""
    labels = {(row[0], row[1]): row[3] for row in relevance().frame.iter_rows()}
    made = {}
    for query in QUERIES:
        utilities = [(1 if labels[query, p] else -1) * (1 - judgments[query, p]) for p in ranking(system, query)]
        raw = sum(max(u, 0) for u in utilities) / K + sum(min(u, 0) for u in utilities) / K / 3
        made[query] = 1 / (1 + math.exp(-raw))
    return made


def by_formula(f: list[float], y: list[float], every: list[float]) -> tuple[float, float, float, float]:
    """λ, estimate and interval: the sample's mean, moved by the slope of y on f times how far its cheap mean is off."""
    n, mean_f, mean_y = len(f), sum(f) / len(f), sum(y) / len(y)
    squares = sum((a - mean_f) ** 2 for a in f)
    slope = sum((a - mean_f) * (b - mean_y) for a, b in zip(f, y, strict=True)) / squares
    off = sum(every) / len(every) - mean_f
    left = sum((b - mean_y - slope * (a - mean_f)) ** 2 for a, b in zip(f, y, strict=True)) / (n - 2)
    spread = sum((a - sum(every) / len(every)) ** 2 for a in every) / (len(every) - 1)
    error = math.sqrt(left * (1 / n + off**2 / squares) + slope**2 * spread / len(every))
    half = float(stats.t.ppf(0.975, n - 2)) * error
    value = mean_y + slope * off
    return slope, value, value - half, value + half


def test_it_is_the_formula() -> None:
    cheap, dear = world()
    found = estimate(shown(), table(cheap), table(of(dear, SAMPLE)), "UDCG@3", others=relevance())
    assert dict(found.frame.schema) == ESTIMATE_COLUMNS
    sides = {}
    for row, system in zip(found.frame.iter_rows(named=True), SYSTEMS, strict=True):
        f, y = values(cheap, system), values(dear, system)
        sides[system] = f, y
        slope, value, low, high = by_formula([f[q] for q in SAMPLE], [y[q] for q in SAMPLE], list(f.values()))
        assert row["system"] == system and row["n"] == 24 and row["total"] == N and row["missing"] == ""
        assert [row[c] for c in ("weight", "estimate", "low", "high")] == pytest.approx([slope, value, low, high])
        plain = np.array([y[q] for q in SAMPLE])
        error = plain.std(ddof=1) / math.sqrt(24) * stats.t.ppf(0.975, 23)
        assert row["sample"] == pytest.approx(plain.mean())
        assert row["sample_high"] - row["sample_low"] == pytest.approx(2 * error)
        assert row["cheap"] == pytest.approx(np.mean(list(f.values())))
        assert row["cheap_low"] < row["cheap"] < row["cheap_high"]
        assert row["correlation"] == pytest.approx(np.corrcoef([f[q] for q in SAMPLE], plain)[0, 1])
        assert row["high"] - row["low"] < row["sample_high"] - row["sample_low"]
        # The queries that the sample alone would have needed: the first number of them with an interval as short.
        spread = plain.std(ddof=1)
        needed = next(m for m in range(2, 999) if spread / m**0.5 * stats.t.ppf(0.975, m - 1) <= (high - low) / 2)
        assert row["effective"] == min(needed, N)
        assert row["judged"] == 24 * K and row["asked"] == 24 * (2 * K - 1)
        assert row["saved"] == round(24 * K * (row["effective"] / 24 - 1)) > 0
    (gap,) = found.differences.iter_rows(named=True)
    assert dict(found.differences.schema) == DIFFERENCE_COLUMNS
    f, y = ({q: sides["second"][i][q] - sides["first"][i][q] for q in QUERIES} for i in (0, 1))
    expected = by_formula([f[q] for q in SAMPLE], [y[q] for q in SAMPLE], list(f.values()))
    assert [gap[c] for c in ("weight", "difference", "low", "high")] == pytest.approx(list(expected))
    assert gap["baseline"] == "first" and gap["system"] == "second" and gap["p"] == gap["p_holm"]
    other = estimate(shown(), table(cheap), table(of(dear, SAMPLE)), "UDCG@3", others=relevance(), baseline="second")
    assert other.differences["difference"][0] == pytest.approx(-gap["difference"])


def test_the_truth_is_in_the_interval_and_the_cheap_mean_is_not() -> None:
    cheap, dear = world()
    (row, _) = estimate(
        shown(), table(cheap), table(of(dear, SAMPLE)), "UDCG@3", others=relevance(), level=0.98
    ).frame.iter_rows(named=True)
    truth = np.mean(list(values(dear, "first").values()))
    assert row["low"] < truth < row["high"]
    assert not row["low"] < row["cheap"] < row["high"]


def test_a_constant_cheap_judge_leaves_the_sample() -> None:
    cheap, dear = world()
    # The same abstention everywhere: UDCG is the same for all, since labels are laid out alike.
    found = estimate(shown(), table(dict.fromkeys(cheap, 0.5)), table(of(dear, SAMPLE)), "UDCG@3", others=relevance())
    for row in found.frame.iter_rows(named=True):
        assert row["weight"] == 0 and row["correlation"] is None
        assert (row["estimate"], row["low"], row["high"]) == (row["sample"], row["sample_low"], row["sample_high"])
        assert row["effective"] == 24 and row["saved"] == 0
    assert any("gives all queries the same" in note for note in found.notes)


def test_a_perfect_cheap_judge_is_as_good_as_judging_all() -> None:
    _, dear = world()
    found = estimate(shown(), table(dear), table(of(dear, SAMPLE)), "UDCG@3", others=relevance())
    for row in found.frame.iter_rows(named=True):
        truth = np.array(list(values(dear, row["system"]).values()))
        assert row["weight"] == pytest.approx(1) and row["correlation"] == pytest.approx(1)
        assert row["estimate"] == pytest.approx(truth.mean())
        half = stats.t.ppf(0.975, 22) * truth.std(ddof=1) / math.sqrt(N)
        assert row["high"] - row["estimate"] == pytest.approx(half)
        assert row["effective"] <= N


def test_all_of_them_judged_is_a_plain_mean() -> None:
    cheap, dear = world(0.3)
    found = estimate(shown(), table(cheap), table(dear), "UDCG@3", others=relevance())
    for row in found.frame.iter_rows(named=True):
        assert row["n"] == row["total"] == N and row["effective"] == N and row["saved"] == 0
        assert row["estimate"] == row["sample"] == pytest.approx(np.mean(list(values(dear, row["system"]).values())))
    assert not any("do not go together" in note for note in found.notes)


def test_queries_judged_in_part_are_counted_and_not_used() -> None:
    cheap, dear = world()
    some = of(dear, SAMPLE)
    del some[SAMPLE[0], f"{SAMPLE[0]}-first1"], some[SAMPLE[1], f"{SAMPLE[1]}-both"]
    found = estimate(shown(), table(cheap), table(some), "UDCG@3", others=relevance())
    assert found.frame["n"].to_list() == [22, 23]
    assert found.frame["missing"].to_list() == [f"2 {PARTLY_JUDGED}", f"1 {PARTLY_JUDGED}"]
    assert found.differences["n"].to_list() == [22]
    # Further down than the metric looks nothing is missed.
    del some[SAMPLE[2], f"{SAMPLE[2]}-first3"]
    shallow = estimate(shown(), table(cheap), table(some), "UDCG@2", others=relevance())
    assert shallow.frame["n"].to_list() == [22, 23]
    rest = {key: value for key, value in of(dear, SAMPLE).items() if key[0] not in SAMPLE[:2]}
    alone = estimate(shown(), table(cheap), table(rest), "UDCG@3", others=relevance())
    assert found.frame["estimate"][0] == alone.frame["estimate"][0]


def test_failed_judgments_keep_their_reason() -> None:
    cheap, dear = world()
    rows = table(of(dear, SAMPLE)).frame
    lost = (pl.col("query") == SAMPLE[0]) & pl.col("passage").str.ends_with("both")
    rows = rows.with_columns(
        value=pl.when(~lost).then("value"), status=pl.when(lost).then(pl.lit("timed-out")).otherwise("status")
    )
    found = estimate(shown(), table(cheap), Judgments(rows), "UDCG@3", others=relevance())
    assert found.frame["n"].to_list() == [23, 23]
    assert all(missing.startswith("1 ") and PARTLY_JUDGED not in missing for missing in found.frame["missing"])


def test_two_aspects_are_replaced_together() -> None:
    cheap, dear = world()
    labels = relevance().frame
    better = pl.concat([table(of(dear, SAMPLE)).frame, labels.filter(pl.col("query").is_in(SAMPLE))])
    worse = labels.with_columns(value=1 - pl.col("value"))
    found = estimate(shown(), pl.concat([table(cheap).frame, worse]), better, ["UDCG@3", "P@3"])
    plain = score(shown(), pl.concat([table(dear).frame, labels]), ["UDCG@3", "P@3"]).frame
    for row in found.frame.iter_rows(named=True):
        mine = plain.filter((pl.col("system") == row["system"]) & (pl.col("metric") == row["metric"]))
        assert row["n"] == 24
        assert row["sample"] == pytest.approx(mine.filter(pl.col("query").is_in(SAMPLE))["value"].mean())
    # Without labels of one query by the better judge it is of no use to UDCG, and as good as before to Distraction.
    lacking = better.filter((pl.col("query") != SAMPLE[0]) | (pl.col("aspect") != "relevance"))
    found = estimate(shown(), pl.concat([table(cheap).frame, worse]), lacking, ["UDCG@3", "P@3"])
    assert dict(found.frame.group_by("metric").agg(pl.col("n").max()).iter_rows()) == {"UDCG@3": 23, "P@3": 23}
    assert found.frame.filter(pl.col("metric") == "UDCG@3")["missing"].to_list() == [f"1 {PARTLY_JUDGED}"] * 2
    assert found.frame.filter(pl.col("metric") == "P@3")["missing"].to_list() == ["", ""]


def test_empty_contexts_and_queries_that_nobody_judged() -> None:
    cheap, dear = world()
    frame = shown().frame.filter((pl.col("system") != "first") | (pl.col("query") != SAMPLE[0]))
    contexts = Contexts.trusted(frame.filter(pl.col("query") != "q59"))
    contexts.empty = frozenset([("first", SAMPLE[0])])
    cheap = {key: value for key, value in cheap.items() if key[0] != "q59"}
    found = estimate(contexts, table(cheap), table(of(dear, SAMPLE)), "UDCG@3", others=relevance())
    assert found.frame["total"].to_list() == [N - 1, N - 1]
    usable = len([query for query in SAMPLE if query != "q59"])
    assert found.frame["n"].to_list() == [usable, usable]  # nothing shown is known to be worth 0.5 by any judge
    y = values(dear, "first") | {SAMPLE[0]: 0.5}
    assert found.frame["sample"][0] == pytest.approx(np.mean([y[q] for q in SAMPLE if q != "q59"]))
    assert any("1 query of which the cheap judge judged nothing" in note for note in found.notes)


def test_what_is_to_be_taken_with_care_is_noted() -> None:
    cheap, dear = world()
    found = estimate(shown(), table(cheap), table(of(dear, SAMPLE[:5])), "UDCG@3", others=relevance())
    (note,) = estimate_warnings(found.frame)
    assert note in found.notes
    assert note.startswith("UDCG@3 of first, UDCG@3 of second: 5 queries of the sample could be used")
    rng = np.random.default_rng(2)
    noise = {key: float(rng.random()) for key in cheap}
    loose = estimate(shown(), table(noise), table(of(dear, SAMPLE)), "UDCG@3", others=relevance())
    assert any("the judges do not go together (r = " in note for note in loose.notes)
    none = {key: value for key, value in of(dear, SAMPLE).items() if key[1].endswith("both")}
    void = estimate(shown(), table(cheap), table(none), "UDCG@3", others=relevance())
    assert void.frame["estimate"].to_list() == [None, None]
    assert void.frame["saved"].to_list() == void.frame["low"].to_list() == [None, None]
    assert void.differences["p"].to_list() == void.differences["p_holm"].to_list() == [None]
    assert any(f"no query of the sample can be used (24 {PARTLY_JUDGED})" in note for note in void.notes)
    one = estimate(shown(), table(cheap), table(of(dear, SAMPLE[:1])), "UDCG@3", others=relevance())
    assert one.frame["estimate"][0] is not None and one.frame["low"].to_list() == [None, None]


def test_the_seed_is_that_of_the_cheap_interval_alone() -> None:
    cheap, dear = world()
    made = [
        estimate(shown(), table(cheap), table(of(dear, SAMPLE)), "UDCG@3", others=relevance(), seed=seed).frame
        for seed in (0, 0, 1)
    ]
    assert made[0].equals(made[1])
    assert made[0].drop("cheap_low", "cheap_high").equals(made[2].drop("cheap_low", "cheap_high"))
    assert not made[0].equals(made[2])


def test_tables_that_do_not_fit_are_refused() -> None:
    cheap, dear = world()
    some = table(of(dear, SAMPLE))
    with pytest.raises(InputError, match=r"expensive judgments are of abstention, the cheap ones of relevance"):
        estimate(shown(), relevance(), some, "UDCG@3")
    with pytest.raises(InputError, match="the cheap judge saw none of the queries"):
        estimate(shown(), table(cheap), table({("Q1", "p"): 0.5}), "UDCG@3", others=relevance())
    with pytest.raises(MetricError, match=r"nDCG@3, P@3 do not read what is judged twice"):
        estimate(shown(), table(cheap), some, ["nDCG@3", "UDCG@3", "P@3"], others=relevance())
    with pytest.raises(MetricError, match="needs relevance"):
        estimate(shown(), table(cheap), some, "UDCG@3")
    with pytest.raises(TableError, match="second row for query"):
        estimate(shown(), table(cheap), some, "UDCG@3", others=pl.concat([relevance().frame, table(cheap).frame]))
    with pytest.raises(InputError, match="no system 'third'"):
        estimate(shown(), table(cheap), some, "UDCG@3", others=relevance(), baseline="third")
    with pytest.raises(InputError, match="confidence level is 2"):
        estimate(shown(), table(cheap), some, "UDCG@3", others=relevance(), level=2)
    with pytest.raises(InputError, match="cheap ones of nothing"):
        estimate(shown(), Judgments.concat([]), some, "UDCG@3", others=relevance())


def test_what_is_not_used_is_noted() -> None:
    cheap, dear = world()
    more = {**of(dear, SAMPLE), ("q99", "p"): 0.5}
    both = pl.concat([table(more).frame, relevance().frame.filter(pl.col("query").is_in(SAMPLE))])
    found = estimate(shown(), table(cheap), both, "UDCG@3", others=relevance())
    assert "expensive judgments of relevance are not used: the cheap ones have none of that" in found.notes
    assert "1 query that only the expensive judge saw" in found.notes
    exact = estimate(shown(), table(cheap), table(of(dear, SAMPLE)), "UDCG@3", others=relevance())
    assert found.frame.equals(exact.frame)


def test_which_metrics_read_what() -> None:
    names = ["UDCG@3", "nDCG@3", "Distraction@3", "eRAG@3", "Cov@3"]
    assert metrics_reading(names, ["abstention"]) == ["UDCG@3", "Distraction@3"]
    assert metrics_reading(names, ["relevance", "downstream"]) == ["UDCG@3", "nDCG@3", "Distraction@3", "eRAG@3"]
    assert metrics_reading(names, ["rating"]) == []


def labelled(folder: Path, strata: list[str], name: str = "labels.csv", column: str = "stratum") -> Path:
    """A file of grades, each with how its item was selected."""
    rows = [f"a,q{number},correct,1,{stratum}" for number, stratum in enumerate(strata)]
    path = folder / name
    path.write_text("\n".join([f"system,query,aspect,value,{column}", *rows, ""]))
    return path


CHECKS: dict[Callable[[str | Path], None], tuple[set[str], str]] = {
    check_random_share: ({"random", "random+disputed"}, "of a random share"),
    check_corrections: ({"disputed", "random+disputed"}, "drawn for disagreement"),
}


@pytest.mark.parametrize("check", CHECKS)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    strata=st.lists(
        st.sampled_from(["random", "disputed", "random+disputed", "chosen", "", "Random", "random disputed"]),
        min_size=1,
        max_size=6,
    )
)
def test_labels_pass_only_if_all_were_drawn_as_they_must_be(
    tmp_path: Path, check: Callable[[str | Path], None], strata: list[str]
) -> None:
    allowed, drawn = CHECKS[check]
    path, others = labelled(tmp_path, strata), sum(stratum not in allowed for stratum in strata)
    if not others:
        check(path)
        return
    rows, verb = ("1 row", "is") if others == 1 else (f"{others} rows", "are")
    with pytest.raises(InputError, match=rf"labels\.csv: {rows} of {len(strata)} {verb} not {drawn}"):
        check(path)


def test_a_sample_picked_by_its_labels_is_refused_and_a_random_one_is_not(tmp_path: Path) -> None:
    """Two random items, one of which is disputed too, and two that were picked because judges disagree on them."""
    random, chosen = ["random", "random+disputed"], ["disputed", "disputed"]
    check_random_share(labelled(tmp_path, random))
    with pytest.raises(InputError, match=r"(?s)2 rows of 4 are not of a random share.*estimate-….csv"):
        check_random_share(labelled(tmp_path, random + chosen))
    check_corrections(labelled(tmp_path, [*chosen, "random+disputed"]))
    with pytest.raises(InputError, match=r"(?s)1 row of 4 is not drawn for disagreement.*corrections-….csv"):
        check_corrections(labelled(tmp_path, random + chosen))


def test_labels_that_do_not_say_how_they_were_selected(tmp_path: Path) -> None:
    """A sample of one's own needs no such column; corrections do. The reader reports a missing file."""
    for path in (labelled(tmp_path, ["random"], column="note"), labelled(tmp_path, ["random"], "labels.jsonl")):
        check_random_share(path)
        with pytest.raises(InputError, match="nothing says how these labels were selected"):
            check_corrections(path)
    for check in CHECKS:
        check(tmp_path / "missing.csv")
