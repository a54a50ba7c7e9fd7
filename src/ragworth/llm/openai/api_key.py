"""API keys: where they come from, which hosts they may go to, and how they stay out of everything else.

A key is read only from the environment. ``RAGWORTH_API_KEY`` goes to any endpoint that the user names;
``OPENAI_API_KEY``, which many people have set for other programs, only to OpenAI's own host.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn
from urllib.parse import quote

from ragworth.core.errors import ModelError

OWN_VARIABLE, OPENAI_VARIABLE = "RAGWORTH_API_KEY", "OPENAI_API_KEY"
OPENAI_HOST = "api.openai.com"

REDACTED = "[key]"
"""Replaces a key in text."""

MIN_KEY_LENGTH, MIN_WORD_LENGTH = 8, 16
"""Minimum length of a key to remove from answers, and minimum length if it is a plain word. Servers that need no key
get one such as ``none`` or ``required``, which may well be part of an answer.
"""


class ApiKey:
    """A key that only `header` reveals.

    The value is in a closure and not in an attribute, so neither ``repr`` nor a debugger's or traceback's list of
    attributes and local variables shows it.
    """

    __slots__ = ("_is_word", "_spellings", "_value")

    def __init__(self, value: str) -> None:
        # As it is, as JSON writes it, and as URLs do, with capital and small hexadecimal digits.
        in_json, in_url = json.dumps(value)[1:-1], quote(value, safe="")
        small = re.sub("%[0-9A-F]{2}", lambda sign: sign[0].lower(), in_url)
        spellings = sorted({value, in_json, in_json.replace("/", "\\/"), in_url, small}, key=len, reverse=True)
        self._value: Callable[[], str] = lambda: value
        self._spellings: Callable[[], list[str]] = lambda: spellings
        is_plain = value.isalpha() and value.islower()
        self._is_word = len(value) < (MIN_WORD_LENGTH if is_plain else MIN_KEY_LENGTH)

    def header(self) -> str:
        """The value of the ``Authorization`` header. For the one place that sends it."""
        return f"Bearer {self._value()}"

    def scrub(self, text: str) -> str:
        """Remove the key from ``text``, in any spelling. Scrub before truncating."""
        for spelling in self._spellings():
            text = text.replace(spelling, REDACTED)
        return text

    def redact(self, value: Any, written: str) -> Any:
        """Remove the key from all strings of a reply. ``written`` is its JSON.

        A string can differ from its JSON only if there is a backslash, so most replies need no second look.
        """
        if self._is_word or ("\\" not in written and not self._is_in(written)):
            return value
        return self._redacted(value)

    def redact_tokens(self, tokens: Sequence[str]) -> tuple[str, ...]:
        """Remove tokens that together spell out the key."""
        text = "".join(tokens)
        if self._is_word or not self._is_in(text):
            return tuple(tokens)
        hidden = bytearray(len(text))  # 1 for every character of a key: a reply may have thousands of both
        for spelling in self._spellings():
            at = text.find(spelling)
            while at >= 0:
                hidden[at : at + len(spelling)] = b"\1" * len(spelling)
                at = text.find(spelling, at + 1)
        redacted, start = [], 0
        for token in tokens:
            end = start + len(token)
            redacted.append(REDACTED if 1 in hidden[start:end] else token)
            start = end
        return tuple(redacted)

    def _is_in(self, text: str) -> bool:
        return any(spelling in text for spelling in self._spellings())

    def _redacted(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.scrub(value)
        if isinstance(value, list):
            return [self._redacted(one) for one in value]
        if isinstance(value, dict):
            return {self.scrub(name): self._redacted(one) for name, one in value.items()}
        return value

    def __repr__(self) -> str:
        return f"ApiKey({REDACTED})"

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is neither stored nor sent to another process")


def find_key(host: str, variable: str | None = None, *, encrypted: bool = True) -> ApiKey | None:
    """Find the key for a host, or None. ``variable`` names the only environment variable to read instead.

    ``encrypted``: the address is https. OpenAI's own key is never sent otherwise, unless ``variable`` names it.
    """
    names = [OWN_VARIABLE, OPENAI_VARIABLE] if encrypted and host == OPENAI_HOST else [OWN_VARIABLE]
    name = next((name for name in (names if variable is None else [variable]) if os.environ.get(name, "").strip()), "")
    if variable is not None and not name:
        raise ModelError(
            f"the environment variable {variable} is empty or not set",
            expected="the key for the endpoint in it, since key_variable names it",
        )
    if name and not _fits_header(name):
        raise ModelError(
            f"the key in the environment variable {name} has characters that no key has",
            expected="printable ASCII without blanks",
            remedy="copy the key again",
        )
    return ApiKey(os.environ[name].strip()) if name else None


def _fits_header(name: str) -> bool:
    """Tell if a header can carry the key. Separate, so that no traceback has the key among its variables."""
    key = os.environ[name].strip()
    return key.isascii() and key.isprintable() and " " not in key
