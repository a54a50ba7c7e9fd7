"""Cut documents at the ends of sentences: long ones into pieces for the writer, or straight into passages."""

from __future__ import annotations

from itertools import pairwise

from ragworth.text_match.sentences import sentence_starts

LONGEST = 1024
"""Words of a document that is shown to the writer as a whole."""

PIECE = 512
"""Words of the pieces that a longer document is cut into."""

PASSAGE = 200
"""Words of a passage."""


def pieces(text: str) -> list[str]:
    """A document for the writer: as a whole, or in pieces of about 512 words if it has more than 1,024."""
    return [text.strip()] if len(text.split()) <= LONGEST else cut(text, PIECE)


def cut(text: str, size: int) -> list[str]:
    """Parts of at most ``size`` words that end with a sentence. A longer sentence is cut between its words.

    A last part of less than a quarter of the size joins the one before.
    """
    starts = sentence_starts(text)
    sentences = [text[start:end].strip() for start, end in pairwise([*starts, len(text)])]
    parts: list[list[str]] = []
    for sentence in sentences:
        words = sentence.split()
        for at in range(0, len(words), size):
            some = words[at : at + size]
            if parts and len(parts[-1]) + len(some) <= size:
                parts[-1] += some
            else:
                parts.append(some)
    if len(parts) > 1 and len(parts[-1]) < size / 4:
        last = parts.pop()
        parts[-1] += last
    return [" ".join(part) for part in parts]
