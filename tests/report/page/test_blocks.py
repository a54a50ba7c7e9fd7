"""Reports of more queries than are looked at together, and than the explorer lists."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

pytest.importorskip("altair")

from ragworth.diagnosis import FINDINGS
from ragworth.errors import InputError
from ragworth.report import page
from ragworth.report.page import explorer, query_blocks
from ragworth.report.page.chosen import chosen_queries, most_queries
from ragworth.report.page.sections.explorer import explorer_note
from ragworth.tables import Contexts, Judgments, Scores
from tests.report.unpack import unpack_json


@pytest.mark.slow
def test_blocks_of_queries_give_what_all_together_give(realistic: page.Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_blocks, "BLOCK", 7)
    made = page.build(realistic.results)
    assert made.overview == realistic.overview
    assert made.document.lead == realistic.document.lead
    assert made.systems == realistic.systems
    assert made.diagnosis.counts.equals(realistic.diagnosis.counts)
    assert made.diagnosis.absent == realistic.diagnosis.absent
    assert made.diagnosis.frame.equals(realistic.diagnosis.frame)
    assert replace(made.facts, words={}) == replace(realistic.facts, words={})
    assert made.facts.words.items() <= realistic.facts.words.items()  # those of passages that are shown
    assert np.array_equal(made.survey.found, realistic.survey.found)
    others = {figure.name: figure.data for figure in made.figure_set.figures}
    for figure in realistic.figure_set.figures:
        assert others.pop(figure.name).equals(figure.data), figure.name
    assert not others


@pytest.mark.slow
def test_rows_in_any_order_and_queries_without_passages(realistic: page.Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """One system has nothing for some queries, which then count as empty contexts in their block."""
    frame = realistic.results.contexts.frame
    first, system = frame["query"].unique(maintain_order=True).to_list()[:4], frame["system"][0]
    kept = Contexts.trusted(frame.filter((pl.col("system") != system) | ~pl.col("query").is_in(first)))
    kept.empty = frozenset((system, query) for query in first)
    judgments = realistic.results.judgments
    assert judgments is not None
    mixed = Judgments.trusted(judgments.frame.sample(fraction=1, shuffle=True, seed=1))
    given = replace(realistic.results, contexts=kept, judgments=mixed)
    together = page.build(given)
    monkeypatch.setattr(query_blocks, "BLOCK", 3)
    made = page.build(given)
    assert made.survey.sizes == together.survey.sizes
    assert made.survey.sizes[system][0] == 4
    assert made.diagnosis.counts.equals(together.diagnosis.counts)
    assert made.overview == together.overview


@pytest.mark.slow
def test_the_explorer_holds_a_sample_and_says_so(realistic: page.Page) -> None:
    total = realistic.overview.queries
    made = page.build(realistic.results, queries=12)
    assert made.overview == realistic.overview  # every count is of all queries
    assert made.diagnosis.counts.equals(realistic.diagnosis.counts)
    assert made.explored == [query for query in realistic.explored if query in set(made.explored)]
    assert len(made.explored) == 12
    data = explorer.build_explorer(made.results, made.facts, made.overview, made.diagnosis)
    index = unpack_json(data.index)
    assert (index["queries"], index["total"]) == (made.explored, total)
    assert len(index["texts"]) == len(index["scores"][index["main"]][0]) == 12
    everything = unpack_json(
        explorer.build_explorer(realistic.results, realistic.facts, realistic.overview, realistic.diagnosis).index
    )
    at = [everything["queries"].index(query) for query in made.explored]
    assert index["found"] == [[bits[i] for i in at] for bits in everything["found"]]
    assert index["scores"][index["main"]] == [[values[i] for i in at] for values in everything["scores"][index["main"]]]
    shown = {number for piece in data.pieces for number in unpack_json(piece)["contexts"]["columns"]["q"]["v"]}
    assert shown <= set(range(12))
    assert f"This page holds 12 of {total} queries" in str(explorer_note(12, total, 2))
    assert f"This page holds 12 of {total} queries" in made.html
    assert "This page holds" not in realistic.html
    links = set(re.findall(r'href="#query=([^"&]+)"', made.html))
    assert links <= set(made.explored)  # examples can be opened


@pytest.mark.slow
def test_queries_are_chosen_by_difference_by_problem_and_by_chance(realistic: page.Page) -> None:
    known, scores, main = realistic.survey, realistic.results.scores, realistic.overview.main
    every = known.queries.to_list()
    chosen = chosen_queries(known, scores, main, 12, seed=0).to_list()
    assert chosen == chosen_queries(known, scores, main, 12, seed=0).to_list()
    assert len(set(chosen)) == 12
    one = scores.frame.filter(pl.col("metric") == main)
    spread = one.group_by("query").agg(apart=pl.col("value").max() - pl.col("value").min())
    widest = spread.filter(pl.col("query").is_in(every)).drop_nulls().sort("apart", descending=True)["apart"][3]
    assert set(spread.filter(pl.col("apart") > widest)["query"]) <= set(chosen)
    fine = 1 << list(FINDINGS).index("fine")
    bits = np.bitwise_or.reduce(known.found, axis=0)
    assert sum(bool(bits[every.index(query)] & ~np.uint8(fine)) for query in chosen) >= 4
    assert chosen_queries(known, scores, main, len(every), seed=0).to_list() == every
    assert {tuple(chosen_queries(known, scores, main, 12, seed=seed)) for seed in range(5)} != {tuple(chosen)}


def test_a_page_of_no_queries_is_refused(realistic: page.Page) -> None:
    with pytest.raises(InputError, match="the explorer would hold 0 queries"):
        page.build(realistic.results, queries=0)


def test_one_system_is_explored_where_it_is_worst(realistic: page.Page) -> None:
    scores = realistic.results.scores
    system = scores.distinct("system")[0]
    mine = scores.having("system", [system]).having("metric", ["UDCG@5"]).frame
    for metric, descending in (("UDCG@5", False), ("Distraction@5", True)):  # the same values under another name
        one = Scores.trusted(mine.with_columns(pl.lit(metric).alias("metric")))
        worst = one.frame.filter(pl.col("query").is_in(realistic.survey.queries.to_list())).drop_nulls("value")
        worst = worst.sort("value", descending=descending, maintain_order=True)
        chosen = set(chosen_queries(realistic.survey, one, metric, 12, seed=0))
        edge = worst["value"][3]
        beyond = pl.col("value") > edge if descending else pl.col("value") < edge
        assert worst.filter(beyond).height and set(worst.filter(beyond)["query"]) <= chosen
    assert "a third are those with the worst scores" in str(explorer_note(12, 40, 1))


def test_the_page_lists_fewer_queries_of_more_systems() -> None:
    assert [most_queries(systems) for systems in (0, 1, 4, 10, 20, 100)] == [5000, 5000, 5000, 2000, 1000, 1000]
