"""Checks that compare a question and its answers with the texts of its passages; they ask no model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ragworth.build.checks.contract import Check, CheckFinding, Evidence
from ragworth.build.question_set import Question
from ragworth.core.errors import format_count, quote_short
from ragworth.data.collection import plain_text
from ragworth.text_match.languages import identify_language
from ragworth.text_match.matching import MatchableText, match_answer, to_matchable
from ragworth.text_match.overlap import split_words
from ragworth.text_match.polarity import read_polarity


@dataclass(frozen=True)
class Verbatim(Check):
    """The share of spans that are in their passages; other blanks don't matter. One that isn't fails the question."""

    name: ClassVar[str] = "verbatim"
    title: ClassVar[str] = "source span is in the passage"
    measures: ClassVar[str] = "share of spans found"

    def find(self, question: Question, evidence: Evidence) -> CheckFinding:
        if question.answerable is False:
            return CheckFinding("n/a", None, "declared unanswerable: there is no span")
        if not question.spans:
            return CheckFinding("unknown", None, "the collection states no spans")
        texts = evidence.questions.texts
        if lost := [span.passage for span in question.spans if span.passage not in texts]:
            return CheckFinding("fail", 0.0, f"there is no passage {quote_short(lost[0], 60)}")
        missing = [span for span in question.spans if plain_text(span.text) not in plain_text(texts[span.passage])]
        share = 1 - len(missing) / len(question.spans)
        if missing:
            return CheckFinding("fail", share, f"not in {missing[0].passage}: {quote_short(missing[0].text, 60)}")
        return CheckFinding("pass", share)


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


@dataclass(frozen=True)
class RoundTrip(Check):
    """The share of retrievers that rank a passage of the question among their first k.

    A flag, since dropping what BM25 doesn't find would make a collection on which BM25 looks good.
    """

    k: int = 10

    name: ClassVar[str] = "round-trip"
    title: ClassVar[str] = "found by retrieval"
    measures: ClassVar[str] = "share of retrievers that find a passage"
    flag: ClassVar[bool] = True
    retrieves: ClassVar[bool] = True

    def find(self, question: Question, evidence: Evidence) -> CheckFinding:
        if question.answerable is False:
            return CheckFinding("n/a", None, "declared unanswerable: there is nothing to find")
        if not question.passages:
            return CheckFinding("unknown", None, "no passage is relevant to it")
        if not evidence.retrieved:
            return CheckFinding("unknown", None, "; ".join(evidence.missing.values()) or "no retriever is available")
        number = evidence.questions.passages.height
        if number <= self.k:
            reason = f"the collection has {format_count(number, 'passage')}, so the top {self.k} finds them all"
            return CheckFinding("unknown", None, reason)
        wanted = set(question.relevant)
        lost = [
            name for name, found in evidence.retrieved.items() if not wanted & set(found.get(question.id, ())[: self.k])
        ]
        share = 1 - len(lost) / len(evidence.retrieved)
        if lost:
            return CheckFinding("fail", share, f"not in the top {self.k} of {' and '.join(lost)}")
        return CheckFinding("pass", share)
