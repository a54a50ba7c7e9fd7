"""Find names that are right or wrong as a whole: addresses, paths, options, names in code, versions."""

from __future__ import annotations

import re

_KINDS = (
    re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    re.compile(r"(?<=://)(?:www\.)?([^\s<>\"'()\[\]`#]+)"),
    re.compile(r"(?<![\w:/.])/[\w.-]+(?:/[\w.-]+)+"),
    re.compile(r"(?<![\w-])--[a-z][\w-]+"),
    re.compile(r"(?<![\w@/-])[A-Za-z]\w*_\w*[A-Za-z0-9](?![\w@])"),
)
"""Addresses, links, paths, options, names in code."""
_VERSION = re.compile(
    r"\b(version|release|python|java|node(?:\.js)?|tls|ssl|openssl|http|usb|bluetooth|android|ios|windows|ubuntu|"
    r"debian|gpt|cuda|php|ruby|rust|kubernetes|postgresql|"
    r"section|clause|article|chapter|paragraph|figure|table|annex|rule|step|mysql|api|v)[ -]?v?(\d+(?:\.\d+)+)",
    re.IGNORECASE,
)
_END = ".,;:!?/*_~`)]}>。，；：！？、）」』】》"
_BEFORE, _AFTER = r"(?<![a-z0-9])(?<![a-z0-9][_+-])", r"(?![_.@/+-]*[a-z0-9])"


def find_other_identifier(text: str, answer: str) -> str:
    """What a text has in place of an identifier of the answer; empty if it has the same, or none of that kind."""
    for pattern in _KINDS:
        wanted = _found(pattern, answer)
        said = _found(pattern, text) if wanted else []
        if said and not set(wanted) & set(said) and not any(_occurs(text, one) for one in wanted):
            return said[0]
    return _find_other_version(text, answer)


def may_be_longer_version(text: str, answer: str) -> bool:
    """Whether a text has a version of which the answer is the beginning: "3.10.2" for "Python 3.10"."""
    wanted = re.search(r"(?<![\d.])(\d+\.\d+(?:\.\d+)*)\s*$", answer)
    return wanted is not None and re.search(rf"(?<![\w.]){re.escape(wanted[1])}\.\d", text) is not None


def _found(pattern: re.Pattern[str], text: str) -> list[str]:
    return [match.group(match.lastindex or 0).rstrip(_END).lower() for match in pattern.finditer(text)]


def _occurs(text: str, identifier: str) -> bool:
    """Whether a text has an identifier verbatim, and not as a part of another one."""
    # Only a name in code may follow a dot: "self.max_size".
    before = _BEFORE if re.fullmatch(r"\w+", identifier) else rf"{_BEFORE}(?<![a-z0-9]\.)"
    return re.search(before + re.escape(identifier) + _AFTER, text.lower().replace("www.", "")) is not None


def _find_other_version(text: str, answer: str) -> str:
    """Another version of a product of the answer."""
    versions = {match[1].lower(): match[2] for match in _VERSION.finditer(answer)}
    if not versions or any(_occurs(text, number) for number in versions.values()):
        return ""
    return next((match[2] for match in _VERSION.finditer(text) if match[1].lower() in versions), "")
