"""Confidence in the answers of `ragworth.judging.answers`: one greedy call gives both the answer and its tokens.

``confidence`` alone asks with its own prompts, which don't offer to decline. Whoever compares confidence with the
grade of an answer needs the confidence of that very answer, so here the writer of answers makes the requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from ragworth.calls.programs import NoValue
from ragworth.core.errors import InputError
from ragworth.judging.annotators.confidence import ConfidenceAnnotator
from ragworth.judging.annotators.contract import AnnotationItem
from ragworth.judging.answers.writer import NO_CONTEXT_SYSTEM, AnsweringResult, AnswerItem, AnswerWriter, WrittenAnswer
from ragworth.judging.contract import options_by_name
from ragworth.llm.contract import Generate, Generated, Output, Usage
from ragworth.llm.prompts.template import Template

TOKEN_COLUMNS = ("answer_tokens", "key", "entropies", "entropies_alone", "surprisals", "surprisals_alone")
"""Columns of `written_answers` with a value for each token: its text, whether it is a key token, and its entropy and
surprisal with and without the context."""


@dataclass(frozen=True)
class AnswerConfidence(ConfidenceAnnotator):
    """Confidence in the answers that ``writer`` asks for, with its prompts and lengths."""

    writer: AnswerWriter = field(kw_only=True)
    answers: Mapping[tuple[str, str], AnswerItem] = field(kw_only=True)
    """The answers to write, by system and query."""

    def check(self) -> None:
        super().check()
        if self.writer.temperature > 0:
            raise InputError(
                f"answers are sampled at temperature {self.writer.temperature:g}, and confidence is that of the "
                "greedy answer",
                expected="temperature = 0 under [answers]",
            )

    @classmethod
    def of(cls, writer: AnswerWriter, items: Sequence[AnswerItem], settings: Mapping[str, Any]) -> AnswerConfidence:
        """The confidence in these answers, with the settings of ``confidence``."""
        given = options_by_name(ConfidenceAnnotator, dict(settings), cls.kind) | {"each": False}
        answers = {(item.system, item.query): item for item in items}
        return cls(writer.card, writer.texts, writer.folder, writer=writer, answers=answers, **given)

    @property
    def items(self) -> list[AnnotationItem]:
        return [AnnotationItem(query, system=system) for system, query in self.answers]

    def requests(self, item: AnnotationItem) -> tuple[Generate, Generate]:
        answer = self.answers[item.system, item.query]
        return self.writer.request(answer), self.writer.request(AnswerItem(NO_CONTEXT_SYSTEM, item.query))

    @property
    def templates(self) -> dict[str, Template]:
        return {template.name: template for template in (self.writer.template, self.writer.template_alone)}

    def _load(self, name: str) -> Template:
        return self.writer.template if name == self.prompts[0] else self.writer.template_alone

    def _check_slots(self, name: str, template: Template) -> None:
        """The writer fills its own prompts."""


def written_answers(annotator: AnswerConfidence, frame: pl.DataFrame) -> AnsweringResult:
    """The answers in the rows that the annotator made: those of the writer, with `TOKEN_COLUMNS` besides."""
    pair, writer = ["system", "query"], annotator.writer
    first = frame.unique(pair, keep="first", maintain_order=True)
    rows = {(row["system"], row["query"]): row for row in first.iter_rows(named=True)}
    found = [_written(writer, item, rows[key]) for key, item in annotator.answers.items()]
    made = writer.collect(list(annotator.answers.values()), found, [])
    joined = made.frame.join(first.select(*pair, *TOKEN_COLUMNS), on=pair, how="left", maintain_order="left")
    return replace(made, frame=joined)


def _written(writer: AnswerWriter, item: AnswerItem, row: Mapping[str, Any]) -> WrittenAnswer | NoValue:
    """An answer from its row; the reason, where the model gave none."""
    if row["finish"] is None:
        return NoValue(row["status"], row["reason"] or "", row["raw"])
    usage = Usage(row["prompt_tokens"] or 0, row["tokens"] or 0, 0.0, row["cut"])
    try:
        return writer.parse(item, Generated((Output(row["raw"], row["finish"]),), usage))
    except NoValue as reason:
        return reason
