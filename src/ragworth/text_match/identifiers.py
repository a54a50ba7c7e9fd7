"""Find names that are right or wrong as a whole: addresses, paths, options, names in code, versions."""

from __future__ import annotations

import re

_KINDS = (
    re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    re.compile(r"(?<=://)(?:www\.)?([^\s<>\"'()\[\]]+)"),
    re.compile(r"(?<![\w:/.])/[\w.-]+(?:/[\w.-]+)+"),
    re.compile(r"(?<![\w-])--[a-z][\w-]+"),
    re.compile(r"(?<![\w.@/-])[A-Za-z]\w*_\w*[A-Za-z0-9](?![\w@])"),
    re.compile(
        r"\b(?:version|release|python|java|node(?:\.js)?|tls|ssl|openssl|http|usb|bluetooth|android|ios|windows|ubuntu|"
        r"debian|gpt|cuda|php|ruby|rust|kubernetes|postgresql|mysql|api|v)[ -]?v?(\d+(?:\.\d+)+)",
        re.IGNORECASE,
    ),
)
"""Addresses, links, paths, options, names in code, versions."""
_END = ".,;:!?/"


def find_other_identifier(text: str, answer: str) -> str:
    """What a text has in place of an identifier of the answer; empty if it has the same, or none of that kind."""
    for pattern in _KINDS:
        wanted = _found(pattern, answer)
        said = _found(pattern, text) if wanted else []
        if said and wanted and not set(wanted) & set(said):
            return said[0]
    return ""


def _found(pattern: re.Pattern[str], text: str) -> list[str]:
    return [match.group(match.lastindex or 0).rstrip(_END).lower() for match in pattern.finditer(text)]
