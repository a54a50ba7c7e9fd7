"""What the report counts over all queries, against a plain count of one context after the other."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from ragworth.collection import Collection
from ragworth.diagnosis import FINDINGS, Examiner, passage_kind
from ragworth.diagnosis.bulk import hashed_words, kinds_of
from ragworth.report.page import query_blocks
from ragworth.report.page.query_blocks import QueryBlocks
from ragworth.report.page.survey import Survey, build_survey
from ragworth.results import Results
from ragworth.tables import Contexts, Judgments, Outcomes, Ratings, Scores
from tests.tiers import slow

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


def counted_one_by_one(blocks: QueryBlocks) -> tuple[Survey, dict[tuple[str, str], float]]:
    """Sizes, kinds, grades, ranks and findings by plain loops over every passage."""
    found = build_survey(blocks, 0)
    known = blocks.of(blocks.queries)
    number = {query: i for i, query in enumerate(blocks.queries)}
    sizes: dict[str, Counter[int]] = {system: Counter() for system in blocks.systems}
    kinds: Counter[tuple[str, str]] = Counter()
    points: dict[tuple[str, str], float] = {}
    ranks: dict[tuple[str, int], dict[int, float]] = {}
    for (system, query), passages in known.shown.items():
        sizes[system][len(passages)] += 1
        for each in passages:
            if each.utility is not None:
                kinds[system, passage_kind(each.utility)] += 1
                points[query, each.passage] = each.utility
                ranks.setdefault((system, each.rank), {})[number[query]] = each.utility
    grades = Counter((system, grade) for (system, _), some in known.answers.items() for grade in some)
    columns = sorted(ranks)
    values = np.full((len(number), len(columns)), np.nan)
    for i, column in enumerate(columns):
        values[list(ranks[column]), i] = list(ranks[column].values())
    examiner, bits = Examiner(), np.zeros_like(found.found)
    for system, query, finding in examiner.examine(known).select("system", "query", "finding").iter_rows():
        bits[blocks.systems.index(system), number[query]] |= 1 << list(FINDINGS).index(finding)
    plain = replace(
        found,
        sizes=sizes,
        kinds=kinds,
        grades=grades,
        ranks=found.ranks._replace(columns=columns, values=values),
        examiner=examiner,
        found=bits,
    )
    return plain, points


@pytest.mark.parametrize(
    ("seed", "block"), [(0, 7), *slow((0, 1000), (1, 7), (1, 1000), (2, 7), (2, 1000), (3, 7), (3, 1000))]
)
def test_arrays_count_what_loops_count(seed: int, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_blocks, "BLOCK", block)
    results = random_results(seed)
    blocks = QueryBlocks(results, results.contexts, 1.0, 3.0)
    made = build_survey(blocks, 0)
    plain, points = counted_one_by_one(blocks)
    assert (made.sizes, made.kinds, made.grades) == (plain.sizes, plain.kinds, plain.grades)
    assert made.kinds and made.grades
    assert made.ranks.columns == plain.ranks.columns
    assert np.array_equal(made.ranks.values, plain.ranks.values, equal_nan=True)
    assert np.array_equal(made.found, plain.found)
    nothing = pl.DataFrame(schema=dict.fromkeys(("system", "query", "finding", "detail"), pl.String))
    mine, theirs = made.examiner.diagnosis(nothing), plain.examiner.diagnosis(nothing)
    assert mine.counts.equals(theirs.counts) and mine.absent == theirs.absent
    assert set(mine.counts.filter(pl.col("n") > 0)["finding"]) == set(FINDINGS)  # every rule was tried
    assert made.points.total == len(points)
    drawn = {(query, passage): utility for query, passage, utility in made.points.frame.iter_rows()}
    assert drawn == points  # fewer than POINTS, so all of them


def test_relevance_and_utility_of_each_passage() -> None:
    """By look-ups in dicts: labels first, then ratings, and nothing for queries without either."""
    for seed in range(4):
        results = random_results(seed)
        blocks = QueryBlocks(results, results.contexts, 1.0, 3.0)
        labels: dict[tuple[str, str], float | None] = {}
        abstention: dict[tuple[str, str], float | None] = {}
        ratings: dict[tuple[str, str], float | None] = {}
        assert results.judgments is not None and results.ratings is not None
        for query, passage, aspect, value, _, _ in results.judgments.frame.iter_rows():
            (labels if aspect == "relevance" else abstention)[query, passage] = value
        for query, passage, _, value, _, _ in results.ratings.frame.iter_rows():
            ratings[query, passage] = value
        labelled, rated = ({query for query, _ in table} for table in (labels, ratings))
        for (_, query), passages in blocks.of(blocks.queries).shown.items():
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


def test_kinds_at_their_limits() -> None:
    utility = [1.0, 0.2, 1 - 0.8, 0.2 - 1e-9, 0.0, -0.2 + 1e-9, -(1 - 0.8), -0.8, -(1 - 0.2), -0.8 - 1e-9, -1.0]
    names = ("helpful", "harmless", "distracting", "misleading")
    assert [names[i] for i in kinds_of(np.array(utility))] == [passage_kind(u) for u in utility]
    assert kinds_of(np.array([np.nan])).tolist() == [-1]


def test_words_are_hashed_without_case_and_punctuation() -> None:
    frame = pl.DataFrame({"passage": list("abcdef"), "text": TEXTS})
    cat, same, dog, nothing, street, capitals = hashed_words(frame)["words"]
    assert cat == same != dog
    assert nothing == 0
    assert street == capitals != 0
