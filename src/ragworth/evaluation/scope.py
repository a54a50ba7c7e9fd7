"""Restrict tables to the evaluated queries and systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import polars as pl

from ragworth.core.errors import format_count, format_list, quote_short
from ragworth.data import Answers, Judgments, Outcomes, Ratings
from ragworth.data.collection import Collection
from ragworth.judging.answers import NO_CONTEXT_SYSTEM, ORACLE_SYSTEM, AnsweringResult, shown_contexts
from ragworth.metrics.scoring_job import spelling_hint
from ragworth.workspace.problems import Problems


@dataclass(frozen=True)
class EvaluationScope:
    """Restricts tables to the evaluated queries and systems, and notes what is left out."""

    queries: Sequence[str]
    systems: Sequence[str]
    problems: Problems
    folder: Path
    notes: list[str]
    is_limited: bool = False
    """Whether only some of the queries are evaluated."""

    def queried(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The rows of these queries; a source that is a file is named from the workspace on, as its file has it."""
        known = frame.select(pl.col("query").is_in(self._ids)).to_series()
        mine = frame if known.all() else frame.filter(known)
        if "source" not in mine.columns:
            return mine
        folder = str(self.folder / "_").removesuffix("_")
        sources = mine.select(pl.col("source").unique()).to_series()
        if not sources.str.starts_with(folder).any():
            return mine
        if len(sources) == 1:
            return mine.with_columns(pl.lit(sources[0].removeprefix(folder)).alias("source"))
        return mine.with_columns(pl.col("source").str.strip_prefix(folder))

    def judgments(self, table: Judgments) -> Judgments:
        return Judgments.trusted(self.queried(table.frame), table.notes)

    @cached_property
    def _ids(self) -> pl.Series:
        """The queries as a list, for a look-up."""
        return pl.Series(list(self.queries), dtype=pl.String).implode()

    def collection(self, collection: Collection) -> Collection:
        """The collection with these queries, and with all passages."""
        relevance, ratings = collection.relevance, collection.ratings
        self._note_spelling(collection.answers, "accepted answers")
        self._note_spelling(collection.subquestions, "sub-questions")
        if relevance is not None:
            self._note_spelling(relevance.frame, "relevance labels")
        return replace(
            collection,
            queries=self.queried(collection.queries),
            answers=self.queried(collection.answers),
            subquestions=self.queried(collection.subquestions),
            turns=self.queried(collection.turns),
            relevance=None if relevance is None else self.judgments(relevance),
            ratings=None if ratings is None else Ratings.trusted(self.queried(ratings.frame), ratings.notes),
        )

    def answers(self, given: AnsweringResult) -> AnsweringResult | None:
        if not given.frame.height:
            return None
        frame = self._compared(given.frame, "answers", "answers", "file")
        return AnsweringResult(Answers.trusted(frame, given.notes), frame, shown_contexts(frame), given.notes)

    def outcomes(self, given: Outcomes) -> Outcomes | None:
        if not len(given):
            return None
        return Outcomes.trusted(self._compared(given.frame, "outcomes", "grades", "files"), given.notes)

    def _compared(self, frame: pl.DataFrame, what: str, *path: str) -> pl.DataFrame:
        """Rows of the evaluated systems; it is a problem if there are none."""
        known = [*self.systems, NO_CONTEXT_SYSTEM, ORACLE_SYSTEM]
        strange = frame.filter(~pl.col("system").is_in(known))["system"].unique(maintain_order=True).to_list()
        few = format_list([quote_short(name, 24) for name in strange], 3)
        mine = self.queried(frame.filter(pl.col("system").is_in(known)))
        if len(mine) + frame.filter(~pl.col("system").is_in(known)).height < frame.height:
            pairs = frame.filter(pl.col("system").is_in(known)).select("system", "query").unique(maintain_order=True)
            for part in pairs.partition_by("system", maintain_order=True):
                self._note_spelling(part, f"{what} of {part['system'][0]}")
        if strange and mine.height:
            has = set(mine["system"].unique())
            lacking = pl.Series([name for name in known if name not in has], dtype=pl.String)
            if hint := spelling_hint(pl.Series(strange), lacking, "evaluated", ("system", "systems")):
                self.problems.say(f"{what}: {hint}", "name systems alike in all files", *path)
            self.notes.append(
                f"{what} of {format_count(len(strange), 'system')} are left out, not being evaluated ({few})"
            )
        if not mine.height:
            names = format_list([quote_short(name, 24) for name in self.systems], 5)
            found = f"no {what} are of a system and a query that are evaluated"
            self.problems.say(found, f"name systems alike: there {few or 'as here'}, here {names}", *path)
        return mine

    def _note_spelling(self, frame: pl.DataFrame, what: str) -> None:
        """Note rows that are left out because their queries are spelt otherwise than those evaluated."""
        theirs, mine = frame["query"].unique(maintain_order=True), pl.Series(list(self.queries), dtype=pl.String)
        unknown, lacking = theirs.filter(~theirs.is_in(self._ids)), mine.filter(~mine.is_in(theirs.implode()))
        hint = spelling_hint(unknown, lacking, "evaluated") if len(unknown) else ""
        if len(unknown) and not hint and not self.is_limited:
            few = format_list([quote_short(query, 24) for query in unknown], 3)
            hint = f"{format_count(len(unknown), 'query', 'queries')} left out, not being evaluated ({few})"
        if hint:
            self.notes.append(f"{what}: {hint}")
