"""What holds for every metric, whatever it measures. A metric added to the registry is tested here by being there."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ragworth
from ragworth.data import ranking
from ragworth.metrics import METRICS, block_builder
from ragworth.metrics.declaration import Metric
from ragworth.metrics.parsing import parse
from tests.strategies import CUTOFFS, PASSAGES, World, all_metrics, examples, settings_of, values, worlds

Table = dict[tuple[str, str, str], tuple[float | None, str]]

ROUNDING = 1e-12
"""Sums may be taken in another order; nothing else may differ."""


# Scoring a collection costs more than a metric, so every test scores all metrics on each.
on_collections = examples(60)


def same(got: Table, wanted: Table) -> None:
    assert set(got) == set(wanted)
    for key, (value, status) in wanted.items():
        assert got[key][1] == status, key
        if value is None:
            assert got[key][0] is None, key
        else:
            assert got[key][0] == pytest.approx(value, rel=ROUNDING, abs=ROUNDING), key


def reordered(scores: dict[str, float], k: int | None, rng: Random) -> dict[str, float]:
    """The same context with its first k passages in another order."""
    order = sorted(sorted(scores, reverse=True), key=lambda p: -scores[p])
    near = order[:k]
    rng.shuffle(near)
    return {passage: -float(i) for i, passage in enumerate([*near, *order[len(near) :]])}


@given(worlds(), all_metrics())
@on_collections
def test_values_are_within_the_declared_bounds(world: World, chosen: list[Metric]) -> None:
    metrics = {str(metric): metric for metric in chosen}
    for (system, query, written), (value, _) in values(world.score(chosen)).items():
        low, high = metrics[written].bounds(len(world.runs[system].get(query, {})))
        assert value is None or low - ROUNDING <= value <= high + ROUNDING, (written, system, query)


@given(worlds(failures=True), all_metrics())
@on_collections
def test_a_value_is_there_exactly_when_the_status_is_ok(world: World, metrics: list[Metric]) -> None:
    frame = world.score(metrics).frame
    assert frame.filter((pl.col("status") == "ok") != pl.col("value").is_not_null()).is_empty()
    assert frame.filter(pl.col("value").is_nan() | pl.col("value").is_infinite()).is_empty()


@pytest.mark.parametrize("tokens", [False, True])
@given(data=st.data())
@on_collections
def test_the_order_of_rows_does_not_matter(tokens: bool, data: st.DataObject) -> None:
    world = data.draw(worlds(failures=True))
    metrics = data.draw(all_metrics(d.name for d in METRICS if ("tokens" in d.needs) == tokens))
    rng = Random(data.draw(st.integers(0, 999)))

    def shuffled(n: int) -> list[int]:
        return rng.sample(range(n), n)

    ratings = shuffled(len(world.rating_rows()))
    if tokens:
        # Among passages that answer equally much the first rated is required, so that order within a query is kept.
        queries = [row[0] for row in world.rating_rows()]
        place = {query: i for i, query in enumerate(rng.sample(sorted(set(queries)), len(set(queries))))}
        ratings = sorted(range(len(queries)), key=lambda i: place[queries[i]])
    lengths = world.lengths()
    turned = {column: [lengths[column][i] for i in reversed(range(len(world.tokens)))] for column in lengths}
    mixed = ragworth.score(
        world.contexts(shuffled(len(world.contexts()))),
        world.judgments(shuffled(len(world.judgments()))),
        metrics[::-1],
        ratings=world.rated(ratings),
        tokens=turned,
    )
    same(values(mixed), values(world.score(metrics)))


@given(worlds(), all_metrics(d.name for d in METRICS if d.irrelevant_never_raises), st.booleans(), st.integers(1, 9))
@on_collections
def test_an_irrelevant_passage_at_the_end_never_raises(
    world: World, metrics: list[Metric], judged: bool, length: int
) -> None:
    """Whether it was judged 0 or isn't judged."""
    # At rel=0 a passage judged 0 is relevant.
    metrics = [metric for metric in metrics if metric.values.get("rel", 1) > 0]
    world = replace(
        world,
        relevance={q: known | ({"zz": 0.0} if judged else {}) for q, known in world.relevance.items()},
        abstention={q: known | {"zz": 0.5} for q, known in world.abstention.items()},
        downstream={q: known | {"zz": 0.0} for q, known in world.downstream.items()},
        tokens=world.tokens | {"zz": length},
    )
    longer = world.with_runs(
        {s: {q: shown | {"zz": -9.0} for q, shown in run.items()} for s, run in world.runs.items()}
    )
    after = values(longer.score(metrics))
    for key, (value, status) in values(world.score(metrics)).items():
        if "cut-ranking" in (status, after[key][1]):
            continue  # a longer list tells more or less about where the ranking ended
        assert after[key][1] == status, key
        higher = after[key][0]
        assert value is None or higher is None or higher <= value + ROUNDING, key


@given(worlds(), st.sampled_from(CUTOFFS), st.integers(0, 999), st.data())
@on_collections
def test_the_order_within_the_cutoff_does_not_matter(
    world: World, k: int | None, seed: int, data: st.DataObject
) -> None:
    metrics = data.draw(all_metrics((d.name for d in METRICS if d.order_free), (k,)))
    rng = Random(seed)
    runs = {s: {q: reordered(shown, k, rng) for q, shown in run.items()} for s, run in world.runs.items()}
    same(values(world.with_runs(runs).score(metrics)), values(world.score(metrics)))


@pytest.mark.parametrize("name", [d.name for d in METRICS if not d.order_free])
def test_order_matters_to_the_others(name: str) -> None:
    """Without this a metric that forgot to say that it ignores the order would go unnoticed.

    Passages 1 and 4 are worth something. With a cutoff of two, 1 moves down within it, and 4 moves down beyond
    it, which is all that F_e can see; without one, 1 moves to the end.
    """
    relevance: dict[str, float | None] = {"1": 1.0, "2": 0.0, "4": 1.0}
    ratings: dict[str, dict[str, float | None]] = {"1": {"s": 5.0, "t": 5.0}, "4": {"s": 5.0}}
    declaration = METRICS.get(name)
    downstream = {"q1": dict.fromkeys("123456", 0.0) | relevance}
    world = World({}, {"q1": relevance}, {"q1": dict.fromkeys("123456", 0.5)}, {"q1": ratings}, downstream=downstream)
    first, second = (
        world.with_runs({"A": {"q1": {passage: -float(i) for i, passage in enumerate(order)}}})
        for order in ("123456", "213564" if declaration.takes_cutoff else "234561")
    )
    metric = declaration.bind(2 if declaration.takes_cutoff else None)
    (before,), (after,) = values(first.score(metric)).values(), values(second.score(metric)).values()
    assert before[1] == after[1] == "ok"
    assert before[0] != after[0]


@given(worlds(failures=True), all_metrics())
@on_collections
def test_equal_inputs_give_equal_outputs(world: World, metrics: list[Metric]) -> None:
    """Scored twice, and under two names: every bit is the same."""
    once, again = world.score(metrics), world.score(metrics)
    assert once == again
    assert once.notes == again.notes
    twins = values(world.with_runs({"one": world.runs["A"], "two": world.runs["A"]}).score(metrics))
    for (system, query, metric), found in twins.items():
        assert twins["two" if system == "one" else "one", query, metric] == found


@given(worlds(failures=True), all_metrics())
@on_collections
def test_systems_do_not_see_each_other(world: World, metrics: list[Metric]) -> None:
    metrics = [metric for metric in metrics if "runs" not in metric.needs]
    together = values(world.score(metrics))
    apart: Table = {}
    for system, run in world.runs.items():
        apart |= values(world.with_runs({system: run}).score(metrics))
    same(apart, together)


# Sizes that tables of this size reach: one query in a block, and a few rows at a time.
@given(worlds(failures=True), all_metrics(), st.sampled_from((1, 20, 60)), st.sampled_from((1, 3, 10)))
@on_collections
def test_many_blocks_equal_one(world: World, metrics: list[Metric], cells: int, rows: int) -> None:
    whole = values(world.score(metrics))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block_builder, "MAX_CELLS", cells)
        patch.setattr(ranking, "BLOCK_ROWS", rows)
        same(values(world.score(metrics)), whole)


@given(worlds(failures=True), all_metrics())
@on_collections
def test_only_the_order_of_passage_ids_matters(world: World, metrics: list[Metric]) -> None:
    new = {old: f"http://x/{i:03}?ä" for i, old in enumerate(sorted(PASSAGES))}
    renamed = World(
        {s: {q: {new[p]: v for p, v in shown.items()} for q, shown in run.items()} for s, run in world.runs.items()},
        {q: {new[p]: v for p, v in known.items()} for q, known in world.relevance.items()},
        {q: {new[p]: v for p, v in known.items()} for q, known in world.abstention.items()},
        {q: {new[p]: v for p, v in rated.items()} for q, rated in world.ratings.items()},
        {new[p]: v for p, v in world.tokens.items()},
        {q: {new[p]: v for p, v in known.items()} for q, known in world.downstream.items()},
        {q: {new[p]: v for p, v in known.items()} for q, known in world.likelihood.items()},
    )
    same(values(renamed.score(metrics)), values(world.score(metrics)))


@pytest.mark.parametrize("name", METRICS.names())
@given(data=st.data())
@examples(40)
def test_written_forms_parse_back(name: str, data: st.DataObject) -> None:
    metric = data.draw(settings_of(name) | _any_numbers(name))
    again = parse(str(metric))
    assert again == metric
    assert hash(again) == hash(metric)
    assert str(again) == str(metric)
    assert again.values == metric.values


@st.composite
def _any_numbers(draw: st.DrawFn, name: str) -> Metric:
    """A metric with any numbers that its parameters take, however long they are written."""
    declaration = METRICS.get(name)
    drawn = {
        p.name: draw(st.floats(max(p.low, -1e300), min(p.high, 1e300)))
        for p in declaration.parameters
        if isinstance(p.default, float)
    }
    return declaration.bind(draw(st.integers(1, 10**8)) if declaration.takes_cutoff else None, **drawn)
