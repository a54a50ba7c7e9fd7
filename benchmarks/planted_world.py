"""Questions with planted faults, a perfect reader of them, and how well each check finds them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from ragworth.build.checks import CHECKS
from ragworth.build.checks.run import CheckResult, CheckSettings, run_checks
from ragworth.build.question_set import Question, QuestionSet
from ragworth.calls.job import Job
from ragworth.judging.annotators.abstention import CONTROL_QUESTIONS
from ragworth.llm.contract import Choose, Request
from ragworth.llm.scripted import Scripted, ScriptedReply
from ragworth.stats.range_intervals import wilson_interval

CONTROLS = {each.answered: each.passage for each in CONTROL_QUESTIONS}
DECLINES = "NO-RESPONSE"


@dataclass
class World:
    """Questions, faults by question and check, passages, and what the reader needs to know."""

    questions: list[Question] = field(default_factory=list)
    faults: dict[str, str] = field(default_factory=dict)
    passages: dict[str, str] = field(default_factory=dict)
    needs: dict[str, list[tuple[tuple[str, ...], str]]] = field(default_factory=dict)
    """By question: sentences that together give an answer, and the answer. No sentences: known by heart."""

    def add(self, question: Question, *ways: tuple[tuple[str, ...], str], fault: str = "") -> None:
        self.questions.append(question)
        self.needs.setdefault(question.text, []).extend(ways)
        if fault:
            self.faults[question.id] = fault

    @property
    def question_set(self) -> QuestionSet:
        frame = pl.DataFrame({"passage": list(self.passages), "text": list(self.passages.values())})
        return QuestionSet(tuple(self.questions), frame)

    def read(self, prompt: str) -> str:
        """What a perfect reader of this world, and of the control questions, replies."""
        asked = ["", *re.findall(r"^Question: (.*)$", prompt, re.MULTILINE)][-1]
        if asked in CONTROLS and CONTROLS[asked] in prompt:
            return "the answer"
        ways = self.needs.get(asked, [])
        return next((answer for sentences, answer in ways if all(each in prompt for each in sentences)), DECLINES)

    def scripted_reader(self) -> Scripted:
        def reply(request: Request) -> ScriptedReply:
            said = self.read("\n".join(message.content for message in request.prompt.messages))
            if isinstance(request, Choose):
                p = 0.97 if said == DECLINES else 0.02
                return {label: p if label == DECLINES else 0.001 for label in request.labels}
            return said

        return Scripted(reply)


def run_world(world: World, encoder: str = "embedded") -> CheckResult:
    """All checks."""
    with Job(world.scripted_reader(), None) as job:
        return run_checks(world.question_set, CheckSettings(encoder=encoder), job)


class CheckQuality(NamedTuple):
    check: str
    planted: int
    found: int
    false_alarms: int
    unknown: int
    """Planted faults that the check says nothing about."""

    @property
    def recall(self) -> float:
        return self.found / self.planted

    @property
    def precision(self) -> float | None:
        """None if the check fails nothing."""
        failed = self.found + self.false_alarms
        return self.found / failed if failed else None


def measure(world: World, result: CheckResult, only: Collection[str] | None = None) -> list[CheckQuality]:
    """Precision and recall of each check, on some questions or on all. A false alarm is a failure of a question that
    was planted for no check."""
    faults = {id: check for id, check in world.faults.items() if only is None or id in only}
    planted = Counter(faults.values())
    rows = []
    for check in filter(planted.__contains__, CHECKS.names()):
        failed = {id for id in result.failed(check) if only is None or id in only}
        found = sum(faults.get(id) == check for id in failed)
        alarms = sum(id not in world.faults for id in failed)
        silent = result.frame.filter((pl.col("check") == check) & (pl.col("verdict") == "unknown"))["question"]
        unknown = sum(faults.get(id) == check for id in silent)
        rows.append(CheckQuality(check, planted[check], found, alarms, unknown))
    return rows


def quality_table(rows: Sequence[CheckQuality]) -> str:
    """As Markdown, with 95 % intervals by Wilson."""
    lines = ["| check | planted | found | unknown | false alarms | recall | precision |"]
    lines += ["| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for row in rows:
        failed = row.found + row.false_alarms
        cells = (row.check, row.planted, row.found, row.unknown, row.false_alarms)
        shares = (_share(row.found, row.planted), _share(row.found, failed))
        lines.append("| " + " | ".join(map(str, (*cells, *shares))) + " |")
    return "\n".join(lines)


def _share(part: int, whole: int) -> str:
    if not whole:
        return "–"
    low, high = wilson_interval(part, whole, 0.95)
    return f"{part / whole:.2f} [{low:.2f}, {high:.2f}]"
