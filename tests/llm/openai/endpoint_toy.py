"""A language model of no sense whatever, for tests: few tokens, and every probability known exactly."""

from __future__ import annotations

import math
import random
import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

SPECIALS = ("<|bos|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>")
WORDS = (
    "Yes",
    "No",
    "Yesterday",
    "Maybe",
    "zebra",
    " Paris",
    " the",
    " a",
    " is",
    "One",
    ", ",
    "two",
    "three",
    " four",
)

PIECES: tuple[bytes, ...] = tuple(piece.encode() for piece in (*SPECIALS, *WORDS)) + tuple(
    bytes([byte]) for byte in range(256)
)
"""All tokens; the id of each is its place. Any text can be put into them, byte by byte if need be."""

END = SPECIALS.index("<|end|>")
_IDS = {piece: number for number, piece in enumerate(PIECES)}
_LONGEST = max(map(len, PIECES))


class Made(NamedTuple):
    """Tokens that were generated, and why they ended."""

    ids: list[int]
    finish: str


def encode(text: str, *, bos: bool = False) -> list[int]:
    """Token ids, always the longest piece that fits."""
    data, at, ids = text.encode(), 0, [0] if bos else []
    while at < len(data):
        size = next(size for size in range(_LONGEST, 0, -1) if data[at : at + size] in _IDS)
        ids.append(_IDS[data[at : at + size]])
        at += size
    return ids


def decode(ids: Sequence[int]) -> str:
    return b"".join(PIECES[one] for one in ids).decode("utf-8", "replace")


def template(messages: list[dict[str, str]]) -> str:
    """The text of a chat, without BOS, up to where the assistant's turn begins."""
    return "".join(f"<|{one['role']}|>{one['content']}<|end|>" for one in messages) + "<|assistant|>"


@lru_cache(maxsize=4096)
def _logprobs(ids: tuple[int, ...]) -> tuple[float, ...]:
    chance = random.Random(zlib.crc32(repr(ids).encode()))
    logits = [chance.gauss(0, 2.5) - (0 if piece.isalnum() or b" " in piece else 8) for piece in PIECES]
    total = math.log(math.fsum(map(math.exp, logits)))
    return tuple(logit - total for logit in logits)


def logprobs(ids: Sequence[int]) -> tuple[float, ...]:
    """The log-probability of every token to come next."""
    return _logprobs(tuple(ids))


def entropy(ids: Sequence[int]) -> float:
    """The true entropy of what comes next, in nats."""
    return -math.fsum(math.exp(value) * value for value in logprobs(ids))


def likeliest(ids: Sequence[int], most: int) -> list[int]:
    values = logprobs(ids)
    return sorted(range(len(values)), key=lambda one: -values[one])[:most]


def generate(ids: Sequence[int], most: int, temperature: float = 0.0, seed: int = 0) -> Made:
    """Go on greedily, or by chance."""
    chance = random.Random(seed)
    made: list[int] = []
    for _ in range(most):
        context = [*ids, *made]
        if temperature > 0:
            weights = [math.exp(value / temperature) for value in logprobs(context)]
            token = chance.choices(range(len(weights)), weights)[0]
        else:
            token = likeliest(context, 1)[0]
        if token == END:
            return Made(made, "stop")
        made.append(token)
    return Made(made, "length")
