"""Parse English number words and Roman numerals, and normalize numbers to one spelling.

A number is a string of digits, never a float or an int, so that no digits are lost and a number of a million digits
takes time in proportion to its length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_UNITS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
_TEENS = ["ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_UNIT_ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"]
_TEEN_ORDINALS = [
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
]
_TEN_ORDINALS = ["twentieth", "thirtieth", "fortieth", "fiftieth", "sixtieth", "seventieth", "eightieth", "ninetieth"]

UNITS = {word: n for n, word in enumerate(_UNITS, 1)}
TEENS = {word: n for n, word in enumerate(_TEENS, 10)}
TENS = {word: 10 * n for n, word in enumerate(_TENS, 2)}
UNIT_ORDINALS = {word: n for n, word in enumerate(_UNIT_ORDINALS, 1)}
TEEN_ORDINALS = {word: n for n, word in enumerate(_TEEN_ORDINALS, 10)}
TEN_ORDINALS = {word: 10 * n for n, word in enumerate(_TEN_ORDINALS, 2)}
SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12, "quadrillion": 15}
"""Powers of ten in English (the short scale)."""

_CENTURIES = {word: value for word, value in (TEENS | TENS).items() if 15 <= value <= 20}

NUMBER_WORDS = {*UNITS, *TEENS, *TENS, *UNIT_ORDINALS, *TEEN_ORDINALS, *TEN_ORDINALS, "zero"}
"""Words that begin a number in words; "a hundred" begins with its article."""


class SpelledNumber(NamedTuple):
    """A number read from words: its digits, whether it is an ordinal, and the index of the next word."""

    digits: str
    ordinal: bool
    end: int


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


def parse_number_words(words: Sequence[str], start: int) -> SpelledNumber | None:
    """Parse the longest number in words at ``start``; None if that word isn't one.

    Strict: anything that isn't one number ("nineteen eighty-seven", "two three") is read as several, so that different
    numbers are never merged into one.
    """
    if words[start] == "zero":
        return SpelledNumber("0", False, start + 1)
    year = _year_in_pairs(words, start)
    if year is not None:
        return year
    total, limit, at = 0, 18, start
    end: SpelledNumber | None = None
    while at < len(words):
        part = _below_1000(words, at if at == start else _after_and(words, at))
        if part is None:
            break
        value, ordinal, next_ = part
        scale, ends_ordinal = _scale(words, next_)
        if scale is not None and scale >= limit:
            break
        if ordinal or scale is None:
            # The last part, smaller than the scale before it: "two thousand" + "five".
            if value < 10 ** min(limit, 4):
                end = SpelledNumber(str(total + value), ordinal, next_)
            break
        total, limit, at = total + value * 10**scale, scale, next_ + 1
        end = SpelledNumber(str(total), ends_ordinal, at)
        if ends_ordinal:
            break
    return end


_COUNTED = frozenset(
    [
        *("second", "minute", "hour", "day", "week", "month", "year", "mile", "kilometre", "kilometer", "metre"),
        *("meter", "foot", "feet", "inch", "page", "person", "percent", "dollar", "euro", "pound", "seat", "member"),
    ]
)
"""What the second of two numbers counts, so that they are no year."""


def _year_in_pairs(words: Sequence[str], start: int) -> SpelledNumber | None:
    """A year as it is said: "nineteen ninety-eight", "twenty twenty-four"; other pairs of numbers are none."""
    century = _CENTURIES.get(words[start])
    following = words[start + 1] if start + 1 < len(words) else ""
    rest = _below_100(words, start + 1) if following in TENS or following in TEENS else None
    if century is None or rest is None or rest[1]:
        return None
    counted = next((word for word in words[rest[2] : rest[2] + 2] if word.isalpha()), "")
    if counted.removesuffix("s") in _COUNTED:  # "sixteen thirty-minute sessions"
        return None
    return SpelledNumber(str(100 * century + rest[0]), False, rest[2])


def _after_and(words: Sequence[str], at: int) -> int:
    return at + 1 if words[at] == "and" else at


def _scale(words: Sequence[str], at: int) -> tuple[int | None, bool]:
    word = words[at] if at < len(words) else ""
    ordinal = word.endswith("th")
    return SCALES.get(word.removesuffix("th") if ordinal else word), ordinal


def _below_1000(words: Sequence[str], at: int) -> tuple[int, bool, int] | None:
    """Parse hundreds and what follows, or a number below 100: its value, whether it is an ordinal, where it ends."""
    if at >= len(words):
        return None
    following = words[at + 1] if at + 1 < len(words) else ""
    if words[at] == "a" and (following in ("hundred", "hundredth") or following in SCALES):
        small: tuple[int, bool, int] | None = (1, False, at + 1)
    else:
        small = _below_100(words, at)
    if small is None or small[1] or small[2] >= len(words):
        return small
    value, _, next_ = small
    if words[next_] == "hundredth":
        return value * 100, True, next_ + 1
    if words[next_] != "hundred":
        return small
    rest_at = next_ + 1
    rest = None
    if rest_at < len(words):
        rest = _below_100(words, _after_and(words, rest_at))
    if rest is None or (rest[2] < len(words) and words[rest[2]] in ("hundred", "hundredth")):
        return value * 100, False, rest_at
    return value * 100 + rest[0], rest[1], rest[2]


def _below_100(words: Sequence[str], at: int) -> tuple[int, bool, int] | None:
    if at >= len(words):
        return None
    word = words[at]
    for table in (UNITS, TEENS):
        if word in table:
            return table[word], False, at + 1
    for table in (UNIT_ORDINALS, TEEN_ORDINALS, TEN_ORDINALS):
        if word in table:
            return table[word], True, at + 1
    if word not in TENS:
        return None
    following = words[at + 1] if at + 1 < len(words) else ""
    if following in UNITS:
        return TENS[word] + UNITS[following], False, at + 2
    if following in UNIT_ORDINALS:
        return TENS[word] + UNIT_ORDINALS[following], True, at + 2
    return TENS[word], False, at + 1


_ROMAN = (("x", 10), ("ix", 9), ("v", 5), ("iv", 4), ("i", 1))
ROMAN: dict[str, str] = {}
"""Roman numerals of 1 to 39, in lower case; larger ones are too often something else (MIX, DC, CD, LI)."""
for _number in range(1, 40):
    _left, _written = _number, ""
    for _letters, _value in _ROMAN:
        _written += _letters * (_left // _value)
        _left %= _value
    ROMAN[_written] = str(_number)
