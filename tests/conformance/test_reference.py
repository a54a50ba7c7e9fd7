"""Every metric against the plain implementation beside this file, on random collections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import TypeVar

import polars as pl
import pytest
from hypothesis import given

import ragworth
from ragworth.metrics import METRICS
from ragworth.metrics.declaration import Metric
from tests.conformance import reference
from tests.conformance.reference import Answer, Case, Missing
from tests.strategies import World, all_metrics, examples, values, worlds

K = TypeVar("K")

CLOSE = 1e-9
GAP = "(a rank nobody listed)"


def known(values: Mapping[str, float | None]) -> dict[str, float]:
    return {key: value for key, value in values.items() if value is not None}


def case_of(world: World, system: str, query: str) -> Case:
    """What the reference reads; a world without failures is expected."""
    orders = {name: reference.ranked(run.get(query, {})) for name, run in world.runs.items()}
    return Case(
        shown=orders.pop(system),
        others=list(orders.values()),
        relevance=known(world.relevance.get(query, {})),
        abstention=known(world.abstention.get(query, {})),
        ratings={passage: known(rated) for passage, rated in world.ratings.get(query, {}).items()},
        tokens=world.tokens,
        downstream=known(world.downstream.get(query, {})),
        likelihood=known(world.likelihood.get(query, {})),
        longest=max(map(len, world.runs[system].values()), default=0),
    )


def expected(metric: Metric, case: Case) -> Answer:
    return reference.METRICS[metric.name](case, metric.cutoff, **metric.values)


def check(metric: Metric, want: Answer, got: tuple[float | None, str], where: object) -> None:
    value, status = got
    if isinstance(want, Missing):
        assert value is None and status in want.reasons, (str(metric), where, want, got)
    else:
        assert status == "ok", (str(metric), where, want, got)
        assert value == pytest.approx(want, rel=CLOSE, abs=CLOSE), (str(metric), where)


def test_every_metric_has_a_second_implementation() -> None:
    assert sorted(reference.METRICS) == sorted(METRICS.names())


@given(worlds(), all_metrics())
@examples(100)
def test_equal_to_the_reference(world: World, metrics: list[Metric]) -> None:
    got = values(world.score(metrics))
    asked = {
        (system, query, str(metric)): metric
        for system, metric in product(world.runs, metrics)
        for query in (world.ratings if "ratings" in metric.needs else world.relevance)
    }
    assert set(got) == set(asked)
    for (system, query, written), metric in asked.items():
        where = (system, query)
        check(metric, expected(metric, case_of(world, system, query)), got[system, query, written], where)


@given(worlds(), all_metrics())
@examples(60)
def test_a_rank_nobody_listed_is_an_unknown_passage(world: World, metrics: list[Metric]) -> None:
    """Ranks 1, 3, 5, … are listed: the reference sees a stranger in each place between."""
    asked = {str(metric): metric for metric in metrics}
    rows = []
    for system, run in world.runs.items():
        for query, scores in run.items():
            order = reference.ranked(scores)
            rows += [(system, query, 2 * i + 1, passage) for i, passage in enumerate(order)]
    contexts = pl.DataFrame(rows, schema=["system", "query", "rank", "passage"], orient="row")
    found = ragworth.score(contexts, world.judgments(), metrics, ratings=world.rated(), tokens=world.lengths())
    for (system, query, written), got in values(found).items():
        case = case_of(world, system, query)
        stretched = [passage for pair in case.shown for passage in (pair, GAP)][:-1]
        case = case._replace(shown=stretched, longest=max(2 * case.longest - 1, 0))
        check(asked[written], expected(asked[written], case), got, (system, query))


# A judgment that failed is none to Judged, whatever it would have been.
@given(worlds(failures=True), all_metrics(d.name for d in METRICS if d.minds_failures))
@examples(60)
def test_no_value_hangs_on_a_failed_judgment(world: World, metrics: list[Metric]) -> None:
    """Where judging failed a metric may have a value only if it is the same whatever the judgment had been."""
    for (system, query, written), (value, status) in values(world.score(metrics)).items():
        if status != "ok":
            continue
        metric = next(m for m in metrics if str(m) == written)
        for complete in completions(world, query, metric):
            want = expected(metric, case_of(complete, system, query))
            if value == 0 and want == Missing(frozenset({"no-tokens"})):
                continue  # what answers nothing has no density, however long the required subset may be
            check(metric, want, (value, status), (system, query, complete))


def completions(world: World, query: str, metric: Metric) -> Iterator[World]:
    """All that one query's failed judgments could have been, in a few steps from worst to best."""
    needs = metric.needs
    relevance = list(filled(world.relevance[query], (-1.0, 0.0, 1.0, 3.0) if "relevance" in needs else (0.0,)))
    abstention = list(filled(world.abstention[query], (0.0, 0.5, 1.0) if "abstention" in needs else (0.0,)))
    downstream = list(filled(world.downstream[query], (0.0, 0.5, 1.0) if "downstream" in needs else (0.0,)))
    likelihood = list(filled(world.likelihood[query], (-9.0, -1.0, 0.0) if "likelihood" in needs else (0.0,)))
    flat = {(p, s): v for p, rated in world.ratings[query].items() for s, v in rated.items()}
    ratings = list(filled(flat, (0.0, 3.0, 5.0) if "ratings" in needs else (0.0,)))
    for r, a, d, h, g in product(relevance, abstention, downstream, likelihood, ratings):
        rated: dict[str, dict[str, float | None]] = {}
        for (passage, question), value in g.items():
            rated.setdefault(passage, {})[question] = value
        yield replace(
            world,
            relevance={query: r},
            abstention={query: a},
            downstream={query: d},
            likelihood={query: h},
            ratings={query: rated},
        )


def filled(values: Mapping[K, float | None], tries: tuple[float, ...]) -> Iterator[dict[K, float | None]]:
    lost = [key for key, value in values.items() if value is None]
    for chosen in product(tries, repeat=len(lost)):
        yield {**values, **dict(zip(lost, chosen, strict=True))}
