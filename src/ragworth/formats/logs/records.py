"""What a format reads from a row of a RAG log: a record, and the passages in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ragworth.formats.grades import Grade


class LoggedPassage(NamedTuple):
    """A passage in the order shown. It has a text, an id, or both."""

    text: str | None
    id: str | None = None
    score: float | None = None
    relevance: float | None = None
    hop: int | None = None
    """Which of an agent's searches found it, from 1."""
    search: str | None = None

    @property
    def is_empty_search(self) -> bool:
        """Whether it stands for a search that found nothing."""
        return self.text is None and self.id is None and self.hop is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRecord:
    """What one system showed and answered for one question.

    Attributes
    ----------
    place: line or number of the record.
    query: id of the question; by default derived from its text, so that equal questions are the same query.
    passages: None if the log does not say what was shown.
    status: why there is no answer, or ``truncated``.
    accepted: accepted answers.
    relevant: passages known to be relevant, shown or not.
    outcomes: grades by name: a number, a word such as ``correct``, or None; or a list of these.
    trace: id of the trace that the answer comes from.
    content: hash of the row; records of the same system and question with the same one are equal.
    """

    place: int
    query: str | None = None
    question: str | None = None
    system: str | None = None
    repeat: int = 0
    passages: Sequence[LoggedPassage] | None = None
    answer: str | None = None
    status: str = ""
    accepted: Sequence[str] = ()
    relevant: Sequence[LoggedPassage] = ()
    outcomes: Mapping[str, Grade | list[Grade]] = field(default_factory=dict)
    trace: str | None = None
    content: int | None = None
