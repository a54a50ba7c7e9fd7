"""Contexts built from labels and judgments: ``oracle``, ``adversary`` and ``best_by``.

They show how good and how bad contexts could be. Relevant passages at chosen positions, and among distractors of
chosen kinds, are what `ragworth.studies` compare.

A passage is relevant if its label is at least `level`. A failed judgment counts as unjudged. If the collection has
texts of passages, only passages with a text are shown. An unlabelled passage that copies a relevant one holds its
answer, so it counts as neither relevant nor irrelevant (`find_copies`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import polars as pl

from ragworth.core.errors import InputError, format_count, format_list, quote_short
from ragworth.data import Contexts
from ragworth.judging import ANNOTATORS
from ragworth.judging.contract import option as named
from ragworth.retrieval.pipeline import (
    Need,
    Place,
    Step,
    StepContext,
    argument,
    judged_values,
    passages_by_query,
    unscored_contexts,
)
from ragworth.retrieval.steps.reorder import query_rng, sample_passages

SPARE = 30
"""Passages drawn at random beyond those needed, because some may copy a relevant one."""

UTILITY, RELEVANCE = "utility", "relevance"

NEGATION = re.compile(r"\b(?:no|not|never|none|nor|neither|without|cannot|[a-z]+n t)\b")
NEAR = 0.85
"""Jaccard similarity of the runs of two texts from which on one is a copy of the other."""
RUN = 4
SHORTEST_CONTAINED = 40
"""Characters from which on a text that contains a relevant one is a copy. A shorter one may be just a name."""


def find_copies(passages: Iterable[str], relevant: Iterable[str], text: Callable[[str], str]) -> set[str]:
    """Return those of the passages that copy a relevant one. ``text`` is empty for a passage without one."""
    originals = [original for each in relevant if (original := _plain_words(text(each)))]
    return {each for each in passages if any(_is_copy(_plain_words(text(each)), original) for original in originals)}


@lru_cache(maxsize=1 << 14)
def _plain_words(text: str) -> str:
    """Return a text without case, marks and blanks; many queries have the same candidates."""
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold()))


def _is_copy(words: str, original: str) -> bool:
    """Return whether a text has the same words, contains the original, or is nearly the same.

    With another number or a "not" more (in English) it is no copy: it may be an outdated or a wrong version, which is
    what an irrelevant passage is for.
    """
    if words == original or (len(original) >= SHORTEST_CONTAINED and original in words):
        return True
    few, many = sorted((len(words), len(original)))
    if few < NEAR * many or set(re.findall(r"\d+", words)) != set(re.findall(r"\d+", original)):
        return False
    if len(NEGATION.findall(words)) != len(NEGATION.findall(original)):
        return False
    runs, original_runs = _runs(words), _runs(original)
    return len(runs & original_runs) >= NEAR * len(runs | original_runs)


def _runs(words: str) -> set[str]:
    return {words[at : at + RUN] for at in range(max(1, len(words) - RUN + 1))}


def describe_queries(reasons: Mapping[str, Sequence[str]]) -> str:
    """Count and list queries by reason."""
    return "; ".join(
        f"{reason}: {format_count(len(queries), 'query', 'queries')} "
        f"({format_list([quote_short(each, 24) for each in queries], 3)})"
        for reason, queries in reasons.items()
    )


@dataclass(frozen=True)
class LabelledStep(Step):
    """Base class of steps that use labels."""

    level: float = named(1.0, "lowest label of a relevant passage")

    place: ClassVar[Place] = "either"
    needs: ClassVar[tuple[Need, ...]] = ("relevance",)
    control: ClassVar[bool] = True

    def judged(self, context: StepContext, query: str, *, relevant: bool) -> list[str]:
        """Passages judged relevant, or irrelevant: highest label first, ties by id descending."""
        labels = context.labels.get(query, {})
        ranked = [
            (label, passage)
            for passage, label in labels.items()
            if (label >= self.level) == relevant and (passage in context.passage_ids or not context.passage_ids)
        ]
        return [passage for _, passage in sorted(ranked, reverse=True)]

    def is_relevant(self, context: StepContext, query: str, passage: str) -> bool:
        label = context.labels.get(query, {}).get(passage)
        return label is not None and label >= self.level

    def retrieved(self, before: Contexts | None, context: StepContext) -> dict[str, list[str]]:
        """Retrieved passages of each query, in order, without blank ones."""
        retrieved = passages_by_query(before) if before is not None else {}
        blank = context.blank_ids | {each for each, text in context.returned_texts.items() if not text.strip()}
        return {query: [each for each in ids if each not in blank] for query, ids in retrieved.items()}

    def copies(self, candidates: Mapping[str, Iterable[str]], context: StepContext) -> dict[str, set[str]]:
        """Unlabelled candidates of each query that copy a relevant passage."""
        relevant = {query: self.judged(context, query, relevant=True) for query in candidates}
        unlabelled = {
            query: [each for each in passages if each not in context.labels[query]]
            for query, passages in candidates.items()
            if relevant[query]
        }
        ids = {each for query, passages in unlabelled.items() for each in (*passages, *relevant[query])}
        texts = dict(
            context.texts.passages.filter(pl.col("passage").is_in(list(ids))).select("passage", "text").iter_rows()
        )
        copies = {
            query: find_copies(passages, relevant[query], lambda each: texts.get(each, ""))
            for query, passages in unlabelled.items()
        }
        return {query: some for query, some in copies.items() if some}

    def copy_notes(self, copies: Mapping[str, set[str]]) -> tuple[str, ...]:
        """How many passages were left out as copies."""
        if not copies:
            return ()
        number = format_count(sum(map(len, copies.values())), "unlabelled passage")
        reason = f"{number} with the text of a relevant one, or nearly so"
        return (f"{self} leaves out {describe_queries({reason: list(copies)})}",)


@dataclass(frozen=True)
class Oracle(LabelledStep):
    """Only relevant passages: first those retrieved, in order, then the others, highest label first.

    As a first step, it returns all relevant passages of a query. A query without any gets nothing.
    """

    fill: bool = named(True, "add relevant passages that were not retrieved")

    kind: ClassVar[str] = "oracle"
    title: ClassVar[str] = "only relevant passages, by their labels"
    bounded: ClassVar[bool] = False

    def apply(self, before: Contexts | None, context: StepContext) -> Contexts:
        retrieved = self.retrieved(before, context)
        rows = []
        for query in context.ids:
            shown = [each for each in retrieved.get(query, []) if self.is_relevant(context, query, each)]
            if self.fill or before is None:
                shown = list(dict.fromkeys([*shown, *self.judged(context, query, relevant=True)]))
            rows.append((query, shown))
        contexts = unscored_contexts(rows)
        contexts.notes = self._notes(context)
        return contexts

    def _notes(self, context: StepContext) -> tuple[str, ...]:
        """How many relevant passages can't be shown because they have no text."""
        if not context.passage_ids:
            return ()
        lacking = {
            query: sum(each not in context.passage_ids for each in labels if self.is_relevant(context, query, each))
            for query in context.ids
            if (labels := context.labels.get(query))
        }
        without = [query for query, number in lacking.items() if number]
        words = f"{format_count(sum(lacking.values()), 'relevant passage')} without a text"
        return (f"{self} leaves out {describe_queries({words: without})}",) if without else ()


@dataclass(frozen=True)
class Adversary(LabelledStep):
    """No relevant passages: everything retrieved that isn't judged relevant, in order.

    As a first step, it returns the passages judged irrelevant, highest label first, then random unjudged ones.
    """

    seed: int = named(0, "changes the random passages, in addition to the global seed", low=0)

    kind: ClassVar[str] = "adversary"
    title: ClassVar[str] = "only irrelevant passages, by their labels"

    def apply(self, before: Contexts | None, context: StepContext) -> Contexts:
        if before is None:
            candidates = {query: self._worst(context, query) for query in context.ids}
        else:
            candidates = {
                query: [each for each in passages if not self.is_relevant(context, query, each)]
                for query, passages in self.retrieved(before, context).items()
            }
        copies = self.copies(candidates, context)
        kept = {
            query: [each for each in passages if each not in copies.get(query, ())]
            for query, passages in candidates.items()
        }
        depth = context.depth if before is None else None
        contexts = unscored_contexts((query, passages[:depth]) for query, passages in kept.items())
        contexts.notes = self.copy_notes(copies)
        return contexts

    def _worst(self, context: StepContext, query: str) -> list[str]:
        """Irrelevant passages: as many as the depth requires, and some to spare."""
        worst = self.judged(context, query, relevant=False)
        labels = context.labels.get(query, {})
        # As many more as are judged, so that enough remain after removing those.
        number = context.depth + len(labels) + SPARE
        drawn = sample_passages(context.passages, number, query_rng(self, context, query))
        return [*worst, *(each for each in drawn if each not in labels)]


def missing_judgments(context: StepContext, what: str, aspect: str) -> list[str]:
    """Report that judgments of an aspect are missing, if so."""
    if judged_values(context.judgments, aspect):
        return []
    aspects = [name for name in ANNOTATORS.names() if ANNOTATORS.get(name).unit == "passage"]
    if aspect in aspects:
        remedy = f"ragworth annotate {aspect} makes a file of them; what an evaluation has judged itself comes too late"
        return [f"{what} needs judgments of {aspect} beforehand, and there are none ({remedy})"]
    return [
        f"{what} needs judgments of {aspect}, and there are none: ragworth annotate makes {format_list(aspects, 9)}"
    ]


@dataclass(frozen=True)
class BestBy(LabelledStep):
    """Retrieved passages ranked by judgments: an oracle for each kind of judgment.

    ``utility`` is u = R·(1 − p_abstain), where R is 1 for relevant passages and −1 for others; ``relevance`` ranks
    relevant passages first; other names are aspects of judgments, highest value first. Ties keep their order. Passages
    without such a judgment are left out, and counted.
    """

    by: str = argument("", "utility, relevance, or an aspect of judgments such as downstream")

    kind: ClassVar[str] = "best_by"
    title: ClassVar[str] = "retrieved passages, best first by judgments"
    place: ClassVar[Place] = "behind"
    needs: ClassVar[tuple[Need, ...]] = ("judgments",)

    def check(self) -> None:
        if self.by == "abstention":
            raise InputError("best_by: abstention says how bad a passage is", expected='best_by("utility")')
        if not self.by:
            raise InputError("best_by lacks the name of a judgment", expected='a name, such as best_by("utility")')

    def problems(self, context: StepContext) -> list[str]:
        problems = []
        if self.by in (UTILITY, RELEVANCE) and (lack := context.why_missing("relevance")):
            problems.append(f"best_by lacks an input: {lack}")
        if self.by != RELEVANCE:
            problems += missing_judgments(context, f"best_by({self.by!r})", self._aspect)
        return problems

    def apply(self, before: Contexts | None, context: StepContext) -> Contexts:
        assert before is not None
        values = judged_values(context.judgments, self._aspect) if self.by != RELEVANCE else {}
        rows, without, left = [], [], 0
        for query, passages in self.retrieved(before, context).items():
            worth = {each: self._worth(context, query, each, values.get(query, {})) for each in passages}
            judged = {each: value for each, value in worth.items() if value is not None}
            rows.append((query, sorted(judged, key=judged.__getitem__, reverse=True)))
            left += len(passages) - len(judged)
            without += [query] * (len(judged) < len(passages))
        contexts = unscored_contexts(rows)
        if left:
            words = describe_queries({f"{format_count(left, 'passage')} without a judgment of {self._aspect}": without})
            contexts.notes = (f"{self} leaves out {words}",)
        return contexts

    @property
    def _aspect(self) -> str:
        return "abstention" if self.by == UTILITY else self.by

    def _worth(self, context: StepContext, query: str, passage: str, values: Mapping[str, float]) -> float | None:
        relevant = self.is_relevant(context, query, passage)
        if self.by == RELEVANCE:
            return float(relevant)
        value = values.get(passage)
        if value is None or self.by != UTILITY:
            return value
        return (1 if relevant else -1) * (1 - value)
