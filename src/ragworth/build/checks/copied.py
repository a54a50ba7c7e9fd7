"""``copied``: the question isn't a sentence of its passage with a word taken out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ragworth.build.checks.contract import Check, CheckFinding, Evidence
from ragworth.build.question_set import Question
from ragworth.text_match.overlap import split_words

MIN_RUN = 5
"""Words in a row that any two texts on a subject may share."""


@dataclass(frozen=True)
class NotCopied(Check):
    """The share of the words that stand in runs of five or more words, articles aside, copied from one passage."""

    most: float = 0.6

    name: ClassVar[str] = "copied"
    title: ClassVar[str] = "not copied from the text"
    measures: ClassVar[str] = "share of words in copied runs"

    def find(self, question: Question, evidence: Evidence) -> CheckFinding:
        texts = evidence.questions.known_texts(question)
        if not texts:
            if question.answerable is False:
                return CheckFinding("n/a", None, "declared unanswerable: it has no passage")
            return CheckFinding("unknown", None, "no text of a relevant passage is known")
        words = split_words(question.text)
        if not words:
            return CheckFinding("unknown", None, "the question has no words")
        share, run = copied_share(words, [split_words(text) for text in texts])
        if share >= self.most:
            return CheckFinding("fail", share, f"{share:.0%} of it is copied, such as “{' '.join(run)}”")
        return CheckFinding("pass", share)


def copied_share(words: list[str], texts: list[list[str]]) -> tuple[float, list[str]]:
    """The share of words in runs of `MIN_RUN` or more that some text has too, and the first such run."""
    known = {tuple(text[at : at + MIN_RUN]) for text in texts for at in range(len(text) - MIN_RUN + 1)}
    copied = [False] * len(words)
    for at in range(len(words) - MIN_RUN + 1):
        if tuple(words[at : at + MIN_RUN]) in known:
            copied[at : at + MIN_RUN] = [True] * MIN_RUN
    if not any(copied):
        return 0.0, []
    first = copied.index(True)
    end = next((at for at in range(first, len(copied)) if not copied[at]), len(copied))
    return sum(copied) / len(words), words[first:end]
