"""Moments as they are stored, in seconds since 1970, written for people. Clocks may be wrong and stores damaged."""

from __future__ import annotations

import time

UNKNOWN_TIME = "unknown"


def format_time(moment: object, form: str, *, utc: bool = False) -> str:
    """A moment in local time, or in UTC; ``unknown`` where it is none."""
    if not isinstance(moment, int | float):
        return UNKNOWN_TIME
    try:
        return time.strftime(form, (time.gmtime if utc else time.localtime)(moment))
    except (ValueError, OverflowError, OSError):  # NaN, or a year that the calendar doesn't have
        return UNKNOWN_TIME
