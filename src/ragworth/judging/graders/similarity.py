"""``bertscore`` and ``utility``: graders by similarity, to accepted answers or relevant passages.

``utility`` is how much more similar the answer is with its context than without any. Paper: Tian, Ganguly and
Macdonald, Is Relevance Propagated from Retriever to Generator in RAG?

Of the encoders for BERTScore, ``embedded`` works offline; ``paper`` is what that paper uses; any other name is one of
the Hugging Face hub, or a folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from ragworth.calls.programs import NoValue
from ragworth.core.errors import InputError, format_count, give_input
from ragworth.core.registry import Registry
from ragworth.data.conversations import cluster_labels, conversation_ids
from ragworth.judging.answers import NO_CONTEXT_SYSTEM
from ragworth.judging.contract import option
from ragworth.judging.findings import AspectValues
from ragworth.judging.judge import Grader
from ragworth.judging.text_lookup import Answer
from ragworth.stats.estimate import Estimate, Resampling
from ragworth.stats.paired import correct_by_holm, ratio_of_means
from ragworth.text_match.bertscore import BERTScore, BERTScoreSimilarity, Similarity
from ragworth.text_match.overlap import BestSimilarity, OverlapSimilarity

if TYPE_CHECKING:
    from ragworth.text_match.token_encoder import TokenVectors

TOKEN_ENCODERS: Registry[Callable[[int | None], TokenVectors]] = Registry(
    "token encoder",
    "ragworth.token_encoders",
    {"embedded": "ragworth.retrieval.encoders.embedded:EmbeddedTokenEncoder"},
)
"""Each opens an encoder at a layer, or at the one it recommends."""

EMBEDDED, PAPER = "embedded", "paper"
PAPER_ENCODER, PAPER_LAYER = "bert-large-uncased", 18
BIAS_NOTE = (
    "utility is a mean of ratios and too high where the similarity without a context varies by chance, so a model that "
    "ignores its context has a utility above 0; go by the ratio of means"
)
NO_ZERO_SHOT = "no-zero-shot"
ZERO_SHOT_WORTHLESS = "zero-shot-worthless"


def build_bertscore_similarity(encoder: str, *, layer: int, device: str, download: bool) -> BERTScoreSimilarity:
    """BERTScore with an encoder; ``layer`` −1 uses the one known to be best."""
    from ragworth.text_match.token_encoder import TokenEncoder

    known = layer if layer >= 0 else None
    if encoder == PAPER:
        if known not in (None, PAPER_LAYER):
            raise InputError(
                f"layer is {layer}, but the paper uses layer {PAPER_LAYER}",
                remedy=f"name the encoder: {PAPER_ENCODER}",
            )
        encoder, known = PAPER_ENCODER, PAPER_LAYER
    if encoder in TOKEN_ENCODERS:
        return BERTScoreSimilarity(BERTScore(TOKEN_ENCODERS.get(encoder)(known)))
    return BERTScoreSimilarity(BERTScore(TokenEncoder(encoder, layer=known, device=device or None, download=download)))


@dataclass(frozen=True)
class SimilarityGrader(Grader):
    """The settings of graders that compare texts by an encoder."""

    encoder: str = option(
        EMBEDDED,
        "encoder of BERTScore: embedded (small, works offline), paper (bert-large-uncased, layer 18), a name of the "
        "hub, or a folder",
    )
    layer: int = option(-1, "which layer's vectors; -1 for the one known to be best", low=-1)
    device: str = option("", "where the encoder runs: cpu, cuda, …; by default a GPU if there is one")
    download: bool = option(False, "get the encoder from the Hugging Face hub if it is not on this machine")
    level: float = option(1.0, "lowest relevance that counts as relevant")

    @cached_property
    def scorer(self) -> Similarity:
        return build_bertscore_similarity(self.encoder, layer=self.layer, device=self.device, download=self.download)

    def relevant(self, query: str) -> Sequence[str]:
        """The texts of the relevant passages."""
        return [self.texts.passage(passage) for passage in self.texts.relevant(query, self.level)]


@dataclass(frozen=True)
class BERTScoreGrader(SimilarityGrader):
    """BERTScore-F1 of the answer and the most similar of its references: accepted answers, or relevant passages.

    ``cut`` says that the answer or that reference is longer than the encoder reads; ``skipped`` counts references that
    could not be compared with the answer, because there is nothing in them that the encoder knows.
    """

    references: str = option("answers", "what answers are compared with", choices=("answers", "relevant"))

    kind = "bertscore"
    title = "similarity to accepted answers or relevant passages, by an encoder"
    aspects = ("bertscore",)
    details: ClassVar[Mapping[str, Any]] = {"cut": pl.Boolean, "skipped": pl.Int64, "against": pl.String}

    def check(self) -> None:
        if self.references == "relevant" and self.texts.collection.relevance is None:
            raise InputError("bertscore needs to know which passages are relevant", remedy=give_input("qrels"))
        _ = self.scorer  # an encoder that cannot be had is an error before anything runs

    def check_for(self, answers: Sequence[Answer]) -> None:
        if self.references == "answers":
            self.require_inputs(answers, self.texts.answers, "accepted answers", "answers")

    @property
    def source(self) -> str:
        return f"{self.scorer.name} · against {self.references}"

    def _references(self, query: str) -> Sequence[str]:
        if self.references == "answers":
            return self.texts.answers(query)
        return self.relevant(query)

    def prepare(self, items: Sequence[Answer]) -> None:
        pairs = []
        for answer in items:
            with suppress(NoValue):
                pairs.append((self.text(answer), self._references(answer.query)))
        self.scorer.learn(pairs)

    def value(self, item: Answer) -> AspectValues:
        text, references = self.text(item), self._references(item.query)
        best = self.scorer.best(text, references)
        detail = {"cut": best.cut, "skipped": best.skipped, "against": references[best.place]}
        return AspectValues({"bertscore": best.value}, detail)

    def notes(self, frame: pl.DataFrame, controls: Sequence[AspectValues | NoValue]) -> list[str]:
        return self.scorer.notes()


@dataclass(frozen=True)
class UtilityGrader(SimilarityGrader):
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
    repeats: int = option(0, "answers that each query should have; 0: as many as any query has", low=0)
    without: str = option(NO_CONTEXT_SYSTEM, "the system whose answers are given without context")

    kind = "utility"
    version = 2
    title = "relative gain over the answer without any context"
    aspects = ("utility",)
    details: ClassVar[Mapping[str, Any]] = {
        "p": pl.Float64,
        "p_without": pl.Float64,
        "cut": pl.Boolean,
        "skipped": pl.Int64,
    }
    averaged = ("p", "p_without")

    @cached_property
    def scorer(self) -> Similarity:
        return super().scorer if self.similarity == "bertscore" else OverlapSimilarity(self.similarity)

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

    def judged(self, item: Answer) -> bool:
        return item.system != self.without

    @cached_property
    def expected_repeats(self) -> int:
        return self.repeats or len({each.repeat for each in self.book.answers})

    @cached_property
    def _zero_shot_once(self) -> bool:
        return len({each.repeat for each in self.book.answers if each.system == self.without}) == 1

    @property
    def source(self) -> str:
        return f"utility · {self.scorer.name} · against {self.without}"

    def prepare(self, items: Sequence[Answer]) -> None:
        pairs = []
        for answer in items:
            for one in (answer, self._partner(answer)):
                with suppress(NoValue):
                    if one is not None:
                        pairs.append((self.text(one), self.relevant(one.query)))
        self.scorer.learn(pairs)

    def value(self, item: Answer) -> AspectValues:
        relevant = self.relevant(item.query)
        bare = self._zero_shot(item, relevant)
        detail: dict[str, Any] = {"p_without": bare.value, "cut": bare.cut}
        try:
            with_ = self.scorer.best(self.text(item), relevant)
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

    def notes(self, frame: pl.DataFrame, controls: Sequence[AspectValues | NoValue]) -> list[str]:
        plan, conversations = Resampling(), conversation_ids(self.texts.collection)
        every = frame.group_by("system", maintain_order=True)
        gains = correct_by_holm({str(name): gain_over_none(rows, plan, conversations) for (name,), rows in every})
        told = [f"{system}: {gain_words(one, plan.alpha)}" for system, one in gains.items() if one.value is not None]
        once = []
        if self._zero_shot_once and self.expected_repeats > 1:
            once = [
                f"all {self.expected_repeats} repeats are compared with a single answer without context, because "
                f"{self.without} has one answer to each query"
            ]
        return [*told, *([BIAS_NOTE] if told else []), *once, *self.scorer.notes()]


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
