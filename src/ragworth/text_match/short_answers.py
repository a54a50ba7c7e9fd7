"""Grade a short answer without a model, deterministically: correct, abstained, wrong or undecided.

Abstention comes first: an answer that declines (:mod:`ragworth.text_match.refusals`) is abstained, even if it mentions
an accepted answer. But if an accepted answer declines as well, the question has no answer, and declining is correct,
whatever passages were shown. Otherwise an answer is correct if it gives an accepted one, and wrong if it contradicts
them or says something else. Where the words can't tell, it is undecided; that is no grade, and counts as missing.

Yes or no, quantities and words lead to one of four verdicts on an accepted answer:

- ``given``: the text says what the accepted answer says;
- ``contradicted``: it says the opposite, or another quantity;
- ``unclear``: it may or may not, and words can't tell;
- ``absent``: it says something else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from ragworth.core.errors import InputError, quote_short
from ragworth.text_match.markup import MAX_TEXT, names_markup, unwrapped, without_markup
from ragworth.text_match.matching import LITTLE_WORDS, has_parts, match_answer, may_contain, stem_of, to_matchable
from ragworth.text_match.negation import NEGATIONS, is_denied
from ragworth.text_match.normalise import canonical_words, fold_accents, singular
from ragworth.text_match.overlap import require_accepted
from ragworth.text_match.polarity import (
    StatedPolarity,
    adds_words,
    asks_polarity,
    restated_polarity,
    text_polarity,
)
from ragworth.text_match.quantities import Quantity, QuestionHints
from ragworth.text_match.quantity_match import QuantityFinding, compare, find_quantities
from ragworth.text_match.refusals import RefusalMatch, find_refusal, tells_of_sources
from ragworth.text_match.sentences import without_footnotes, without_marks
from ragworth.text_match.text_facts import QuestionFacts, TextFacts, read_answer, read_question

FactKind = Literal["given", "contradicted", "unclear", "absent"]


MIN_FACT_SHARE = 3 / 4
"""Share of a long answer's words, those of the question aside, that a text must have."""

MIN_LABEL_SHARE = 1 / 2
"""The same if the text gives several quantities of the answer as well."""

MAX_CONTRADICTED = 30
"""Words of a long answer, and more than twice as many of a text, from which other numbers are no contradiction."""


_COMPOUND = re.compile(r"(?<![^\W\d_])[^\W\d_]+(?:-[^\W\d_]+)+")
_IN_SEQUENCE = ("contains", "contains another form of")
"""Steps by which the words of an answer follow each other in a text."""


class FactVerdict(NamedTuple):
    kind: FactKind
    why: str = ""


def judge_answer(text: TextFacts, answer: str, question: QuestionFacts) -> FactVerdict:
    """Whether a text gives one accepted answer."""
    wanted = read_answer(answer)
    if wanted.polarity is not None:
        return _judge_polarity(text, wanted, wanted.polarity, question)
    findings = _find_quantities(text, wanted, question)
    implied = _judge_implied(text, wanted, findings, question)
    if implied is not None:
        return implied
    how = match_answer(text.matchable, answer)
    if how == "contains" and "-" in text.raw and _is_within_compounds(text, wanted):
        return FactVerdict("unclear", f"has {quote_short(answer)} only in a longer word")
    # Of a long answer, a part is not the answer.
    if how is not None and (not wanted.is_long or how == "contains"):
        verdict = _judge_match(text, wanted, how, findings)
    else:
        verdict = _judge_facts(text, wanted, findings, question)
    if verdict.kind == "absent" and may_contain(text.matchable, wanted.matchable):
        return FactVerdict("unclear", f"has a part or another form of {quote_short(answer)}")
    if verdict.kind == "absent" and text.polarity is not None and (not question.raw or asks_polarity(question.raw)):
        return FactVerdict("unclear", f"says yes or no, which {quote_short(answer)} doesn't")
    if verdict.kind == "given" and not question.denies and wanted.denies != is_denied(text.stemmed, wanted.keywords):
        return FactVerdict("unclear", f"has a negation near {quote_short(answer)}, or lacks one")
    return verdict


def _is_within_compounds(text: TextFacts, wanted: TextFacts) -> bool:
    """Whether an answer is only a part of words with a hyphen: "step-daughter", but not "English-speaking"."""
    words = set(wanted.matchable.words)

    def joined(compound: re.Match[str]) -> str:
        whole, first = (to_matchable(part).words for part in (compound[0], compound[0].rpartition("-")[0]))
        longer = not words.isdisjoint(whole) and not words.issuperset(whole) and not words.issuperset(first)
        return compound[0].replace("-", "") if longer else compound[0]

    return wanted.matchable.line not in to_matchable(_COMPOUND.sub(joined, text.raw)).line


def _find_quantities(text: TextFacts, wanted: TextFacts, question: QuestionFacts) -> list[QuantityFinding]:
    # "One" is often no number: "one-off charges".
    quantities = [
        each for each in wanted.quantities if not wanted.is_long or wanted.pieces[each.start].raw.lower() != "one"
    ]
    return find_quantities(quantities, text.quantities, question.hints) if quantities else []


def _judge_polarity(
    text: TextFacts, wanted: TextFacts, polarity: StatedPolarity, question: QuestionFacts
) -> FactVerdict:
    said = text_polarity(text.raw, question.raw, polarity.rest)
    if said is None and polarity.rest and wanted.matchable.line in text.matchable.line:
        said = polarity.positive
    word = "yes" if polarity.positive else "no"
    if said is None:
        return FactVerdict("unclear", f"says neither yes nor no clearly, for {quote_short(wanted.raw)}")
    if said != polarity.positive:
        return FactVerdict("contradicted", f"says {'yes' if said else 'no'} for {quote_short(wanted.raw)}")
    findings = _find_quantities(text, wanted, question)
    other = next((each for each in findings if each.status in ("conflict", "opposite")), None)
    if other is None or any(each.status == "given" for each in findings):
        return FactVerdict("given", f"says {word} as")
    if len(findings) == 1 and not wanted.is_long:
        return FactVerdict("contradicted", _other_quantity(wanted, text, other))
    return FactVerdict("unclear", f"says {word}, but has other numbers than {quote_short(wanted.raw)}")


def _judge_implied(
    text: TextFacts, wanted: TextFacts, findings: Sequence[QuantityFinding], question: QuestionFacts
) -> FactVerdict | None:
    """The verdict by yes or no, if an answer only restates or denies a question: "Dental work is covered."."""
    only = asks_polarity(question.raw) and not adds_words(wanted.raw, question.raw)
    meant = restated_polarity(wanted.raw, question.raw) if only else None
    said = text_polarity(text.raw, question.raw, "") if meant is not None else None
    if said is None:
        return None
    word = "yes" if said else "no"
    if said != meant:
        return FactVerdict("contradicted", f"says {word} for {quote_short(wanted.raw)}")
    if any(each.status != "given" for each in findings):
        return None if text.quantities else FactVerdict("unclear", f"says only {word} for {quote_short(wanted.raw)}")
    return FactVerdict("given", f"says {word} as")


def _judge_match(text: TextFacts, wanted: TextFacts, how: str, findings: Sequence[QuantityFinding]) -> FactVerdict:
    """The words are there; do the numbers agree, and is it the whole answer?"""
    against = next((each for each in findings if each.status in ("conflict", "opposite")), None)
    verbatim = how in _IN_SEQUENCE
    if against is not None and (not verbatim or not any(each.status in ("given", "coarse") for each in findings)):
        return FactVerdict("contradicted", _other_quantity(wanted, text, against))
    if how == "is a part of":
        lacking = any(each.status == "missing" for each in findings)
        foreign = not fold_accents(text.raw).isascii()
        if lacking or foreign or has_parts(wanted.raw) or _is_after_comma(text, wanted):
            return FactVerdict("unclear", f"has only a part of {quote_short(wanted.raw)}")
    return FactVerdict("given", how)


def _is_after_comma(text: TextFacts, wanted: TextFacts) -> bool:
    """Whether a text only says where or what the answer is: "Germany" for "Munich, Germany"."""
    first, comma, rest = wanted.raw.partition(",")
    return bool(comma) and text.matchable.line in to_matchable(rest).line and bool(to_matchable(first).words)


def _judge_facts(
    text: TextFacts, wanted: TextFacts, findings: Sequence[QuantityFinding], question: QuestionFacts
) -> FactVerdict:
    """The words of the accepted answer aren't there in sequence: compare its quantities, then its other words."""
    facts = wanted.content - question.stems
    shared = len(facts & text.stems) / len(facts) if facts else 1.0
    if findings:
        needed = [each for each in findings if each.status == "given" or not _in_question(each.wanted, question)]
        missed = [each for each in needed if each.status != "given"]
        if any(each.status == "coarse" for each in missed):
            return FactVerdict("unclear", f"has a coarser or hedged number than {quote_short(wanted.raw)}")
        same_statement = len(missed) == len(needed) and shared >= MIN_LABEL_SHARE
        against = next((each for each in missed if _contradicts(text, wanted, each, same_statement)), None)
        if against is not None:
            return FactVerdict("contradicted", _other_quantity(wanted, text, against))
        if needed and not missed:
            return _judge_given(wanted, findings, shared)
        if missed and shared == 1 and len(facts) > 1 and all(_counts_parts(each.wanted, wanted) for each in missed):
            return FactVerdict("given", "has the facts of")
        if missed and len(missed) < len(needed):
            return FactVerdict("unclear", f"has only a part of {quote_short(wanted.raw)}")
        if needed and not wanted.is_long:
            return FactVerdict("absent")
    if wanted.is_long:
        if facts and shared >= MIN_FACT_SHARE:
            return FactVerdict("given", "has the facts of")
        return FactVerdict("unclear", f"may say {quote_short(wanted.raw)} in other words")
    if facts and shared and not findings:
        return FactVerdict("unclear", f"has some words of {quote_short(wanted.raw)}")
    return FactVerdict("absent")


def _judge_given(wanted: TextFacts, findings: Sequence[QuantityFinding], shared: float) -> FactVerdict:
    """All quantities are given: are they said of the same things?"""
    if shared < (MIN_LABEL_SHARE if not wanted.is_long or len(findings) > 1 else MIN_FACT_SHARE):
        return FactVerdict("unclear", f"has the numbers of {quote_short(wanted.raw)}, and few of its words")
    return FactVerdict("given", "gives the quantity of" if len(findings) == 1 else "gives the quantities of")


def _contradicts(text: TextFacts, wanted: TextFacts, finding: QuantityFinding, same_statement: bool) -> bool:
    """Whether another quantity contradicts the answer. A long one has many, and so may a long text."""
    if finding.status not in ("conflict", "opposite"):
        return False
    if not wanted.is_long:
        return True
    if len(wanted.words) > MAX_CONTRADICTED or len(text.words) > MAX_CONTRADICTED + 2 * len(wanted.words):
        return False
    if finding.status == "opposite":
        return True
    said = finding.match
    same_thing = finding.wanted.units or (said is not None and said.noun and said.noun == finding.wanted.noun)
    return bool(same_thing) and same_statement


def _counts_parts(quantity: Quantity, wanted: TextFacts) -> bool:
    """Whether a number only counts what the answer lists: "three segments: A, B and C"."""
    listed = wanted.tokens[quantity.end :]
    parts = 1 + sum(token in (",", "and", ";") for token in listed)
    return quantity.kind == "number" and not quantity.units and quantity.value == parts


def _in_question(quantity: Quantity, question: QuestionFacts) -> bool:
    return any(compare(quantity, each, QuestionHints()) in ("same", "coarse") for each in question.quantities)


def _other_quantity(wanted: TextFacts, text: TextFacts, finding: QuantityFinding) -> str:
    said = finding.match
    words = " ".join(text.tokens[said.start : said.end]) if said else ""
    return f"has {quote_short(words)} for {quote_short(wanted.raw)}"


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
