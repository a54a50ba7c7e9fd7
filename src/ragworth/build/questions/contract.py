"""What a writer of questions gets and gives: the whole contract, on one screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ragworth.build.drafts import Draft
from ragworth.calls.job import Job
from ragworth.calls.programs import Forecast

QUESTION = "question"
"""The kind of draft."""

NO_FACT = "no-fact"
"""Status of a draft that couldn't be written: the passages state nothing of this kind."""

UNPARSABLE = "unparsable"
"""Status of a draft whose reply isn't the JSON object that was asked for."""


class SourceText(NamedTuple):
    """A passage to write from."""

    id: str
    document: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class QuestionSlot:
    """One question to write: its stratum, and passages to write from, best first."""

    id: str
    type: str
    style: str
    candidates: Sequence[str]
    """Ids of passages. A writer takes the first that suit the type."""
    seed: str

    @property
    def stratum(self) -> str:
        return f"{self.type} / {self.style}"


class SourceSpan(NamedTuple):
    """A verbatim quotation: the evidence of an answer."""

    passage: str
    text: str


class WrittenQuestion(NamedTuple):
    """A question, the answers to accept, and the spans that they rest on. No answers: it can't be answered."""

    text: str
    answers: tuple[str, ...]
    spans: tuple[SourceSpan, ...]

    def fields(self, slot: QuestionSlot) -> dict[str, Any]:
        """The fields of its draft."""
        return {
            "question": self.text,
            "answers": list(self.answers),
            "answerable": bool(self.answers),
            "passages": list(dict.fromkeys(span.passage for span in self.spans)),
            "spans": [span._asdict() for span in self.spans],
            "type": slot.type,
            "style": slot.style,
        }


class QuestionWriter(Protocol):
    """Writes a draft for each slot, in order. A slot that it can't fill gives a draft with a status."""

    def plan(
        self, slots: Sequence[QuestionSlot], passages: Mapping[str, SourceText], job: Job | None
    ) -> Forecast | None:
        """The calls that `write` would make; None if it asks no model."""
        ...

    def write(
        self, slots: Sequence[QuestionSlot], passages: Mapping[str, SourceText], job: Job | None
    ) -> list[Draft]: ...
