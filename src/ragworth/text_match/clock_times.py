"""Compare times of day: "9:30 p.m." is 21:30, and "9:30" may be either half of the day."""

from __future__ import annotations

import re

_CLOCK = re.compile(r"(?<![\d:.,])(\d{1,2}):([0-5]\d)(?![\d:])(?:\s?([ap])\.?\s?m\b\.?)?", re.IGNORECASE)
_HALF_WORDS = {
    "a": re.compile(r"\b(?:a\.?m\b|mornings?|midnight)", re.IGNORECASE),
    "p": re.compile(r"\b(?:p\.?m\b|afternoons?|evenings?|nights?|tonight)", re.IGNORECASE),
}
"""Words that say which half of the day a time is in."""


def clock_reading(text: str) -> str | None:
    """A text with its times of day in the other notation: 09:30 and 9:30 a.m. None if it has none that is sure."""
    other = _CLOCK.sub(_other_clock, text)
    return other if other != text else None


def half_is_unclear(text: str, answer: str, question: str) -> bool:
    """Whether one has a time with its half of the day, and the other without: "9:30" may be before noon.

    As in 24 hours, 9:30 counts as before noon, and 12:15 as after it.
    """
    return _lacks_half(text, answer, question) or _lacks_half(answer, text, question)


def _lacks_half(bare: str, full: str, question: str) -> bool:
    times, said = _times(full), f"{bare} {question}"
    return any(
        not half and half_of != ("p" if hour == 12 else "a") and not _HALF_WORDS[half_of].search(said)
        for hour, minute, half in _times(bare) - times
        for half_of in "ap"
        if (hour, minute, half_of) in times
    )


def _times(text: str) -> set[tuple[int, str, str]]:
    return {(int(each[1]), each[2], (each[3] or "").lower()) for each in _CLOCK.finditer(text)}


def _other_clock(found: re.Match[str]) -> str:
    """A time in the other notation. "9:30" may be of either; one with a leading zero or after noon is of 24 hours."""
    hour, minute, half = int(found[1]), found[2], (found[3] or "").lower()
    if half and 1 <= hour <= 12:
        return f"{hour % 12 + (12 if half == 'p' else 0):02d}:{minute}"
    if not half and hour < 24 and (found[1][0] == "0" or hour > 12):
        return f"{hour % 12 or 12}:{minute} {'p' if hour >= 12 else 'a'}.m."
    return found[0]
