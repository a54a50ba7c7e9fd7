"""Blocks about one answer: the passages behind its sentences, and the searches that led to it.

The page draws them; other media show the tables in ``blocks``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ragworth.report.document import Cell, DocumentBlock, TableBlock, TableColumn

MARKS = {"supported": "✓ supported", "contradicted": "✗ contradicted", "neither": "? not supported"}
"""What the context says about a sentence, by the judge's label."""


class SignedBar(NamedTuple):
    """Where a bar begins and how long it is, from −100 to 100."""

    start: float
    length: float


def signed_bar(value: float, largest: float) -> SignedBar:
    """A bar to the right of 0 for what helps, to the left for what goes against the answer."""
    length = round(100 * abs(value) / largest, 1) if largest > 0 else 0.0
    return SignedBar(-length if value < 0 else 0.0, length)


class AnswerSentence(NamedTuple):
    """A sentence of an answer, with the numbers of passages in the order shown, from 1.

    ``behind`` are those that carry it, strongest first, ``against`` those that go against it. ``label`` is what a judge
    said of it, empty if none was asked, and ``supporting`` the passages that support it by themselves.
    """

    text: str
    behind: tuple[int, ...] = ()
    against: tuple[int, ...] = ()
    label: str = ""
    supporting: tuple[int, ...] = ()

    @property
    def mark(self) -> str:
        """The label in words."""
        return " ".join([MARKS.get(self.label, self.label), *(f"[{n}]" for n in self.supporting)])


class AnswerPassage(NamedTuple):
    """A passage that was shown: its contribution in nats with its standard error, None if unknown."""

    number: int
    name: str
    text: str
    value: float | None = None
    error: float | None = None
    remarks: str = ""


@dataclass(frozen=True)
class AnswerView(DocumentBlock):
    """The sentences of an answer, and the passages it was written from.

    The page marks the passages of the sentence, or the sentences of the passage, that a reader points to.
    """

    id: str
    sentences: Sequence[AnswerSentence]
    passages: Sequence[AnswerPassage]

    def bar(self, passage: AnswerPassage) -> SignedBar:
        return signed_bar(passage.value or 0.0, max(abs(each.value or 0.0) for each in self.passages))

    def sentences_of(self, number: int) -> list[int]:
        """The numbers of the sentences that a passage carries."""
        return [n for n, each in enumerate(self.sentences, 1) if number in each.behind]

    @property
    def blocks(self) -> Sequence[TableBlock]:  # type: ignore[override]
        sentences: list[list[Cell]] = [
            [each.text, _numbers(each.behind) or "none", _numbers(each.against), each.mark] for each in self.sentences
        ]
        passages: list[list[Cell]] = [
            [f"[{each.number}] {each.name}", each.value, each.error, each.remarks] for each in self.passages
        ]
        heads = [TableColumn(name) for name in ("Sentence", "Passages behind it", "Against it", "Context")]
        more = [TableColumn("Contribution, nats", True), TableColumn("Standard error", True), TableColumn("")]
        return (
            TableBlock("Sentences of the answer", heads, sentences),
            TableBlock("Passages", [TableColumn("Passage"), *more], passages),
        )


def _numbers(passages: Sequence[int]) -> str:
    return ", ".join(f"[{n}]" for n in passages)


class HopStep(NamedTuple):
    """A search of an agent: what the answer had gained after it, what it added, and its Shapley value, in nats."""

    name: str
    search: str
    worth: float
    added: float
    contribution: float


@dataclass(frozen=True)
class HopTimeline(DocumentBlock):
    """The searches behind one answer in their order; after the first ``needed`` the agent could have stopped."""

    steps: Sequence[HopStep]
    needed: int

    def bar(self, step: HopStep) -> SignedBar:
        return signed_bar(step.added, max(abs(each.added) for each in self.steps))

    @property
    def blocks(self) -> Sequence[TableBlock]:  # type: ignore[override]
        rows: list[list[Cell]] = [
            [
                each.name,
                each.search,
                each.worth,
                each.added,
                each.contribution,
                "" if n <= self.needed else "not needed",
            ]
            for n, each in enumerate(self.steps, 1)
        ]
        numbers = [TableColumn(name, True) for name in ("Worth so far, nats", "Added", "Contribution")]
        heads = [TableColumn("Hop"), TableColumn("Search"), *numbers, TableColumn("")]
        return (TableBlock("Searches", heads, rows),)
