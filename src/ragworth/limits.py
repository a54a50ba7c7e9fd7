"""How much a file may ask for, so that a small one can't fill the memory or the day.

The defaults are far beyond ordinary data. Environment variables change them everywhere at once, from the command line
to Python: ``RAGWORTH_MAX_LINE`` and ``RAGWORTH_MAX_RATIO``.
"""

from __future__ import annotations

import os
import re

from ragworth.errors import InputError, quote_short

DEFAULT_MAX_LINE = 32 << 20
"""Bytes of a line. The longest in the test collections we know has 2 MB."""

DEFAULT_MAX_RATIO = 200
"""How many times its size a compressed file may unpack to. Ordinary text has 3 to 20, the most that we know 75."""

MIN_UNPACKED_SIZE = 64 << 20
"""Bytes that any compressed file may unpack to, whatever the ratio."""

SIZE_UNITS = {"": 0, "K": 10, "M": 20, "G": 30}


def max_line() -> int:
    """The most bytes of a line: ``RAGWORTH_MAX_LINE``, a number, or one with K, M or G."""
    return _number_from_environment("RAGWORTH_MAX_LINE", DEFAULT_MAX_LINE, "a number of bytes, such as 100M")


def max_ratio() -> int:
    """The most that unpacking may multiply a file's size by: ``RAGWORTH_MAX_RATIO``."""
    return _number_from_environment("RAGWORTH_MAX_RATIO", DEFAULT_MAX_RATIO, "a whole number, such as 1000")


def _number_from_environment(variable: str, usual: int, expected: str) -> int:
    text = os.environ.get(variable, "").strip()
    if not text:
        return usual
    found = re.fullmatch(r"([0-9]{1,15}) ?([KMG]?)B?", text, re.IGNORECASE | re.ASCII)
    if found is None or not int(found[1]):
        raise InputError(f"the environment variable {variable} is {quote_short(text, 40)}", expected=expected)
    return int(found[1]) << SIZE_UNITS[found[2].upper()]
