"""What the report counts over all queries, what it examines, and which queries its explorer holds."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest

pytest.importorskip("altair")

from ragworth.core.errors import InputError
from ragworth.data import Contexts, Judgments, Outcomes, Ratings, Scores
from ragworth.data.collection import Collection
from ragworth.diagnosis import FINDINGS
from ragworth.report import page
from ragworth.report.page import explorer
from ragworth.report.page.building import chosen_queries, most_queries
from ragworth.report.page.sections.explorer import explorer_note
from ragworth.report.page.survey import build_survey
from ragworth.results import Results
from tests.report.unpack import unpack_json

SYSTEMS = ("a", "b")
TEXTS = ("The cat sat.", "the CAT sat", "A dog.", "…", "Straße", "STRASSE")


def random_results(seed: int, queries: int = 120) -> Results:
    """Contexts with gaps, without labels, with failed judgments, ratings, grades, repeated and missing texts."""
    rng = random.Random(seed)
    names = [f"q{i}" for i in range(queries)]
    passages = [f"p{i}" for i in range(30)]
    rows, empty, outcomes = [], [], []
    for system in SYSTEMS:
        for query in rng.sample(names, len(names)):
            shown = rng.sample(passages, rng.choice([0, 1, 4, 8]))
            rows += [(system, query, rank, passage) for rank, passage in enumerate(shown, 1) if rng.random() > 0.1]
            empty += [] if any(row[:2] == (system, query) for row in rows) else [(system, query)]
            if rng.random() < 0.8:
                grade = rng.choice([1.0, 0.5, 0.0, -1.0, None])
                outcomes.append((system, query, "grade", grade, "ok" if grade is not None else "failed", "test"))
            elif len(outcomes) % 3:
                outcomes.append((system, query, "correct", float(len(outcomes) % 2), "ok", "test"))
    judged, rated = [], []
    for query in names:
        kind = rng.choice(["labels", "labels", "ratings", "both", "nothing"])
        for passage in rng.sample(passages, 20) if kind in ("labels", "both") else ():
            for aspect in ("relevance", "abstention"):
                value = rng.choice([0.0, 1.0]) if aspect == "relevance" else rng.choice([0.0, 0.0, 0.2, 0.8, 1.0])
                failed = rng.random() < 0.05
                judged.append((query, passage, aspect, None if failed else value, "failed" if failed else "ok", "test"))
        for passage in rng.sample(passages, 12) if kind in ("ratings", "both") else ():
            rating = rng.choice([0.0, 3.0, 5.0, None])
            rated.append((query, passage, rng.choice("st"), rating, "ok" if rating is not None else "failed", "test"))
    scores = [(system, query, "P@1", 0.0, "ok") for system in SYSTEMS for query in names]
    texts = [(passage, rng.choice(TEXTS)) for passage in passages[:25]]
    contexts = Contexts(pl.DataFrame(rows, schema=["system", "query", "rank", "passage"], orient="row"))
    contexts.empty = frozenset(empty)
    return Results(
        Collection(passages=pl.DataFrame(texts, schema=["passage", "text"], orient="row")),
        contexts,
        Judgments(_frame(judged, Judgments)),
        Ratings(_frame(rated, Ratings)),
        None,
        Outcomes(_frame(outcomes, Outcomes)),
        Scores(_frame(scores, Scores)),
    )


def _frame(rows: Sequence[tuple[object, ...]], table: type[Judgments | Ratings | Outcomes | Scores]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=table.schema, orient="row")


def test_what_is_counted_of_all_contexts() -> None:
    """Sizes and grades by plain loops over every row."""
    results = random_results(0)
    found = build_survey(results, 0, 1.0, 3.0)
    shown: Counter[tuple[str, str]] = Counter(dict.fromkeys(results.contexts.empty, 0))
    shown.update(results.contexts.frame.select("system", "query").iter_rows())
    sizes: dict[str, Counter[int]] = {system: Counter() for system in SYSTEMS}
    for (system, _), size in shown.items():
        sizes[system][size] += 1
    assert found.sizes == sizes
    assert results.outcomes is not None
    graded = results.outcomes.frame.filter(pl.col("aspect") == "grade").select("system", "value").iter_rows()
    words = {1.0: "correct", 0.5: "partially-correct", 0.0: "abstained", -1.0: "wrong", None: None}
    assert found.grades == Counter((system, words[value]) for system, value in graded)
    assert set(found.diagnosis.counts.filter(pl.col("n") > 0)["finding"]) == set(FINDINGS)  # every rule was tried
    assert found.sample_note == ""


def test_of_many_contexts_a_random_sample_of_the_queries_is_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    results = random_results(0)
    whole = build_survey(results, 0, 1.0, 3.0)
    monkeypatch.setattr("ragworth.report.page.survey.MAX_EXAMINED", 100)
    found = build_survey(results, 0, 1.0, 3.0)
    assert found.sample_note == "Passages were examined for 50 of 120 queries, drawn at random (seed 0)."
    assert found.examined.to_list() == build_survey(results, 0, 1.0, 3.0).examined.to_list()
    assert found.examined.to_list() != build_survey(results, 1, 1.0, 3.0).examined.to_list()
    assert (found.sizes, found.grades, found.passages) == (whole.sizes, whole.grades, whole.passages)
    among = pl.col("query").is_in(found.examined.to_list())
    assert found.diagnosis.frame.sort(pl.all()).equals(whole.diagnosis.frame.filter(among).sort(pl.all()))
    mine = {key: each for key, each in whole.facts.shown.items() if key[1] in set(found.examined)}
    assert found.facts.shown == mine
    utilities = [each.utility for some in mine.values() for each in some if each.utility is not None]
    assert sum(found.kinds.values()) == len(utilities)
    assert np.isclose(np.nansum(found.ranks.values), sum(utilities))
    points = {(query, each.passage): each.utility for (_, query), some in mine.items() for each in some}
    assert {(query, passage): value for query, passage, value in found.points.iter_rows()} == {
        pair: value for pair, value in points.items() if value is not None
    }


def test_the_page_says_what_was_examined(realistic: page.Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragworth.report.page.survey.MAX_EXAMINED", 60)
    made = page.build(realistic.results)
    assert made.markdown.count("Passages were examined for 12 of 46 queries") == 5  # worth, diagnosis, three captions
    assert "Passages were examined" not in realistic.markdown
    assert len(made.explored) == 46
    mean = [each.means for each in made.overview.standings]
    assert mean == [each.means for each in realistic.overview.standings]


def test_relevance_and_utility_of_each_passage() -> None:
    """By look-ups in dicts: labels first, then ratings, and nothing for queries without either."""
    for seed in range(4):
        results = random_results(seed)
        labels: dict[tuple[str, str], float | None] = {}
        abstention: dict[tuple[str, str], float | None] = {}
        ratings: dict[tuple[str, str], float | None] = {}
        assert results.judgments is not None and results.ratings is not None
        for query, passage, aspect, value, _, _ in results.judgments.frame.iter_rows():
            (labels if aspect == "relevance" else abstention)[query, passage] = value
        for query, passage, _, value, _, _ in results.ratings.frame.iter_rows():
            ratings[query, passage] = value
        labelled, rated = ({query for query, _ in table} for table in (labels, ratings))
        for (_, query), passages in build_survey(results, 0, 1.0, 3.0).facts.shown.items():
            for each in passages:
                pair = (query, each.passage)
                expected: bool | None = None
                if query in labelled:
                    value = labels.get(pair, 0.0)
                    expected = None if value is None else value >= 1
                elif query in rated:
                    value = ratings.get(pair, 0.0)
                    expected = None if value is None else value >= 3
                assert each.relevant == expected
                declined = abstention.get(pair) if query in labelled and expected is not None else None
                assert each.utility == (None if declined is None else (1 if expected else -1) * (1 - declined))


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
    problems = set(known.diagnosis.frame.filter(pl.col("finding") != "fine")["query"])
    assert len(problems.intersection(chosen)) >= 4
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
