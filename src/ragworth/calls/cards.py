"""The cards of models in a store, as JSON."""

from __future__ import annotations

import json
from math import isfinite

from ragworth.calls.serialization import DECODE_ERRORS, model_digest
from ragworth.llm.contract import ABILITIES, Card

NOT_STORED = ("abilities", "notes", "cuts")
"""Fields of a card that aren't stored as they are."""


def card_from_row(digest: object, text: object) -> Card | None:
    """Parse a stored card; None if it is damaged or another model's."""
    try:
        card = card_from_json(str(text))
        return card if model_digest(card) == digest else None
    except DECODE_ERRORS:
        return None


def card_to_json(card: Card) -> str:
    facts = {name: getattr(card, name) for name in card.__slots__ if name not in NOT_STORED}
    return json.dumps(facts | {"abilities": sorted(card.abilities)}, sort_keys=True)


def card_from_json(text: str) -> Card:
    """Parse a stored card. Raises one of `DECODE_ERRORS` if a value is none that a card can have."""
    facts = json.loads(text)
    abilities, length, declining = frozenset(facts.pop("abilities")), facts["context_length"], facts["declining"]
    names = [value for name, value in facts.items() if name not in ("context_length", "declining")]
    if (
        not abilities <= set(ABILITIES)
        or not all(isinstance(name, str) for name in names)
        or not (length is None or (isinstance(length, int) and length > 0))
        or not (declining is None or (isfinite(declining) and declining > 0))
    ):
        raise ValueError("a value of the card is damaged")
    return Card(**facts, abilities=abilities)
