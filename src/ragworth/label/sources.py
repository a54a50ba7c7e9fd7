"""What items are made from: texts, what systems showed and answered, and judgments so far.

A source is opened from a workspace, a results folder or files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import polars as pl

from ragworth.calls.programs import NoValue
from ragworth.core.errors import InputError, format_list
from ragworth.data import ANSWERED_STATUSES, Answers, Contexts, Judgments, Outcomes, Ratings
from ragworth.data.collection import Collection
from ragworth.evaluation.inputs import EvaluationInputs, load_inputs
from ragworth.evaluation.stage_cache import STAGES_FOLDER, StageCache
from ragworth.evaluation.state import stage_table
from ragworth.judging.text_lookup import Subquestion, TextLookup
from ragworth.results import MANIFEST, Results
from ragworth.workspace.problems import Problems
from ragworth.workspace.read import read

DEFAULT_K = 5


class SystemAnswer(NamedTuple):
    """An answer of a system."""

    system: str
    query: str
    repeat: str
    text: str


@dataclass(frozen=True)
class LabelSource:
    """Everything that a workspace, a results folder or files have to label.

    Attributes
    ----------
    k: passages of each system and query that are labelled.
    seed: of everything that is drawn or shuffled.
    left_out: how many units could not become items, by reason.
    """

    collection: Collection
    contexts: Contexts | None = None
    answers: Answers | None = None
    judgments: tuple[Judgments, ...] = ()
    ratings: Ratings | None = None
    outcomes: Outcomes | None = None
    k: int = 5
    seed: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    @cached_property
    def texts(self) -> TextLookup:
        return TextLookup(self.collection)

    @cached_property
    def queries(self) -> list[str]:
        """All queries with a text, in order."""
        return self.collection.queries["query"].to_list()

    def pooled_passages(self) -> Iterator[tuple[str, str]]:
        """Each query with each passage that some system shows among its first k, in order of the best rank.

        Without contexts, the passages that have a label.
        """
        if self.contexts is not None:
            frame = self.contexts.cut(self.k).frame
            best = frame.group_by("query", "passage", maintain_order=True).agg(pl.col("rank").min())
            order = {query: at for at, query in enumerate(dict.fromkeys(frame["query"]))}
            rows = best.sort(pl.col("query").replace_strict(order, return_dtype=pl.Int64), "rank", maintain_order=True)
        else:
            frames = [table.frame.select("query", "passage") for table in self.judgments]
            empty = pl.DataFrame(schema={"query": pl.String, "passage": pl.String})
            rows = pl.concat([empty, *frames]).unique(maintain_order=True)
        yield from rows.select("query", "passage").iter_rows()

    @cached_property
    def written_answers(self) -> list[SystemAnswer]:
        """All answers with a text."""
        if self.answers is None:
            return []
        good = self.answers.frame.filter(pl.col("status").is_in(ANSWERED_STATUSES))
        if missing := self.answers.frame.height - good.height:
            self.left_out["no answer"] += missing
        rows = good.select("system", "query", pl.col("repeat").cast(pl.String), "text").iter_rows()
        return [SystemAnswer(*row) for row in rows]

    def passages_by_query(self) -> dict[str, list[str]]:
        """`pooled_passages`, by query."""
        found: dict[str, list[str]] = {}
        for query, passage in self.pooled_passages():
            found.setdefault(query, []).append(passage)
        return found

    def subquestions(self, query: str) -> tuple[Subquestion, ...]:
        """The sub-questions of a query; a query without any is counted as left out."""
        try:
            return self.texts.subquestions(query)
        except NoValue as missing:
            self.left_out[missing.status] += 1
            return ()

    @cached_property
    def _answer_texts(self) -> dict[tuple[str, str, str], str]:
        return {(one.system, one.query, one.repeat): one.text for one in self.written_answers}

    def answer_text(self, system: str, query: str, repeat: str) -> str:
        return self._answer_texts[system, query, repeat]

    @cached_property
    def first_answers(self) -> dict[str, dict[str, SystemAnswer]]:
        """The first answer of each system, by query and system."""
        found: dict[str, dict[str, SystemAnswer]] = {}
        for answer in self.written_answers:
            found.setdefault(answer.query, {}).setdefault(answer.system, answer)
        return found

    def relevant_passage(self, query: str) -> str:
        """The text of the passage with the best label; empty if there is none."""
        try:
            return self.texts.passage(self.texts.relevant(query)[0])
        except NoValue:
            return ""

    @cached_property
    def shown_passages(self) -> dict[str, dict[str, list[str]]]:
        """The first k passages of each context, by query and system."""
        found: dict[str, dict[str, list[str]]] = {}
        if self.contexts is not None:
            rows = self.contexts.cut(self.k).frame.group_by("query", "system", maintain_order=True).agg("passage")
            for query, system, passages in rows.iter_rows():
                found.setdefault(query, {})[system] = passages
        return found

    def context_text(self, system: str, query: str) -> str:
        """The passages of a system's context, in order, with a number before each."""
        passages = [self.texts.passage(passage) for passage in self.shown_passages[query][system]]
        return "\n\n".join(f"[{number}] {text}" for number, text in enumerate(passages, 1))


def open_label_source(paths: Sequence[str | Path], *, k: int | None = None, seed: int = 0) -> LabelSource:
    """What there is to label in a results folder, a workspace or files.

    A workspace that has been evaluated is opened at its results, which have what its systems retrieved and answered;
    without results, at what its cache has of these.
    ``k`` is by default that of the workspace or results.
    """
    if k is not None and k < 1:
        raise InputError(f"k is {k}", expected="1 or more")
    if len(paths) == 1 and _are_results(Path(paths[0])):
        return source_of_results(Results.read(paths[0]), k=k, seed=seed)
    space = read(paths).workspace
    if _are_results(space.path(space.results)):
        return source_of_results(Results.read(space.path(space.results)), k=k or space.k, seed=seed)
    problems = Problems(space)
    inputs = load_inputs(space, problems)
    problems.done()
    assert inputs is not None
    return _source_of_inputs(inputs, k or space.k, seed)


def source_of_results(results: Results, *, k: int | None = None, seed: int = 0) -> LabelSource:
    """What there is to label in results; ``k`` is by default the depth to which they were evaluated."""
    settings = results.manifest.get("settings", {})
    return LabelSource(
        results.collection,
        results.contexts,
        results.answers,
        (results.judgments,) if results.judgments is not None else (),
        results.ratings,
        results.outcomes,
        k or settings.get("k") or DEFAULT_K,
        seed,
    )


def _are_results(path: Path) -> bool:
    return (path / MANIFEST).is_file()


def _source_of_inputs(inputs: EvaluationInputs, k: int, seed: int) -> LabelSource:
    """Return what to label in files, and the workspace's contexts and answers if no results were written."""
    runs = [system for system in inputs.systems.values() if isinstance(system, Contexts)]
    pipelines = [name for name, system in inputs.systems.items() if not isinstance(system, Contexts)]
    contexts = Contexts.concat(runs) if runs else None
    answers = inputs.answers.table if inputs.answers is not None else None
    if pipelines:
        cache = StageCache(inputs.workspace.path(inputs.workspace.cache) / STAGES_FOLDER)
        retrieved, answered = cache.latest("retrieve"), cache.latest("answer")
        contexts = stage_table(retrieved, "contexts", Contexts) if retrieved is not None else None
        if lacking := [name for name in pipelines if contexts is None or name not in contexts.systems]:
            raise InputError(
                f"{format_list(lacking)} {'has' if len(lacking) == 1 else 'have'} not retrieved anything yet",
                file=str(inputs.workspace.folder),
                remedy=f"run `ragworth evaluate {inputs.workspace.folder} --until retrieve` first",
            )
        assert contexts is not None
        contexts = contexts.having("query", inputs.queries)
        if answers is None and answered is not None:
            answers = Answers.trusted(answered.frames["said"]).having("query", inputs.queries)
    return LabelSource(
        inputs.collection,
        contexts,
        answers,
        tuple(inputs.given),
        inputs.collection.ratings,
        inputs.outcomes,
        k,
        seed,
    )
