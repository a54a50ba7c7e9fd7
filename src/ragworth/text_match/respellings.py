"""Write a text and an accepted answer in the same spelling: of names, codes and opening hours."""

from __future__ import annotations

from collections.abc import Iterator

from ragworth.text_match.codes import with_codes
from ragworth.text_match.opening_hours import with_plain_hours
from ragworth.text_match.person_names import with_full_name
from ragworth.text_match.place_names import with_place_names
from ragworth.text_match.variants import full_names


def respellings(text: str, answer: str, question: str) -> Iterator[tuple[str, str, str]]:
    """A text and an answer in each common spelling that changes one of them, with what the text then has."""
    pairs = (
        (full_names(text), full_names(answer), "has the full name, or its abbreviation, of"),
        (*with_place_names(text, answer), "has another name of the place"),
        (with_codes(text, answer), answer, "has another spelling of"),
        (with_plain_hours(text), with_plain_hours(answer), "has the times of"),
        (with_full_name(text, answer, question), answer, "has the surname of"),
    )
    yield from (pair for pair in pairs if pair[:2] != (text, answer))
