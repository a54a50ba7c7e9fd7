"""Texts in place of an answer that are none: a missing value as programs write it, and messages of errors."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragworth.data.collection import plain_text

ERROR = "error"
"""Status of an answer that is the message of an error."""

NO_REFERENCE = frozenset(("N/A", "n/a", "nan", "NaN", "null", "NULL", "<NA>", "#N/A", "#REF!", "#VALUE!", "#NAME?"))
"""A missing accepted answer, as programs and spreadsheets write it. "None" may be one."""

NO_ANSWER_TEXTS = (NO_REFERENCE - {"N/A", "n/a"}) | {"None", "-", "–", "—", "[]", "{}", "[object Object]"}
"""A missing answer. "N/A" may be one: the question has no answer."""

ERROR_TEXT = re.compile(
    r"Traceback \(most recent call last\)|\[?(?:Error|ERROR|Exception)\b\]?\s*(?::|\d{3}\b|code: \d{3}\b|$)"
    r"|(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Timeout)\b\s*(?:[:(]|$)|HTTPS?ConnectionPool\(|\{\s*[\"']error[\"']\s*:"
    r"|(?:HTTP\S*\s+)?(?:429 Too Many|500 Internal|502 Bad|503 Service|(?:504 )?Gateway T|401 Unauth|403 Forbidden)"
    r"|(?:An (?:unexpected |internal )?error (?:has )?occurred|(?:The )?[Rr]equest (?:timed out|failed with status)"
    r"|Connection (?:error|refused|reset|timed out)|Rate limit (?:reached|exceeded)|Service Unavailable)"
    r"\s*(?:[.:!,(]|$|code\b|for\b|while\b|when\b|with\b|by peer\b)"
)
"""Beginnings of messages that programs write in place of an answer."""

ABOUT_ERRORS = re.compile(r"(?i)errors?\b|exceptions?\b|traceback|status code|http|rate limit|time-?out|\b[45]\d\d\b")
"""In questions whose answer may be about an error."""


def is_missing_answer(text: str, accepted: Sequence[str]) -> bool:
    """Tell whether a text stands for a missing value, and isn't accepted."""
    return text in NO_ANSWER_TEXTS and text.casefold() not in {each.strip(" .").casefold() for each in accepted}


def is_error_message(text: str, question: str, accepted: Sequence[str]) -> bool:
    """Tell whether a text is the message of a program, and not an answer about errors or one that is accepted."""
    if not ERROR_TEXT.match(text) or ABOUT_ERRORS.search(question):
        return False
    plain = plain_text(text).casefold()
    names = [plain_text(each).casefold() for each in accepted if not each.strip().isdecimal()]  # 500 is in many errors
    return not any(name and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", plain) for name in names)
