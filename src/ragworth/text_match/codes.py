"""Recognize phone numbers and codes in another spelling: "AB12345" for "AB-12345", "030 123456" for "+49 30 123456"."""

from __future__ import annotations

import re
from functools import lru_cache

_SEPARATORS = r"[\s./()–‑-]{0,3}"
_LETTERED = re.compile(
    r"(?=(?:.*\d){2})[A-Z]{1,6}[A-Z0-9]*(?:[-–‑./ ][A-Z0-9]+)*|[0-9]{1,6}[-–‑/ ]?[A-Z][A-Z0-9]*(?:[-–‑/ ][A-Z0-9]+)*"
)
_DIGITS = re.compile(r"\+?\(?\d[\d\s./()–‑-]{4,24}\d")
_NO_CODE = re.compile(
    r"\d{1,3}(?:[ .,]\d{3})+|(?:1\d|20)\d\d\s?[-–/]\s?(?:(?:1\d|20)\d\d|\d\d)|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}"
    r"|\d{4}[./-]\d{1,2}[./-]\d{1,2}"
    r"|\d+\.\d+|\d+|(?:FY|Q[1-4]|H[12]|[A-Z]{3}|\d+) ?\d+(?:[.,]\d+)?|\d+ [A-Z]+"
)
"""Numbers, amounts, dates, spans of years and quarters."""
_MIN_DIGITS = 7
"""Digits of a phone number or other code without letters."""
_TRUNK = re.compile(r"\(0\)")
_MAX_COUNTRY = 3


def with_codes(text: str, answer: str) -> str:
    """A text with the phone number or code that an accepted answer consists of spelled as there."""
    pattern = _code_pattern(answer.strip())
    if pattern is None:
        return text
    respelled = pattern.sub(lambda _: answer.strip(), text)
    return _with_phone(respelled, answer.strip())


@lru_cache(maxsize=8192)
def _code_pattern(answer: str) -> re.Pattern[str] | None:
    """A code with whatever separates its letters and digits; None for other answers."""
    digits = sum(character.isdecimal() for character in answer)
    numeric = _DIGITS.fullmatch(answer) is not None and digits >= _MIN_DIGITS
    if _NO_CODE.fullmatch(answer) and not (numeric and digits == len(answer)):
        return None
    if not numeric and _LETTERED.fullmatch(answer) is None:
        return None
    signs = re.findall(r"[A-Za-z0-9]", answer)
    return re.compile(rf"(?<![A-Za-z0-9])[+(]?{_SEPARATORS.join(signs)}(?![A-Za-z0-9])", re.IGNORECASE)


def _with_phone(text: str, answer: str) -> str:
    """A text with a phone number with or without its country code spelled as an answer has it."""
    if not _DIGITS.fullmatch(answer) or _NO_CODE.fullmatch(answer):
        return text
    return _DIGITS.sub(lambda found: answer if _same_phone(found.group(), answer) else found.group(), text)


def _same_phone(one: str, other: str) -> bool:
    if not re.match(r"[+(]*[+0]", one) and not re.match(r"[+(]*[+0]", other):
        return False
    short, long = sorted((_national(one), _national(other)), key=len)
    return len(short) >= _MIN_DIGITS and long.endswith(short) and len(long) - len(short) <= _MAX_COUNTRY


def _national(number: str) -> str:
    """The digits of a phone number without leading zeros."""
    return re.sub(r"\D", "", _TRUNK.sub("", number)).lstrip("0")
