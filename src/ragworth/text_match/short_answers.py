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
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple

from ragworth.core.errors import InputError, quote_short
from ragworth.text_match.markup import MAX_TEXT, unwrapped, without_marks, without_markup
from ragworth.text_match.matching import (
    LITTLE_WORDS,
    MatchableText,
    has_parts,
    is_character,
    match_answer,
    may_contain,
    stem_of,
    to_matchable,
)
from ragworth.text_match.normalise import TextPiece, fold_accents, read_pieces, singular
from ragworth.text_match.overlap import require_accepted
from ragworth.text_match.polarity import (
    DIRECTIONS,
    NEGATIONS,
    StatedPolarity,
    asks_polarity,
    is_denied,
    read_polarity,
    text_polarity,
)
from ragworth.text_match.quantities import (
    Quantity,
    QuantityFinding,
    QuestionHints,
    find_quantities,
    read_hints,
    read_quantities,
)
from ragworth.text_match.refusals import RefusalMatch, find_refusal, tells_of_sources
from ragworth.text_match.units import UNITS

FactKind = Literal["given", "contradicted", "unclear", "absent"]
GradeLabel = Literal["correct", "abstained", "wrong", "undecided"]

LONG_ANSWER = 7
"""Words, little ones aside, from which an accepted answer is long: it is matched by its facts."""

MIN_FACT_SHARE, MIN_LABEL_SHARE = 3 / 4, 1 / 2
"""Share of a long answer's words, without the question's, that a text must have; and if it gives its quantities."""

MIN_CANDIDATES, MAX_CANDIDATE = 3, 3
"""Items of a list of candidates, at least, and words of an item, at most."""

_NO_FACT_TEXT = """
a an the about around approximately roughly nearly almost over under than more less least most up some total year time
between through there has have had will would been also because due mainly
"""
_NO_FACTS = frozenset(_NO_FACT_TEXT.split()) | LITTLE_WORDS | DIRECTIONS.keys()
_NOTHING = ("none", "nil", "null", "na")
"""Labels that decline as an answer, and may be what is asked for as an accepted one."""
_ITEM_ENDS = re.compile(r"[,;、，/\n]|\b(?:and|or)\b")
_ITEM_NUMBER = re.compile(r"(?:^|\s)\d{1,2}[.)]\s")
_COMPOUND = re.compile(r"(?<![^\W\d_])[^\W\d_]+(?:-[^\W\d_]+)+")
_NUMBER_IN_WORDS = re.compile(
    r"(?i)(?<!first )(?<!second )\bhalf\b(?! past\b)|\bdozen\b|\b(?:a|one)[- ](?:third|quarter)\b"
    r"|\b(?:(?:thir|four|fif|six|seven|eigh|nine)teen|twenty)[- ](?:\w+ty|\w+teen|oh|ten|eleven|twelve)\b"
)
"""Numbers that are not read: parts, and years such as "nineteen eighty-seven"."""
_CLOCK_TIME = re.compile(
    r"(?i)(?<![\d:.])(?P<hour>\d{1,2})(?:(?P<mark>[:.])(?P<minutes>\d\d))?(?: ?(?P<half>[ap])\.?m\b)?(?![:.]?\d)"
)


class ShortAnswerGrade(NamedTuple):
    label: GradeLabel
    why: str


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
        return to_matchable(self.raw, self.pieces)

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        return read_quantities(self.pieces)

    @cached_property
    def tokens(self) -> list[str]:
        """The pieces as words and marks, in the positions that quantities have."""
        return [piece.raw if piece.kind == "break" else piece.value for piece in self.pieces]

    @cached_property
    def stems(self) -> frozenset[str]:
        return frozenset(map(stem_of, self.matchable.words))

    @cached_property
    def stemmed(self) -> list[str]:
        """The tokens as stems, with the marks and negations between them."""
        return [token if token in NEGATIONS else stem_of(singular(token)) if token else "" for token in self.tokens]

    @cached_property
    def keywords(self) -> frozenset[str]:
        """The stems by which a text is found in another one: of all words but little ones, unless it has no others."""
        return self.stems - LITTLE_WORDS - NEGATIONS or self.stems

    @property
    def denies(self) -> bool:
        return not NEGATIONS.isdisjoint(self.tokens)

    @cached_property
    def polarity(self) -> StatedPolarity | None:
        return read_polarity(self.raw)

    @cached_property
    def hints(self) -> QuestionHints:
        """What it says of the number that it asks for, if it is a question."""
        return read_hints(self.raw)

    @cached_property
    def words(self) -> list[str]:
        """The words that are not part of a quantity."""
        inside = {place for each in self.quantities for place in range(each.start, each.end)}
        inside |= {each.start - 1 for each in self.quantities if each.start and self._is_currency(each.start - 1)}
        pieces = (piece for place, piece in enumerate(self.pieces) if place not in inside and piece.kind != "break")
        return [singular(piece.value) for piece in pieces]

    def _is_currency(self, place: int) -> bool:
        return any(unit.is_money for unit in UNITS.get(self.pieces[place].value, ()))

    @cached_property
    def content(self) -> frozenset[str]:
        """Stems that carry facts: of no little words, nor words of direction."""
        return frozenset(
            stem_of(word)
            for word in self.words
            if len(word) > 1 and word[0].isalnum() and word not in _NO_FACTS and not is_character(word)
        )

    @cached_property
    def is_long(self) -> bool:
        # Of scripts without blanks, two characters make a word.
        words = (word for word in self.words if word not in LITTLE_WORDS)
        return sum(0.5 if is_character(word) else 1.0 for word in words) >= LONG_ANSWER


_read_answer = lru_cache(maxsize=8192)(TextFacts)


def grade_short_answer(
    text: str, accepted: Sequence[str], *, question: str = "", phrases: Sequence[str] = ()
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
    accepted, cut = [answer[:MAX_TEXT] for answer in accepted], len(said) >= MAX_TEXT
    if not any(re.search(r"<\w+>|&\w+;", answer) for answer in accepted):  # may be what is asked for
        said = without_markup(said) or said
        accepted = [without_markup(answer) or answer for answer in accepted]
    grade = _grade(said, accepted, question[:MAX_TEXT], phrases, same)
    if not cut:
        return grade
    label: GradeLabel = "undecided" if grade.label == "wrong" else grade.label
    return ShortAnswerGrade(label, f"{grade.why}; only the first {MAX_TEXT:,} characters were read")


def _grade(text: str, accepted: Sequence[str], question: str, phrases: Sequence[str], same: bool) -> ShortAnswerGrade:
    """Grade what an answer says; ``same`` is whether it is an accepted answer."""
    declined = find_refusal(text, phrases)
    refusals = [answer for answer in accepted if find_refusal(answer, phrases)] if declined else []
    rightly = next((answer for answer in refusals if answer.strip(" .").lower() not in _NOTHING), None)
    if rightly is not None:
        return ShortAnswerGrade("correct", f"declines as {quote_short(rightly)}")
    # "None" and the like may be answers, too: they are graded like any other. So is what is said with regret.
    regretted = declined is not None and declined.language == "regret"
    footnotes = not any(re.search(r"\d", answer) for answer in accepted)
    plain = text if same else without_marks(text, footnotes=footnotes) or text
    facts, asked = TextFacts(plain), _read_answer(question)
    unclear, against = "", ""
    for answer in accepted if declined is None or regretted else refusals:
        verdict = judge_answer(facts, answer, asked)
        if verdict.kind == "given" and _is_candidate(plain, accepted):
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
        if regretted and len(plain.split()) > len(declined.phrase.split()) + 1:
            return ShortAnswerGrade("undecided", f"says {quote_short(declined.phrase)}, and something else")
        return ShortAnswerGrade("abstained", f"declines: {quote_short(declined.phrase)}")
    if unclear:
        return ShortAnswerGrade("undecided", unclear)
    if (
        plain != text
        and not against
        and any(judge_answer(TextFacts(text), answer, asked).kind == "given" for answer in accepted)
    ):
        return ShortAnswerGrade("undecided", "has an accepted answer only in a citation or as the number of an item")
    if facts.polarity is None and tells_of_sources(plain, question):
        return ShortAnswerGrade("undecided", "tells of its sources, and may say that they don't answer")
    return ShortAnswerGrade("wrong", against or f"gives none of the accepted answers ({len(accepted)})")


def _is_candidate(text: str, accepted: Sequence[str]) -> bool:
    """Return whether a text only lists several names or numbers, of which one is accepted: "Paris, Lyon, Nice"."""
    text = _ITEM_NUMBER.sub("\n", text)
    items = [to_matchable(item) for item in _ITEM_ENDS.split(text) if item.strip()]
    known = [to_matchable(answer).line for answer in accepted]
    listed = (
        len(items) >= MIN_CANDIDATES
        and not re.search(r"[.!?]\s", text)
        and all(len(item.words) <= MAX_CANDIDATE and NEGATIONS.isdisjoint(item.words) for item in items)
    )
    return listed and sum(any(line in item.line for line in known) for item in items) == 1


def _mentions(text: TextFacts, answer: str, question: TextFacts, declined: RefusalMatch) -> bool:
    """Return whether a text that seems to decline, not in the first person, has an answer that the question has not."""
    if not question.raw or declined.language in ("", "label", "regret") or re.match(r"i\b|we\b", declined.phrase):
        return False
    line = _read_answer(answer).matchable.line
    return line in text.matchable.line and line not in question.matchable.line and line.strip() not in ("yes", "no", "")


def judge_answer(text: TextFacts, answer: str, question: TextFacts) -> FactVerdict:
    """Judge whether a text gives one accepted answer."""
    wanted = _read_answer(answer)
    quantities = wanted.quantities
    if wanted.is_long:  # there, "one" is often no number: "one-off charges"
        quantities = tuple(each for each in quantities if wanted.pieces[each.start].raw.lower() != "one")
    findings = find_quantities(quantities, text.quantities, question.hints) if quantities else []
    if wanted.polarity is not None:
        return _judge_polarity(text, wanted, wanted.polarity, question, findings)
    how = match_answer(text.matchable, answer)
    if how == "contains" and "-" in text.raw and _is_within_compounds(text, wanted):
        return FactVerdict("unclear", f"has {quote_short(answer)} only in a longer word")
    # Of a long answer, a part is not the answer.
    if how is not None and (not wanted.is_long or how == "contains"):
        verdict = _judge_match(text, wanted, how, findings)
    else:
        verdict = _judge_facts(text, wanted, findings, question)
    if verdict.kind in ("absent", "contradicted") and _is_another_form(text, wanted):
        return FactVerdict("unclear", f"has a number or time in another form than {quote_short(answer)}")
    if verdict.kind == "absent" and may_contain(text.matchable, wanted.matchable):
        return FactVerdict("unclear", f"has a part or another form of {quote_short(answer)}")
    if verdict.kind == "absent" and text.polarity is not None and (not question.raw or asks_polarity(question.raw)):
        return FactVerdict("unclear", f"says yes or no, which {quote_short(answer)} doesn't")
    if verdict.kind == "given" and not question.denies and wanted.denies != is_denied(text.stemmed, wanted.keywords):
        return FactVerdict("unclear", f"has a negation near {quote_short(answer)}, or lacks one")
    return verdict


def _is_within_compounds(text: TextFacts, wanted: TextFacts) -> bool:
    """Return whether an answer is only a part of words with a hyphen: "step-daughter", but not "English-speaking"."""
    words = set(wanted.matchable.words)

    def joined(compound: re.Match[str]) -> str:
        whole, first = (to_matchable(part).words for part in (compound[0], compound[0].rpartition("-")[0]))
        longer = not words.isdisjoint(whole) and not words.issuperset(whole) and not words.issuperset(first)
        return compound[0].replace("-", "") if longer else compound[0]

    return wanted.matchable.line not in to_matchable(_COMPOUND.sub(joined, text.raw)).line


def _is_another_form(text: TextFacts, wanted: TextFacts) -> bool:
    """Return whether one of two texts has a number only in words, or a time in another form: "half", "3:30 pm"."""
    for one, other in ((text, wanted), (wanted, text)):
        in_words = _NUMBER_IN_WORDS.search(one.raw) and not re.search(r"\d", one.raw)
        if in_words and other.quantities and not _NUMBER_IN_WORDS.search(other.raw):
            return True
    return not _clock_minutes(text.raw).isdisjoint(_clock_minutes(wanted.raw))


def _clock_minutes(text: str) -> set[int]:
    """Return the minutes of the day that a text may name: "3:30 pm" is 930, "3:30" may be 210 or 930."""
    minutes = set()
    for time in _CLOCK_TIME.finditer(text):
        hour, rest, half = int(time["hour"]), int(time["minutes"] or 0), (time["half"] or "").lower()
        if half:
            minutes.add((hour % 12 + 12 * (half == "p")) * 60 + rest)
        elif time["mark"] == ":":
            minutes |= {hour * 60 + rest, (hour + 12) * 60 + rest} if hour <= 12 else {hour * 60 + rest}
    return minutes


def _judge_polarity(
    text: TextFacts,
    wanted: TextFacts,
    polarity: StatedPolarity,
    question: TextFacts,
    findings: Sequence[QuantityFinding],
) -> FactVerdict:
    said = text_polarity(text.raw, question.raw, polarity.rest)
    word = "yes" if polarity.positive else "no"
    if said is None and not (polarity.rest and wanted.matchable.line in text.matchable.line):
        return FactVerdict("unclear", f"says neither yes nor no clearly, for {quote_short(wanted.raw)}")
    if said is not None and said != polarity.positive:
        return FactVerdict("contradicted", f"says {'yes' if said else 'no'} for {quote_short(wanted.raw)}")
    other = None if any(each.result == "same" for each in findings) else _conflict(findings)
    if other is not None:
        return FactVerdict("unclear" if wanted.is_long else "contradicted", _other_quantity(wanted, text, other))
    return FactVerdict("given", f"says {word} as")


def _judge_match(text: TextFacts, wanted: TextFacts, how: str, findings: Sequence[QuantityFinding]) -> FactVerdict:
    """The words are there; do the numbers agree, and is it the whole answer?"""
    against = _conflict(findings)
    in_sequence = how in ("contains", "contains another form of")
    if against is not None and not (in_sequence and any(each.result in ("same", "coarse") for each in findings)):
        return FactVerdict("contradicted", _other_quantity(wanted, text, against))
    if how == "is a part of":
        lacking = any(each.result == "incomparable" for each in findings)
        if lacking or not fold_accents(text.raw).isascii() or has_parts(wanted.raw) or _is_after_comma(text, wanted):
            return FactVerdict("unclear", f"has only a part of {quote_short(wanted.raw)}")
    return FactVerdict("given", how)


def _is_after_comma(text: TextFacts, wanted: TextFacts) -> bool:
    """Return whether a text only says where or what the answer is: "Germany" for "Munich, Germany"."""
    first, comma, rest = wanted.raw.partition(",")
    return bool(comma) and text.matchable.line in to_matchable(rest).line and bool(to_matchable(first).words)


def _judge_facts(
    text: TextFacts, wanted: TextFacts, findings: Sequence[QuantityFinding], question: TextFacts
) -> FactVerdict:
    """The words of the accepted answer aren't there in sequence: compare its quantities, then its other words."""
    facts = wanted.content - question.stems
    shared = len(facts & text.stems) / len(facts) if facts else 1.0
    missed = [each for each in findings if each.result != "same"]
    against = None if wanted.is_long else _conflict(missed)
    if any(each.result == "coarse" for each in missed):
        return FactVerdict("unclear", f"has a coarser or hedged number than {quote_short(wanted.raw)}")
    if against is not None:
        return FactVerdict("contradicted", _other_quantity(wanted, text, against))
    if len(missed) < len(findings):
        least = MIN_FACT_SHARE if wanted.is_long and len(findings) == 1 else MIN_LABEL_SHARE
        if missed or shared < least:
            return FactVerdict("unclear", f"has only a part of {quote_short(wanted.raw)}")
        return FactVerdict("given", "gives the quantity of" if len(findings) == 1 else "gives the quantities of")
    if wanted.is_long and facts and shared >= MIN_FACT_SHARE and not missed:
        return FactVerdict("given", "has the facts of")
    if wanted.is_long or (facts and (shared == 1 < len(facts) if findings else shared > 0)):
        return FactVerdict("unclear", f"may say {quote_short(wanted.raw)} in other words")
    return FactVerdict("absent")


def _conflict(findings: Sequence[QuantityFinding]) -> QuantityFinding | None:
    return next((each for each in findings if each.result in ("different", "opposite")), None)


def _other_quantity(wanted: TextFacts, text: TextFacts, finding: QuantityFinding) -> str:
    said = finding.match
    words = " ".join(text.tokens[said.start : said.end]) if said else ""
    return f"has {quote_short(words)} for {quote_short(wanted.raw)}"
