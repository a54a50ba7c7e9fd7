"""What the reader is taught and chosen by: a prompt, what it is to say, and which of the parts it belongs to."""

from __future__ import annotations

from typing import Any, NamedTuple

TRAIN, HELD_OUT, DEV = "train", "held-out", "dev"
"""Parts of the examples: to learn from, to choose by, and to choose by from other sources."""

CONTEXTS = ("context with gold", "context without", "reply")
"""Kinds of examples with several passages."""

ALL_PARTS, SOME_PARTS = "all parts", "some parts"
TABLE, TABLE_WITHOUT = "table", "table without"
FAQ = "FAQ"
CONTRADICTED, OTHER_YEAR = "contradicted", "another year"
"""Kinds of the wider recipe: answers spread over passages, tables, FAQs, contradictions and other years."""

MADE = ("made question", "made question, no answer", "invented", "invented near miss")
"""Kinds of examples with questions that nobody asked."""

WRITTEN = "written"
"""How the kinds begin of examples from passages that were written for the reader."""


class Example(NamedTuple):
    """A prompt by its name and slots, the answer, and what kind of example it is."""

    prompt: str
    values: dict[str, Any]
    answer: str
    kind: str


def source(kind: str, part: str) -> str | None:
    """What an example counts to when a reader is chosen: None for those to learn from, and for several passages.

    Examples of other sources have theirs in the name of their kind. Questions that nobody asked do not count, but for
    those that were written with their passages, which count by themselves.
    """
    if part == DEV:
        return kind.partition(",")[0]
    if part != HELD_OUT or kind in (*CONTEXTS, *MADE):
        return None
    return WRITTEN if kind.startswith(WRITTEN) else HELD_OUT
