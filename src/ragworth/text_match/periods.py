"""Read periods and frequencies: "per month", "p.a.", "twice a day", "every 12 hours"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

_PERIODS = {
    "second": "second|sekunde|segundo|seconde|secondo",
    "minute": "minute|minuto|minuut",
    "hour": "hour|hr|stunde|heure|hora|uur",
    "day": "day|tag|jour|dia|giorno|dag|diem",
    "week": "week|wk|woche|semaine|semana|settimana",
    "month": "month|mo|monat|mois|mes|mese|maand|mensem",
    "quarter": "quarter|quartal|trimestre|kwartaal",
    "year": "year|yr|annum|jahr|an|annee|ano|anno|jaar|pa",
}
_ADVERBS = {
    "hour": "hourly|stundlich",
    "day": "daily|taglich|diario|diaria|dagelijks",
    "week": "weekly|wochentlich|hebdomadaire|semanal|settimanale|wekelijks",
    "month": "monthly|monatlich|mensuel(?:le)?|mensual|mensal|mensile|maandelijks",
    "quarter": "quarterly|vierteljahrlich|trimestriel(?:le)?|trimestral",
    "year": "yearly|annual|annually|jahrlich|annuel(?:le)?|anual|annuale|jaarlijks",
}
"""Without accents, as the tokens of texts are written."""
_NAMED = "|".join(f"(?P<{name}>{words})s?" for name, words in _PERIODS.items())
_PER = re.compile(rf"(?:(?:\w+ ){{0,2}}(?:per|pro|par|por|/|each|every)|a|an|al) (?:{_NAMED})\b|(?P<annum>pa)\b")
_ADVERB = re.compile("|".join(rf"\b(?P<{name}>{words})\b" for name, words in _ADVERBS.items()))
_REACH = 5

_COUNTS = {"once": 1, "twice": 2, "thrice": 3, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_HOURS = {"hour": 1, "day": 24, "week": 168}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_NUMBER = rf"(?:\d{{1,3}}|{'|'.join(_COUNTS)})"
_UNIT = "hour|day|week|month|quarter|year"
_FREQUENCY = re.compile(
    rf"(?i)\b(?:(?P<adverbial>once|twice|thrice|{_NUMBER}\s?(?:times|x))[\s-]+)?"
    rf"(?:(?P<adverb>hourly|daily|weekly|monthly|quarterly|yearly|annually|nightly)\b"
    rf"|(?:every|each)\s+(?:(?P<number>{_NUMBER}|other|second)\s+)?(?P<unit>{_UNIT})s?\b"
    rf"|(?P<times>a|an|per)\s+(?P<period>{_UNIT})\b)"
)
_HALF_PERIOD = re.compile(r"(?i)\b(?:semi|bi)[- ]?(?:weekly|monthly|annual|annually|yearly)\b")
_DAYS = re.compile(r"(?i)\b(?:days? (?:a|per) week|weekdays?|(?:mon|tues|wednes|thurs|fri|satur|sun)days?)\b")
_ADVERB_UNITS = {
    "hourly": "hour",
    "daily": "day",
    "nightly": "day",
    "weekly": "week",
    "monthly": "month",
    "quarterly": "quarter",
    "yearly": "year",
    "annually": "year",
}
_LITTLE = re.compile(
    r"(?i)\b(?:at least|it|is|are|was|they|must|should|be|run|done|performed|on|a|an|the|basis|about|only|just)\b|\W+"
)


def period_after(tokens: Sequence[str], end: int) -> str:
    """The period that a number is said of, by the tokens after it: "month" in "$25 per month"; empty if none is."""
    following = " ".join(tokens[end : end + _REACH])
    return _name(_PER.match(following) or _ADVERB.match(following))


def period_asked(tokens: Sequence[str]) -> str:
    """The period that a question names: "month" in "the monthly fee"; empty if it names none, or several."""
    text = " ".join(tokens)
    found = {_name(match) for pattern in (_PER, _ADVERB) for match in pattern.finditer(text)}
    return found.pop() if len(found) == 1 else ""


def _name(found: re.Match[str] | None) -> str:
    name = (found.lastgroup or "") if found is not None else ""
    return "year" if name == "annum" else name


def frequencies(text: str) -> set[tuple[str, Fraction]]:
    """How often a text says something happens, in times an hour or times a month."""
    found = (_rate(match) for match in _FREQUENCY.finditer(text))
    return {rate for rate in found if rate is not None}


def has_half_period(text: str) -> bool:
    """Whether a text has a word such as "bi-weekly", which may mean half as often or twice as often."""
    return _HALF_PERIOD.search(text) is not None


def names_days(text: str) -> bool:
    """Whether a text says how often in days: "every Monday", "seven days a week", "bi-weekly"."""
    return _DAYS.search(text) is not None or has_half_period(text)


@lru_cache(maxsize=8192)
def is_frequency(answer: str) -> bool:
    """Whether an answer says how often, and nothing else."""
    return bool(frequencies(answer)) and not _LITTLE.sub("", _FREQUENCY.sub(" ", answer))


def _rate(match: re.Match[str]) -> tuple[str, Fraction] | None:
    if match["times"] and not match["adverbial"]:
        return None  # "$5 a day" is no frequency
    times = _count(match["adverbial"] or "once")
    unit = _ADVERB_UNITS.get((match["adverb"] or "").lower()) or (match["unit"] or match["period"] or "").lower()
    length = 2 if (match["number"] or "").lower() in ("other", "second") else _count(match["number"] or "one")
    if not times or not length:
        return None
    if unit in _HOURS:
        return "hour", Fraction(times, length * _HOURS[unit])
    return "month", Fraction(times, length * _MONTHS[unit])


def _count(word: str) -> int:
    first = word.lower().split()[0].rstrip("x")
    return int(first) if first.isdecimal() else _COUNTS.get(first, 0)
