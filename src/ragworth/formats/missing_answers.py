"""Texts in place of an answer that are none: how programs write a missing value, and messages of errors."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragworth.collection import plain_text

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
    r"Traceback \(most recent call last\)|[\w.]*(?:[Ee]rror|ERROR|Exception|Timeout)(?: code)?\s*[:(]"
    r"|HTTPS?ConnectionPool\(|(?:Request timed out|An error occurred|Internal Server Error)\b"
    r"|(?:429 Too Many|500 Internal|502 Bad|503 Service|504 Gateway)|\{\s*[\"']error[\"']\s*:"
)
"""Beginnings of messages that programs write in place of an answer."""


def is_missing_answer(text: str, accepted: Sequence[str]) -> bool:
    """Whether a text stands for a missing value, and isn't accepted."""
    return text in NO_ANSWER_TEXTS and text.casefold() not in {each.strip(" .").casefold() for each in accepted}


def is_error_message(text: str, accepted: Sequence[str]) -> bool:
    """Whether a text begins like the message of a program, and holds no accepted answer of letters."""
    plain = plain_text(text).casefold()
    names = [plain_text(each).casefold() for each in accepted if not each.strip().isdecimal()]
    given = any(name and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", plain) for name in names)
    return ERROR_TEXT.match(text) is not None and not given
