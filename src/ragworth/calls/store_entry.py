"""A stored call."""

from __future__ import annotations

import zlib
from typing import NamedTuple

from ragworth.calls.serialization import DECODE_ERRORS, request_from_json
from ragworth.llm.contract import Card, Request

MAX_REQUEST_SIZE = 1 << 28
"""Maximum bytes of a stored request, decompressed."""


class StoreEntry(NamedTuple):
    """A stored call: ``response`` is JSON; ``packed`` is its request, None if prompts weren't stored.

    ``intact``: the seal matches. Otherwise the other fields may be anything.
    """

    key: bytes
    model: Card | None
    kind: str
    response: str
    made: object
    intact: bool
    packed: bytes | None

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
            raise ValueError(f"its request can't be read ({error})") from error
