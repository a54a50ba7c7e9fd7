"""``stated``: the passages say the accepted answer, as far as comparing words can tell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ragworth.build.checks.contract import Check, CheckFinding, Evidence
from ragworth.build.question_set import Question
from ragworth.errors import quote_short
from ragworth.text_match.matching import MatchableText, match_answer, to_matchable
from ragworth.text_match.polarity import read_polarity

NAME_WORDS = 5
"""Words of an answer up to which a capital in it means that it is a name."""
CAPITAL = re.compile(r"(?<!\w)[^\W\d_a-z]\w+")
PREFIX = 4
"""Letters by which words are compared: Germany and German."""


@dataclass(frozen=True)
class StatedAnswer(Check):
    """Whether an accepted answer is in the passages, word for word or as the same number or date.

    It isn't if every accepted answer has a number, or is a name, that none of the passages has. An answer in other
    words is ``unknown``. It only flags, since an answer may be computed.
    """

    name: ClassVar[str] = "stated"
    title: ClassVar[str] = "its passages have the answer"
    measures: ClassVar[str] = "whether the passages have it"
    flag: ClassVar[bool] = True

    def find(self, question: Question, evidence: Evidence) -> CheckFinding:
        if question.answerable is False:
            return CheckFinding("n/a", None, "declared unanswerable: there is no answer")
        if not question.answers:
            return CheckFinding("unknown", None, "no answer is accepted")
        texts = [to_matchable(text) for text in evidence.questions.known_texts(question)]
        if not texts:
            return CheckFinding("unknown", None, "no text of a relevant passage is known")
        if any(match_answer(text, answer) is not None for text in texts for answer in question.answers):
            return CheckFinding("pass", 1.0)
        strange = [_strange_word(answer, texts) for answer in question.answers]
        if all(strange):
            answer = quote_short(question.answers[0], 60)
            return CheckFinding("fail", 0.0, f"the accepted answer is {answer}, and no passage has “{strange[0]}”")
        return CheckFinding("unknown", None, "the passages don't have the answer in the same words")


def _strange_word(answer: str, texts: Sequence[MatchableText]) -> str:
    """A number of an answer, or an answer that is a name, that no passage has; empty if there is none."""
    known = {word for text in texts for word in text.words}
    words = to_matchable(answer).words
    pronouns = {"1"} if "1" not in answer else set()  # "the second one"
    if number := next((word for word in words if word.isdecimal() and word not in known | pronouns), ""):
        return number
    prefixes = {word[:PREFIX] for word in known}
    is_name = len(words) <= NAME_WORDS and CAPITAL.search(answer) is not None and read_polarity(answer) is None
    return answer if is_name and not any(word[:PREFIX] in prefixes for word in words) else ""
