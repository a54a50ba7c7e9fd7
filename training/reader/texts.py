"""Small changes to texts: sentences, snippets, other answers, other ways to put a question."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

_END = re.compile(r"(?<=[.!?])[\"')\]]?\s+(?=[\"'(\[]?[A-Z0-9])")
_QUESTION = re.compile(
    r"^(who|what|when|where|which|why|how (many|much|long|old|far|often|tall|big)|how|whose|whom)\b\s*", re.I
)
MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_MONTH = re.compile(rf"\b({MONTHS})\b")
_FILLER = {"is", "was", "are", "were", "did", "does", "do", "the", "a", "an", "in", "of", "has", "have", "had", "be"}
OPENERS = (
    "Can you tell me {}?",
    "I was wondering, {}?",
    "Hey, do you know {}?",
    "Quick question: {}?",
    "Thanks. And {}?",
)


def sentences(text: str) -> list[str]:
    """A text split at the ends of its sentences."""
    return [part.strip() for part in _END.split(text) if part and part.strip()]


def holds(answers: Sequence[str], text: str) -> str | None:
    """The shortest accepted answer that a text has, as the text spells it."""
    for answer in sorted(answers, key=len):
        match = re.search(rf"(?<!\w){re.escape(answer.strip())}(?!\w)", text, re.I)
        if answer.strip() and match:
            return match[0]
    return None


def without(answers: Sequence[str], text: str) -> str | None:
    """The text without the sentences that have an answer; None where too little is left, or an answer still is."""
    left = " ".join(part for part in sentences(text) if holds(answers, part) is None)
    return left if len(left.split()) >= 12 and holds(answers, left) is None else None


def snippet(text: str, around: str | None, draw: random.Random) -> str:
    """A piece of a text, as search engines show it: some words around a place, dots where something is left out.

    ``around`` is kept whole where it stands in the text for the first time.
    """
    words = text.split()
    size = draw.randint(18, 45)
    if len(words) <= size:
        return text
    start = max(0, min(len(words) - size, draw.randrange(len(words)) - size // 2))
    if around is not None and (match := re.search(rf"(?<!\w){re.escape(around)}(?!\w)", text, re.I)):
        first, last = len(text[: match.start() + 1].split()) - 1, len(text[: match.end()].split()) - 1
        size = max(size, last - first + 1)
        start = max(0, min(len(words) - size, first, draw.randint(min(first, last - size + 1), first)))
    piece = " ".join(words[start : start + size])
    front = "... " if start > 0 and draw.random() < 0.6 else ""
    end = " ..." if start + size < len(words) and draw.random() < 0.8 else ""
    return f"{front}{piece}{end}"


def replaced(text: str, answer: str, other: str) -> str | None:
    """The text with another answer in the place of its own, wherever that stands."""
    changed, times = re.subn(rf"(?<!\w){re.escape(answer)}(?!\w)", lambda _: other, text, flags=re.I)
    return changed if times else None


def renamed(question: str, passage: str, title: str, name: str) -> tuple[str, str] | None:
    """Question and passage with a name in the place of what both are about; None where one of them does not name it.

    Titles of one word are left alone: their plurals and derivations would go on telling what the passage is about.
    """
    about = title.partition(" (")[0].strip()
    if " " not in about:
        return None
    changed = [replaced(text, about, name) for text in (question, passage)]
    return (changed[0], changed[1]) if changed[0] is not None and changed[1] is not None else None


def keywords(question: str) -> str:
    """A question as people type it into a search box."""
    bare = _QUESTION.sub("", question.strip().rstrip("?"))
    words = [word for word in bare.split() if word.lower() not in _FILLER]
    return " ".join(words) if len(words) >= 2 else question


def styled(question: str, draw: random.Random) -> str:
    """The question in one of the styles that people use: as it is, as a sentence, as key words, in a conversation."""
    question = question.strip().rstrip("?").strip()
    kind = draw.random()
    if kind < 0.35:
        return question
    if kind < 0.65:
        return question[:1].upper() + question[1:] + "?"
    if kind < 0.85:
        return keywords(question)
    return draw.choice(OPENERS).format(question)


def kind_of(answer: str) -> str:
    """A coarse kind, so that an answer is replaced by one of its like."""
    if re.fullmatch(r"[\d,.]+", answer):
        return "year" if re.fullmatch(r"1[5-9]\d\d|20\d\d", answer) else "number"
    if re.search(r"\d", answer):
        return "date" if _MONTH.search(answer) else "measure"
    return f"{'name' if answer[:1].isupper() else 'words'}{min(3, len(answer.split()))}"
