"""Small changes to texts: sentences, snippets, other answers, other ways to put a question."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

_END = re.compile(r"(?<=[.!?])[\"')\]]?\s+(?=[\"'(\[]?[A-Z0-9])")
_QUESTION = re.compile(
    r"^(who|what|when|where|which|why|how (many|much|long|old|far|often|tall|big)|how|whose|whom)\b\s*", re.I
)
_MONTH = re.compile(r"\b(January|February|March|April|May|June|July|August|September|October|November|December)\b")
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
    """A piece of a text, as search engines show it: some words around a place, dots where something is left out."""
    words = text.split()
    size = draw.randint(18, 45)
    if len(words) <= size:
        return text
    middle = draw.randrange(len(words))
    if around is not None:
        before = text[: text.lower().find(around.lower())]
        middle = len(before.split()) + draw.randint(-6, 6)
    start = max(0, min(len(words) - size, middle - size // 2))
    if around is not None and draw.random() < 0.3:
        start = max(0, start - start % 5)
    piece = " ".join(words[start : start + size])
    front = "... " if start > 0 and draw.random() < 0.6 else ""
    end = " ..." if start + size < len(words) and draw.random() < 0.8 else ""
    return f"{front}{piece}{end}"


def replaced(text: str, answer: str, other: str) -> str | None:
    """The text with another answer in the place of its own, wherever that stands."""
    changed, times = re.subn(rf"(?<!\w){re.escape(answer)}(?!\w)", lambda _: other, text, flags=re.I)
    return changed if times else None


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
