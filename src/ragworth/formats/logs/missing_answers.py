"""Texts in place of an answer that are none: how programs write a missing value, and messages of errors."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragworth.data.collection import plain_text

ERROR = "error"
"""Status of an answer that is the message of an error."""

SHEET_ERRORS = ("#N/A", "#REF!", "#VALUE!", "#NAME?", "#DIV/0!", "#NUM!", "#NULL!")
"""What spreadsheets show in place of a value."""

NO_ANSWER_TEXTS = frozenset(
    ("nan", "NaN", "None", "null", "NULL", "<NA>", "-", "–", "—", "[]", "{}", "[object Object]", *SHEET_ERRORS)
)
"""How programs write a missing value as text."""

NO_REFERENCE = frozenset(("N/A", "n/a", "nan", "NaN", "null", "NULL", "<NA>", *SHEET_ERRORS))
"""How files write that there is no accepted answer. "None" may be one."""

ERROR_TEXT = re.compile(
    r"Traceback \(most recent call last\)"
    r"|\[?(?:Error|ERROR|Exception)\b\]?\s*(?::|\d{3}\b|code: \d{3}\b|$)|\[(?:Error|ERROR)\]"
    r"|(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Timeout)\b\s*(?:[:(]|$)|HTTPS?ConnectionPool\("
    r"|(?:HTTP\S*\s+)?(?:429 Too Many|500 Internal|502 Bad|503 Service|504 Gateway|401 Unauth|403 Forbidden)"
    r"|<(?:!DOCTYPE html|html)\b[\s\S]{0,400}?<title>\s*[45]\d\d\b|Request failed with status code \d{3}\b"
    r"|(?:[Aa]n (?:unexpected |internal )?error (?:has )?occurred|(?:The )?[Rr]equest timed out|Internal Server Error"
    r"|Rate limit (?:reached|exceeded)|Gateway Time-?out|Service Unavailable|Max retries exceeded"
    r"|Connection (?:error|refused|reset|timed out)|The server had an error)"
    r"\s*(?:[.:!,(]|$|for\b|while\b|when\b|with\b|by peer\b)"
    r"|This model(?:'|’)s maximum context length is \d"
    r"|upstream (?:connect|request) (?:error|timeout)|\{\s*[\"']error[\"']\s*:"
)
"""Beginnings of messages that programs write in place of an answer."""

ABOUT_ERRORS = re.compile(r"(?i)errors?\b|exceptions?\b|traceback|status code|http|rate limit|time-?out|\b[45]\d\d\b")
"""In questions whose answer may be about an error."""


def is_missing_answer(text: str, accepted: Sequence[str]) -> bool:
    """Whether a text stands for a missing value, and isn't accepted."""
    return text in NO_ANSWER_TEXTS and text.casefold() not in {each.strip(" .").casefold() for each in accepted}


def is_error_message(text: str, question: str, accepted: Sequence[str]) -> bool:
    """Whether a text is the message of a program, and not an answer about errors or one with an accepted answer."""
    if not ERROR_TEXT.match(text) or ABOUT_ERRORS.search(question):
        return False
    plain = plain_text(text).casefold()
    names = [plain_text(each).casefold() for each in accepted if not each.strip().isdecimal()]  # 500 is in many errors
    return not any(name and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", plain) for name in names)
