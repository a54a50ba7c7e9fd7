"""Decide by its words whether a text gives an accepted answer: contained, or almost contained.

Each step below was kept because people agree with it on answers that earlier steps miss; the shares are in
``docs/grading.md``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from ragworth.text_match.dates import MONTHS, TextPiece, tokens_with_dates
from ragworth.text_match.foreign_numbers import with_digits
from ragworth.text_match.lists import AND, has_attached_joint, with_plain_joints
from ragworth.text_match.numerals import ROMAN
from ragworth.text_match.overlap import SCRIPTS_WITHOUT_SPACES
from ragworth.text_match.plurals import singular
from ragworth.text_match.spelling import canonical_words, read_pieces
from ragworth.text_match.variants import american_spelling, has_initials

MATCH_WINDOW = 30
"""Maximum distance in words for the words of an answer to count as said together."""

MIN_WORD_SHARE = 2 / 3
"""Share of an answer's words that must occur if not all do: "Taylor Momsen" for "Taylor Michel Momsen"."""

_ARTICLES = frozenset(("a", "an", "the"))
_LETTERED_TEXT = "appendix class exhibit grade group hepatitis level part plan serie series tier type vitamin"
_LETTERED = frozenset(_LETTERED_TEXT.split())
"""Words that a letter may follow as a name."""
_LITTLE_TEXT = """
of in on at by to for and or with from as is was were be it its his her their he she they that this which who into
than not no yes
"""
LITTLE_WORDS = frozenset(_LITTLE_TEXT.split())
"""Words that say little by themselves."""

# Leading words that don't change an answer.
_LEADING_WORDS = """
about approximately around almost nearly over more than in on at by from since circa c ca of to prior before after
president dr mr mrs ms sir king queen us
"""
_LEADING = frozenset(_LEADING_WORDS.split())
_UNIT_WORDS = """
% dollar euro pound yen second minute hour day week month year decade century m km mile meter metre foot inch yard g kg
gram kilogram ton l liter litre gallon degree c f kelvin mph
"""
_UNITS = frozenset(_UNIT_WORDS.split())
_MONTHS = frozenset(MONTHS.values())
_YEAR = re.compile(r"1\d{3}|20\d{2}")
_SLASH_DATE = re.compile(r"\d/\d{1,2}/\d{4}")
_BLANKLESS = re.compile(f"[{SCRIPTS_WITHOUT_SPACES}]")
_ASIDE = re.compile(r"\([^()]*\)")
_UMLAUT = re.compile("[äöüßÄÖÜ]")
_DIGRAPHS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})
_MONARCH = re.compile(r"\b([A-Z][a-z]+) ([IVX]+)\b")
_NAMED_MONARCH = re.compile(r"\b([A-Z][a-z]+) the ([A-Z][a-z]*(?:st|nd|rd|th|First|Second|Third))\b")
_OTHER_WAR = {
    "first world war": "world war 1",
    "second world war": "world war 2",
    **dict.fromkeys(("world war i", "world war 1", "world war one"), "first world war"),
    **dict.fromkeys(("world war ii", "world war 2", "world war two"), "second world war"),
}
_WAR = re.compile(rf"(?i)\b(?:{'|'.join(_OTHER_WAR)})\b")
_ITEM_ENDS = re.compile(rf",|\b(?:{AND})\b|&", re.IGNORECASE)
_LAST_ITEM = re.compile(rf"\b(?:{AND})\b|&", re.IGNORECASE)
_OR = re.compile(r"\bor\b|;", re.IGNORECASE)
_STARTS_WITH_ARTICLE = re.compile(r"(?:an?|the)\b", re.IGNORECASE)


_HANGUL = "\uac00-\ud7af"
_PARTICLES = (
    "은|는|이|가|을|를|의|에|에서|에게|으로|로|와|과|도|만|부터|까지|다|이다|입니다|이에요|예요|이며|며|이고|고|였다|이었다|였습니다|"
    "이었습니다|인|이라고|라고|이라는|라는|께서|한테|보다|처럼|이나|나|란|이란|임|였고|이었고|이라|라"
)
_PREFIXES = "ו|ה|ב|ל|מ|ש|כ|וה|שב|מה|و|ف|ب|ل|ك|ال|وال|بال|لل|كال|فال"
_TURKISH_SUFFIXES = (
    "[dt][ae]|[dt][ae]n|[dt][ıiuü]r|[dt][ae]d[ıi]r|[dt][ae]ki|n?[ıiuü]n|[yn]?[aeıiuü]|y?l[ae]|y?[dt][ıiuü]|"
    "n[dt][ae]|n[dt][ae]n"
)
_MIN_PREFIXED = 3
"""Letters of a word that may have a prefix or suffix: shorter ones are too often other words."""
_MIN_HANGUL = 2
"""The same in syllables, for particles of Korean: "나라" is no form of "나"."""


class MatchableText(NamedTuple):
    """A text for matching: its words without articles, the same with plurals folded, and as one line."""

    raw: str
    words: tuple[str, ...]
    line: str


def to_matchable(text: str) -> MatchableText:
    """Split a text into words; one that has only articles keeps them."""
    return matchable_from(text, read_pieces(text))


def matchable_from(text: str, pieces: Sequence[TextPiece]) -> MatchableText:
    """The same of a text whose pieces are known."""
    tokens = tuple(tokens_with_dates(pieces))
    labels = iter([_is_label(pieces, at) for at, piece in enumerate(pieces) if piece.value == "a"])
    words = tuple(
        singular(token) for token in tokens if token not in _ARTICLES or (token == "a" and next(labels, False))
    )
    words = words or tokens
    return MatchableText(text, words, f" {' '.join(words)} ")


def _is_label(pieces: Sequence[TextPiece], at: int) -> bool:
    """Whether an "A" is a letter and no article: "hepatitis A", "12 A"; in titles only after "Class" and the like."""
    if pieces[at].raw != "A" or not at or pieces[at - 1].kind not in ("word", "number"):
        return False
    titled = at + 1 < len(pieces) and pieces[at + 1].raw[:1].isupper()
    return not titled or pieces[at - 1].value in _LETTERED


_matchable_answer = lru_cache(maxsize=8192)(to_matchable)


def match_answer(text: MatchableText, answer: str) -> str | None:
    """How a text gives an answer, or None if it doesn't."""
    wanted = _matchable_answer(answer)
    if not wanted.words:
        # Only marks ("?", "♯"): nothing is left to compare but the text itself.
        return "is the accepted answer" if text.raw.strip() == answer.strip() else None
    if not text.words:
        return None
    first = wanted.words[0]
    if len(wanted.words) == 1 and first in ("yes", "no", "a", "i"):
        said = _says_yes_or_no(text.raw, first) if len(first) > 1 else _says_letter(text.raw, first.upper())
        return "says" if said or text.words == wanted.words else None
    return next((how for how, step in MATCHERS.items() if step(text, wanted)), None)


def _says_yes_or_no(text: str, word: str) -> bool:
    """Whether "yes" or "no" is said, unlike in "there is no doubt": it begins or ends a sentence."""
    return re.search(rf"(?i)(?:^|[.!?:\n*\"])\W*{word}\b|\b{word}(?=\W*(?:[.!?\n]|$))", text) is not None


def _says_letter(text: str, letter: str) -> bool:
    """Whether a letter that is also a word is an answer: a capital before a mark or the end."""
    return re.search(rf"(?<!\w){letter}(?=\W*$|[.):,\"*])", text) is not None


def _contains(text: MatchableText, answer: MatchableText) -> bool:
    return answer.line in text.line


def _another_form(text: MatchableText, answer: MatchableText) -> bool:
    lines = [text.line]
    if _UMLAUT.search(text.raw):
        lines.append(to_matchable(_spell_umlauts(text.raw)).line)
    forms = (*_forms(answer.raw), answer)
    if any(form.line in line for form in forms for line in lines) or _contains_attached(text, answer):
        return True
    return american_spelling(answer.words) in american_spelling(text.words)


def _contains_attached(text: MatchableText, answer: MatchableText) -> bool:
    """The answer with what its language writes attached to it: "서울입니다", "בירושלים", "Ankara'dır"."""
    words = "\\s".join(map(re.escape, answer.words))
    if len("".join(answer.words)) >= _MIN_HANGUL and re.search(f"[{_HANGUL}]$", answer.words[-1]):
        return re.search(f" {words}(?:{_PARTICLES}) ", text.line) is not None
    if len(answer.words[0]) >= _MIN_PREFIXED and re.match("[\u0590-\u06ff]", answer.words[0]):
        return re.search(f" (?:{_PREFIXES}){words} ", text.line) is not None
    name = answer.raw.strip()
    if len(name) < _MIN_PREFIXED or not name[0].isupper():
        return False
    return re.search(rf"\b{re.escape(name)}['’](?:{_TURKISH_SUFFIXES})\b(?!['’])", text.raw) is not None


@lru_cache(maxsize=8192)
def _forms(answer: str) -> tuple[MatchableText, ...]:
    return tuple(
        form for form in map(to_matchable, spellings(answer)) if form.words and not set(form.words) <= LITTLE_WORDS
    )


def spellings(answer: str) -> Iterator[str]:
    """Variants of an answer: without brackets, either side of an "or", before a comma, without leading words.

    Also with umlauts as two letters, and with the number of a monarch in words: "Henry the Eighth".
    """
    bare = _ASIDE.sub(" ", answer)
    if _UMLAUT.search(answer):
        yield _spell_umlauts(answer)
    if _MONARCH.search(bare):
        yield _MONARCH.sub(lambda found: f"{found[1]} {ROMAN.get(found[2].lower(), found[2])}th", bare)
    if _NAMED_MONARCH.search(bare):
        yield _NAMED_MONARCH.sub(lambda found: f"{found[1]} {canonical_words(found[2])[0].removesuffix('th')}", bare)
    if _WAR.search(bare):
        yield _WAR.sub(lambda found: _OTHER_WAR[found.group().lower()], bare)
    if bare != answer:
        yield bare
    if _OR.search(bare):
        yield from _OR.split(bare)
    before, comma, _ = bare.partition(",")
    if comma and not re.search(r"\d", bare) and not is_list(bare):
        yield before
    words = bare.split()
    while len(words) > 1 and words[0].strip(".,~").lower() in _LEADING:
        words = words[1:]
        yield " ".join(words)


def _spell_umlauts(text: str) -> str:
    return text.translate(_DIGRAPHS)


def _same_amount(text: MatchableText, answer: MatchableText) -> bool:
    """The answer is a number with its unit, and the text has the number: "291" for "291 episodes"."""
    first, *rest = answer.words
    if not rest or not (first[0].isdigit() or first[0] == "-") or any(map(_numeric, rest)):
        return False
    followed = (after for word, after in zip(text.words, (*text.words[1:], ""), strict=True) if word == first)
    # "24 days" is not "24 hours".
    return any(after not in _UNITS or after in rest for after in followed)


def _coarser_date(text: MatchableText, answer: MatchableText) -> bool:
    """The answer is a date, of which the text gives only the year, or month and year."""
    months = _MONTHS.intersection(answer.words)
    said = _MONTHS.intersection(text.words)
    if not months or not said <= months or any(map(_day, text.words)) or _SLASH_DATE.search(text.raw):
        return False
    years = {word for word in text.words if _YEAR.fullmatch(word)}
    pairs = zip(text.words[:-2], text.words[2:], strict=True)
    if any(len(day) <= 2 and day.isdecimal() and year in years for day, year in pairs):
        return False  # a date with the month in a language that isn't known
    if with_digits(text.raw).likely != text.raw:
        return False  # the day may be in words
    return len(years) == 1 and years <= set(answer.words)


def _first_and_last(text: MatchableText, answer: MatchableText) -> bool:
    """A name without its middle: "Judith Keppel" for "Judith Cynthia Aline Keppel"; or with initials: "J. Keppel"."""
    if has_initials(text.raw, answer.raw):
        return True
    parts = answer.raw.split()
    if len(parts) < 3 or len(answer.words) != len(parts) or not all(part[0].isupper() for part in parts):
        return False
    return f" {answer.words[0]} {answer.words[-1]} " in text.line


def _contains_most(text: MatchableText, answer: MatchableText) -> bool:
    """Two thirds of the answer's words, including all its numbers and a word of each item of a list, close together."""
    wanted = {stem_of(word) for word in answer.words if word not in LITTLE_WORDS}
    if len(wanted) < 2:
        return False
    if any(map(is_character, wanted)) or has_attached_joint(answer.raw):
        return has_listed(text, answer.raw, all)
    numbers = {word for word in wanted if _numeric(word)}
    items = [item & wanted for item in _list_items(answer.raw) if item & wanted]
    need = max(2, math.ceil(MIN_WORD_SHARE * len(wanted)))
    seen: dict[str, int] = {}
    for place, word in enumerate(text.words):
        stem = stem_of(word)
        if stem in wanted:
            seen[stem] = place
            near = {one for one, last in seen.items() if place - last < MATCH_WINDOW}
            if len(near) >= need and numbers <= near and all(item & near for item in items):
                return True
    return False


def is_list(answer: str) -> bool:
    """Whether an answer has several items: "red, green, blue", but not "Cambridge, Massachusetts, USA".

    Nor "Einstein, a physicist, born in Ulm".
    """
    first, _, after = with_plain_joints(answer).partition(",")
    after = after.strip()
    if _LAST_ITEM.search(after):
        return True
    described = _STARTS_WITH_ARTICLE.match(after) and not _STARTS_WITH_ARTICLE.match(first)
    return "," in after and after[:1].isalpha() and not after[:1].isupper() and not described


@lru_cache(maxsize=8192)
def _list_items(answer: str) -> tuple[frozenset[str], ...]:
    """The stems of each item of a list: "red, green and blue"; nothing if an answer is no list."""
    if not is_list(answer):
        return ()
    return tuple(
        frozenset(map(stem_of, to_matchable(item).words)) for item in _ITEM_ENDS.split(with_plain_joints(answer))
    )


def has_listed(text: MatchableText, answer: str, how_many: Callable[[Iterable[bool]], bool]) -> bool:
    """Whether a text has all, or any, items of a list in whatever order, also where nothing separates words."""
    items = with_plain_joints(answer).split(" and ")
    if len(items) < 2:
        return False
    plain = with_plain_joints(text.raw)
    said = to_matchable(plain) if plain != text.raw else text
    return how_many(_has_item(said, to_matchable(item)) for item in items if item)


def _has_item(text: MatchableText, item: MatchableText) -> bool:
    """Whether a text has an item of a list. One of a single character is a part of many words: 人 in 人工智能."""
    if len(item.words) > 1 or not any(map(is_character, item.words)):
        return item.line in text.line or (bool(item.words) and _contains_attached(text, item))
    beside = f"[{SCRIPTS_WITHOUT_SPACES}]"
    return re.search(f"(?<!{beside}){item.words[0]}(?!{beside})", with_plain_joints(text.raw)) is not None


def _is_part(text: MatchableText, answer: MatchableText) -> bool:
    """The whole text is a meaningful part of the answer: "Stanford" for "Stanford Cardinal"."""
    if (
        text.line not in answer.line
        or set(text.words) <= LITTLE_WORDS
        or (len(text.words) == 1 and is_character(text.words[0]))
    ):
        return False
    return any(map(_numeric, text.words)) or not any(map(_numeric, answer.words))


def _contains_joined(text: MatchableText, answer: MatchableText) -> bool:
    """Its letters occur in sequence, ignoring blanks: "gall bladder" in "gallbladder"."""
    letters = "".join(answer.words)
    return len(letters) >= 8 and letters.isalpha() and letters in "".join(text.words)


MATCHERS: dict[str, Callable[[MatchableText, MatchableText], bool]] = {
    "contains": _contains,
    "contains another form of": _another_form,
    "contains the number of": _same_amount,
    "contains a coarser date than": _coarser_date,
    "contains the first and last name of": _first_and_last,
    "contains most words of": _contains_most,
    "is a part of": _is_part,
    "contains the letters of": _contains_joined,
}


def _numeric(word: str) -> bool:
    return word[0].isdigit() or word[0] == "-" or word in _MONTHS or _day(word)


def is_character(word: str) -> bool:
    """Whether a word is a single character of a script without blanks, which says little alone."""
    return _BLANKLESS.match(word) is not None


def _day(word: str) -> bool:
    return word[:3] == "day" and word[3:].isdigit()


def stem_of(word: str) -> str:
    """The beginning of a long word, so that "sharecropping" matches "sharecroppers"."""
    return word if _numeric(word) else word[:7]
