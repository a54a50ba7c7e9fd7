"""``language``: the question is in the language of its passages, by script and by common words."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from ragworth.build.checks.contract import Check, CheckFinding, Evidence
from ragworth.build.question_set import Question
from ragworth.text_match.languages import identify_language


@dataclass(frozen=True)
class SameLanguage(Check):
    """1 if the question is in the language of one of its passages, 0 if not. Too few words to tell is unknown."""

    name: ClassVar[str] = "language"
    title: ClassVar[str] = "in the language of its passages"
    measures: ClassVar[str] = "1 if the languages are the same"

    def find(self, question: Question, evidence: Evidence) -> CheckFinding:
        texts = evidence.questions.known_texts(question)
        if not texts:
            texts = list(evidence.questions.texts.values())[:20]  # an unanswerable question: that of the corpus
        asked = identify_language(question.text)
        languages = Counter(filter(None, map(identify_language, texts)))
        if not asked or not languages:
            return CheckFinding("unknown", None, f"too few words to identify the language of the {_unclear(asked)}")
        if asked not in languages:
            known = languages.most_common(1)[0][0]
            return CheckFinding("fail", 0.0, f"the question is in {asked}, the passages are in {known}")
        return CheckFinding("pass", 1.0)


def _unclear(asked: str) -> str:
    return "passages" if asked else "question"
