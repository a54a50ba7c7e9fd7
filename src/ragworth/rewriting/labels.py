"""Label rewrites by the utility of what they retrieve; rewrites that retrieve the same context are labelled once."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import polars as pl

from ragworth.calls.job import Job
from ragworth.calls.programs import Forecast
from ragworth.core.errors import InputError, format_count, format_list, quote_short
from ragworth.data import OK, Contexts
from ragworth.data.collection import Collection
from ragworth.judging.contract import plan_task, run_task
from ragworth.judging.judge import AnnotationItem, Annotator
from ragworth.judging.rewriter import EMPTY_REWRITE
from ragworth.judging.runner import annotation_items
from ragworth.retrieval.execution import retrieve
from ragworth.retrieval.pipeline import Pipeline, StepContext, passages_by_query
from ragworth.rewriting.tables import LABELS
from ragworth.rewriting.utilities import KeyEntropyUtility, Utility, UtilityValue, Values

DEFAULT_PIPELINE = "bm25 % 10"
SYSTEM = "rewrites"

EMPTY_CONTEXT = "empty-context"
"""Status of a rewrite that retrieves nothing: the reader would see no passage."""


@dataclass(frozen=True)
class RewriteLabels:
    """Labels, and how many contexts they come from."""

    frame: pl.DataFrame
    contexts: int
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        reasons = Counter(self.frame["status"].to_list())
        missing = ", ".join(f"{status} {number:,}" for status, number in reasons.most_common() if status != OK)
        words = (
            f"{format_count(self.frame.height, 'rewrite')} retrieve {format_count(self.contexts, 'distinct context')}; "
            f"{reasons[OK]:,} {'has' if reasons[OK] == 1 else 'have'} a value"
        )
        return f"{words}; without one: {missing}" if missing else words


@dataclass(frozen=True, eq=False)
class RewriteLabelling:
    """Candidates to label. Nothing is asked before `run`."""

    candidates: pl.DataFrame
    collection: Collection
    utility: Utility = field(default_factory=KeyEntropyUtility)
    pipeline: str = DEFAULT_PIPELINE
    prompts: str | None = None
    cache: Path | None = None

    def __post_init__(self) -> None:
        self.utility.check(self.collection)
        known = set(self.collection.queries["query"])
        unknown = [query for query in self.candidates["query"].unique(maintain_order=True) if query not in known]
        if unknown:
            few = format_list([quote_short(query, 24) for query in unknown], 3)
            raise InputError(
                f"candidates of {format_count(len(unknown), 'query', 'queries')} that the collection lacks ({few})",
                expected="candidates of the collection's turns",
            )

    @cached_property
    def shown(self) -> dict[str, tuple[str, ...]]:
        """The passages that each text retrieves."""
        return retrieve_by_text(self.candidates["text"].to_list(), self.collection, self.pipeline, self.cache)

    @cached_property
    def contexts(self) -> Contexts:
        """The distinct contexts of each turn."""
        found: dict[tuple[str, str], tuple[str, ...]] = {}
        for query, text in self.candidates.select("query", "text").iter_rows():
            if passages := self.shown.get(text):
                found.setdefault((query, context_key(passages)), passages)
        return distinct_contexts(found)

    @property
    def distinct(self) -> int:
        """How many contexts are labelled."""
        return self.contexts.frame.select("system", "query").n_unique()

    def _work(self, job: Job | None) -> list[tuple[Annotator, list[AnnotationItem]]]:
        if job is None or not self.distinct:
            return []
        annotators = self.utility.annotators(job.card, self.collection, self.prompts)
        return [(each, annotation_items(each, self.contexts, self.collection)) for each in annotators]

    def plan(self, job: Job) -> list[Forecast]:
        """Count the calls that `run` would make."""
        return [plan_task(annotator, items, job) for annotator, items in self._work(job)]

    def run(self, job: Job | None) -> RewriteLabels:
        """Label all candidates."""
        results = [run_task(annotator, items, job) for annotator, items in self._work(job)]
        values = self.utility.values(self.contexts, self.collection, results) if self.distinct else {}
        columns = self.candidates.select("query", "candidate", "text")
        rows = [self._row(query, name, text, values) for query, name, text in columns.iter_rows()]
        notes = [note for result in results for note in result.notes]
        return RewriteLabels(pl.DataFrame(rows, schema=dict(LABELS), orient="row"), self.distinct, tuple(notes))

    def _row(self, query: str, candidate: str, text: str, values: Values) -> Sequence[object]:
        passages = self.shown.get(text, ())
        key = context_key(passages)
        if not text.strip():
            found = UtilityValue(None, EMPTY_REWRITE, "the rewrite is empty")
        elif not passages:
            found = UtilityValue(None, EMPTY_CONTEXT, "the rewrite retrieves nothing")
        else:
            found = values[query, key]
        reason = found.reason or None
        return (query, candidate, text, key, self.utility.kind, found.value, found.status, reason, found.source)


def retrieve_by_text(
    texts: Sequence[str], collection: Collection, pipeline: str = DEFAULT_PIPELINE, cache: Path | None = None
) -> dict[str, tuple[str, ...]]:
    """The passages that each text retrieves, in order; equal texts are searched once, empty ones not at all.

    The pipeline sees nothing but the text: a step that needs to know the turn, such as one that goes by relevance
    labels, is an error.
    """
    parsed = check_pipeline(pipeline)
    wanted = [text for text in dict.fromkeys(texts) if text.strip()]
    if not wanted:
        return {}
    ids = [f"text-{number}" for number in range(len(wanted))]
    queries = pl.DataFrame({"query": ids, "text": wanted}, schema=dict.fromkeys(("query", "text"), pl.String))
    searched = replace(collection, queries=queries, turns=collection.turns.clear(), relevance=None)
    found = passages_by_query(retrieve({SYSTEM: parsed}, StepContext.of(searched, cache=cache)))
    return {text: tuple(found.get(name, ())) for name, text in zip(ids, wanted, strict=True)}


def check_pipeline(pipeline: str) -> Pipeline:
    """Parse a pipeline that searches with given rewrites, so it goes by their text alone."""
    parsed = Pipeline.of(pipeline).complete()
    if lacking := [str(step) for step in parsed.steps if set(step.needs) & {"relevance", "judgments"}]:
        raise InputError(f"{', '.join(lacking)} goes by labels of the turn", expected="steps that go by the text alone")
    if any(step.rewrites for step in parsed.steps):
        raise InputError(f"the pipeline is {pipeline!r}", expected="no step that rewrites: the rewrites are given")
    return parsed


def context_key(passages: Sequence[str]) -> str:
    """A short key of passages in their order; empty for none."""
    if not passages:
        return ""
    digest = hashlib.sha256("".join(f"{len(each)} {each}\n" for each in passages).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]


def distinct_contexts(shown: Mapping[tuple[str, str], tuple[str, ...]]) -> Contexts:
    """Contexts by (query, key), with the key as the system, so that each distinct one is judged once."""
    rows = [
        (key, query, rank, passage, None)
        for (query, key), passages in shown.items()
        for rank, passage in enumerate(passages, 1)
    ]
    return Contexts.trusted(pl.DataFrame(rows, schema=dict(Contexts.schema), orient="row"))
