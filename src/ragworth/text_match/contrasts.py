"""Find what tells a text apart from an answer whose words it has for the most part.

"Low blood pressure" has two of the three words of "high blood pressure", and is its opposite.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise

from ragworth.text_match.dates import TextPiece
from ragworth.text_match.directions import NEGATIONS
from ragworth.text_match.lists import AND, with_plain_joints
from ragworth.text_match.matching import LITTLE_WORDS, is_list, stem_of
from ragworth.text_match.opposites import has_opposite
from ragworth.text_match.overlap import SCRIPTS_WITHOUT_SPACES
from ragworth.text_match.plurals import singular
from ragworth.text_match.spelling import fold_accents, read_pieces

_ENDS = frozenset(".;!?\n")
_PIVOTS = ("than", "not", "als", "que", "dan", "niz", "чем")
_JOINS = re.compile(rf"\s(?:{AND})\s")
_OR = frozenset(("or", "oder", "ou", "o", "eller", "или"))
_LIST = re.compile(rf",?\s+(?:{AND})\s+|\s*[,;&]\s*")
_WORD = re.compile(rf"[{SCRIPTS_WITHOUT_SPACES}]|[^\W{SCRIPTS_WITHOUT_SPACES}]+")
_LABEL = re.compile(r"^[^;]*:\s+")  # what is listed: "three colours: red; green; blue"
_HANGUL = re.compile("[\uac00-\ud7a3]")
_INITIALS = re.compile(r"((?:\b[A-Z]\.?\s?)+)(?<=[.\s])\s?([A-Z][a-z]\w+)")
_AT_LEAST_TEXT = """
least minimum min more over above greater exceed exceeding ≥ > mindestens wenigstens minimal minstens minimaal tenminste
au_moins al_menos pelo_menos almeno minimo najmniej minimalnie
"""
_AT_MOST_TEXT = """
most maximum max less fewer under below ≤ < up_to hochstens maximal hoogstens maximaal au_plus como_mucho maximo massimo
najwyzej maksymalnie
"""
_BOUNDS = dict.fromkeys(_AT_LEAST_TEXT.split(), 1) | dict.fromkeys(_AT_MOST_TEXT.split(), -1)
"""Words before a number, without accents: 1 if it is a lower bound, −1 if it is an upper one."""
_ASKED_BOUNDS = {"minimum": 1, "min": 1, "maximum": -1, "max": -1}
_LATER_BOUNDS = {"or_more": 1, "or_above": 1, "以_上": 1, "or_less": -1, "or_fewer": -1, "以_下": -1, "未_満": -1}
_BOUND_DISTANCE = 3
_MIN_STATEMENT = 4
_MIN_TERM, _MAX_TERM = 3, 5
_RATIO = re.compile(r"(?<![\d:.,–-])(\d{1,3})\s?[:–-]\s?(\d{1,3})(?![\d:–-])")


class ComparedText:
    """The pieces of a text as words, as stems, and by sentence."""

    def __init__(self, raw: str, pieces: Sequence[TextPiece]) -> None:
        self.raw = raw
        self.pieces = [each for each in pieces if each.raw.strip()]
        # Marks and dates in digits have no value.
        self.words = [singular(each.value) if each.value else each.raw for each in self.pieces]
        self.stems = [stem_of(word) for word in self.words]

    def closest_sentences(self, stems: Collection[str]) -> list[str]:
        """The words of the sentence that has most of the stems; of several, if it is a tie."""
        shared = {
            number: len({stem_of(word) for word in words} & set(stems))
            for number, words in enumerate(self._sentences())
        }
        most = max(shared.values(), default=0)
        closest = [words for number, words in enumerate(self._sentences()) if most and shared[number] == most]
        return [word for words in closest for word in words]

    def _sentences(self) -> list[list[str]]:
        sentences: list[list[str]] = [[]]
        for word in self.words:
            if word in _ENDS:
                sentences.append([])
            else:
                sentences[-1].append(word)
        return sentences


def find_contrast(answer: ComparedText, text: ComparedText, question: Collection[str]) -> str:
    """What a text says otherwise than an answer; empty if nothing is found."""
    content = {stem for stem in answer.stems if _is_content(stem)}
    near = text.closest_sentences(content)
    if _opposed(answer, near):
        return "says the opposite of"
    if _negations_differ(answer, near, question):
        return "differs by a negation from"
    if _swapped_sides(answer, text):
        return "has the words in another order than"
    if _lacks_listed(answer, text):
        return "has only a part of"
    if _is_other_term(answer, text, question):
        return "has another word in place of one in"
    if _initials_differ(answer, text) or _replaced(answer, text, question) or _counts_others(answer, text):
        return "has another name or word than"
    if _ratio_reversed(answer, text):
        return "has the reverse of"
    return ""


def bounds_opposed(
    answer: Sequence[str], place: tuple[int, int], text: Sequence[str], text_place: tuple[int, int]
) -> bool:
    """Whether one number is a lower bound and the other an upper one: "at least 5" and "at most 5"."""
    return bound_at(answer, *place) * bound_at(text, *text_place) < 0


def bound_of(question: Sequence[str]) -> int:
    """1 if a question asks for a minimum, −1 if for a maximum, 0 if for neither or both."""
    signs = {_ASKED_BOUNDS[word] for word in question if word in _ASKED_BOUNDS}
    return signs.pop() if len(signs) == 1 else 0


def bound_at(words: Sequence[str], start: int, end: int) -> int:
    """1 if the number at a place is a lower bound, −1 if it is an upper one, 0 if it is none."""
    before = words[max(0, start - _BOUND_DISTANCE) : start]
    names = [name for at, word in enumerate(before) for name in (word, "_".join(before[at : at + 2]))]
    sign = next((_BOUNDS[name] for name in reversed(names) if name in _BOUNDS), 0)
    later = map("_".join, pairwise(words[end : end + _BOUND_DISTANCE + 1]))
    sign = sign or next((_LATER_BOUNDS[name] for name in later if name in _LATER_BOUNDS), 0)
    return -sign if NEGATIONS.intersection(before) else sign


def says_opposite(answer: ComparedText, text: ComparedText) -> bool:
    """Whether the closest sentence of a text has the opposite of a word that it lacks: "after" for "before"."""
    content = {stem for stem in answer.stems if _is_content(stem)}
    return _opposed(answer, text.closest_sentences(content))


def _is_content(stem: str) -> bool:
    return stem[0].isalnum() and stem not in LITTLE_WORDS and stem not in NEGATIONS


def _opposed(answer: ComparedText, near: Sequence[str]) -> bool:
    others = set(near) - set(answer.words)
    return any(has_opposite(word, others) for word in set(answer.words) - set(near))


def _negations_differ(answer: ComparedText, near: Sequence[str], question: Collection[str]) -> bool:
    """Whether only one of them denies; in the text, a negation counts between words of the answer."""
    if not NEGATIONS.isdisjoint(question):
        return False
    if not NEGATIONS.isdisjoint(answer.words):
        return NEGATIONS.isdisjoint(near)
    shared = [place for place, word in enumerate(near) if stem_of(word) in answer.stems and _is_content(word)]
    return bool(shared) and not NEGATIONS.isdisjoint(near[max(0, shared[0] - 1) : shared[-1]])


def _swapped_sides(answer: ComparedText, text: ComparedText) -> bool:
    """Whether what stands before and after a "than" or "not" has changed places."""
    for pivot in _PIVOTS:
        if pivot in answer.words and pivot in text.words:
            left, right = _sides(answer, pivot)
            text_left, text_right = _sides(text, pivot)
            if (left - right) & (text_right - text_left) and (right - left) & (text_left - text_right):
                return True
    return False


def _sides(text: ComparedText, pivot: str) -> tuple[set[str], set[str]]:
    at = text.words.index(pivot)
    left, right = ({stem for stem in stems if stem.isalnum()} for stems in (text.stems[:at], text.stems[at + 1 :]))
    return left, right


def _lacks_listed(answer: ComparedText, text: ComparedText) -> bool:
    """Whether a part of a list is missing: "flour and sugar" for "flour, sugar and eggs"."""
    raw = with_plain_joints(answer.raw)
    items = _LIST.split(raw)
    if ";" in raw and not _has_one_or_all(raw, text):
        return True
    if len(items) < 2 or not (_JOINS.search(raw) or is_list(answer.raw)) or _OR.intersection(answer.words):
        return False
    parts = [{stem_of(singular(word)) for word in _WORD.findall(fold_accents(part).lower())} for part in items]
    known, said = _plain_stems(answer), _plain_stems(text)
    for place, part in enumerate(parts):
        others = set().union(*parts[:place], *parts[place + 1 :])
        own = {stem for stem in part - others if _is_content(stem)} & set(known)
        if own and own.isdisjoint(said) and not any(map(_with_particle(own), said)):
            return True
    return False


def _has_one_or_all(raw: str, text: ComparedText) -> bool:
    """Whether a text has at most one of the items between semicolons, which may be alternatives, or all of them."""
    said = f" {' '.join(text.words)} "
    listed = _LABEL.sub("", raw).split(";")
    items = [ComparedText(item, read_pieces(item)).words for item in listed if item.strip()]
    given = [f" {' '.join(words)} " in said for words in items if words]
    return sum(given) <= 1 or all(given)


def _plain_stems(text: ComparedText) -> list[str]:
    """The stems of a text without an attached "and"."""
    return (
        ComparedText(text.raw, read_pieces(with_plain_joints(text.raw))).stems if not text.raw.isascii() else text.stems
    )


def _with_particle(stems: Collection[str]) -> Callable[[str], bool]:
    """Whether a word begins with one of these in Korean, which attaches particles to it."""
    korean = tuple(stem for stem in stems if _HANGUL.match(stem))
    return lambda word: word.startswith(korean)


def _initials_differ(answer: ComparedText, text: ComparedText) -> bool:
    """Whether a name has other initials: "George H. W. Bush" and "George W. Bush"."""
    ours, theirs = _initials(answer.raw), _initials(text.raw)
    return any(
        name in theirs and theirs[name].isdisjoint((initials, _first_letter(answer.raw, initials, name) + initials))
        for name in ours
        for initials in ours[name]
    )


def _first_letter(raw: str, initials: str, name: str) -> str:
    """The first letter of the first name before initials: "J" of "John F. Kennedy"."""
    found = re.search(rf"(?i)\b(\w)\w+\s+{'[. ]*'.join(initials)}[. ]+{re.escape(name)}", raw)
    return found[1] if found else ""


def _initials(raw: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for match in _INITIALS.finditer(raw):
        found.setdefault(match[2].lower(), set()).add(re.sub(r"[.\s]", "", match[1]))
    return found


def _replaced(answer: ComparedText, text: ComparedText, question: Collection[str]) -> bool:
    """Whether another name stands in the place of a missing one: "Paris, Texas" for "Paris, France".

    In a statement, another word: "the landlord pays" for "the tenant pays".
    """
    known = {*answer.stems, *map(stem_of, question)}
    statement = answer.raw.rstrip().endswith(".") and len(answer.words) > _MIN_STATEMENT
    for at, stem in enumerate(answer.stems):
        named = answer.pieces[at].raw[:1].isupper()
        if stem in text.stems or not (named or (statement and _is_content(stem))):
            continue
        for step in (-1, 1):
            beside = _beside(answer, at, step)
            if beside is None or answer.pieces[beside].kind == "number":
                continue
            places = [place for place, each in enumerate(text.stems) if each == answer.stems[beside]]
            others = [_beside(text, place, -step) for place in places]
            if others and all(_is_other(text, each, answer.pieces[at], known, named=named) for each in others):
                return True
    return False


def _is_other_term(answer: ComparedText, text: ComparedText, question: Collection[str]) -> bool:
    """Whether a text has a term with another word before its last one: "red blood cells" for "white blood cells".

    The last word may be of the same meaning: "virtual reality world" for "virtual reality simulator".
    """
    begin = next((at for at, stem in enumerate(answer.stems) if _is_content(stem)), 0)
    term, pieces = answer.stems[begin:], answer.pieces[begin:]
    plain = all(each.kind == "word" and each.raw.isalpha() and _is_content(each.value) for each in pieces)
    if not plain or not all(each.raw.islower() for each in pieces[1:]) or not _MIN_TERM <= len(term) <= _MAX_TERM:
        return False
    known = {*answer.stems, *map(stem_of, question)}
    for start in range(len(text.stems) - len(term) + 1):
        other = [at for at, stem in enumerate(term) if text.stems[start + at] != stem]
        if len(other) == 1 and other[0] < len(term) - 1 and _is_content(term[other[0]]):
            piece = text.pieces[start + other[0]]
            if piece.kind == "word" and _is_other(text, start + other[0], pieces[other[0]], known, named=False):
                return True
    return False


def _is_other(text: ComparedText, at: int | None, name: TextPiece, known: Collection[str], *, named: bool) -> bool:
    if at is None or text.stems[at] in known or not _is_content(text.stems[at]):
        return False
    other = text.pieces[at]
    labels = all(each.raw.isupper() and each.raw.isalpha() for each in (name, other))  # "AB" and "A"
    short, long = sorted((singular(name.value), text.words[at]), key=len)
    return (other.raw[:1].isupper() or not named) and (labels or not _abbreviates(short, long))


def _abbreviates(short: str, word: str) -> bool:
    """Whether a name may be short for another, or be written almost like it: "J", "Ltd", "Susi" for "Susi1"."""
    rest = iter(word)
    return short[0] == word[0] and (short[:3] == word[:3] or all(letter in rest for letter in short))


def _counts_others(answer: ComparedText, text: ComparedText) -> bool:
    """Whether a number counts things of another sort: "30 calendar days" for "30 business days"."""
    ours, theirs = _counted(answer), _counted(text)
    return any(key in theirs and theirs[key].isdisjoint(sorts) for key, sorts in ours.items())


def _counted(text: ComparedText) -> dict[tuple[str, str], set[str]]:
    found: dict[tuple[str, str], set[str]] = {}
    kinds = [each.kind for each in text.pieces]
    for at in range(len(kinds) - 2):
        if kinds[at : at + 3] == ["number", "word", "word"] and text.words[at + 1] not in LITTLE_WORDS:
            found.setdefault((text.stems[at], text.stems[at + 2]), set()).add(text.stems[at + 1])
    return found


def _ratio_reversed(answer: ComparedText, text: ComparedText) -> bool:
    """Whether a ratio or score stands the other way round: "1:2" for "2:1"."""
    ours, theirs = _ratios(answer.raw), _ratios(text.raw)
    return any((second, first) in theirs and (first, second) not in theirs for first, second in ours)


def _ratios(raw: str) -> set[tuple[str, str]]:
    return {(match[1], match[2]) for match in _RATIO.finditer(raw)}


def _beside(text: ComparedText, at: int, step: int) -> int | None:
    """The next word in a direction, commas aside."""
    at += step
    if 0 <= at < len(text.words) and text.words[at] == ",":
        at += step
    return at if 0 <= at < len(text.words) and text.words[at][:1].isalnum() else None
