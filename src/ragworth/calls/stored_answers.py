"""Answers as a store has them. They are checked whenever they are read, by the code that checks a model's replies."""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

from ragworth.calls.serialization import DECODE_ERRORS, request_from_json, response_from_json
from ragworth.core.errors import quote_short
from ragworth.executors.checks import check_outcome
from ragworth.llm.contract import Card, Failure, Request, Response

MAX_REQUEST_SIZE = 1 << 28
"""Maximum bytes of a stored request, decompressed."""


def read_answer(kind: object, text: Any, request: Request | None) -> Response | Failure:
    """Return a stored answer, or the failure ``malformed`` if no model can have given it to this request."""
    try:
        response = response_from_json(str(kind), text)
    except DECODE_ERRORS:
        return Failure("malformed", f"it can't be read as an answer of the kind {quote_short(kind)}")
    return check_outcome(request, response)


class StoreEntry(NamedTuple):
    """A stored call: ``text`` is its answer as JSON; ``packed`` is its request, None if prompts weren't stored.

    The file may be damaged, so all but the key and the model may be anything.
    """

    key: bytes
    model: Card | None
    kind: object
    text: object
    made: object
    packed: Any

    def answer(self) -> Response | Failure:
        """The answer, checked against the request if that was stored and can be read."""
        try:
            request = self.request()
        except ValueError:
            request = None
        return read_answer(self.kind, self.text, request)

    def request(self) -> Request | None:
        """The request. Raises ValueError if it can't be read."""
        if self.packed is None:
            return None
        try:
            unpacking = zlib.decompressobj()
            text = unpacking.decompress(self.packed, MAX_REQUEST_SIZE)
            if not unpacking.eof:
                raise ValueError("it is truncated, or too large")
            return request_from_json(text.decode())
        except DECODE_ERRORS as error:
            raise ValueError(f"its prompt can't be read ({error})") from error
