"""``gold`` and ``best_by``: controlled contexts for experiments, built from retrieved passages and judgments.

They reproduce conditions of the papers: one relevant passage at a chosen position, among retrieved, random, weakly or
hard distracting passages; and oracles that rank by any judgment. A query that lacks passages for such a context stays
empty and is listed, never filled with something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import ClassVar

import polars as pl

from ragworth.core.errors import InputError, format_count, format_list
from ragworth.data import OK, Contexts
from ragworth.judging import ANNOTATORS
from ragworth.judging.contract import option as named
from ragworth.metrics.utility import HARD, WEAK
from ragworth.retrieval.contract import Need, Place, StepContext, argument, unscored_contexts
from ragworth.retrieval.steps.oracle import SPARE, LabelledStep, describe_queries
from ragworth.retrieval.steps.random_sample import query_rng, sample_passages

AMONG_CHOICES = ("retrieved", "random", "weak", "hard")
UTILITY, RELEVANCE = "utility", "relevance"

PassageValues = dict[str, dict[str, float]]
"""By query and passage."""


def judged_values(context: StepContext, aspect: str) -> PassageValues:
    """Known values of an aspect, ignoring failed judgments."""
    found: PassageValues = {}
    if context.judgments is not None:
        good = context.judgments.of(aspect).filter(pl.col("status") == OK)
        for query, passage, value in good.select("query", "passage", "value").iter_rows():
            found.setdefault(query, {})[passage] = value
    return found


def missing_judgments(context: StepContext, kind: str, aspect: str) -> list[str]:
    """Report that judgments of an aspect are missing, if so."""
    if judged_values(context, aspect):
        return []
    aspects = [name for name in ANNOTATORS.names() if ANNOTATORS.get(name).unit == "passage"]
    if aspect in aspects:
        remedy = f"ragworth annotate {aspect} makes a file of them; what an evaluation has judged itself comes too late"
        return [f"{kind} needs judgments of {aspect} beforehand, and there are none ({remedy})"]
    has = context.judgments.frame["aspect"].unique(maintain_order=True).to_list() if context.judgments else []
    there = f"there are some of {format_list(has)}; " if has else ""
    return [
        f"{kind} needs judgments of {aspect}, and there are none: {there}"
        f"ragworth annotate makes {format_list(aspects, 9)}"
    ]


@dataclass(frozen=True)
class Gold(LabelledStep):
    """One relevant passage at a position among irrelevant ones.

    It is the one with the highest label, and among ties the first retrieved; it need not have been retrieved. Beside it
    are ``of`` − 1 others: the first retrieved irrelevant passages, in order; of these only weak distractors (from which
    the model declines to answer: effect 1 − p_abstain below ``below``) or only hard ones (above ``above``); or random
    passages of the collection, neither retrieved nor labelled for the query. An unlabelled copy of a relevant passage
    is none of them. A random position doesn't depend on the other passages, so that such contexts differ in nothing
    else.
    """

    at: int = named(0, "position of the relevant passage, from 1; 0 draws one for each query", low=0)
    of: int = named(5, "passages in a context, including the relevant one", low=1)
    among: str = named("retrieved", "kind of the other passages", choices=AMONG_CHOICES)
    below: float = named(WEAK, "distracting effect below which a distractor is weak", low=0, high=1)
    above: float = named(HARD, "distracting effect above which a distractor is hard", low=0, high=1)
    seed: int = named(0, "changes the random positions and passages, in addition to the global seed", low=0)

    kind: ClassVar[str] = "gold"
    title: ClassVar[str] = "one relevant passage among irrelevant ones"
    place: ClassVar[Place] = "behind"

    def check(self) -> None:
        if self.at > self.of:
            raise InputError(f"gold: position {self.at} of {format_count(self.of, 'passage')}", expected="at ≤ of")

    def problems(self, context: StepContext) -> list[str]:
        found = super().problems(context)
        if self.among == "random" and (lack := context.why_missing("passages")):
            found.append(f"gold among random passages lacks an input: {lack}")
        if self.among in ("weak", "hard"):
            found += missing_judgments(context, f"gold among {self.among} distractors", "abstention")
        return found

    def apply(self, before: Contexts | None, context: StepContext) -> Contexts:
        assert before is not None
        retrieved, abstention = self.retrieved(before, context), judged_values(context, "abstention")
        places: dict[str, int] = {}
        candidates: dict[str, list[str]] = {}
        for query in context.ids:
            chance = query_rng(self, context, query)
            places[query] = self.at - 1 if self.at else int(chance.random() * self.of)
            found = retrieved.get(query, [])
            candidates[query] = self._others(context, query, found, abstention.get(query, {}), chance)
        copies = self.copies(candidates, context)
        rows: list[tuple[str, list[str]]] = []
        without: dict[str, list[str]] = {}
        for query, at in places.items():
            best = self._best(context, query, retrieved.get(query, []))
            others = [each for each in candidates[query] if each not in copies.get(query, ())][: self.of - 1]
            if best is None:
                without.setdefault("no relevant passage", []).append(query)
            elif len(others) < self.of - 1:
                without.setdefault(f"fewer than {self.of - 1} {self._words}", []).append(query)
            else:
                rows.append((query, [*others[:at], best, *others[at:]]))
        contexts = unscored_contexts(rows)
        words = "stays empty, and is scored as a context without passages"
        empty = (f"{self} {words}: {describe_queries(without)}",) if without else ()
        contexts.notes = (*empty, *self.copy_notes(copies))
        return contexts

    @property
    def _words(self) -> str:
        """What the others are called."""
        return {"retrieved": "retrieved passages that are not relevant", "random": "random passages"}.get(
            self.among, f"{self.among} distractors"
        )

    def _best(self, context: StepContext, query: str, found: list[str]) -> str | None:
        """The relevant passage with the highest label, and among ties the first retrieved."""
        relevant = [each for each in found if self.is_relevant(context, query, each)]
        relevant += [each for each in self.judged(context, query, relevant=True) if each not in set(found)]
        labels = context.labels.get(query, {})
        return max(relevant, key=lambda each: labels[each], default=None)

    def _others(
        self, context: StepContext, query: str, found: list[str], abstention: Mapping[str, float], chance: Random
    ) -> list[str]:
        """Candidates for the other passages, in order."""
        if self.among == "random":
            taken = {*found, *context.labels.get(query, {})}
            drawn = sample_passages(context.passages, self.of - 1 + len(taken) + SPARE, chance)
            return [each for each in drawn if each not in taken]
        others = [each for each in found if not self.is_relevant(context, query, each)]
        if self.among == "retrieved":
            return others
        # Rounded as everywhere, so that 1 − 0.8 is not below 0.2.
        effect = {each: round(1 - abstention[each], 12) for each in others if each in abstention}
        if self.among == "weak":
            return [each for each, value in effect.items() if value < self.below]
        return [each for each, value in effect.items() if value > self.above]


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
        found = []
        if self.by in (UTILITY, RELEVANCE) and (lack := context.why_missing("relevance")):
            found.append(f"best_by lacks an input: {lack}")
        if self.by != RELEVANCE:
            found += missing_judgments(context, f"best_by({self.by!r})", self._aspect)
        return found

    def apply(self, before: Contexts | None, context: StepContext) -> Contexts:
        assert before is not None
        values = judged_values(context, self._aspect) if self.by != RELEVANCE else {}
        rows, without, left = [], [], 0
        for query, passages in self.retrieved(before, context).items():
            worth = {each: self._worth(context, query, each, values.get(query, {})) for each in passages}
            known = {each: value for each, value in worth.items() if value is not None}
            rows.append((query, sorted(known, key=lambda each: known[each], reverse=True)))
            left += len(passages) - len(known)
            without += [query] * (len(known) < len(passages))
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
