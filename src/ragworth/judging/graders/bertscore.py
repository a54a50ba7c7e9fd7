"""``bertscore``: how similar an answer is to accepted answers or relevant passages, by an encoder's token vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import polars as pl

from ragworth.calls.programs import NoValue
from ragworth.core.errors import InputError, give_input
from ragworth.judging.answers.answer_book import Answer
from ragworth.judging.contract import option
from ragworth.judging.findings import AspectValues
from ragworth.judging.graders import encoders
from ragworth.judging.graders.contract import Grader
from ragworth.text_match.similarity import BERTScoreSimilarity


@dataclass(frozen=True)
class BERTScoreGrader(Grader):
    """BERTScore-F1 of the answer and the most similar of its references: accepted answers, or relevant passages.

    ``cut`` says that the answer or that reference is longer than the encoder reads; ``skipped`` counts references that
    could not be compared with the answer, because there is nothing in them that the encoder knows.
    """

    encoder: str = encoders.encoder_option()
    layer: int = option(-1, "which layer's vectors; -1 for the one known to be best", low=-1)
    device: str = option("", "where the encoder runs: cpu, cuda, …; by default a GPU if there is one")
    download: bool = option(False, "get the encoder from the Hugging Face hub if it is not on this machine")
    references: str = option("answers", "what answers are compared with", choices=("answers", "relevant"))
    level: float = option(1.0, "lowest relevance that counts as relevant")

    kind: ClassVar[str] = "bertscore"
    title: ClassVar[str] = "similarity to accepted answers or relevant passages, by an encoder"
    aspects: ClassVar[tuple[str, ...]] = ("bertscore",)
    details: ClassVar[Mapping[str, Any]] = {"cut": pl.Boolean, "skipped": pl.Int64, "against": pl.String}

    @cached_property
    def scorer(self) -> BERTScoreSimilarity:
        return encoders.build_bertscore_similarity(
            self.encoder,
            layer=self.layer,
            device=self.device,
            download=self.download,
        )

    def check(self) -> None:
        if self.references == "relevant" and self.texts.collection.relevance is None:
            raise InputError("bertscore needs to know which passages are relevant", remedy=give_input("qrels"))
        _ = self.scorer  # an encoder that cannot be had is an error before anything runs

    def check_for(self, answers: Sequence[Answer]) -> None:
        if self.references == "answers":
            self.need_accepted(answers)

    @property
    def source(self) -> str:
        return f"{self.scorer.name} · against {self.references}"

    def _references(self, query: str) -> Sequence[str]:
        if self.references == "answers":
            return self.texts.answers(query)
        return [self.texts.passage(passage) for passage in self.texts.relevant(query, self.level)]

    def prepare(self, answers: Sequence[Answer]) -> None:
        pairs = []
        for answer in answers:
            with suppress(NoValue):
                pairs.append((self.text(answer), self._references(answer.query)))
        self.scorer.learn(pairs)

    def value(self, answer: Answer) -> AspectValues:
        text, references = self.text(answer), self._references(answer.query)
        best = self.scorer.best(text, references)
        detail = {"cut": best.cut, "skipped": best.skipped, "against": references[best.place]}
        return AspectValues({"bertscore": best.value}, detail)

    def notes(self, answers: Sequence[Answer], controls: Sequence[AspectValues | NoValue]) -> list[str]:
        return self.scorer.notes()
