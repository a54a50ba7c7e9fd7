"""API keys: where they are looked for, to whom they may go, and how they are kept out of everything else.

A key is read from the environment and from nowhere else. ``RAGWORTH_API_KEY`` goes to whatever endpoint the
user names; ``OPENAI_API_KEY``, which many people have set for other programs, only to OpenAI's own host.
"""

from __future__ import annotations

import json
import os
from typing import NoReturn
from urllib.parse import quote

from ragworth.errors import ModelError

OWN, OPENAI = "RAGWORTH_API_KEY", "OPENAI_API_KEY"
OPENAI_HOST = "api.openai.com"

HIDDEN = "[key]"
"""What stands where a key was."""


class Secret:
    """A key that shows itself to nobody but `header`.

    The value lives in a closure and not in an attribute, so that neither ``repr`` nor a debugger's or a
    traceback's list of attributes and local variables has it.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        def reveal() -> str:
            return value

        self._value = reveal

    def header(self) -> str:
        """What goes into the header ``Authorization``. For the one place that sends it."""
        return f"Bearer {self._value()}"

    def scrub(self, text: str) -> str:
        """``text`` without the key, as it is or as JSON and URLs write it. Scrub first, cut to length after."""
        value = self._value()
        for form in {value, json.dumps(value)[1:-1], quote(value, safe="")}:
            text = text.replace(form, HIDDEN)
        return text

    def __repr__(self) -> str:
        return f"Secret({HIDDEN})"

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is neither stored nor sent to another process")


def find_key(host: str, variable: str | None = None, *, encrypted: bool = True) -> Secret | None:
    """The key for a host, or None. ``variable`` names the one environment variable to look at instead.

    ``encrypted``: the address is https. OpenAI's own key never travels otherwise, unless ``variable`` names it.
    """
    if variable is not None and not os.environ.get(variable, "").strip():
        raise ModelError(
            f"the environment variable {variable} is empty or not set",
            expected="the key for the endpoint in it, since key_variable names it",
        )
    names = [variable] if variable is not None else [OWN, OPENAI] if encrypted and host == OPENAI_HOST else [OWN]
    name = next((name for name in names if os.environ.get(name, "").strip()), None)
    if name is None:
        return None
    if not _sendable(name):
        raise ModelError(
            f"the key in the environment variable {name} has characters that no key has",
            expected="printable ASCII without blanks",
            remedy="copy the key again",
        )
    return Secret(os.environ[name].strip())


def _sendable(name: str) -> bool:
    """Whether a header can carry the key. Apart, so that no error's traceback has it among its variables."""
    key = os.environ[name].strip()
    return key.isascii() and key.isprintable() and " " not in key
