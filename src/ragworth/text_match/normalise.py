"""Normalize the words of a text, so that equal numbers and dates compare equal.

:func:`canonical_words` turns a text into tokens. Two texts have the same number or date if they have the same tokens:

================================================  ======================
text                                              tokens
================================================  ======================
1,234; 1234; 1 234; twelve hundred thirty-four    ``1234``
3.5 million; 3,500,000                            ``3500000``
21st; twenty-first                                ``21th``
50%; 50 percent; fifty per cent                   ``50 %``
$5; 5 dollars                                     ``5 dollar``
5 June 1987; June 5th, 1987; 1987-06-05           ``1987 june day5``
World War II; World War Two; WW2                  ``world war 2``
44 BCE; 44 B.C.                                   ``44 bc``
Q3; third quarter                                 ``3th quarter``
================================================  ======================

A date is written year, month, day, so that each part that people use alone (the year, month and year, month and day)
is a run of its tokens. A year is like any number; a day is not: "5" isn't in "5 June". Different numbers never have the
same tokens, with these exceptions by **Choice**: groups of three digits after one to three digits are one number if
separated by blanks, commas or apostrophes, as in "1 234"; a dot separates decimals unless there are several groups of
three.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from ragworth.text_match.dates import MONTHS, NUMERIC_DATE, TextPiece, tokens_with_dates
from ragworth.text_match.numerals import NUMBER_WORDS, ROMAN, SCALES, parse_number_words, plain_number
from ragworth.text_match.overlap import SCRIPTS_WITHOUT_SPACES

# Marks on letters that aren't letters to Python: accents, vowels of Indic scripts, points of Hebrew and Arabic.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0971-\u0dff\u200c\u200d"
_LETTER = rf"[^\W\d_{SCRIPTS_WITHOUT_SPACES}]"
_INNER = rf"(?:[^\W_{SCRIPTS_WITHOUT_SPACES}]|[{_MARKS}])"
_GROUPS = r"\d{1,3}(?:,\d{3})+(?!\d)|\d{1,3}(?:[ \u00a0\u2009\u202f]\d{3})+(?!\d)|\d{1,3}(?:['’]\d{3})+(?!\d)"
_YEAR = r"(?:1\d{3}|20\d{2})(?!\d)"
# After a day or a year: "May 5,1987", "in 1987,12 people"; but "1987,50 €".
_DATE_COMMA = rf"(?:[1-9]|[12]\d|3[01]),{_YEAR}|{_YEAR},\d{{1,2}}(?!\d|\s?[%€$£¥₹])"

_PIECE = re.compile(
    rf"""
      (?P<date>{NUMERIC_DATE})
    | (?P<comma>(?:(?<![^\s($€£¥])[-−])?(?<![\d.,])(?!{_DATE_COMMA})
        (?:(?:\d{{1,3}}(?:[.\ \u00a0\u2009\u202f]\d{{3}})+|\d+),\d{{1,2}}|\d{{1,3}},\d{{4,}})(?![\d.,]\d|\d))
    | (?P<dotted>\d{{1,3}}(?:\.\d{{3}}){{2,}}(?![\d.]) | \d+(?:\.\d+){{2,}})
    | (?P<decade>\d+['’]?s\b)
    | (?P<place>(?:{_GROUPS}|\d+)(?:st|nd|rd|th)\b)
    | (?P<number>(?P<minus>(?<![^\s($€£¥])[-−])?
        (?:(?P<whole>{_GROUPS}|\d+)(?:\.(?P<fraction>\d+))?|(?<![\w.])\.(?P<bare>\d+)))
    | (?P<letters>(?<![\w.])[^\W\d_]\.(?:\ ?[^\W\d_]\.)*(?:\ ?[^\W\d_]\.|[^\W\d_]\b(?!['’])))
    | (?P<word>[^\W\d_](?:\+\+?|\#)(?!\w) | {_LETTER}{_INNER}*(?:['’]{_LETTER}{_INNER}*)*)
    | (?P<character>[{SCRIPTS_WITHOUT_SPACES}][{_MARKS}\u0e31\u0e34-\u0e3a\u0e47-\u0e4e]*)
    | (?P<sign>[%$€£¥₹&])
    | (?P<joint>[-‐‑\s])
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)

# Accounting's negative amounts: $(5) and ($5).
_BRACKETED_MONEY = re.compile(r"(?:(?<=\s)|^)(?=\(?[$€£¥])\(?([$€£¥]) ?\(? ?(\d[\d,.]*) ?\)")
# A minus before a currency sign belongs to the number: -$5.
_MINUS_MONEY = re.compile(r"(?<![^\s(])[-−] ?([$€£¥]) ?(?=[\d.])")
_LETTERED_DOLLAR = re.compile(r"(?<!\w)(R|AU?|CA?|HK|NZ|NT|S|US)\$(?=\s?\d)")
_DOLLARS = {
    "R": "BRL",
    "A": "AUD",
    "AU": "AUD",
    "C": "CAD",
    "CA": "CAD",
    "HK": "HKD",
    "NZ": "NZD",
    "NT": "TWD",
    "S": "SGD",
    "US": "USD",
}
"""Currencies that are written with a letter and a dollar sign: R$ 300."""
_VERSION_LETTER = re.compile(r"(?<![\w.])[vV](?=\d+\.\d)")
"""The letter before a version: v2.3.1."""
_BEFORE_CHRIST = re.compile(r"(?<=\d)\s?(?:B\.\s?C\.(?:\s?E\.)?|BCE?\b)")
_POWER = re.compile(
    r"(?:(?<![\w.])(?P<factor>\d+(?:\.\d+)?)\s?[×x*·]\s?)?(?<![\w.,])10"
    r"(?:\^\{?(?P<exponent>[-−]?\d{1,2})\}?|(?P<raised>⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,2}))(?!\w)"
    r"|(?<![\w.])(?P<digits>\d(?:\.\d+(?=[eE])|(?=[eE][-+])))[eE](?P<shift>[-+−]?\d{1,2})(?!\w)"
)
_SUPERSCRIPTS = str.maketrans("⁻−⁰¹²³⁴⁵⁶⁷⁸⁹", "--0123456789")
_SIGNS = {"%": "%", "$": "dollar", "€": "euro", "£": "pound", "¥": "yen", "₹": "rupee", "&": "and"}
_CURRENCIES = {"dollars": "dollar", "usd": "dollar", "euros": "euro", "eur": "euro", "pounds": "pound", "gbp": "pound"}
_PERCENT = frozenset(("percent", "pct", "prozent", "procent", "procento", "pourcent", "prosent"))
_PER, _CENT = frozenset(("per", "pour", "por")), frozenset(("cent", "cento", "ciento"))
_POSSESSIVES = ("'s", "’s", "'S", "’S")
_APOSTROPHES = dict.fromkeys(map(ord, "'’\u200c\u200d"))
_QUARTERS = {"q1": "1", "q2": "2", "q3": "3", "q4": "4"}
_WARS = {"wwi": "1", "ww1": "1", "wwii": "2", "ww2": "2"}
# Words before a Roman numeral that make even a single letter one: "World War I", "Part V".
_HEADS = frozenset(
    [
        "war",
        "part",
        "chapter",
        "volume",
        "vol",
        "book",
        "act",
        "phase",
        "type",
        "class",
        "bowl",
        "episode",
        "season",
        "stage",
        "section",
    ]
)
# "one" is a number except in phrases like "no one", "one of", "one another".
_NOT_ONE_AFTER = frozenset(["no", "any", "every", "some", "each", "the", "this", "that", "which", "another", "only"])
_NOT_ONE_BEFORE = frozenset(("of", "another", "who", "that", "day"))
_SHIFTS = {"hundred": 2, "lakh": 5, "crore": 7, "bn": 9, **SCALES}

_LETTERS = str.maketrans({"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ı": "i", "æ": "ae", "Æ": "AE"})
_POINTS = re.compile("[\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0640]")
_ACCENTED = re.compile("([A-Za-z])[\u0300-\u036f]+")


def canonical_words(text: str) -> tuple[str, ...]:
    """The words of a text in lower case, without accents and punctuation, with numbers and dates normalized."""
    return tuple(filter(None, tokens_with_dates(read_pieces(text))))


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
    bare = _LETTERED_DOLLAR.sub(
        lambda found: f"{_DOLLARS[found[1]]} ", _VERSION_LETTER.sub("", _BEFORE_CHRIST.sub(" bc", text))
    )
    folded = _MINUS_MONEY.sub(r"\1-", _BRACKETED_MONEY.sub(r"-\1\2", fold_accents(_spell_powers(bare))))
    return list(_read_numbers(list(_pieces(folded))))


def _spell_powers(text: str) -> str:
    """Write scientific notation as plain digits: 2.5 × 10^6, 10¹⁴, 3.2e-19."""
    return _POWER.sub(_plain_power, text) if "10" in text or "e" in text or "E" in text else text


def _plain_power(found: re.Match[str]) -> str:
    factor = found["factor"] or found["digits"] or "1"
    exponent = int((found["exponent"] or found["raised"] or found["shift"]).translate(_SUPERSCRIPTS))
    whole, _, fraction = factor.partition(".")
    digits, point = whole + fraction, len(whole) + exponent
    if point <= 0:
        return plain_number("0", "0" * -point + digits)
    digits = digits.ljust(point, "0")
    return plain_number(digits[:point], digits[point:])


def fold_accents(text: str) -> str:
    """Remove accents on Latin letters, points of Hebrew and Arabic, full-width forms and foreign digits."""
    if text.isascii():
        return text
    narrow = "".join(map(_narrow, text))
    bare = _ACCENTED.sub(r"\1", unicodedata.normalize("NFD", narrow).translate(_LETTERS))
    return unicodedata.normalize("NFC", _POINTS.sub("", bare))


def _narrow(character: str) -> str:
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    kind = unicodedata.decomposition(character)
    # Superscripts and fractions stay: 10² is not 102, and 5½ is not 51/2.
    folded = kind.startswith(("<wide>", "<narrow>", "<noBreak>", "<sub>"))
    return unicodedata.normalize("NFKC", character) if folded else character


def _pieces(text: str) -> Iterator[TextPiece]:
    """Split the text into words, numbers and marks; blanks and hyphens separate words, other marks break a phrase."""
    for found in _PIECE.finditer(text):
        kind, raw = found.lastgroup or "", found.group()
        if kind == "word":
            yield from _split_word(raw)
        elif kind == "letters":
            yield TextPiece("word", re.sub(r"[. ]", "", raw).lower(), raw)
        elif kind == "number":
            yield TextPiece("number", _amount(found), raw)
        elif kind == "place":
            yield TextPiece("place", plain_number(re.sub(r"\D", "", raw)), raw)
        elif kind == "decade":
            yield TextPiece("word", re.sub(r"\W", "", raw).lower(), raw)
        elif kind == "comma":
            before, _, fraction = raw.partition(",")
            sign, digits = "" if before[0].isdigit() else "-", re.sub(r"\D", "", before)
            yield TextPiece("number", sign + plain_number(digits, fraction), f"{sign}{digits}.{fraction}")
        elif kind == "dotted":
            groups = raw.split(".")
            whole = len(groups[0]) <= 3 and all(len(group) == 3 for group in groups[1:])
            yield TextPiece("number", "".join(groups), raw) if whole else TextPiece("word", raw, raw)
        elif kind == "date":
            yield TextPiece("date", "", raw)
        elif kind == "character":
            yield TextPiece("word", raw.lower(), raw)
        elif kind == "sign":
            yield TextPiece("sign", _SIGNS[raw], raw)
        elif kind == "other":
            yield TextPiece("break", "", raw)


def _amount(found: re.Match[str]) -> str:
    whole = re.sub(r"\D", "", found["whole"] or "")
    return ("-" if found["minus"] else "") + plain_number(whole, found["fraction"] or found["bare"] or "")


@lru_cache(maxsize=1 << 16)
def _split_word(raw: str) -> tuple[TextPiece, ...]:
    word = raw[:-2] if raw[-2:] in _POSSESSIVES else raw
    value = word.translate(_APOSTROPHES).casefold()
    if value in _WARS:
        return (
            TextPiece("word", "world", raw),
            TextPiece("word", "war", raw),
            TextPiece("number", _WARS[value], raw),
        )
    if value in _QUARTERS:
        return TextPiece("place", _QUARTERS[value], raw), TextPiece("word", "quarter", raw)
    return (TextPiece("word", _CURRENCIES.get(value, value), word),)


def _read_numbers(items: list[TextPiece]) -> Iterator[TextPiece]:
    """Parse numbers in words, apply scales, move currency signs behind, and convert Roman numerals."""
    values = [item.value if item.kind == "word" else "" for item in items]
    at = 0
    while at < len(items):
        item = items[at]
        before, after = items[at - 1] if at else None, items[at + 1] if at + 1 < len(items) else None
        if item.kind == "sign" and item.value not in ("%", "and") and after and after.kind == "number":
            number, at = _scaled(items, at + 1)
            yield number
            yield TextPiece("word", item.value, item.raw)
            # "$5 dollars" says it twice.
            at += at < len(items) and values[at] == item.value
        elif item.kind == "number":
            item, at = _scaled(items, at)
            yield item
        elif item.kind == "word" and _may_begin_number(items, at, before, after):
            found = parse_number_words(values, at)
            if found is None:
                yield item
                at += 1
            else:
                yield TextPiece("place" if found.ordinal else "number", found.digits, item.raw)
                at = found.end
        elif item.kind == "word" and before and _is_roman(item, before):
            yield TextPiece("number", ROMAN[item.value], item.raw)
            at += 1
        elif item.value in _PERCENT and before and before.kind in ("number", "word"):
            yield TextPiece("word", "%", item.raw)
            at += 1
        elif item.value in _PER and after and after.value in _CENT:
            yield TextPiece("word", "%", item.raw)
            at += 2
        else:
            yield item
            at += 1


def _scaled(items: list[TextPiece], at: int) -> tuple[TextPiece, int]:
    """The number at a position, times a following scale word ("3.5 million"), and the index of the next item."""
    item = items[at]
    following = items[at + 1].value if at + 1 < len(items) and items[at + 1].kind == "word" else ""
    shift = _SHIFTS.get(following, 0)
    if not shift:
        return item, at + 1
    sign, digits = ("-", item.value[1:]) if item.value.startswith("-") else ("", item.value)
    whole, _, fraction = digits.partition(".")
    return TextPiece("number", sign + plain_number(whole, fraction, shift), item.raw), at + 2


def _may_begin_number(items: list[TextPiece], at: int, before: TextPiece | None, after: TextPiece | None) -> bool:
    """Whether the word at a position may begin a number."""
    value = items[at].value
    if value == "a":
        return after is not None and (after.value in SCALES or after.value in ("hundred", "hundredth"))
    if value == "one" and after is not None and after.value in _NOT_ONE_BEFORE:
        return False
    if value == "one" and before is not None and before.value in _NOT_ONE_AFTER:
        return after is not None and (after.value in SCALES or after.value == "hundred")
    if value == "second" and before is not None and (before.kind == "number" or before.value == "per"):
        return False
    return value in NUMBER_WORDS


def _is_roman(item: TextPiece, before: TextPiece) -> bool:
    if item.value not in ROMAN or before.kind != "word" or not before.raw[:1].isalpha():
        return False
    named = before.raw[:1].isupper()
    if before.value in _HEADS:
        return len(item.value) > 1 or (item.raw.isupper() and (named or before.value == "war"))
    return len(item.value) > 1 and item.raw.isupper() and named and before.value not in MONTHS
