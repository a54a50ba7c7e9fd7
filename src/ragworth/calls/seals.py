"""Seals: short hashes that show whether a stored answer was changed after it was written.

A seal covers the key, the kind and the response. The key is itself a hash of the model and the request, so an answer
moved to another call or model doesn't match its seal. Seals detect accidents and careless edits. They don't protect
against somebody who computes new ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

SEAL_SIZE = 8


def seal(key: bytes, kind: str, response: str) -> bytes:
    return blake2b(response.encode(), key=key, person=kind.encode(), digest_size=SEAL_SIZE).digest()


def is_intact(row: Sequence[Any]) -> bool:
    """Whether a row (key, kind, response, seal), read as bytes of any type, is unchanged."""
    key, kind, response, found = row
    try:
        return bool(blake2b(response, key=key, person=kind, digest_size=SEAL_SIZE).digest() == found) and len(key) > 0
    except (TypeError, ValueError):  # not bytes, or too long for a key or a kind
        return False


def all_intact(rows: Sequence[Sequence[Any]]) -> bool:
    """`is_intact` for thousands of rows, as fast as possible."""
    try:
        for key, kind, response, found in rows:
            if blake2b(response, key=key, person=kind, digest_size=SEAL_SIZE).digest() != found:
                return False
    except (TypeError, ValueError):
        return False
    return True


def card_seal(facts: Mapping[str, Any]) -> str:
    """Seal of a model's card, stored among the card's fields."""
    text = json.dumps(dict(facts), sort_keys=True)
    return blake2b(text.encode(), person=b"card", digest_size=SEAL_SIZE).hexdigest()
