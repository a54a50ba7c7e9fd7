"""Grade a short answer without a model, deterministically: correct, abstained, wrong or undecided.

Abstention comes first: an answer that declines (:mod:`ragworth.text_match.refusals`) is abstained, even if it mentions
an accepted answer. But if an accepted answer declines as well, the question has no answer, and declining is correct,
whatever passages were shown. Otherwise an answer is correct if it gives an accepted one, and wrong if it contradicts
them or says something else (:mod:`ragworth.text_match.answer_verdict`). Where the words can't tell, it is undecided;
that is no grade, and counts as missing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from ragworth.core.errors import InputError, quote_short
from ragworth.text_match.answer_verdict import judge_answer
from ragworth.text_match.citations import without_footnotes, without_marks
from ragworth.text_match.markup import MAX_TEXT, names_markup, unwrapped, without_markup
from ragworth.text_match.matching import LITTLE_WORDS, stem_of, to_matchable
from ragworth.text_match.negation import NEGATIONS
from ragworth.text_match.normalise import canonical_words, singular
from ragworth.text_match.overlap import require_accepted
from ragworth.text_match.refusals import RefusalMatch, find_refusal, tells_of_sources
from ragworth.text_match.text_facts import QuestionFacts, TextFacts, read_answer, read_question

_NOTHING = ("none", "nil", "null", "na")
"""Labels that decline as an answer, and may be what is asked for as an accepted one."""

_DECLINING = LITTLE_WORDS | NEGATIONS | {"a", "an", "the", "do", "does", "did", "any", "about", "anything"}
"""Words of phrases that decline, other than who is silent and how: "contract", "state"."""

MIN_CANDIDATES = 3
"""Items of a list of candidates, at least."""

MAX_REGRET = 1
"""Words beside "I'm sorry" up to which nothing else is said."""

_ITEM_ENDS = re.compile(r"[,;、，/]|\b(?:and|or)\b|(?:^|\s)(?:\d{1,2}[.)]|[-*•])\s")
_HEADING = re.compile(r"^\W*\w+(?: \w+)?:")
_DIGIT = re.compile(r"\d")

GradeLabel = Literal["correct", "abstained", "wrong", "undecided"]


class ShortAnswerGrade(NamedTuple):
    label: GradeLabel
    why: str


def grade_short_answer(
    text: str,
    accepted: Sequence[str],
    *,
    question: str = "",
    phrases: Sequence[str] = (),
) -> ShortAnswerGrade:
    """Grade an answer against the accepted ones.

    ``question`` says what a number counts ("in USD millions") and what a yes or no is about; without it, more answers
    are undecided. ``phrases`` are further phrases that decline. A blank answer can't be graded, and a blank
    accepted answer would be contained in every text, so both are errors.
    """
    if not text.strip():
        raise InputError(
            "the answer to be graded is blank", expected="a text", remedy="leave it out, with its reason as status"
        )
    for place, answer in enumerate(require_accepted(accepted), 1):
        if not answer.strip():
            raise InputError(f"accepted answer {place} of {len(accepted)} is blank", expected="a text")
    same = any(text.strip() == answer.strip() for answer in accepted)
    said = text.strip()[:MAX_TEXT] if same else unwrapped(text)
    if said is None:
        return ShortAnswerGrade("undecided", "has only reasoning, and no answer after it")
    grade = _grade(said, [answer[:MAX_TEXT] for answer in accepted], question[:MAX_TEXT], phrases, same)
    if len(said) < MAX_TEXT:
        return grade
    label: GradeLabel = "undecided" if grade.label == "wrong" else grade.label
    return ShortAnswerGrade(label, f"{grade.why}; only the first {MAX_TEXT:,} characters were read")


def _grade(text: str, accepted: Sequence[str], question: str, phrases: Sequence[str], same: bool) -> ShortAnswerGrade:
    """Grade what an answer says; ``same`` is whether it is an accepted answer."""
    if not any(map(names_markup, accepted)):
        accepted = [without_markup(answer) or answer for answer in accepted]
        text = without_markup(text) or text
    declined = find_refusal(text, phrases)
    rightly = _accepted_refusal(accepted, phrases) if declined is not None else None
    if rightly is not None:
        return ShortAnswerGrade("correct", f"declines as {quote_short(rightly)}")
    regretted = declined is not None and declined.language == "regret"
    asked = read_question(question)
    # "None" and the like may be answers, too: they are graded like any other. So is what is said with regret.
    graded = declined is None or regretted or _is_asked(declined, asked, accepted)
    usable = accepted if graded else [answer for answer in accepted if find_refusal(answer, phrases)]
    plain = text if same else without_marks(text) or text
    if not same and not any(map(_DIGIT.search, accepted)):
        plain = without_footnotes(plain)
    facts = TextFacts(plain)
    unclear, against = "", ""
    for answer in usable:
        verdict = judge_answer(facts, answer, asked)
        if verdict.kind == "given" and _is_candidate(plain, answer, accepted):
            unclear = unclear or f"has {quote_short(answer)} as one of several"
        elif verdict.kind == "given":
            return ShortAnswerGrade("correct", f"{verdict.why} {quote_short(answer)}")
        elif verdict.kind == "unclear":
            unclear = unclear or verdict.why
        elif verdict.kind == "contradicted":
            against = against or verdict.why
    if declined is not None and not (regretted and against):
        mentioned = next((answer for answer in accepted if _mentions(facts, answer, asked, declined)), None)
        if mentioned is not None:
            return ShortAnswerGrade("undecided", f"has {quote_short(mentioned)}, but seems to decline")
        if regretted and len(plain.split()) > len(declined.phrase.split()) + MAX_REGRET:
            return ShortAnswerGrade("undecided", f"says {quote_short(declined.phrase)}, and something else")
        return ShortAnswerGrade("abstained", f"declines: {quote_short(declined.phrase)}")
    if unclear:
        return ShortAnswerGrade("undecided", unclear)
    if plain != text and not against:
        marked = TextFacts(text)
        given = next((answer for answer in accepted if judge_answer(marked, answer, asked).kind == "given"), None)
        if given is not None:
            return ShortAnswerGrade(
                "undecided", f"has {quote_short(given)} only in a citation or as the number of an item"
            )
    if facts.polarity is None and tells_of_sources(plain, question):
        return ShortAnswerGrade("undecided", "tells of its sources, and may say that they don't answer")
    return ShortAnswerGrade("wrong", against or f"gives none of the accepted answers ({len(accepted)})")


def _is_candidate(text: str, answer: str, accepted: Sequence[str]) -> bool:
    """Whether a text only lists three or more names or numbers, of which one is accepted: "Paris, Lyon, Nice".

    The items are as long as the answer, up to a word; the first may begin with two: "Could be Paris".
    """
    items = [item for item in (to_matchable(part) for part in _ITEM_ENDS.split(_HEADING.sub("", text))) if item.words]
    longest = len(to_matchable(answer).words) + 1
    if len(items) < MIN_CANDIDATES or any(len(item.words) > longest + (item is items[0]) for item in items):
        return False
    known = [to_matchable(each).line for each in accepted]
    return any(map(items[0].line.endswith, known)) + sum(item.line in known for item in items[1:]) == 1


def _accepted_refusal(accepted: Sequence[str], phrases: Sequence[str]) -> str | None:
    """The accepted answer that declines, as for a question that has no answer; "none" may be an answer itself."""
    return next(
        (
            answer
            for answer in accepted
            if answer.strip(" .").lower() not in _NOTHING and find_refusal(answer, phrases) is not None
        ),
        None,
    )


def _is_asked(declined: RefusalMatch, question: QuestionFacts, accepted: Sequence[str]) -> bool:
    """Whether what seems to decline answers such a question as "Does the contract state a date?"."""
    words = [word for word in canonical_words(declined.phrase) if word not in _DECLINING]
    known = bool(words) and all(stem_of(singular(word)) in question.stems for word in words)
    return known and (question.denies or any(read_answer(answer).polarity is not None for answer in accepted))


def _mentions(text: TextFacts, answer: str, question: QuestionFacts, declined: RefusalMatch) -> bool:
    """Whether a text that seems to decline, not in the first person, has an answer that the question has not."""
    if not question.raw or declined.language in ("", "label", "regret") or re.match(r"i\b|we\b", declined.phrase):
        return False
    wanted = read_answer(answer).matchable
    if wanted.words in (("yes",), ("no",)):
        return False
    return bool(wanted.words) and wanted.line in text.matchable.line and wanted.line not in question.matchable.line
