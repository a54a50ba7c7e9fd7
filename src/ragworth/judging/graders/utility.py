"""``utility``: how much better the answer is with its context than without any.

Paper: Tian, Ganguly and Macdonald, Is Relevance Propagated from Retriever to Generator in RAG?
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import polars as pl

from ragworth.calls.programs import NoValue
from ragworth.core.errors import InputError, format_count, give_input
from ragworth.data.conversations import cluster_labels, conversation_ids
from ragworth.judging.answers.answer_book import Answer
from ragworth.judging.answers.writer import NO_CONTEXT_SYSTEM
from ragworth.judging.contract import option
from ragworth.judging.findings import AspectValues
from ragworth.judging.graders import encoders
from ragworth.judging.graders.contract import Grader
from ragworth.stats.estimate import Estimate, Resampling
from ragworth.stats.paired import correct_by_holm, ratio_of_means
from ragworth.text_match.similarity import BestSimilarity, OverlapSimilarity, Similarity

BIAS_NOTE = (
    "utility is a mean of ratios and too high where the similarity without a context varies by chance, so a model that "
    "ignores its context has a utility above 0; go by the ratio of means"
)
NO_ZERO_SHOT = "no-zero-shot"
ZERO_SHOT_WORTHLESS = "zero-shot-worthless"


@dataclass(frozen=True)
class UtilityGrader(Grader):
    """U = (P(with context) − P(without)) / P(without), P the greatest similarity to a relevant passage.

    U is a mean of ratios, as in the paper. It is too high where P(without) varies by chance: a model that ignores its
    context gets a U above 0. So notes, and whoever concludes anything, go by the ratio of the means of P
    (`gain_over_none`), with a paired t-test.

    An answer is compared with the zero-shot answer of the same repeat, or with the only one if zero-shot answers were
    written once. The outcome is the mean over repeats; a repeat that lacks either answer doesn't count in ``repeats``.
    There is no value if no passage is relevant, if there is no zero-shot answer, or if that one has P = 0. ``p`` and
    ``p_without`` are the two similarities, averaged over repeats. Zero-shot answers have no outcome of their own.
    """

    similarity: str = option("bertscore", "how similarity is measured", choices=("bertscore", "rouge-l", "f1"))
    encoder: str = encoders.encoder_option()
    layer: int = option(-1, "which layer's vectors; -1 for the one known to be best", low=-1)
    device: str = option("", "where the encoder runs: cpu, cuda, …; by default a GPU if there is one")
    download: bool = option(False, "get the encoder from the Hugging Face hub if it is not on this machine")
    level: float = option(1.0, "lowest relevance that counts as relevant")
    repeats: int = option(0, "answers that each query should have; 0: as many as any query has", low=0)
    without: str = option(NO_CONTEXT_SYSTEM, "the system whose answers are given without context")

    kind: ClassVar[str] = "utility"
    version: ClassVar[int] = 2
    title: ClassVar[str] = "relative gain over the answer without any context"
    aspects: ClassVar[tuple[str, ...]] = ("utility",)
    details: ClassVar[Mapping[str, Any]] = {
        "p": pl.Float64,
        "p_without": pl.Float64,
        "cut": pl.Boolean,
        "skipped": pl.Int64,
    }
    averaged: ClassVar[tuple[str, ...]] = ("p", "p_without")

    @cached_property
    def scorer(self) -> Similarity:
        if self.similarity != "bertscore":
            return OverlapSimilarity(self.similarity)
        return encoders.build_bertscore_similarity(
            self.encoder,
            layer=self.layer,
            device=self.device,
            download=self.download,
        )

    def check(self) -> None:
        if self.texts.collection.relevance is None:
            raise InputError("utility needs to know which passages are relevant", remedy=give_input("qrels"))
        if not any(each.system == self.without for each in self.book.answers):
            raise InputError(
                f"there are no answers of the system {self.without!r}",
                expected="answers without any context, to compare with",
                remedy="ragworth answer --without makes them; or name their system (without=NAME)",
            )
        _ = self.scorer

    def graded(self, answer: Answer) -> bool:
        return answer.system != self.without

    @cached_property
    def expected_repeats(self) -> int:
        return self.repeats or len({each.repeat for each in self.book.answers})

    @cached_property
    def _zero_shot_once(self) -> bool:
        return len({each.repeat for each in self.book.answers if each.system == self.without}) == 1

    @property
    def source(self) -> str:
        return f"utility · {self.scorer.name} · against {self.without}"

    def _relevant(self, query: str) -> list[str]:
        return [self.texts.passage(passage) for passage in self.texts.relevant(query, self.level)]

    def prepare(self, answers: Sequence[Answer]) -> None:
        pairs = []
        for answer in answers:
            for one in (answer, self._partner(answer)):
                with suppress(NoValue):
                    if one is not None:
                        pairs.append((self.text(one), self._relevant(one.query)))
        self.scorer.learn(pairs)

    def value(self, answer: Answer) -> AspectValues:
        relevant = self._relevant(answer.query)
        bare = self._zero_shot(answer, relevant)
        detail: dict[str, Any] = {"p_without": bare.value, "cut": bare.cut}
        try:
            with_ = self.scorer.best(self.text(answer), relevant)
        except NoValue as none:
            return AspectValues({"utility": none}, detail)
        detail |= {"p": with_.value, "cut": with_.cut or bare.cut, "skipped": with_.skipped}
        if bare.value <= 0:
            why = "the answer without context has no similarity to any relevant passage"
            return AspectValues({"utility": NoValue(ZERO_SHOT_WORTHLESS, why)}, detail)
        return AspectValues({"utility": (with_.value - bare.value) / bare.value}, detail)

    def _partner(self, answer: Answer) -> Answer | None:
        """The answer without context to compare with."""
        found = self.book.partner(self.without, answer.query, answer.repeat)
        return found if found is not None and (self._zero_shot_once or found.repeat == answer.repeat) else None

    def _zero_shot(self, answer: Answer, relevant: Sequence[str]) -> BestSimilarity:
        partner = self._partner(answer)
        if partner is None:
            why = f"{self.without} has no answer to the query {answer.query!r} in repeat {answer.repeat}"
            raise NoValue(NO_ZERO_SHOT, why)
        try:
            return self.scorer.best(self.text(partner), relevant)
        except NoValue as none:
            raise NoValue(NO_ZERO_SHOT, f"the answer of {self.without} has no text: {none.status}") from none

    def notes(self, answers: Sequence[Answer], controls: Sequence[AspectValues | NoValue]) -> list[str]:
        once = []
        if self._zero_shot_once and self.expected_repeats > 1:
            once = [
                f"all {self.expected_repeats} repeats are compared with a single answer without context, because "
                f"{self.without} has one answer to each query"
            ]
        return [*once, *self.scorer.notes()]

    def warnings(self, frame: pl.DataFrame) -> list[str]:
        plan, conversations = Resampling(), conversation_ids(self.texts.collection)
        every = frame.group_by("system", maintain_order=True)
        gains = correct_by_holm({str(name): gain_over_none(rows, plan, conversations) for (name,), rows in every})
        told = [f"{system}: {gain_words(one, plan.alpha)}" for system, one in gains.items() if one.value is not None]
        return [*told, *([BIAS_NOTE] if told else [])]


def gain_over_none(rows: pl.DataFrame, plan: Resampling, conversations: Mapping[str, str]) -> Estimate:
    """How far mean P with a context lies above mean P without, as a share of the latter, over queries.

    ``rows`` of one system have query, p and p_without.
    """
    known = rows.drop_nulls(["p", "p_without"])
    means = known.group_by("query", maintain_order=True).agg(pl.col("p", "p_without").mean())
    clusters = cluster_labels(means["query"], conversations)
    return ratio_of_means(means["p"].to_numpy(), means["p_without"].to_numpy(), plan, clusters)


def gain_words(gain: Estimate, alpha: float) -> str:
    """The gain over no context in words."""
    value, span, p = gain.value or 0.0, gain.interval, gain.p_holm if gain.p_holm is not None else gain.p or 0.0
    way = "closer to" if value >= 0 else "farther from"
    sure = "are" if gain.is_significant(alpha) else "are not significantly"
    share = f"{_percent(value)} %{f' [{_percent(span.low)} to {_percent(span.high)} %]' if span is not None else ''}"
    test = f"p {f'= {p:.3f}' if p >= 0.001 else '< 0.001'}"
    return (
        f"its answers {sure} {way} the relevant passages than those without a context: {share} by the ratio of means, "
        f"{test} by a paired t-test of {format_count(gain.n, 'query', 'queries')}"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f}".replace("-", "−")
