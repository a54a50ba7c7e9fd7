"""What holds for every metric, whatever it measures. A metric added to the registry is tested here by being there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ragworth
from ragworth.metrics import METRICS, block_builder
from ragworth.metrics.declaration import Metric
from ragworth.metrics.parsing import parse
from ragworth.tables import ranking
from tests.strategies import PASSAGES, World, examples, settings_of, some_settings, values, worlds

Test = Callable[..., None]
Table = dict[tuple[str, str, str], tuple[float | None, str]]

ROUNDING = 1e-12
"""Sums may be taken in another order; nothing else may differ."""


def every_metric(number: int, names: list[str] | None = None) -> Callable[[Test], Test]:
    """Run a test for each metric, on so many random collections."""

    def wrap(test: Test) -> Test:
        drawn = given(data=st.data())(examples(number)(test))
        made: Test = pytest.mark.parametrize("name", names or METRICS.names())(drawn)
        return made

    return wrap


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


@every_metric(8)
def test_values_are_within_the_declared_bounds(name: str, data: st.DataObject) -> None:
    world = data.draw(worlds())
    metrics = {str(m): m for m in data.draw(some_settings(name))}
    for (system, query, written), (value, _) in values(world.score(list(metrics.values()))).items():
        low, high = metrics[written].bounds(len(world.runs[system].get(query, {})))
        assert value is None or low - ROUNDING <= value <= high + ROUNDING, (written, system, query)


@every_metric(8)
def test_a_value_is_there_exactly_when_the_status_is_ok(name: str, data: st.DataObject) -> None:
    world = data.draw(worlds(failures=True))
    frame = world.score(data.draw(some_settings(name))).frame
    assert frame.filter((pl.col("status") == "ok") != pl.col("value").is_not_null()).is_empty()
    assert frame.filter(pl.col("value").is_nan() | pl.col("value").is_infinite()).is_empty()


@every_metric(8)
def test_the_order_of_rows_does_not_matter(name: str, data: st.DataObject) -> None:
    world = data.draw(worlds(failures=True))
    metrics = data.draw(some_settings(name))
    rng = Random(data.draw(st.integers(0, 999)))

    def shuffled(n: int) -> list[int]:
        return rng.sample(range(n), n)

    ratings = shuffled(len(world.rating_rows()))
    if "tokens" in METRICS.get(name).needs:
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


@every_metric(8, [d.name for d in METRICS if d.irrelevant_never_raises])
def test_an_irrelevant_passage_at_the_end_never_raises(name: str, data: st.DataObject) -> None:
    world = data.draw(worlds())
    # At rel=0 a passage judged 0 is relevant.
    metrics = [metric for metric in data.draw(some_settings(name)) if metric.values.get("rel", 1) > 0]
    judged = data.draw(st.booleans(), label="judged 0, not unjudged")
    world = replace(
        world,
        relevance={q: known | ({"zz": 0.0} if judged else {}) for q, known in world.relevance.items()},
        abstention={q: known | {"zz": 0.5} for q, known in world.abstention.items()},
        downstream={q: known | {"zz": 0.0} for q, known in world.downstream.items()},
        tokens=world.tokens | {"zz": data.draw(st.integers(1, 9))},
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


@every_metric(8, [d.name for d in METRICS if d.order_free])
def test_the_order_within_the_cutoff_does_not_matter(name: str, data: st.DataObject) -> None:
    world = data.draw(worlds())
    rng = Random(data.draw(st.integers(0, 999)))
    metric = data.draw(settings_of(name))
    runs = {s: {q: reordered(shown, metric.cutoff, rng) for q, shown in run.items()} for s, run in world.runs.items()}
    same(values(world.with_runs(runs).score(metric)), values(world.score(metric)))


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


@every_metric(5)
def test_equal_inputs_give_equal_outputs(name: str, data: st.DataObject) -> None:
    """Scored twice, and under two names: every bit is the same."""
    world = data.draw(worlds(failures=True))
    metrics = data.draw(some_settings(name))
    once = world.score(metrics)
    assert once == world.score(metrics)
    assert once.notes == world.score(metrics).notes
    twins = values(world.with_runs({"one": world.runs["A"], "two": world.runs["A"]}).score(metrics))
    for (system, query, metric), found in twins.items():
        assert twins["two" if system == "one" else "one", query, metric] == found


@every_metric(8)
def test_systems_do_not_see_each_other(name: str, data: st.DataObject) -> None:
    world = data.draw(worlds(failures=True))
    metrics = [metric for metric in data.draw(some_settings(name)) if "runs" not in metric.needs]
    together = values(world.score(metrics))
    apart: Table = {}
    for system, run in world.runs.items():
        apart |= values(world.with_runs({system: run}).score(metrics))
    same(apart, together)


@every_metric(8)
def test_many_blocks_equal_one(name: str, data: st.DataObject) -> None:
    world = data.draw(worlds(failures=True))
    metrics = data.draw(some_settings(name))
    whole = values(world.score(metrics))
    with pytest.MonkeyPatch.context() as patch:
        # Sizes that tables of this size reach: one query in a block, and a few rows at a time.
        patch.setattr(block_builder, "MAX_CELLS", data.draw(st.sampled_from((1, 20, 60))))
        patch.setattr(ranking, "BLOCK_ROWS", data.draw(st.sampled_from((1, 3, 10))))
        same(values(world.score(metrics)), whole)


@every_metric(8)
def test_only_the_order_of_passage_ids_matters(name: str, data: st.DataObject) -> None:
    world = data.draw(worlds(failures=True))
    metrics = data.draw(some_settings(name))
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


@every_metric(40)
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
