"""Find the passages that a log knows to be relevant among those that it shows, by their ids or texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ragworth.collection import plain_text, text_id
from ragworth.formats.log_record import LoggedPassage

MIN_CONTAINED = 30
"""Characters of the shorter of two texts at least, if one is said to be part of the other."""


class FoundReferences(NamedTuple):
    """Pairs of query and relevant passage, the texts of passages that were not shown, and how many were."""

    relevant: list[tuple[str, str]]
    unseen: dict[str, str]
    hits: int
    total: int


def find_references(
    references: Mapping[str, Sequence[LoggedPassage]], shown: Mapping[str, Mapping[str, str]]
) -> FoundReferences:
    """Find the reference passages of each query among the passages ``shown``: their plain texts by name."""
    relevant: list[tuple[str, str]] = []
    unseen: dict[str, str] = {}
    hits = total = 0
    for query, passages in references.items():
        for passage in dict.fromkeys(passages):
            found = _find_shown(passage, shown.get(query, {}))
            hits, total = hits + bool(found), total + 1
            relevant += [(query, name) for name in found]
            if not found:
                name = passage.id if passage.id is not None else text_id(passage.text or "")
                relevant.append((query, name))
                unseen |= {name: passage.text} if passage.text is not None else {}
    return FoundReferences(relevant, unseen, hits, total)


def _find_shown(passage: LoggedPassage, shown: Mapping[str, str]) -> list[str]:
    """The names of a passage that is known to be relevant among those shown, by id or text.

    A log may cut its passages. Where several begin like the passage, nothing says which of them it is.
    """
    wanted = plain_text(passage.text or "")
    found = [name for name, text in shown.items() if passage.id == name or _is_same(wanted, text)]
    beginnings = {name: cut for name, text in shown.items() if name not in found and (cut := _cut_text(text))}
    alike = Counter(beginnings.values())
    return found + [name for name, cut in beginnings.items() if wanted.startswith(cut) and alike[cut] == 1]


def _is_same(wanted: str, text: str) -> bool:
    """Whether two texts are the same, or one contains the other."""
    if not wanted or not text:
        return False
    return wanted == text or (min(len(wanted), len(text)) >= MIN_CONTAINED and (wanted in text or text in wanted))


def _cut_text(text: str) -> str:
    """The beginning of a text that a log has cut; nothing if it is whole, or too short to say which it is."""
    start = text.removesuffix("…").removesuffix("...").rstrip()
    return start if start != text and len(start) >= MIN_CONTAINED else ""
