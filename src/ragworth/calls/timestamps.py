"""Format stored timestamps (seconds since 1970). Clocks may be wrong and stores damaged."""

from __future__ import annotations

import time

UNKNOWN_TIME = "unknown"


def format_time(moment: object, form: str, *, utc: bool = False) -> str:
    """Format a timestamp in local time, or in UTC; ``unknown`` if it is invalid."""
    if not isinstance(moment, int | float):
        return UNKNOWN_TIME
    try:
        return time.strftime(form, (time.gmtime if utc else time.localtime)(moment))
    except (ValueError, OverflowError, OSError):  # NaN, or a year outside the calendar
        return UNKNOWN_TIME
