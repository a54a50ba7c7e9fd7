"""Normalize the words of a text, so that equal numbers and dates compare equal.

:func:`canonical_words` turns a text into tokens. Two texts have the same number or date if they have the same tokens:

================================================  ======================
text                                              tokens
================================================  ======================
1,234; 1234; 1 234; twelve hundred thirty-four    ``1234``
3.5 million; 3,500,000; 3.5 × 10^6                ``3500000``
21st; twenty-first                                ``21th``
50%; 50 percent; fifty per cent                   ``50 %``
$5; 5 dollar                                      ``5 dollar``
5 June 1987; June 5th, 1987; 1987-06-05           ``1987 june day5``
================================================  ======================

A date is written year, month, day, so that each part that people use alone (the year, month and year, month and day)
is a run of its tokens. A year is like any number; a day is not: "5" isn't in "5 June". Different numbers never have the
same tokens, with these exceptions by **Choice**: groups of three digits after one to three digits are one number if
separated by blanks, commas or apostrophes, as in "1 234"; a dot separates decimals unless there are several groups of
three. A number is a string of digits, never a float, so that no digits are lost.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from ragworth.text_match.overlap import SCRIPTS_WITHOUT_SPACES

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTH = "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
_MONTH += "nov(?:ember)?|dec(?:ember)?)(?![^\\W\\d_])\\.?"
# Without a year, "may", "march" and abbreviations are months only if capitalized.
_SURE_MONTH = (
    rf"(?:(?-i:(?=[A-Z])){_MONTH}|(?:january|february|april|june|july|august|september|october|november|december)\b)"
)
_DAY = r"(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?(?!\w|,\d{3}(?!\d)|\.\d)"
_YEAR = r"[12]\d{3}(?!\w|\.\d)"
_SPACE, _JOINT, _COMMA = r"\s{1,3}", r"[\s-]{1,3}", r"\s{0,3},?\s{0,3}"
_DATE = rf"""
      (?<!\d)\d{{4}}(?:年|년\ ?)\d{{1,2}}(?:月|월\ ?)(?:\d{{1,2}}[日일])?
    | (?<!\d)\d{{4}}[-/]\d{{1,2}}[-/]\d{{1,2}}(?!\d)
    | (?<![\d.])\d{{1,2}}\.\ ?\d{{1,2}}\.\ ?\d{{4}}(?!\d) | (?<!\d)\d{{1,2}}/\d{{1,2}}/\d{{4}}(?!\d)
    | (?<![\w.,]){_DAY}(?:\.|{_SPACE}of)?{_JOINT}(?:{_MONTH}(?:,?{_JOINT}|{_SPACE}of{_SPACE}){_YEAR}|{_SURE_MONTH})
    | (?<!\w){_MONTH}(?:{_SPACE}(?:the{_SPACE})?{_DAY}{_COMMA}|{_COMMA}(?:of{_SPACE})?)(?<=[\s,]){_YEAR}
    | (?<!\w){_SURE_MONTH}{_SPACE}(?:the{_SPACE})?{_DAY}
"""

# Marks on letters that aren't letters to Python: accents, vowels of Indic scripts, points of Hebrew and Arabic.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0971-\u0dff\u200c\u200d"
_LETTER = rf"[^\W\d_{SCRIPTS_WITHOUT_SPACES}]"
_INNER = rf"(?:[^\W_{SCRIPTS_WITHOUT_SPACES}]|[{_MARKS}])"
_GROUPS = r"\d{1,3}(?:,\d{3})+(?!\d)|\d{1,3}(?:[ \u00a0\u2009\u202f]\d{3})+(?!\d)|\d{1,3}(?:['’]\d{3})+(?!\d)"
_MINUS = r"(?<![^\s($€£¥])[-−]"

_PIECE = re.compile(
    rf"""
      (?P<date>{_DATE})
    | (?P<comma>(?:{_MINUS})?(?<![\d.,])\d+(?:[.\ \u00a0\u2009\u202f]\d{{3}})*,(?:\d{{1,2}}|\d{{4,}})(?!\d|[.,]\d))
    | (?P<dotted>\d+(?:\.\d+){{2,}})
    | (?P<decade>\d+['’]?s\b)
    | (?P<place>(?:{_GROUPS}|\d+)(?:st|nd|rd|th)\b)
    | (?P<number>(?P<minus>{_MINUS})?(?:(?P<whole>{_GROUPS}|\d+)(?:\.(?P<fraction>\d+))?|(?<![\w.])\.(?P<bare>\d+)))
    | (?P<letters>(?<![\w.])[^\W\d_]\.(?:\ ?[^\W\d_]\.)*(?:\ ?[^\W\d_]\.|[^\W\d_]\b(?!['’])))
    | (?P<word>[^\W\d_](?:\+\+?|\#)(?!\w) | {_LETTER}{_INNER}*(?:['’]{_LETTER}{_INNER}*)*)
    | (?P<character>[{SCRIPTS_WITHOUT_SPACES}][{_MARKS}\u0e31\u0e34-\u0e3a\u0e47-\u0e4e]*)
    | (?P<sign>[%$€£¥₹&])
    | (?P<joint>[-‐‑\s])
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
# Accounting's negative amounts, $(5) and ($5); and a minus before a currency sign: -$5.
_NEGATIVE_MONEY = re.compile(
    r"(?:(?<=\s)|^)(?=\(?[$€£¥])\(?([$€£¥]) ?\(? ?(\d[\d,.]*) ?\)|(?<![^\s(])[-−] ?([$€£¥]) ?(?=[\d.])"
)
_POWER = re.compile(
    r"(?:(?<![\w.])(?P<factor>\d+(?:\.\d+)?)\s?[×x*·]\s?)?(?<![\w.,])10"
    r"(?:\^\{?(?P<exponent>[-−]?\d{1,2})\}?|(?P<raised>⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,2}))(?!\w)"
    r"|(?<![\w.])(?P<digits>\d(?:\.\d+(?=[eE])|(?=[eE][-+])))[eE](?P<shift>[-+−]?\d{1,2})(?!\w)"
)
_SUPERSCRIPTS = str.maketrans("⁻−⁰¹²³⁴⁵⁶⁷⁸⁹", "--0123456789")
_SIGNS = {"%": "%", "$": "dollar", "€": "euro", "£": "pound", "¥": "yen", "₹": "rupee", "&": "and"}
_POSSESSIVES = ("'s", "’s", "'S", "’S")
_APOSTROPHES = dict.fromkeys(map(ord, "'’\u200c\u200d"))
_ACCENTS = re.compile("(?<=[A-Za-z])[\u0300-\u036f]+|[\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0640]")

_TEXT = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
_NUMBERS = {word: value for value, word in enumerate(f"{_TEXT}eighteen nineteen".split(), 1)}
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_NUMBERS |= {word: 10 * value for value, word in enumerate(_TENS, 2)}
_IRREGULAR = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth"}
_IRREGULAR |= {"twelve": "twelfth"} | {word: f"{word[:-1]}ieth" for word in _TENS}
_ORDINALS = {_IRREGULAR.get(word, f"{word}th"): value for word, value in _NUMBERS.items()}
SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12, "quadrillion": 15}
"""Powers of ten in English (the short scale)."""
_SHIFTS = {"hundred": 2, "lakh": 5, "crore": 7, "bn": 9, **SCALES}


class TextPiece(NamedTuple):
    """A word, number, date or mark of a text: its kind, its normalized spelling, and the original."""

    kind: str
    value: str
    raw: str


def canonical_words(text: str) -> tuple[str, ...]:
    """The words of a text in lower case, without accents and punctuation, with numbers and dates normalized."""
    return tuple(words_of(read_pieces(text)))


def words_of(pieces: Sequence[TextPiece]) -> Iterator[str]:
    """The words of some pieces; a date has several."""
    for piece in pieces:
        if piece.kind == "date":
            yield from piece.value.split()
        elif piece.value:
            yield f"{piece.value}th" if piece.kind == "place" else piece.value


def singular(word: str) -> str:
    """A word without the s of an English plural."""
    if len(word) < 4 or word[-1] != "s" or not word.isalpha():
        return word
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    return word if word.endswith(("ss", "us", "is")) else word[:-1]


def read_pieces(text: str) -> list[TextPiece]:
    """The words, numbers and marks of a text in sequence, with numbers normalized."""
    plain = _POWER.sub(_plain_power, text) if "10" in text or "e" in text or "E" in text else text
    plain = fold_accents(plain)
    if "-" in plain or "−" in plain or "(" in plain:
        plain = _NEGATIVE_MONEY.sub(lambda found: f"{found[1]}-{found[2]}" if found[1] else f"{found[3]}-", plain)
    return list(_read_numbers(list(_split(plain))))


def _plain_power(found: re.Match[str]) -> str:
    """Write scientific notation as plain digits: 2.5 × 10^6, 10¹⁴, 3.2e-19."""
    factor = found["factor"] or found["digits"] or "1"
    exponent = int((found["exponent"] or found["raised"] or found["shift"]).translate(_SUPERSCRIPTS))
    whole, _, fraction = factor.partition(".")
    if exponent >= 0:
        return plain_number(whole, fraction, exponent)
    digits = whole.rjust(1 - exponent, "0") + fraction
    return plain_number(
        digits[: len(digits) - len(fraction) + exponent], digits[len(digits) - len(fraction) + exponent :]
    )


def fold_accents(text: str) -> str:
    """Remove accents on Latin letters, points of Hebrew and Arabic, full-width forms and foreign digits."""
    if text.isascii():
        return text
    bare = unicodedata.normalize("NFD", "".join(map(_narrow, text)))
    return unicodedata.normalize("NFC", _ACCENTS.sub("", bare))


@lru_cache(maxsize=4096)
def _narrow(character: str) -> str:
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    # Superscripts and fractions stay: 10² is not 102, and 5½ is not 51/2.
    narrow = unicodedata.decomposition(character).startswith(("<wide>", "<narrow>", "<noBreak>", "<sub>"))
    return unicodedata.normalize("NFKC", character) if narrow else character


def plain_number(whole: str, fraction: str = "", shift: int = 0) -> str:
    """Normalize a number times ten to the power of ``shift``: no separators, no trailing zeros.

    Leading zeros stay: "007" and "02139" are names rather than amounts (**Choice**). A shifted amount or one with a
    fraction has none.
    """
    if shift:
        whole, fraction = whole + fraction[:shift].ljust(shift, "0"), fraction[shift:]
    fraction = fraction.rstrip("0")
    if shift or fraction or not whole:
        whole = whole.lstrip("0") or "0"
    return f"{whole}.{fraction}" if fraction else whole


def _split(text: str) -> Iterator[TextPiece]:
    """Split a text into words, numbers and marks; blanks and hyphens separate words, other marks break a phrase."""
    for found in _PIECE.finditer(text):
        kind, raw = found.lastgroup or "", found.group()
        if kind == "word":
            yield _word(raw)
        elif kind == "number":
            whole = re.sub(r"\D", "", found["whole"] or "")
            minus = "-" if found["minus"] else ""
            yield TextPiece("number", minus + plain_number(whole, found["fraction"] or found["bare"] or ""), raw)
        elif kind == "joint":
            continue
        elif kind == "date":
            yield TextPiece("date", _date(raw), raw)
        elif kind in ("decade", "letters"):
            yield TextPiece("word", re.sub(r"[\W]", "", raw).lower(), raw)
        elif kind == "place":
            yield TextPiece("place", plain_number(re.sub(r"\D", "", raw)), raw)
        elif kind == "comma":
            whole, _, fraction = raw.partition(",")
            minus, whole = "" if raw[0].isdigit() else "-", re.sub(r"\D", "", whole)
            yield TextPiece("number", minus + plain_number(whole, fraction), f"{minus}{whole}.{fraction}")
        elif kind == "dotted":
            first, *groups = raw.split(".")
            grouped = len(first) <= 3 and all(len(group) == 3 for group in groups)
            yield TextPiece("number" if grouped else "word", raw.replace(".", "") if grouped else raw, raw)
        elif kind == "character":
            yield TextPiece("word", raw.lower(), raw)
        else:
            yield TextPiece("sign", _SIGNS[raw], raw) if kind == "sign" else TextPiece("break", "", raw)


@lru_cache(maxsize=1 << 16)
def _word(raw: str) -> TextPiece:
    word = raw[:-2] if raw[-2:] in _POSSESSIVES else raw
    value = word.translate(_APOSTROPHES).casefold()
    return TextPiece("word", value, word)


def _date(raw: str) -> str:
    """The tokens of a date: year, month, day.

    Dots separate day, month and year in this order. Of two numbers before a slash, one above 12 is the day; if both
    could be and they differ, the date is ambiguous and stays three numbers (**Choice**). So does anything that is not a
    date.
    """
    numbers = re.findall(r"\d+", raw)
    name = re.search(_MONTH, raw, re.IGNORECASE)
    if name:
        month = next(month for month in MONTHS if month.startswith(name.group()[:3].lower()))
        year = next((number for number in numbers if len(number) == 4), "")
        return date_tokens(year, month, next((number for number in numbers if number != year), ""))
    if len(numbers[0]) == 4:
        year, number, day = (*numbers, "")[:3]
    else:
        first, second, year = numbers
        if "/" in raw and int(first) <= 12 and int(second) > 12:
            first, second = second, first
        elif "/" in raw and int(first) <= 12 and first != second:
            return " ".join(numbers)
        day, number = first, second
    real = 1 <= int(number) <= 12 and (not day or 1 <= int(day) <= 31)
    return date_tokens(year, MONTHS[int(number) - 1], day) if real else " ".join(numbers)


def date_tokens(year: str, month: str, day: str) -> str:
    return " ".join(filter(None, (year, month, day and f"day{int(day)}")))


def _read_numbers(pieces: list[TextPiece]) -> Iterator[TextPiece]:
    """Parse numbers in words, apply scales, and move currency signs behind."""
    values = [piece.value if piece.kind == "word" else "" for piece in pieces]
    at = 0
    while at < len(pieces):
        piece = pieces[at]
        before, after = pieces[at - 1] if at else None, pieces[at + 1] if at + 1 < len(pieces) else None
        if piece.kind == "sign" and piece.value not in ("%", "and") and after and after.kind == "number":
            number, at = _scaled(pieces, values, at + 1)
            yield number
            yield TextPiece("word", piece.value, piece.raw)
            # "$5 dollars" says it twice.
            at += at < len(pieces) and values[at] == piece.value
            continue
        spelled = _parse_number(values, at) if _may_begin_number(values, at, before) else None
        if piece.kind == "number":
            piece, at = _scaled(pieces, values, at)
        elif spelled:
            digits, ordinal, at = spelled
            piece = TextPiece("place" if ordinal else "number", digits, piece.raw)
        else:
            if piece.value in ("percent", "pct") or (piece.value == "per" and after and after.value == "cent"):
                at += piece.value == "per"
                piece = TextPiece("word", "%", piece.raw)
            at += 1
        yield piece


def _scaled(pieces: list[TextPiece], values: Sequence[str], at: int) -> tuple[TextPiece, int]:
    """The number at a position, times a following scale word ("3.5 million"), and the index of the next piece."""
    piece, shift = pieces[at], _SHIFTS.get(_at(values, at + 1), 0)
    if not shift:
        return piece, at + 1
    whole, _, fraction = piece.value.removeprefix("-").partition(".")
    sign = "-" if piece.value.startswith("-") else ""
    return TextPiece("number", sign + plain_number(whole, fraction, shift), piece.raw), at + 2


def _at(words: Sequence[str], at: int) -> str:
    return words[at] if at < len(words) else ""


def _may_begin_number(words: Sequence[str], at: int, before: TextPiece | None) -> bool:
    word, after = words[at], _at(words, at + 1)
    if word == "a":
        return after == "hundred" or after in SCALES
    if word == "one":
        return (before is None or before.value not in ("no", "any", "every", "some")) and after not in ("of", "another")
    if word == "second" and before is not None and (before.kind == "number" or before.value == "per"):
        return False
    return word in _NUMBERS or word in _ORDINALS or word == "zero"


def _parse_number(words: Sequence[str], start: int) -> tuple[str, bool, int] | None:
    """Parse a number in words: its digits, whether it is an ordinal, and the index of the next word; None if it's none.

    Strict: each part must be smaller than the last place before it. "Two three" is two numbers, so that different
    numbers are never merged.
    """
    if words[start] == "zero":
        return "0", False, start + 1
    total, part, room, limit = 0, 0, 100, 18
    ordinal, end = False, start
    for at in range(start, len(words)):
        word = words[at]
        stem = word.removesuffix("th")
        value = 1 if word == "a" and at == start else _NUMBERS.get(word, _ORDINALS.get(word, 0))
        if word == "and" and end == at and room >= 100 and at > start:
            continue
        if 0 < value < room:
            part, room = part + value, 10 if value >= 20 and value % 10 == 0 else 1
        elif stem == "hundred" and 0 < part < 100:
            part, room = part * 100, 100
        elif part and SCALES.get(stem, 18) < limit:
            limit = SCALES[stem]
            total, part, room = total + part * 10**limit, 0, 1000 if limit > 3 else 100
        else:
            break
        ordinal, end = word in _ORDINALS or stem != word, at + 1
        if ordinal:
            break
    return (str(total + part), ordinal, end) if end > start else None
