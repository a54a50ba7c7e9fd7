"""What the report counts: sizes and grades of all contexts; the worth of passages and findings of those examined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.data import Contexts
from ragworth.diagnosis import ContextFacts, Diagnosis, all_queries, diagnose, gather_facts, nearest_grade, passage_kind
from ragworth.diagnosis.context_facts import PassageFacts, grade_values
from ragworth.results import Results

MAX_EXAMINED = 20_000
"""Contexts that are examined; of more, those of a random sample of the queries."""

DEEPEST = 20
"""Ranks drawn at most."""

MAX_POINTS = 1500
"""Passages of the scatter at most; more are drawn at random."""


class RankUtilities(NamedTuple):
    """The utility at each rank: queries × (system, rank), NaN where it is not known."""

    columns: list[tuple[str, int]]
    values: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Survey:
    """What the report says of all queries together; ``facts`` and ``diagnosis`` are of the queries ``examined``."""

    queries: pl.Series
    sizes: Mapping[str, Counter[int]]
    """By system, how many contexts have how many passages."""
    grades: Counter[tuple[str, str | None]]
    """By system and grade, answers; None where an answer could not be graded."""
    ungraded: str
    """Why there are no grades; nothing where there are."""
    passages: int
    """Different passages shown."""
    examined: pl.Series
    facts: ContextFacts
    diagnosis: Diagnosis
    seed: int

    @property
    def sample_note(self) -> str:
        """Which queries were examined, as a sentence; nothing where it was all of them."""
        if len(self.examined) == len(self.queries):
            return ""
        some = f"{len(self.examined):,} of {len(self.queries):,} queries"
        return f"Passages were examined for {some}, drawn at random (seed {self.seed})."

    @cached_property
    def shown(self) -> Counter[str]:
        """By system, passages in the contexts examined."""
        return Counter(system for system, _, _ in self._each())

    @cached_property
    def kinds(self) -> Counter[tuple[str, str]]:
        """By system and kind, those whose utility is known."""
        known = ((system, each.utility) for system, _, each in self._each() if each.utility is not None)
        return Counter((system, passage_kind(utility)) for system, utility in known)

    def judged(self, system: str) -> int:
        """Those of a system whose utility is known."""
        return sum(number for (name, _), number in self.kinds.items() if name == system)

    @cached_property
    def reader_judged(self) -> Counter[str]:
        """By system, those whose relevance the reader judged itself."""
        return Counter(system for system, _, each in self._each() if each.own)

    @cached_property
    def ranks(self) -> RankUtilities:
        """The utility at each rank, of the queries examined."""
        number = {query: i for i, query in enumerate(self.examined)}
        place = {system: i for i, system in enumerate(self.sizes)}
        found: dict[tuple[str, int], npt.NDArray[np.float64]] = {}
        for system, query, each in self._each():
            if each.utility is not None and each.rank <= DEEPEST:
                values = found.setdefault((system, each.rank), np.full(len(number), np.nan))
                values[number[query]] = each.utility
        columns = sorted(found, key=lambda column: (place[column[0]], column[1]))
        return RankUtilities(columns, np.array([found[column] for column in columns]).T)

    @cached_property
    def points(self) -> pl.DataFrame:
        """query, passage and utility of each passage that has one."""
        rows = {(query, each.passage): each.utility for _, query, each in self._each() if each.utility is not None}
        schema = {"query": pl.String, "passage": pl.String, "utility": pl.Float64}
        return pl.DataFrame([(*pair, utility) for pair, utility in rows.items()], schema=schema, orient="row")

    def _each(self) -> Iterator[tuple[str, str, PassageFacts]]:
        for (system, query), passages in self.facts.shown.items():
            for each in passages:
                yield system, query, each


def build_survey(results: Results, seed: int, rel: float, eta: float) -> Survey:
    """Count everything. ``results`` have the contexts that the model was shown."""
    contexts, graded = results.contexts, results.said.get("grade")
    queries = pl.Series("query", all_queries(contexts), dtype=pl.String)
    most = max(MAX_EXAMINED // max(len(contexts.systems), 1), 1)
    examined = queries
    if len(queries) > most:
        drawn = np.random.default_rng(seed).choice(len(queries), most, replace=False)
        examined = queries.gather(np.sort(drawn))
    facts = known_facts(results, examined, rel, eta)
    grades = grade_values(results.outcomes, graded)
    return Survey(
        queries,
        _sizes(contexts),
        Counter() if isinstance(grades, str) else _grades(grades),
        grades if isinstance(grades, str) else "",
        contexts.frame["passage"].n_unique(),
        examined,
        facts,
        diagnose(facts),
        seed,
    )


def known_facts(results: Results, queries: pl.Series, rel: float, eta: float) -> ContextFacts:
    """The facts of some queries."""
    part = results if len(queries) == len(all_queries(results.contexts)) else select_queries(results, queries)
    return gather_facts(
        part.contexts,
        judgments=part.judgments,
        ratings=part.ratings,
        outcomes=part.outcomes,
        graded=part.said.get("grade"),
        passages=part.collection.passages,
        subquestions=part.collection.subquestions,
        rel=rel,
        eta=eta,
    )


def _sizes(contexts: Contexts) -> dict[str, Counter[int]]:
    sizes: dict[str, Counter[int]] = {system: Counter() for system in contexts.systems}
    counts = contexts.frame.group_by("system", "query").len("size").group_by("system", "size").len("contexts")
    for system, size, number in counts.iter_rows():
        sizes[system][size] += number
    for system, _ in contexts.empty:
        sizes[system][0] += 1
    return sizes


def _grades(values: pl.DataFrame) -> Counter[tuple[str, str | None]]:
    counts: Counter[tuple[str, str | None]] = Counter()
    for system, value, number in values.explode("values").group_by("system", "values").len().iter_rows():
        counts[system, None if value is None else nearest_grade(value)] += number
    return counts


def select_queries(results: Results, queries: pl.Series) -> Results:
    """Results with the rows of some queries alone, and the passages that they show."""
    wanted = set(queries)
    contexts = Contexts.trusted(_select_rows(results.contexts.frame, queries), results.contexts.notes)
    contexts.empty = frozenset(pair for pair in results.contexts.empty if pair[1] in wanted)
    texts = results.collection
    collection = replace(
        texts,
        queries=_select_rows(texts.queries, queries),
        answers=_select_rows(texts.answers, queries),
        subquestions=_select_rows(texts.subquestions, queries),
        turns=_select_rows(texts.turns, queries),
        passages=texts.passages.join(
            contexts.frame.select("passage").unique(), on="passage", how="semi", maintain_order="left"
        ),
    )
    tables = {name: getattr(results, name) for name in ("judgments", "ratings", "answers", "outcomes", "scores")}
    fewer = {
        name: type(table).trusted(_select_rows(table.frame, queries), table.notes)
        for name, table in tables.items()
        if table is not None
    }
    said = {name: _select_rows(frame, queries) for name, frame in results.said.items()}
    return replace(results, collection=collection, contexts=contexts, said=said, **fewer)


def _select_rows(frame: pl.DataFrame, queries: pl.Series) -> pl.DataFrame:
    """The rows of some queries; all of a frame that has none."""
    if "query" not in frame.columns:
        return frame
    return frame.join(queries.rename("query").to_frame(), on="query", how="semi", maintain_order="left")
