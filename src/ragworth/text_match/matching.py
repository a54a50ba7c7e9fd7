"""Decide by its words whether a text gives an accepted answer: contained, or almost contained.

Each step below was kept because people agree with it on answers that earlier steps miss; the shares are in
``docs/grading.md``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from ragworth.text_match.normalise import MONTHS, TextPiece, fold_accents, read_pieces, singular, words_of
from ragworth.text_match.overlap import SCRIPTS_WITHOUT_SPACES

MATCH_WINDOW = 30
"""Maximum distance in words for the words of an answer to count as said together."""

MIN_WORD_SHARE = 2 / 3
"""Share of an answer's words that must occur if not all do: "Taylor Momsen" for "Taylor Michel Momsen"."""

MAX_LIST = 6
"""Words of a list up to which all must occur; a longer answer with commas is a sentence."""

MIN_JOINED = 5
"""Letters of an answer that is looked for without its blanks."""

MIN_STEM, MAX_ENDING = 4, 2
"""Letters of a stem, at least, and of its ending, at most, by which words may be forms of each other."""

_ARTICLES = frozenset(("a", "an", "the"))
_LITTLE_TEXT = """
of in on at by to for and or with from as is was were be it its his her their he she they that this which who into
than not no yes
"""
LITTLE_WORDS = frozenset(_LITTLE_TEXT.split())
"""Words that say little by themselves."""

_LEADING_TEXT = """
about approximately around almost nearly over more less than in on at by from since circa c ca of to prior before after
president dr mr mrs ms sir king queen us
"""
_LEADING = frozenset(_LEADING_TEXT.split())
"""Words before an answer that don't change it."""
MAX_LEADING, MAX_NAME = 4, 6
"""Leading words that are left out of an answer, and words of a person's name, at most."""

_MONTHS = frozenset(MONTHS)
_ROMAN = frozenset(
    ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii", "xiii", "xiv", "xv", "xvi")
)
_YEAR = re.compile(r"1\d{3}|20\d{2}")
_BLANKLESS = re.compile(f"[{SCRIPTS_WITHOUT_SPACES}]")
_AND = re.compile(r"\b(?:and|und|et|y|e|og|och|en)\b|&", re.IGNORECASE)
_ITEM_ENDS = re.compile(rf"[,，、]|{_AND.pattern}", re.IGNORECASE)


_STARTS_WITH_ARTICLE = re.compile(r"(?:an?|the)\b", re.IGNORECASE)
_CAPITALIZED = re.compile(r"\b[A-Z]\w*")
_LONG_NAME = re.compile(r"\b(?!The\b)[A-Z]\w+(?: (?:of |and |for |the )*[A-Z]\w+)+")
_INITIALS = re.compile(r"\b(?:[A-Z]\.){2,}|\b[A-Z]{2,}\b")

_AMERICAN = tuple(
    (re.compile(british), american)
    for british, american in (
        (r"(?<=[a-z]{2})our", "or"),  # colour
        (r"(?<=[bt])re(?= )", "er"),  # theatre
        (r"(?<=[a-z]{2})([iy])s(?=(?:e|ed|er|ing|ation[a-z]*) )", r"\1z"),  # organise, analyse
        (r"(?<=el)l(?=(?:ed|er|ing) )", ""),  # travelled
        (r"(?<=alog)ue(?= )|(?<= program)me(?= )|(?<= alumin)i(?=um )", ""),
        (r"(?<= gr)e(?=y )", "a"),
        (r"(?<= (?:def|off|lic))ence(?= )", "ense"),
        (r"(?<=[hknp])ae(?=[dm])|(?<= )oe(?=dem|soph|str)|(?<= f)oe(?=t)|(?<=rrh)oe", "e"),  # anaemia, oedema
    )
)
"""British letters and American ones, in a line of words in lower case."""


class MatchableText(NamedTuple):
    """A text for matching: its words without articles and with plurals folded; and as a line in American spelling."""

    raw: str
    words: tuple[str, ...]
    line: str


def to_matchable(text: str, pieces: Sequence[TextPiece] | None = None) -> MatchableText:
    """Split a text, whose pieces may be known, into words; one that has only articles keeps them."""
    tokens = tuple(words_of(read_pieces(text) if pieces is None else pieces))
    words = tuple(singular(token) for token in tokens if token not in _ARTICLES) or tokens
    return MatchableText(text, words, _american_spelling(f" {' '.join(words)} "))


def _american_spelling(line: str) -> str:
    for british, american in _AMERICAN:
        line = british.sub(american, line)
    return line


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
    """Return whether "yes" or "no" is said, unlike in "there is no doubt": it begins or ends a sentence."""
    return re.search(rf"(?i)(?:^|[.!?:\n*\"])\W{{0,9}}{word}\b|\b{word}(?=\W{{0,9}}(?:[.!?\n]|$))", text) is not None


def _says_letter(text: str, letter: str) -> bool:
    """Return whether a letter that is also a word is an answer: a capital before a mark or the end."""
    return re.search(rf"(?<!\w){letter}(?=\W*$|[.):,\"*])", text) is not None


def _contains(text: MatchableText, answer: MatchableText) -> bool:
    return answer.line in text.line


def _another_form(text: MatchableText, answer: MatchableText) -> bool:
    return any(form.line in text.line for form in _forms(answer.raw))


@lru_cache(maxsize=8192)
def _forms(answer: str) -> tuple[MatchableText, ...]:
    forms = map(to_matchable, _spellings(answer))
    return tuple(form for form in forms if form.words and not set(form.words) <= LITTLE_WORDS)


def _spellings(answer: str) -> Iterator[str]:
    """Variants of an answer: without brackets, either side of an "or", before a comma, without leading words."""
    bare = re.sub(r"\([^()]*\)", " ", answer)
    yield from dict.fromkeys((bare, *re.split(r"\bor\b|;", bare)))
    before, comma, _ = bare.partition(",")
    if comma and not re.search(r"\d", bare) and not _is_list(bare):
        yield before
    words = bare.split()
    for _ in range(MAX_LEADING):
        if len(words) > 1 and words[0].strip(".,~").lower() in _LEADING:
            words = words[1:]
            yield " ".join(words)


def _coarser_date(text: MatchableText, answer: MatchableText) -> bool:
    """Return whether the answer is a date, of which the text gives only the year, or month and year."""
    months, said = _MONTHS.intersection(answer.words), _MONTHS.intersection(text.words)
    if not months or not said <= months or any(map(_is_day, text.words)):
        return False
    years = {word for word in text.words if _YEAR.fullmatch(word)}
    # A date with the month in digits or in another language: "5/6/1987", "5 juin 1987".
    dated = any(
        day.isdecimal() and len(day) <= 2 and years.intersection(text.words[at + 1 : at + 3])
        for at, day in enumerate(text.words)
    )
    return len(years) == 1 and years <= set(answer.words) and not dated


def _contains_name(text: MatchableText, answer: MatchableText) -> bool:
    """A name without its middle, "Judith Keppel" for "Judith Cynthia Aline Keppel", or with initials: "J. Keppel"."""
    pattern = _name_pattern(answer.raw)
    return pattern is not None and pattern.search(fold_accents(text.raw)) is not None


@lru_cache(maxsize=8192)
def _name_pattern(name: str) -> re.Pattern[str] | None:
    """A person's name, or a species', with first names in full or as initials, and with all of the middle or none."""
    words = fold_accents(name).split()
    if not 2 <= len(words) <= MAX_NAME:
        return None
    *parts, last = words
    named = last[:1].isalpha() and (last[0].isupper() or len(parts) == 1) and len(last) >= 3
    if not named or not all(part[0].isupper() and part[0].isalpha() for part in parts):
        return None
    first, *middle = map(_given_name, parts)
    return re.compile(rf"\b{first}(?:{''.join(middle)})?{re.escape(last)}(?!\w)")


def _given_name(part: str) -> str:
    """A first name or its initial; any name for an initial."""
    if re.fullmatch(r"[A-Z]\.", part):
        return rf"{part[0]}(?:\.\s?|\w{{1,30}}\s)"
    return rf"(?:{re.escape(part)}\s|{re.escape(part[0])}\.[\s-]?)"


def _contains_most(text: MatchableText, answer: MatchableText) -> bool:
    """Two thirds of the answer's words, including all its numbers, close together; all words of a short list."""
    wanted = {stem_of(word) for word in answer.words if word not in LITTLE_WORDS}
    if len(wanted) < 2 or any(map(is_character, wanted)) or " " not in answer.raw.strip():
        return False
    numbers = {word for word in wanted if _is_numeric(word) or word in _ROMAN}
    whole = len(wanted) <= MAX_LIST and _is_list(answer.raw)
    need = len(wanted) if whole else max(2, math.ceil(MIN_WORD_SHARE * len(wanted)))
    seen: dict[str, int] = {}
    for place, word in enumerate(text.words):
        stem = stem_of(word)
        if stem in wanted:
            seen[stem] = place
            near = {one for one, last in seen.items() if place - last < MATCH_WINDOW}
            if len(near) >= need and numbers <= near:
                return True
    return False


def _is_list(answer: str) -> bool:
    """Return whether an answer has several items: "red, green, blue", but not "Cambridge, Massachusetts, USA".

    Nor "Einstein, a physicist, born in Ulm".
    """
    first, _, after = answer.replace("，", ",").replace("、", ",").partition(",")
    after = after.strip()
    described = _STARTS_WITH_ARTICLE.match(after) and not _STARTS_WITH_ARTICLE.match(first)
    return bool(_AND.search(after)) or (after[:1].isalpha() and not after[:1].isupper() and not described)


def has_parts(answer: str) -> bool:
    """Return whether an answer has several parts, all of which are asked for: a list, or two names with "and"."""
    return _is_list(answer) or _AND.search(answer) is not None


def _is_part(text: MatchableText, answer: MatchableText) -> bool:
    """Return whether the whole text is a meaningful part of the answer: "Stanford" for "Stanford Cardinal"."""
    little = set(text.words) <= LITTLE_WORDS or (len(text.words) == 1 and is_character(text.words[0]))
    if text.line not in answer.line or little:
        return False
    return any(map(_is_numeric, text.words)) or not any(map(_is_numeric, answer.words))


def _contains_joined(text: MatchableText, answer: MatchableText) -> bool:
    """Its letters occur in sequence, ignoring blanks, as whole words: "gall bladder" in "gallbladder".

    A capital letter also begins a word: "byJohn Goodman", but not "granddaughter".
    """
    letters = "".join(answer.words)
    if len(letters) < MIN_JOINED or not letters.isalpha():
        return False
    return _joined_pattern(letters).search(fold_accents(text.raw)) is not None


@lru_cache(maxsize=8192)
def _joined_pattern(letters: str) -> re.Pattern[str]:
    spelled = r"[\W_]?".join(letters)
    return re.compile(rf"(?:(?<![^\W\d_])|(?<=[a-z])(?=[A-Z]))(?i:{spelled}s?)(?![^\W\d_])")


MATCHERS: dict[str, Callable[[MatchableText, MatchableText], bool]] = {
    "contains": _contains,
    "contains another form of": _another_form,
    "contains a coarser date than": _coarser_date,
    "contains the name of": _contains_name,
    "contains most words of": _contains_most,
    "is a part of": _is_part,
    "contains the letters of": _contains_joined,
}


def may_contain(text: MatchableText, answer: MatchableText) -> bool:
    """Return whether an answer, or an item of it, may be in a text in another form.

    Within other words ("서울" in "서울입니다", "daughter" in "granddaughter"), as initials ("USA"), or each word with
    another ending.
    """
    if _has_initials(text.raw, answer.raw) or _has_initials(answer.raw, text.raw):
        return True
    letters, least = "".join(answer.words), MIN_JOINED if answer.raw.isascii() else 2
    if len(letters) >= least and letters.isalpha() and letters in "".join(text.words):
        return True
    items = [to_matchable(item) for item in _ITEM_ENDS.split(answer.raw)]
    if len(items) > 1 and any(item.line in text.line for item in items if set(item.words) - LITTLE_WORDS):
        return not any(map(_is_numeric, answer.words))
    words = [word for word in answer.words if word not in LITTLE_WORDS]
    return bool(words) and all(word.isalpha() and any(_same_stem(word, one) for one in text.words) for word in words)


def _has_initials(text: str, other: str) -> bool:
    """Return whether a text has a name of which the other has the initials: "World Health Organization", "WHO"."""
    names = ("".join(word[0] for word in _CAPITALIZED.findall(name)) for name in _LONG_NAME.findall(text))
    return not {initials.replace(".", "") for initials in _INITIALS.findall(other)}.isdisjoint(names)


def _same_stem(one: str, other: str) -> bool:
    """Return whether two words differ only in their endings: "Москва" and "Москве"."""
    length = max(MIN_STEM, len(one) - MAX_ENDING, len(other) - MAX_ENDING)
    return one[:length] == other[:length] and len(one) >= length <= len(other)


def _is_numeric(word: str) -> bool:
    return word[0].isdigit() or word[0] == "-" or word in _MONTHS or _is_day(word)


def _is_day(word: str) -> bool:
    return word[:3] == "day" and word[3:].isdigit()


def is_character(word: str) -> bool:
    """Return whether a word is a single character of a script without blanks, which says little alone."""
    return _BLANKLESS.match(word) is not None


def stem_of(word: str) -> str:
    """The beginning of a long word, so that "sharecropping" matches "sharecroppers"."""
    return word if _is_numeric(word) else word[:7]
