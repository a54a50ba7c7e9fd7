"""``text``: exact match, token F1, containment and ROUGE-L against the accepted answers; asks no model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ragworth.judging.answers.answer_book import Answer
from ragworth.judging.contract import option
from ragworth.judging.findings import AspectValues
from ragworth.judging.graders.contract import Grader
from ragworth.text_match.overlap import COMPARISONS


@dataclass(frozen=True)
class TextGrader(Grader):
    """Exact match, token F1, containment and ROUGE-L, each from 0 to 1 and the best over the accepted answers."""

    unicode: bool = option(False, "let ROUGE-L see the words of all scripts, not only a-z and 0-9")

    kind: ClassVar[str] = "text"
    title: ClassVar[str] = "exact match, token F1, containment and ROUGE-L"
    aspects: ClassVar[tuple[str, ...]] = ("em", "f1", "containment", "rouge-l")

    def check_for(self, answers: Sequence[Answer]) -> None:
        self.need_accepted(answers)

    @property
    def source(self) -> str:
        return f"text{' · rouge-l-unicode' if self.unicode else ''}"

    def value(self, answer: Answer) -> AspectValues:
        text, accepted = self.text(answer), self.texts.answers(answer.query)
        names = {name: f"{name}-unicode" if name == "rouge-l" and self.unicode else name for name in self.aspects}
        return AspectValues({aspect: COMPARISONS[name](text, accepted) for aspect, name in names.items()})
