"""Offsets in UTF-16 code units, as browsers count them, and in code points, as we do."""

from __future__ import annotations


def to_utf16(text: str, offset: int) -> int:
    """The number of UTF-16 code units before a code point."""
    return offset + sum(sign > "\uffff" for sign in text[:offset])


def from_utf16(text: str, offset: int) -> int | None:
    """The number of code points before a UTF-16 offset; None inside a surrogate pair or beyond the text."""
    units = 0
    for at, sign in enumerate(text):
        if units >= offset:
            return at if units == offset else None
        units += 2 if sign > "\uffff" else 1
    return len(text) if units == offset else None
