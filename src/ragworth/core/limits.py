"""Limits on lines and compression ratios, so a small file can't exhaust memory or time.

The defaults are far beyond ordinary data. The environment variables ``RAGWORTH_MAX_LINE`` and ``RAGWORTH_MAX_RATIO``
change them, on the command line and in Python.
"""

from __future__ import annotations

import os
import re

from ragworth.core.errors import InputError, quote_short

DEFAULT_MAX_LINE = 32 << 20
"""Maximum line length in bytes. The longest line in the test collections we know has 2 MB."""

DEFAULT_MAX_RATIO = 200
"""Maximum compression ratio. Ordinary text has 3 to 20; the highest we know is 75."""

MIN_UNPACKED_SIZE = 64 << 20
"""Bytes that any compressed file may unpack to, whatever its ratio."""

SIZE_UNITS = {"": 0, "K": 10, "M": 20, "G": 30}


def max_line() -> int:
    """Maximum line length in bytes: ``RAGWORTH_MAX_LINE``, a number with an optional K, M or G."""
    return _number_from_environment("RAGWORTH_MAX_LINE", DEFAULT_MAX_LINE, "a number of bytes, such as 100M")


def max_ratio() -> int:
    """Maximum compression ratio: ``RAGWORTH_MAX_RATIO``."""
    return _number_from_environment("RAGWORTH_MAX_RATIO", DEFAULT_MAX_RATIO, "a whole number, such as 1000")


def _number_from_environment(variable: str, usual: int, expected: str) -> int:
    text = os.environ.get(variable, "").strip()
    if not text:
        return usual
    found = re.fullmatch(r"([0-9]{1,15}) ?([KMG]?)B?", text, re.IGNORECASE | re.ASCII)
    if found is None or not int(found[1]):
        raise InputError(f"the environment variable {variable} is {quote_short(text, 40)}", expected=expected)
    return int(found[1]) << SIZE_UNITS[found[2].upper()]
