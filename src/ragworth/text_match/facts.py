"""Decide whether a text gives an accepted answer: by its yes or no, its quantities, and its words.

The verdict is one of four:

- ``given``: the text says what the accepted answer says;
- ``contradicted``: it says the opposite, or another quantity;
- ``unclear``: it may or may not, and words can't tell;
- ``absent``: it says something else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

from ragworth.errors import quote_short
from ragworth.text_match.clock_times import clock_reading, half_is_unclear
from ragworth.text_match.contrasts import ComparedText, bounds_opposed, find_contrast, says_opposite
from ragworth.text_match.dates import TextPiece, year_readings
from ragworth.text_match.denials import is_denied, is_offered, is_set_apart, is_taken_back
from ragworth.text_match.directions import DIRECTIONS, NEGATIONS
from ragworth.text_match.identifiers import find_other_identifier
from ragworth.text_match.lists import AND, may_be_czech_list, with_plain_joints
from ragworth.text_match.matching import (
    LITTLE_WORDS,
    MatchableText,
    has_listed,
    is_character,
    match_answer,
    matchable_from,
    stem_of,
)
from ragworth.text_match.plurals import singular
from ragworth.text_match.polarity import StatedPolarity, read_polarity, text_polarity
from ragworth.text_match.quantities import Quantity, QuestionHints, read_hints, read_quantities
from ragworth.text_match.quantity_match import QuantityFinding, compare, find_quantities
from ragworth.text_match.short_forms import may_be_short_form
from ragworth.text_match.spelling import comma_readings, read_pieces
from ragworth.text_match.units import UNITS, units_differ_in_case

FactKind = Literal["given", "contradicted", "unclear", "absent"]

LONG_ANSWER = 7
"""Words, little ones aside, from which an accepted answer is long: it is matched by its facts."""

MIN_FACT_SHARE = 3 / 4
"""Share of a long answer's words, those of the question aside, that a text must have."""

MIN_LABEL_SHARE = 1 / 2
"""The same if the text gives several quantities of the answer as well."""

MAX_CONTRADICTED = 30
"""Words of a long answer, and more than twice as many of a text, from which other numbers are no contradiction."""


_EMPTY_TEXT = """
a an the about around approximately roughly nearly almost over under than more less least most up some total year time
between through there has have had will would been also because due mainly
"""
_ABSENCE_TEXT = "avoid avoided lack lacks missing omit omitted exclude excluded exempt free banned"
_ABSENCE = frozenset(_ABSENCE_TEXT.split())
_NO_FACTS = frozenset(_EMPTY_TEXT.split()) | LITTLE_WORDS | DIRECTIONS.keys()


MAX_ALTERNATIVE_GAP = 3
"""Words between a quantity and another one after an "or"."""


class FactVerdict(NamedTuple):
    kind: FactKind
    why: str = ""


@dataclass(frozen=True)
class TextFacts:
    """A text with what is read of it, each once."""

    raw: str

    @cached_property
    def pieces(self) -> list[TextPiece]:
        return read_pieces(self.raw)

    @cached_property
    def matchable(self) -> MatchableText:
        return matchable_from(self.raw, self.pieces)

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        return read_quantities(self.pieces)

    @cached_property
    def tokens(self) -> list[str]:
        """The pieces as words and marks, in the positions that quantities have."""
        return [piece.raw if piece.kind == "break" else piece.value for piece in self.pieces]

    @cached_property
    def compared(self) -> ComparedText:
        return ComparedText(self.raw, self.pieces)

    @cached_property
    def stems(self) -> frozenset[str]:
        return frozenset(map(stem_of, self.matchable.words))

    @cached_property
    def polarity(self) -> StatedPolarity | None:
        return read_polarity(self.raw)

    @cached_property
    def content(self) -> frozenset[str]:
        """Stems that carry facts: of no little words, nor words of direction."""
        return frozenset(stem_of(word) for word in self.words if _carries_fact(word))

    @cached_property
    def words(self) -> list[str]:
        """The words that are not part of a quantity."""
        inside = {place for each in self.quantities for place in range(each.start, each.end)}
        inside |= {each.start - 1 for each in self.quantities if each.start and self._is_currency(each.start - 1)}
        return [
            singular(piece.value)
            for place, piece in enumerate(self.pieces)
            if place not in inside and piece.kind != "break"
        ]

    def _is_currency(self, place: int) -> bool:
        return any(unit.is_money for unit in UNITS.get(self.pieces[place].value, ()))

    @cached_property
    def is_long(self) -> bool:
        return sum(map(_weight, self.words)) >= LONG_ANSWER


def _carries_fact(word: str) -> bool:
    return len(word) > 1 and word[0].isalnum() and word not in _NO_FACTS and not is_character(word)


def _weight(word: str) -> float:
    """How much of a word a token is; of scripts without blanks, two characters make one."""
    return 0.0 if word in LITTLE_WORDS else 0.5 if is_character(word) else 1.0


read_answer = lru_cache(maxsize=8192)(TextFacts)


@dataclass(frozen=True)
class QuestionFacts(TextFacts):
    """A question; the empty text if it isn't known."""

    @cached_property
    def hints(self) -> QuestionHints:
        return read_hints(self.raw)

    @cached_property
    def denies(self) -> bool:
        """Whether it asks for what is not: "what is not covered", "what to avoid"."""
        return not (NEGATIONS | _ABSENCE).isdisjoint(self.tokens)


read_question = lru_cache(maxsize=8192)(QuestionFacts)


def judge_answer(text: TextFacts, answer: str, question: QuestionFacts) -> FactVerdict:
    """Whether a text gives one accepted answer."""
    verdict = _judge(text, answer, question)
    if verdict.kind in ("absent", "contradicted") and _given_in_another_reading(text, answer, question):
        return FactVerdict(
            "unclear", f"may give {quote_short(answer)}: a comma or a date in digits can be read in two ways"
        )
    clock = clock_reading(answer) if verdict.kind in ("absent", "unclear") else None
    if clock is not None and _judge(text, clock, question).kind == "given":
        return FactVerdict("given", f"has {quote_short(clock)}, which is")
    if verdict.kind == "absent" and may_be_short_form(text.raw, answer):
        return FactVerdict("unclear", f"may be short for, or another form of, {quote_short(answer)}")
    return verdict


def _given_in_another_reading(text: TextFacts, answer: str, question: QuestionFacts) -> bool:
    """Whether a text gives an answer if a comma between digits, "2,7", or a date is read differently in one of them."""
    pairs = [(TextFacts(one), answer) for one in (*comma_readings(text.raw), *year_readings(text.raw))]
    pairs += [(text, one) for one in (*comma_readings(answer), *year_readings(answer))]
    return any(_judge(one, wanted, question).kind in ("given", "unclear") for one, wanted in pairs)


def _judge(text: TextFacts, answer: str, question: QuestionFacts) -> FactVerdict:
    wanted = read_answer(answer)
    if wanted.polarity is not None:
        return _judge_polarity(text, wanted, wanted.polarity, question)
    other = "" if wanted.is_long else find_other_identifier(text.raw, answer)
    if other:
        return FactVerdict("contradicted", f"has {quote_short(other)} for {quote_short(answer)}")
    findings = _find_quantities(text, wanted, question)
    how = match_answer(text.matchable, answer)
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
    verbatim = how in ("contains", "contains another form of")
    if against is not None and (not verbatim or not any(each.status in ("given", "coarse") for each in findings)):
        return FactVerdict("contradicted", _other_quantity(wanted, text, against))
    lacking = any(each.status == "missing" for each in findings) or may_be_czech_list(wanted.raw, question.raw)
    if how == "is a part of" and lacking:
        return FactVerdict("unclear", f"has only a part of {quote_short(wanted.raw)}")
    if _swapped(text, wanted, findings):
        kind: FactKind = "unclear" if wanted.is_long else "contradicted"
        return FactVerdict(kind, f"has the numbers of {quote_short(wanted.raw)} for other things")
    doubt = _find_denial(text, wanted, question) or _find_doubt(text, wanted, findings, question)
    if not doubt and how == "contains the number of":
        doubt = _find_other_noun(text, wanted, findings, question)
    if not doubt and how != "contains":
        doubt = _find_contrast(text, wanted, question)
    return FactVerdict("unclear", doubt) if doubt else FactVerdict("given", how)


def _find_denial(text: TextFacts, wanted: TextFacts, question: QuestionFacts) -> str:
    if question.denies:
        return ""
    if is_denied(text.raw, wanted.raw, question.raw) and not NEGATIONS.intersection(wanted.tokens):
        return f"denies {quote_short(wanted.raw)}, or seems to"
    if is_set_apart(text.raw, wanted.raw, question.raw):
        return f"has {quote_short(wanted.raw)} as an exception, or to compare"
    if is_taken_back(text.raw, wanted.raw):
        return f"has {quote_short(wanted.raw)}, and may take it back"
    if is_offered(text.raw, wanted.raw):
        return f"has {quote_short(wanted.raw)} as one of several"
    return ""


def _find_other_noun(
    text: TextFacts, wanted: TextFacts, findings: Sequence[QuantityFinding], question: QuestionFacts
) -> str:
    """Why a number that is followed by another word than the accepted one may count or measure something else."""
    if any(each.match and each.match.units and each.wanted.units for each in findings) or _YEAR.match(wanted.raw):
        return ""
    first, *rest = wanted.matchable.words
    words = (*text.matchable.words, "")
    followed = [after for word, after in pairwise(words) if word == first]
    known = {*map(stem_of, rest), *question.stems}
    measured = any(each.wanted.units for each in findings)
    if any(not after[:1].isalpha() or after in LITTLE_WORDS or stem_of(after) in known for after in followed):
        return ""
    if not measured and not _COUNTS_ANYTHING.isdisjoint(followed):
        return ""
    # An answer to "How many patients?" may count participants, but not hours.
    asked = any(stem_of(word) in question.stems for word in rest)
    if asked and not measured and UNITS.keys().isdisjoint(followed):
        return ""
    if any(stem_of(word) in text.stems for word in rest):
        return ""
    return f"has the number of {quote_short(wanted.raw)} with another word"


def _find_doubt(
    text: TextFacts, wanted: TextFacts, findings: Sequence[QuantityFinding], question: QuestionFacts
) -> str:
    """Why a text that has the numbers or words of an answer may not give it."""
    if any(_is_alternative(text, each) for each in findings):
        return f"has {quote_short(wanted.raw)} as one of several"
    if any(_is_wider(each, findings) for each in findings):
        return f"has a range for {quote_short(wanted.raw)}"
    if units_differ_in_case(text.raw, wanted.raw):
        return f"has the unit of {quote_short(wanted.raw)} with other capital letters"
    if half_is_unclear(text.raw, wanted.raw, question.raw):
        return f"has the time of {quote_short(wanted.raw)}, but one of them may be in the other half of the day"
    if any(_bounds_opposed(text, wanted, each) for each in findings):
        return f"has the opposite bound of {quote_short(wanted.raw)}"
    if wanted.matchable.line not in text.matchable.line and _names_reversed(text, wanted):
        return f"has the names of {quote_short(wanted.raw)} in another order"
    return ""


def _is_wider(finding: QuantityFinding, findings: Sequence[QuantityFinding]) -> bool:
    """Whether a text has a range where the answer doesn't give both ends, as "from 1952 until 1953" does."""
    said = finding.match
    ends = {each.wanted.value for each in findings}
    return (
        finding.status == "coarse"
        and said is not None
        and said.high is not None
        and not {said.value, said.high} <= ends
    )


def _find_contrast(text: TextFacts, wanted: TextFacts, question: QuestionFacts) -> str:
    contrast = find_contrast(wanted.compared, text.compared, question.tokens)
    return f"{contrast} {quote_short(wanted.raw)}" if contrast else ""


def _bounds_opposed(text: TextFacts, wanted: TextFacts, finding: QuantityFinding) -> bool:
    said = finding.match
    asked = finding.wanted
    return said is not None and bounds_opposed(
        wanted.tokens, (asked.start, asked.end), text.tokens, (said.start, said.end)
    )


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
            doubt = _find_contrast(text, wanted, question)
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
    if _swapped(text, wanted, findings):
        kind: FactKind = "unclear" if wanted.is_long else "contradicted"
        return FactVerdict(kind, f"has the numbers of {quote_short(wanted.raw)} for other things")
    doubt = _find_doubt(text, wanted, findings, question)
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


def _is_alternative(text: TextFacts, finding: QuantityFinding) -> bool:
    """Whether a quantity is one of several that the text offers: "in 1990, 1991 or 1992"."""
    said = finding.match
    if finding.status != "given" or said is None:
        return False
    for other in text.quantities:
        if other is said or compare(finding.wanted, other, QuestionHints()) != "different":
            continue
        first, second = sorted((said, other), key=lambda each: each.start)
        between = text.tokens[first.end : second.start]
        if "or" in between and len(between) <= MAX_ALTERNATIVE_GAP:
            return True
    return False


_COUNTS_ANYTHING = frozenset(("time", "total", "altogether", "overall"))
_YEAR = re.compile(r"(?:1\d{3}|20\d{2})(?!\d)")
_JOINT = re.compile(rf"\b(?:{AND})\b|,")
_NAME = re.compile(r"(?:[A-Z][\w'’-]+ ?)+")


def _names_reversed(text: TextFacts, wanted: TextFacts) -> bool:
    """Whether two names that the answer does not merely list stand in the other order."""
    names = [found.group().split()[-1] for found in _NAME.finditer(wanted.raw)]
    if len(names) != 2 or names[0] == names[1] or _JOINT.search(with_plain_joints(wanted.raw)):
        return False
    first, second = (text.raw.find(name) for name in names)
    return 0 <= second < first


def _swapped(text: TextFacts, wanted: TextFacts, findings: Sequence[QuantityFinding]) -> bool:
    """Whether two numbers of the accepted answer have changed places: each stands by the other's word."""
    given = [each for each in findings if each.status == "given" and each.match is not None]
    if len(given) < 2:
        return False
    stems = [stem_of(singular(token)) if token else "" for token in text.tokens]
    moved = set()
    for label, owner in _labels(wanted, [each.wanted for each in given]).items():
        distances = [
            (_distance(place, each.match), number)
            for place, stem in enumerate(stems)
            if stem == label
            for number, each in enumerate(given)
            if each.match is not None
        ]
        if distances:
            moved.add((owner, min(distances)[1]))
    return any(first != second and (second, first) in moved for first, second in moved)


def _distance(place: int, quantity: Quantity) -> int:
    return quantity.start - place if place < quantity.start else place - quantity.end + 1


def _labels(wanted: TextFacts, quantities: Sequence[Quantity]) -> dict[str, int]:
    """The words that stand by one quantity only, with its number."""
    owners: dict[str, set[int]] = {}
    for place, token in enumerate(wanted.tokens):
        if not token or not token[0].isalpha() or not _carries_fact(token):
            continue
        nearest = min((_distance(place, each), number) for number, each in enumerate(quantities))[1]
        owners.setdefault(stem_of(singular(token)), set()).add(nearest)
    return {label: next(iter(numbers)) for label, numbers in owners.items() if len(numbers) == 1}
