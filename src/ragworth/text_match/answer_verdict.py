"""Decide whether a text gives an accepted answer: by its yes or no, its quantities, and its words.

The verdict is one of four:

- ``given``: the text says what the accepted answer says;
- ``contradicted``: it says the opposite, or another quantity;
- ``unclear``: it may or may not, and words can't tell;
- ``absent``: it says something else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from ragworth.errors import quote_short
from ragworth.text_match.clock_times import clock_reading
from ragworth.text_match.contrasts import says_opposite
from ragworth.text_match.dates import year_readings
from ragworth.text_match.doubts import find_denial, find_doubt, find_other_noun, find_wording_contrast
from ragworth.text_match.foreign_numbers import with_digits
from ragworth.text_match.identifiers import find_other_identifier, may_be_longer_version
from ragworth.text_match.lists import may_be_czech_list
from ragworth.text_match.matching import has_listed, match_answer, to_matchable
from ragworth.text_match.misplaced_facts import numbers_swapped
from ragworth.text_match.periods import frequencies, has_half_period, is_frequency, names_days
from ragworth.text_match.polarity import StatedPolarity, text_polarity
from ragworth.text_match.quantities import Quantity, QuestionHints
from ragworth.text_match.quantity_match import QuantityFinding, compare, find_quantities
from ragworth.text_match.respellings import respellings
from ragworth.text_match.short_forms import may_be_short_form, says_none
from ragworth.text_match.spelling import comma_readings
from ragworth.text_match.text_facts import QuestionFacts, TextFacts, read_answer
from ragworth.text_match.variants import has_initials

FactKind = Literal["given", "contradicted", "unclear", "absent"]


MIN_FACT_SHARE = 3 / 4
"""Share of a long answer's words, those of the question aside, that a text must have."""

MIN_LABEL_SHARE = 1 / 2
"""The same if the text gives several quantities of the answer as well."""

MAX_CONTRADICTED = 30
"""Words of a long answer, and more than twice as many of a text, from which other numbers are no contradiction."""


_IN_SEQUENCE = ("contains", "contains another form of")
"""Steps by which the words of an answer follow each other in a text."""


class FactVerdict(NamedTuple):
    kind: FactKind
    why: str = ""


def judge_answer(text: TextFacts, answer: str, question: QuestionFacts) -> FactVerdict:
    """Whether a text gives one accepted answer."""
    verdict = _judge(text, answer, question)
    if verdict.kind != "given" and says_none(text.raw, answer, question.raw):
        if verdict.kind == "contradicted":  # "no critical errors, but 12 minor ones"
            return FactVerdict(
                "unclear", f"says that there is none, and gives another number than {quote_short(answer)}"
            )
        return FactVerdict("given", "says that there is none, as")
    if is_frequency(answer):
        verdict = _judge_frequency(text, answer, verdict)
    respelled = _given_in_another_spelling(text, answer, question) if verdict.kind != "given" else ""
    if respelled:
        return FactVerdict("given", respelled)
    if verdict.kind in ("absent", "contradicted") and _given_in_another_reading(text, answer, question):
        return FactVerdict(
            "unclear", f"may give {quote_short(answer)}: a comma or a date in digits can be read in two ways"
        )
    clock = clock_reading(answer) if verdict.kind in ("absent", "unclear") else None
    if clock is not None and _judge(text, clock, question).kind == "given":
        return FactVerdict("given", f"has {quote_short(clock)}, which is")
    if verdict.kind == "absent" and may_be_longer_version(text.raw, answer):
        return FactVerdict("unclear", f"has a longer version than {quote_short(answer)}")
    if verdict.kind == "absent" and may_be_short_form(text.raw, answer):
        return FactVerdict("unclear", f"may be short for, or another form of, {quote_short(answer)}")
    return verdict


def _given_in_another_reading(text: TextFacts, answer: str, question: QuestionFacts) -> bool:
    """Whether a text gives an answer if a comma between digits, "2,7", or a date is read differently in one of them."""
    pairs = [(TextFacts(one), answer) for one in (*comma_readings(text.raw), *year_readings(text.raw))]
    pairs += [(text, one) for one in (*comma_readings(answer), *year_readings(answer))]
    return any(_judge(one, wanted, question).kind in ("given", "unclear") for one, wanted in pairs)


def _given_in_another_spelling(text: TextFacts, answer: str, question: QuestionFacts) -> str:
    """How a text has an answer verbatim once names, codes and times are spelled the same; empty if it has not."""
    for said, meant, why in respellings(text.raw, answer, question.raw):
        facts = TextFacts(said)
        if match_answer(facts.matchable, meant) in _IN_SEQUENCE and _judge(facts, meant, question).kind == "given":
            return why
    return ""


def _judge_frequency(text: TextFacts, answer: str, verdict: FactVerdict) -> FactVerdict:
    """The verdict of an answer that says how often: "every day" is "daily", and "twice daily" is not."""
    wanted, said = frequencies(answer), frequencies(text.raw)
    if not said:
        return verdict
    if wanted == said and not has_half_period(text.raw):
        return verdict if verdict.kind in ("given", "unclear") else FactVerdict("given", "says how often as")
    if wanted <= said and not has_half_period(text.raw) and verdict.kind == "given":
        return verdict
    # Of several frequencies, words don't say which one is meant: "not daily: weekly".
    kind: FactKind = "contradicted" if len(said) == 1 and not names_days(text.raw) else "unclear"
    return FactVerdict(kind, f"has another frequency than {quote_short(answer)}")


def _judge(text: TextFacts, answer: str, question: QuestionFacts) -> FactVerdict:
    wanted = read_answer(answer)
    if wanted.polarity is not None:
        return _judge_polarity(text, wanted, wanted.polarity, question)
    other = "" if wanted.is_long else find_other_identifier(text.raw, answer, question.raw)
    if other:
        return FactVerdict("contradicted", f"has {quote_short(other)} for {quote_short(answer)}")
    findings = _find_quantities(text, wanted, question)
    how = match_answer(text.matchable, answer)
    if how is not None and how not in _IN_SEQUENCE:
        # The words that tell numbers apart may be those of another language: "sechs Monate" and "drei Monate".
        said, meant = with_digits(text.raw).sure, with_digits(answer).sure
        if meant != answer:
            return _judge(TextFacts(said), meant, question)
    # Of a long answer, a part is not the answer.
    if how is not None and (not wanted.is_long or how == "contains"):
        return _judge_match(text, wanted, how, findings, question)
    return _judge_facts(text, wanted, findings, question)


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


def _judge_match(
    text: TextFacts, wanted: TextFacts, how: str, findings: Sequence[QuantityFinding], question: QuestionFacts
) -> FactVerdict:
    """The words are there; is it what the text says?"""
    against = next((each for each in findings if each.status in ("conflict", "opposite")), None)
    verbatim = how in _IN_SEQUENCE
    if against is not None and (not verbatim or not any(each.status in ("given", "coarse") for each in findings)):
        return FactVerdict("contradicted", _other_quantity(wanted, text, against))
    lacking = any(each.status == "missing" for each in findings) or may_be_czech_list(wanted.raw, question.raw)
    if how == "is a part of" and (lacking or _is_after_comma(text, wanted)):
        return FactVerdict("unclear", f"has only a part of {quote_short(wanted.raw)}")
    if numbers_swapped(text, wanted, findings):
        kind: FactKind = "unclear" if wanted.is_long else "contradicted"
        return FactVerdict(kind, f"has the numbers of {quote_short(wanted.raw)} for other things")
    doubt = find_denial(text, wanted, question) or find_doubt(text, wanted, findings, question)
    if not doubt and how == "contains the number of":
        doubt = find_other_noun(text, wanted, findings, question)
    if not doubt and how != "contains" and not has_initials(text.raw, wanted.raw):
        doubt = find_wording_contrast(text, wanted, question)
    return FactVerdict("unclear", doubt) if doubt else FactVerdict("given", how)


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
            return _judge_given(text, wanted, findings, shared, question)
        if missed and shared == 1 and len(facts) > 1 and all(_counts_parts(each.wanted, wanted) for each in missed):
            return FactVerdict("given", "has the facts of")
        if missed and len(missed) < len(needed):
            return FactVerdict("unclear", f"has only a part of {quote_short(wanted.raw)}")
        if needed and not wanted.is_long:
            return FactVerdict("absent")
    if wanted.is_long:
        if facts and shared >= MIN_FACT_SHARE:
            doubt = find_wording_contrast(text, wanted, question)
            return FactVerdict("unclear", doubt) if doubt else FactVerdict("given", "has the facts of")
        return FactVerdict("unclear", f"may say {quote_short(wanted.raw)} in other words")
    if facts and shared and not findings:
        return FactVerdict("unclear", f"has some words of {quote_short(wanted.raw)}")
    if has_listed(text.matchable, wanted.raw, any):
        return FactVerdict("unclear", f"has only a part of {quote_short(wanted.raw)}")
    return FactVerdict("absent")


def _judge_given(
    text: TextFacts, wanted: TextFacts, findings: Sequence[QuantityFinding], shared: float, question: QuestionFacts
) -> FactVerdict:
    """All quantities are given: are they said of the same things?"""
    if numbers_swapped(text, wanted, findings):
        kind: FactKind = "unclear" if wanted.is_long else "contradicted"
        return FactVerdict(kind, f"has the numbers of {quote_short(wanted.raw)} for other things")
    doubt = find_doubt(text, wanted, findings, question)
    if not doubt and says_opposite(wanted.compared, text.compared):
        doubt = f"says the opposite of {quote_short(wanted.raw)}"
    if doubt:
        return FactVerdict("unclear", doubt)
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
