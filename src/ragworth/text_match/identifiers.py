"""Find names that are right or wrong as a whole: addresses, paths, options, names in code, versions, ratings."""

from __future__ import annotations

import re

_KINDS = (
    re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    re.compile(r"(?<=://)(?:www\.)?([^\s<>\"'()\[\]`#]+)"),
    re.compile(r"(?<![\w:/.])/[\w.-]+(?:/[\w.-]+)+"),
    re.compile(r"(?<![\w-])--[a-z][\w-]+"),
    re.compile(r"(?<![\w.@/-])[a-z_]\w+(?:\.[a-z_]\w+)+(?![\w/@])"),
    re.compile(r"(?<![\w@/-])[A-Za-z]\w*_\w*[A-Za-z0-9](?![\w@])"),
)
"""Addresses, links, paths, options, names in code."""
_VERSION = re.compile(
    r"\b(version|release|python|java|node(?:\.js)?|tls|ssl|openssl|http|usb|bluetooth|android|ios|windows|ubuntu|"
    r"debian|gpt|cuda|php|ruby|rust|kubernetes|postgresql|"
    r"section|clause|article|chapter|paragraph|figure|table|annex|rule|step|mysql|api|v)[ -]?v?(\d+(?:\.\d+)+)",
    re.IGNORECASE,
)
_FLAG = re.compile(r"(?<![\w-])-[A-Za-z](?![\w-])")
_ASKS_SECTION = re.compile(r"(?i)\b(?:section|clause|article|chapter|paragraph)\b|§")
_ASKS_VERSION = re.compile(
    r"(?i)\b(?:versions?|versión|versione|versie|wersj\w*|verze|версии?|release)\b|版本|バージョン|버전"
)
_NUMBERED = re.compile(r"(?<![\w.,$€£])[vV]?(\d+\.\d+)(?![\d%]|\.\d)")
_RATING = re.compile(
    r"(?<![\w+−–-])(AAA|AA|BBB|BB|CCC|CC|AB|[A-FO])(?:([+＋])|([−–-])(?!\w)|\s(positive|plus|pos)\b|\s(negative|minus|neg)\b)?"
    r"(?![\w+])"
)
_ZEROS = re.compile(r"0\d{2,}")
_END = ".,;:!?/*_~`)]}>。，；：！？、）」』】》"
_BEFORE, _AFTER = r"(?<![a-z0-9])(?<![a-z0-9][_+-])", r"(?![_.@/+-]*[a-z0-9])"


def find_other_identifier(text: str, answer: str, question: str) -> str:
    """What a text has in place of an identifier of the answer; empty if it has the same, or none of that kind."""
    for pattern in _KINDS:
        wanted = _found(pattern, answer)
        said = _found(pattern, text) if wanted else []
        if said and not set(wanted) & set(said) and not any(_occurs(text, one) for one in wanted):
            return said[0]
    others = (_find_other_rating(text, answer), _find_other_flag(text, answer), _without_zeros(text, answer))
    return _find_other_version(text, answer, question) or next(filter(None, others), "")


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


def _find_other_version(text: str, answer: str, question: str) -> str:
    """Another version of a product of the answer, or of what the question asks the version of."""
    versions = {match[1].lower(): match[2] for match in _VERSION.finditer(answer)}
    if versions and not any(_occurs(text, number) for number in versions.values()):
        return next((match[2] for match in _VERSION.finditer(text) if match[1].lower() in versions), "")
    wanted = _NUMBERED.findall(answer)
    said = _NUMBERED.findall(text)
    if len(wanted) != 1 or wanted[0] in said:
        return ""
    if _ASKS_VERSION.search(question):
        return next(iter(said), "")
    # "3.10" is the number 3.1, but another version or section.
    numbered = bool(versions) or _ASKS_SECTION.search(question)
    return next((one for one in said if numbered and float(one) == float(wanted[0])), "")


def _find_other_rating(text: str, answer: str) -> str:
    """Another rating, grade or blood type of letters and a sign: "AA-" for "AA+"."""
    wanted, said = _ratings(answer), _ratings(text)
    label = answer.strip(" .")
    if len(label) < 2 or not _RATING.fullmatch(label) or wanted & said:
        return ""
    return min(said, default="")


def _ratings(text: str) -> set[str]:
    return {
        found[1].upper() + ("+" if found[2] or found[4] else "-" if found[3] or found[5] else "")
        for found in _RATING.finditer(text)
    }


def _find_other_flag(text: str, answer: str) -> str:
    """Another option of one letter, whose case counts: "-V" for "-v"."""
    flags = _FLAG.findall(text)
    return flags[0] if flags and _FLAG.fullmatch(answer.strip(" `")) and answer.strip(" `") not in flags else ""


def _without_zeros(text: str, answer: str) -> str:
    """The number that a text has without the zeros with which a code begins: "2139" for "02139"."""
    code = answer.strip()
    if not _ZEROS.fullmatch(code) or _occurs(text, code):
        return ""
    return code.lstrip("0") if _occurs(text, code.lstrip("0")) else ""
