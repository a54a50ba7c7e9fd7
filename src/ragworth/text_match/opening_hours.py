"""Write opening hours and weekdays in one notation: "Mon-Fri 9-17" and "Monday to Friday, 9 am to 5 pm"."""

from __future__ import annotations

import re

_MARK = r"a\.?\s?m\b\.?|p\.?\s?m\b\.?|uhr\b|hrs?\b|h\b|uur\b"
_TO = r"(?:\s?[-–—~～]\s?|\s+(?:to|until|till|through|and|bis|à|a|al|às|tot|do|alle|til)\s+)(?:(?:at|um|las|le)\s+)?"
_RANGE = re.compile(
    rf"(?<![\d:.,$€£/-])(?:from\s+|von\s+|de\s+)?(?P<hour>\d{{1,2}})(?:[:.h](?P<minute>[0-5]\d))?\s?(?P<half>{_MARK})?"
    rf"{_TO}(?:(?P<end>\d{{1,2}})(?:[:.h](?P<end_minute>[0-5]\d))?\s?(?P<end_half>{_MARK})?|(?P<named>noon|midnight)\b)"
    r"(?![\d:%/]|[.,-]\d|\s?[%€$])",
    re.IGNORECASE,
)
_NAMES = {
    "mo": "Monday", "tu": "Tuesday", "we": "Wednesday", "th": "Thursday", "fr": "Friday", "sa": "Saturday",
    "su": "Sunday",
}  # fmt: skip
_WEEKDAY = re.compile(r"\b(Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun|Mo|Tu|We|Th|Fr|Sa|Su)(?:days?)?\b\.?")
_DAYS = re.compile(r"(day)s?\s?(?:[-–—]|through|until|till|thru)\s?(?=[A-Z][a-z]+day)")
_NAMES_DAY = re.compile(r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day")
_HALF_DAY, _DAY = 720, 1440


def with_plain_hours(text: str) -> str:
    """A text with its spans of time in 24 hours, "09:00 to 17:00", and weekdays in full beside them."""
    if not re.search(r"\d", text):
        return text
    named = _DAYS.sub(r"\1 to ", _WEEKDAY.sub(lambda found: _NAMES[found[1][:2].lower()], text))
    plain = _RANGE.sub(lambda found: _plain_range(found, beside_day=_NAMES_DAY.search(named) is not None), named)
    return plain if plain != named else text


def _plain_range(found: re.Match[str], *, beside_day: bool) -> str:
    marked = any(found[name] for name in ("half", "end_half", "minute", "end_minute", "named"))
    end = _end(found)
    start = _minutes(found["hour"], found["minute"], found["half"])
    if not found["half"] and end > _HALF_DAY and start + _HALF_DAY < end and _is_half(found["end_half"]):
        start = start + _HALF_DAY if int(found["hour"]) < 6 else start  # "1 to 5 pm", but "9 to 5 pm"
    if not (marked or beside_day) or max(start, end) > _DAY:
        return found.group()
    if end <= start and not _is_half(found["end_half"]):
        end += _HALF_DAY  # "9 to 5"
    return f"{_clock(start)} to {_clock(end)}"


def _end(found: re.Match[str]) -> int:
    if found["named"]:
        return _HALF_DAY if found["named"].lower() == "noon" else _DAY
    return _minutes(found["end"], found["end_minute"], found["end_half"])


def _minutes(hour: str, minute: str | None, half: str | None) -> int:
    hours = int(hour)
    if _is_half(half):
        hours = hours % 12 + 12 * (half is not None and half[0] in "pP")
    return 60 * hours + int(minute or 0)


def _is_half(mark: str | None) -> bool:
    return mark is not None and mark[0] in "aApP"


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02d}:{minutes % 60:02d}"
