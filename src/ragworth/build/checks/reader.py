"""The reader of checks: how likely a model is to decline, and what it answers, from given passages or from none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import polars as pl

from ragworth.build.checks.contract import DECLINES, ReaderReply, Reading
from ragworth.build.question_set import Question, QuestionSet
from ragworth.calls.job import Job
from ragworth.calls.programs import NoValue, Program, require_response
from ragworth.data import OK
from ragworth.judging import GRADERS
from ragworth.judging.annotators.abstention import CONTROL_QUESTIONS
from ragworth.judging.contract import Task, run_task
from ragworth.judging.findings import UNFIT_MODEL, missing_notes, reject_cut_passage, require_abilities
from ragworth.judging.graders.text import GRADER_VALUES
from ragworth.judging.labels import answerability_labels, calibrate, declining_label
from ragworth.judging.runner import build_judge, to_answer_book
from ragworth.judging.text_lookup import NO_PASSAGE
from ragworth.llm import prompts
from ragworth.llm.contract import Card, Choose, Chosen, Generate, Generated, Prompt
from ragworth.llm.prompts.template import Template
from ragworth.text_match.refusals import find_refusal
from ragworth.text_match.short_answers import grade_short_answer

ANSWER_TOKENS = 64
MARGIN = 0.2
"""How much likelier a fit reader is to decline where the answer is missing than where it is there, in the mean."""

LABELS = {value: label for label, value in GRADER_VALUES.items()}

Replies = Mapping[Reading, ReaderReply | NoValue]


class ReaderResult(NamedTuple):
    """Replies by reading, their statuses as a table, and notes."""

    replies: Mapping[Reading, ReaderReply | NoValue]
    frame: pl.DataFrame
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reader(Task[Reading, ReaderReply, ReaderResult]):
    """Asks a model each reading. A model without label probabilities is taken at its greedy word: 0 or 1."""

    card: Card
    questions: QuestionSet
    folder: str | Path | None = None

    def __post_init__(self) -> None:
        require_abilities(self.card, ("generate",), "reading passages")

    @property
    def max_rounds(self) -> int:
        return 2 if self._chooses else 1

    @property
    def _chooses(self) -> bool:
        return "choose" in self.card.abilities

    @cached_property
    def _templates(self) -> dict[int, Template]:
        names = {0: "answer-alone", 1: "abstention", 2: "answer"}
        return {n: prompts.load_prompt(name, self.folder, self.card.prompts) for n, name in names.items()}

    @property
    def templates(self) -> dict[str, Template]:
        return {template.name: template for template in self._templates.values()}

    @cached_property
    def _by_id(self) -> dict[str, Question]:
        return {question.id: question for question in self.questions.questions}

    def program(self, item: Reading) -> Program[ReaderReply]:
        question = self._by_id[item.question]
        texts = [self.questions.texts.get(id, "") for id in item.passages]
        if not all(text.strip() for text in texts):
            lost = next(id for id, text in zip(item.passages, texts, strict=True) if not text.strip())
            raise NoValue(NO_PASSAGE, f"the collection has no text for the passage {lost!r}")
        reply = yield from self._asked(question.text, texts)
        return _graded(reply, question)

    def controls(self) -> Sequence[Program[ReaderReply]]:
        """Questions about a small passage: first those that it doesn't answer, then those that it does."""
        missing = [self._asked(each.unanswered, [each.passage]) for each in CONTROL_QUESTIONS]
        return [*missing, *(self._asked(each.answered, [each.passage]) for each in CONTROL_QUESTIONS)]

    def _asked(self, query: str, texts: Sequence[str]) -> Program[ReaderReply]:
        template = self._templates[min(2, len(texts))]
        values: dict[str, object] = {"query": query, "passages": [{"text": text} for text in texts]}
        values |= {"passage": texts[0]} if texts else {}
        prompt = template.render({name: value for name, value in values.items() if name in template.names})
        if not self._chooses:
            text = yield from self._answer(prompt, template)
            declined = _declines(text, template)
            return ReaderReply(1.0 if declined else 0.0, None if declined else text)
        (outcome,) = yield [Choose(prompt, answerability_labels(self.card, declining_label(template)))]
        chosen = require_response(outcome, Chosen)
        reject_cut_passage(chosen.usage, keep=False)
        p = calibrate(chosen.probabilities[0], self.card)
        if p >= DECLINES:
            return ReaderReply(p, None)
        return ReaderReply(p, (yield from self._answer(prompt, template)))

    def _answer(self, prompt: Prompt, template: Template) -> Program[str]:
        stop = template.reply.stop
        (outcome,) = yield [Generate(prompt, ANSWER_TOKENS, stop=stop)]
        made = require_response(outcome, Generated)
        reject_cut_passage(made.usage, keep=False)
        text = template.reply.trim(made.outputs[0]).text.strip()
        if not text:
            raise NoValue("empty-answer", "the reader wrote nothing")
        return text

    def collect(
        self,
        items: Sequence[Reading],
        findings: Iterable[ReaderReply | NoValue],
        controls: Sequence[ReaderReply | NoValue],
    ) -> ReaderResult:
        notes, unfit = check_fitness(controls)
        replies = {item: unfit or found for item, found in zip(items, findings, strict=True)}
        statuses = [each.status if isinstance(each, NoValue) else OK for each in replies.values()]
        frame = pl.DataFrame({"status": statuses}, schema={"status": pl.String})
        return ReaderResult(replies, frame, (*notes, *missing_notes(frame, "reading")))


def check_fitness(controls: Sequence[ReaderReply | NoValue]) -> tuple[list[str], NoValue | None]:
    """What the control questions show, and the reason if the model isn't fit to read for checks."""
    half = len(controls) // 2
    missing, there = (
        [each.p_abstain for each in part if isinstance(each, ReaderReply)]
        for part in (controls[:half], controls[half:])
    )
    if not missing or not there:
        reason = "the control questions failed, so nothing shows that the model declines where it should"
        return [reason], NoValue(UNFIT_MODEL, reason)
    facts = (
        f"the reader declines with p = {mean(missing):.2f} on control questions without an answer, and with "
        f"{mean(there):.2f} on those with one"
    )
    if mean(missing) - mean(there) < MARGIN:
        return [f"{facts}: it is unfit for checks"], NoValue(UNFIT_MODEL, facts)
    return [facts], None


def reader_flags(card: Card | None) -> dict[str, str]:
    """Checks that only flag with this reader, with the reason: they would drop good questions."""
    if card is None or card.backend != "embedded":
        return {}
    return {
        "answerable": "the embedded reader declines on many questions that people can answer, and knows little by "
        "itself: the check answerable is a flag here, closed-book passes nearly everything, and unanswerable questions "
        "need a second look"
    }


def _declines(text: str, template: Template) -> bool:
    return text.upper().startswith(declining_label(template).upper()) or find_refusal(text) is not None


def _graded(reply: ReaderReply, question: Question) -> ReaderReply:
    if reply.answer is None:
        return reply._replace(grade="abstained")
    accepted = [answer for answer in question.answers if answer.strip()]
    if not accepted and find_refusal(reply.answer) is not None:
        return reply._replace(grade="abstained", why="it declines in words")
    if not accepted:
        return reply._replace(grade="undecided", why="there is no accepted answer to compare with")
    verdict = grade_short_answer(reply.answer, accepted, question=question.text)
    return reply._replace(grade=verdict.label, why=verdict.why)


def judge_undecided(
    replies: Replies, questions: QuestionSet, judge: Job, prompts: str | Path | None
) -> tuple[Replies, list[str]]:
    """The replies with the judge's grades where comparing texts was undecided and accepted answers are known."""
    accepted = {question.id for question in questions.questions if any(map(str.strip, question.answers))}
    open_ones = [
        (reading, reply)
        for reading, reply in replies.items()
        if isinstance(reply, ReaderReply) and reply.grade == "undecided" and reading.question in accepted
    ]
    if not open_ones:
        return replies, []
    table = pl.DataFrame(
        {
            "system": [f"reading {number}" for number in range(len(open_ones))],
            "query": [reading.question for reading, _ in open_ones],
            "text": [reply.answer or "" for _, reply in open_ones],
        }
    )
    book = to_answer_book(table)
    grader = build_judge(GRADERS, "judge", judge.card, questions.collection, prompts, {}, book)
    graded = run_task(grader, grader.items(book.answers), judge)
    values = {
        system: value for system, value in graded.frame.select("system", "value").iter_rows() if value is not None
    }
    found = dict(replies)
    for number, (reading, reply) in enumerate(open_ones):
        label = LABELS.get(values.get(f"reading {number}", float("nan")))
        if label is not None:
            found[reading] = reply._replace(grade=label, why=f"graded by {judge.card.name}")
    return found, [f"judge: {note}" for note in graded.notes]
