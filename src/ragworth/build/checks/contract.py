"""What a check is: the whole contract, on one screen.

A check is a dataclass and one line in `CHECKS`. It gives a finding on every question: a value, a
verdict, and a reason. ``unknown`` means that nothing can be said, never that all is well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from ragworth.build.question_set import Question, QuestionSet
from ragworth.calls.programs import NoValue

Verdict = Literal["pass", "fail", "unknown", "n/a"]
"""``n/a``: the check doesn't apply to the question, such as ``each-passage`` to one with a single passage."""


class CheckFinding(NamedTuple):
    """What a check says of one question. ``value`` is what it measured, if it measured anything."""

    verdict: Verdict
    value: float | None = None
    reason: str = ""
    repeats: tuple[str, ...] = ()
    """Earlier questions that it asks again, the most similar first."""


class Reading(NamedTuple):
    """One thing to ask the reader: a question with these passages, or with none at all."""

    question: str
    passages: tuple[str, ...] = ()


class ReaderReply(NamedTuple):
    """What the reader did: how likely it is to decline, and its answer if it rather answers."""

    p_abstain: float
    answer: str | None
    grade: str = ""
    """``correct``, ``wrong``, ``abstained`` or ``undecided`` against the accepted answers, if there are some."""
    why: str = ""

    @property
    def answers(self) -> bool:
        return self.p_abstain < DECLINES


DECLINES = 0.5
"""A reader that declines with at least this probability declines."""

NO_READER = "no reader: name a model with --reader"


@dataclass(frozen=True)
class Evidence:
    """What checks have to go by, besides the questions."""

    questions: QuestionSet
    readings: Mapping[Reading, ReaderReply | NoValue]
    retrieved: Mapping[str, Mapping[str, tuple[str, ...]]]
    """By retriever and question: ids of passages, best first."""
    missing: Mapping[str, str]
    """Why a retriever or the encoder isn't there, by its name."""
    encoder: str = "embedded"

    def read(self, reading: Reading) -> ReaderReply | CheckFinding:
        """The reader's reply, or the finding that there is none."""
        found = self.readings.get(reading)
        if isinstance(found, ReaderReply):
            return found
        return CheckFinding("unknown", None, NO_READER if found is None else f"{found.status}: {found.args[1]}")


@dataclass(frozen=True)
class Check:
    """A kind of check."""

    name: ClassVar[str]
    title: ClassVar[str]
    """What a question that passes is, in a few words."""
    measures: ClassVar[str] = ""
    """What the value is."""
    flag: ClassVar[bool] = False
    """Whether a failure is only reported. A question that fails another check isn't kept."""
    asks_reader: ClassVar[bool] = False
    retrieves: ClassVar[bool] = False

    def readings(self, question: Question, evidence: Evidence) -> Sequence[Reading]:
        """What to ask the reader about a question. Retrieval has run before."""
        return ()

    def find(self, question: Question, evidence: Evidence) -> CheckFinding:
        raise NotImplementedError

    def find_all(self, evidence: Evidence) -> list[CheckFinding]:
        """A finding for each question, in order; for checks that compare questions, the place to do it."""
        return [self.find(question, evidence) for question in evidence.questions.questions]
