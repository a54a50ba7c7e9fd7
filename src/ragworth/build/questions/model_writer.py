"""The writer that asks a language model. Its reply is parsed strictly: what isn't the object asked for has a status."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from ragworth.build.drafts import Draft
from ragworth.build.questions.contract import (
    QUESTION,
    UNPARSABLE,
    QuestionSlot,
    SourceSpan,
    SourceText,
    WrittenQuestion,
)
from ragworth.build.questions.types import QUESTION_TYPES, STYLES
from ragworth.calls.job import Job
from ragworth.calls.programs import Forecast, NoValue, Program, require_response
from ragworth.core.errors import quote_short
from ragworth.judging.contract import Task, plan_task, run_task
from ragworth.judging.findings import reject_cut_passage, require_abilities
from ragworth.llm import prompts
from ragworth.llm.contract import Card, Generate, Generated
from ragworth.llm.prompts.template import Template

MIN_WORDS = 30
"""Shorter passages are headings and rests; a question needs something to ask about."""
REPLY_TOKENS = 512


class WritingResult(NamedTuple):
    """A draft for each slot."""

    drafts: list[Draft]
    frame: pl.DataFrame
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class WritingTask(Task[QuestionSlot, WrittenQuestion, WritingResult]):
    """Asks for the question of each slot."""

    card: Card
    passages: Mapping[str, SourceText]
    folder: str | Path | None = None
    temperature: float = 0.7

    def __post_init__(self) -> None:
        require_abilities(self.card, ("generate",), "writing questions")

    @cached_property
    def template(self) -> Template:
        return prompts.load_prompt("build-question", self.folder, self.card.prompts)

    @property
    def templates(self) -> dict[str, Template]:
        return {self.template.name: self.template}

    def sources(self, slot: QuestionSlot) -> list[SourceText]:
        """The passages to show: the first ones that are long enough, from different documents if several."""
        found: list[SourceText] = []
        wanted = QUESTION_TYPES[slot.type].passages
        for id in slot.candidates:
            source = self.passages[id]
            if len(source.text.split()) >= MIN_WORDS and all(source.document != each.document for each in found):
                found.append(source)
            if len(found) == wanted:
                return found
        raise NoValue("no-passage", f"fewer than {wanted} passages of {MIN_WORDS} words or more")

    def program(self, item: QuestionSlot) -> Program[WrittenQuestion]:
        shown = self.sources(item)
        values: dict[str, object] = {
            "passages": [{"text": each.text} for each in shown],
            "task": QUESTION_TYPES[item.type].task,
            "style": STYLES[item.style][1],
        }
        prompt = self.template.render({name: value for name, value in values.items() if name in self.template.names})
        number = int(item.id.lstrip("q") or 0)
        sampled = {"temperature": self.temperature, "seed": number} if self.temperature > 0 else {}
        (outcome,) = yield [Generate(prompt, REPLY_TOKENS, stop=self.template.reply.stop, **sampled)]  # type: ignore[arg-type]
        response = require_response(outcome, Generated)
        reject_cut_passage(response.usage, keep=False)
        return parse_reply(response.outputs[0].text, item, shown)

    def collect(
        self,
        items: Sequence[QuestionSlot],
        findings: Iterable[WrittenQuestion | NoValue],
        controls: Sequence[WrittenQuestion | NoValue],
    ) -> WritingResult:
        drafts = [_draft(slot, found) for slot, found in zip(items, findings, strict=True)]
        frame = pl.DataFrame({"id": [each.id for each in drafts], "status": [each.status for each in drafts]})
        return WritingResult(drafts, frame)


def _draft(slot: QuestionSlot, found: WrittenQuestion | NoValue) -> Draft:
    if not isinstance(found, NoValue):
        return Draft(slot.id, QUESTION, slot.stratum, found.fields(slot))
    raw = {"raw": found.raw} if found.raw is not None else {}
    return Draft(slot.id, QUESTION, slot.stratum, raw).drop(found.status, found.detail)


def parse_reply(raw: str, slot: QuestionSlot, shown: Sequence[SourceText]) -> WrittenQuestion:
    """The question in a reply; `NoValue` with the reply if it isn't the JSON object that was asked for."""

    def refuse(reason: str) -> NoValue:
        return NoValue(UNPARSABLE, reason, raw)

    objects = list(_json_objects(raw.rpartition("</think>")[2]))
    if len(objects) != 1:
        raise refuse(f"{len(objects):,} JSON objects instead of one")
    found = objects[0]
    question = _text(found.get("question"))
    answers = found.get("answers")
    if not question or not isinstance(answers, list) or not all(map(_text, answers)):
        raise refuse("no question, or no list of answers")
    open_ended = slot.type == "unanswerable"
    if bool(answers) == open_ended:
        raise refuse("an answer to an unanswerable question" if open_ended else "no answer")
    spans = [SourceSpan(shown[0].id, "")] if open_ended else _spans(found.get("evidence"), shown, refuse)
    return WrittenQuestion(question, tuple(dict.fromkeys(map(_text, answers))), tuple(spans))


def _json_objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text; models write words and code fences around them."""
    decoder, at = json.JSONDecoder(), text.find("{")
    while at >= 0:
        end = at + 1
        with suppress(ValueError, RecursionError):
            found, end = decoder.raw_decode(text, at)
            yield found
        at = text.find("{", end)


def _text(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _spans(evidence: Any, shown: Sequence[SourceText], refuse: Any) -> list[SourceSpan]:
    if not isinstance(evidence, list) or not evidence:
        raise refuse("no evidence")
    spans = []
    for each in evidence:
        number = each.get("passage") if isinstance(each, dict) else None
        quote = each.get("quote") if isinstance(each, dict) else None
        if type(number) is not int or not 1 <= number <= len(shown) or not _text(quote):
            raise refuse(f"evidence without a passage and a quote: {quote_short(each, 40)}")
        spans.append(SourceSpan(shown[number - 1].id, str(quote).strip()))
    if unquoted := [number for number, each in enumerate(shown, 1) if each.id not in {span.passage for span in spans}]:
        raise refuse(f"no evidence from passage {unquoted[0]}")
    return spans


@dataclass(frozen=True)
class ModelWriter:
    """A `QuestionWriter` that asks a model through the call store."""

    folder: str | Path | None = None
    temperature: float = 0.7
    templates: dict[str, Template] = field(default_factory=dict)
    """Filled when it writes."""

    def _task(self, passages: Mapping[str, SourceText], job: Job | None) -> WritingTask:
        assert job is not None, "a model writes only with a job"
        task = WritingTask(job.card, passages, self.folder, self.temperature)
        self.templates.update(task.templates)
        return task

    def plan(
        self, slots: Sequence[QuestionSlot], passages: Mapping[str, SourceText], job: Job | None
    ) -> Forecast | None:
        return plan_task(self._task(passages, job), slots, job) if job is not None else None

    def write(
        self, slots: Sequence[QuestionSlot], passages: Mapping[str, SourceText], job: Job | None = None
    ) -> list[Draft]:
        task = self._task(passages, job)
        return run_task(task, slots, job).drafts
