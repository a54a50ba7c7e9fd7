"""Normalize dates to one spelling: year, month in English, day."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_ENGLISH = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_OTHERS = (
    "januar februar marz april mai juni juli august september oktober november dezember",
    "janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro",
    "januari februari maart april mei juni juli augustus september oktober november december",
    "januari februari mars april maj juni juli augusti september oktober november december",
    "januar februar marts april maj juni juli august september oktober november december",
    "stycznia lutego marca kwietnia maja czerwca lipca sierpnia wrzesnia pazdziernika - grudnia",
    "ledna unora brezna dubna kvetna cervna cervence srpna zari rijna listopadu prosince",
    "ocak subat mart nisan mayis haziran temmuz agustos eylul ekim kasim aralik",
    "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    "січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня",
    "ιανουαρίου φεβρουαρίου μαρτίου απριλίου μαΐου ιουνίου ιουλίου αυγούστου σεπτεμβρίου "
    "οκτωβρίου νοεμβρίου δεκεμβρίου",
    "يناير فبراير مارس ابريل مايو يونيو يوليو اغسطس سبتمبر اكتوبر نوفمبر ديسمبر",
    "जनवरी फरवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर अक्टूबर नवंबर दिसंबर",
)

MONTHS = {name: name for name in _ENGLISH} | {name[:3]: name for name in _ENGLISH} | {"sept": "september"}
"""English names of months and their abbreviations, recognized beside a day or a year."""

FOREIGN_MONTHS = {
    name.casefold(): english
    for names in _OTHERS
    for name, english in zip(names.split(), _ENGLISH, strict=True)
    if name != "-"
}
"""Names in fifteen other languages, without accents, as they stand in dates; only with day and year. "Listopada" is
November in Polish and October in Croatian, so it isn't read."""

NUMERIC_DATE = (
    r"(?<!\d)\d{4}(?:年|년\ ?)\d{1,2}(?:月|월\ ?)(?:\d{1,2}[日일])?"
    r"|(?<!\d)\d{4}-\d{1,2}-\d{1,2}(?!\d)|(?<!\d)\d{4}/\d{1,2}/\d{1,2}(?!\d)"
    r"|(?<![\d.])\d{1,2}\.\ ?\d{1,2}\.\ ?\d{4}(?!\d)|(?<!\d)\d{1,2}/\d{1,2}/\d{4}(?!\d)"
)
"""Dates in digits: 1987-06-05, 1987/6/5, 5.6.1987, 25/12/1987, 1987年6月5日."""


class TextPiece(NamedTuple):
    """A word, number or mark of a text: its kind, its normalized spelling, and the original."""

    kind: str
    value: str
    raw: str


def numeric_date_tokens(raw: str) -> list[str]:
    """The tokens of a date in digits.

    Dots separate day, month and year in this order. Of two numbers before a slash, one above 12 is the day; if both
    could be and they differ, the date is ambiguous and stays three numbers (**Choice**). So does anything that is not a
    date.
    """
    numbers = re.findall(r"\d+", raw)
    if len(numbers[0]) == 4:
        year, month, *rest = numbers
        day = rest[0] if rest else ""
    else:
        first, second, year = numbers
        if "." in raw or int(first) > 12 or int(first) == int(second):
            day, month = first, second
        elif int(second) > 12:
            month, day = first, second
        else:
            return numbers
    if not 1 <= int(month) <= 12 or (day and not 1 <= int(day) <= 31):
        return numbers
    return _tokens(year, _ENGLISH[int(month) - 1], day)


def readings_of_date(tokens: Sequence[str]) -> list[set[str]]:
    """The dates that the tokens of one may mean: two if it is ambiguous, "04/09/1998"."""
    if len(tokens) != 3 or not all(token.isdecimal() for token in tokens):
        return [set(tokens)]
    first, second, year = tokens
    if not (1 <= int(first) <= 12 and 1 <= int(second) <= 12):
        return [set(tokens)]
    return [set(_tokens(year, _ENGLISH[int(month) - 1], day)) for day, month in ((first, second), (second, first))]


def tokens_with_dates(items: Sequence[TextPiece]) -> Iterator[str]:
    """The tokens of a text's items, with dates in words normalized; an empty one for a mark that breaks a phrase."""
    at = 0
    while at < len(items):
        tokens, width = date_at(items, at)
        if width:
            yield from tokens
            at += width
            continue
        item = items[at]
        if item.kind == "date":
            yield from numeric_date_tokens(item.raw)
        elif item.kind == "place":
            yield f"{item.value}th"
        else:
            yield item.value
        at += 1


def date_at(items: Sequence[TextPiece], at: int) -> tuple[list[str], int]:
    """The tokens of a date in words at a position, and how many items it takes; 0 if there is none."""
    if items[at].kind == "word":
        return _month_first(items, at)
    day = _day(items, at)
    if not day:
        return [], 0
    # 5 June; 5th of June; 5. Juni; 5 de junio de 1987
    place = at + 1
    if _value(items, place) in ("of", "de", "."):
        place += 1
    name = _value(items, place)
    after = place + 1
    if _value(items, after) in ("de", ",", ".", "of"):
        after += 1
    year = _year(items, after)
    month = MONTHS.get(name) or (FOREIGN_MONTHS.get(name) if year else None)
    if not month or not (year or _is_surely_month(items[place])):
        return [], 0
    return (_tokens(year, month, day), after + 1 - at) if year else (_tokens("", month, day), place + 1 - at)


def _month_first(items: Sequence[TextPiece], at: int) -> tuple[list[str], int]:
    """Parse June 5; June 5th, 1987; June the 5th; June 1987."""
    month = MONTHS.get(items[at].value)
    if not month:
        return [], 0
    place = at + 1
    if _value(items, place) == "." and len(items[at].value) <= 4:
        place += 1
    if _value(items, place) == "the" and _kind(items, place + 1) == "place":
        place += 1
    day = _day(items, place)
    if not day:
        if _value(items, place) in (",", "of"):
            place += 1
        year = _year(items, place)
        return (_tokens(year, month, ""), place + 1 - at) if year else ([], 0)
    after = place + 2 if _value(items, place + 1) == "," else place + 1
    year = _year(items, after)
    if year:
        return _tokens(year, month, day), after + 1 - at
    return (_tokens("", month, day), place + 1 - at) if _is_surely_month(items[at]) else ([], 0)


def _tokens(year: str, month: str, day: str) -> list[str]:
    return [*([year] if year else []), month, *([f"day{int(day)}"] if day else [])]


def _is_surely_month(month: TextPiece) -> bool:
    """Whether a name without a year is a month: "may", "march" and abbreviations only if capitalized."""
    return (
        month.raw[:1].isupper() or (len(month.value) > 4 and month.value != "march") or month.value in ("june", "july")
    )


def _day(items: Sequence[TextPiece], at: int) -> str:
    value = items[at].value if _kind(items, at) in ("number", "place") else ""
    return value if value.isdecimal() and len(value) <= 2 and 1 <= int(value) <= 31 else ""


def _year(items: Sequence[TextPiece], at: int) -> str:
    value = items[at].value if _kind(items, at) == "number" else ""
    return value if len(value) == 4 and value.isdecimal() and items[at].raw.isdecimal() and value < "3000" else ""


def _kind(items: Sequence[TextPiece], at: int) -> str:
    return items[at].kind if at < len(items) else ""


def _value(items: Sequence[TextPiece], at: int) -> str:
    """A word, or the mark that breaks a phrase."""
    if at >= len(items):
        return ""
    return items[at].raw if items[at].kind == "break" else items[at].value
