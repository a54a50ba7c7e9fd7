"""The cards of models in a store, as JSON with a seal."""

from __future__ import annotations

import json

from ragworth.calls.seals import card_seal
from ragworth.calls.serialization import DECODE_ERRORS, model_digest
from ragworth.llm.contract import Card


def card_from_row(digest: object, text: object) -> Card | None:
    """Parse a stored card; None if it is damaged or another model's."""
    try:
        card = card_from_json(str(text))
        return card if model_digest(card) == digest else None
    except DECODE_ERRORS:
        return None


def card_to_json(card: Card) -> str:
    facts = {name: getattr(card, name) for name in card.__slots__ if name not in ("abilities", "notes", "cuts")}
    facts["abilities"] = sorted(card.abilities)
    return json.dumps(facts | {"seal": card_seal(facts)}, sort_keys=True)


def card_from_json(text: str) -> Card:
    """Parse a stored card. Ignores fields of later versions and fills in those missing in earlier ones. Raises
    ValueError if the card is damaged.
    """
    kept = json.loads(text)
    mark = kept.pop("seal", None)  # cards of earlier versions have none
    if mark is not None and mark != card_seal(kept):
        raise ValueError("the card changed after it was written")
    facts = {name: value for name, value in kept.items() if name in Card.__slots__}
    return Card(**(facts | {"abilities": frozenset(facts["abilities"])}))
