"""Bounds on probabilities of labels if only the likeliest tokens of a distribution are visible."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ragworth.llm.openai.protocol import TokenLogprob


class LabelShares(NamedTuple):
    """A probability for each label, with lower and upper bounds."""

    probabilities: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


def exact_shares(values: Sequence[float]) -> LabelShares:
    return LabelShares(tuple(values), tuple(values), tuple(values))


def shares_by_text(labels: Sequence[str], visible: Sequence[TokenLogprob]) -> LabelShares:
    """Probabilities of labels by their first token, if the tokenization of labels is unknown.

    A visible token equal to the whole label is its first token. Otherwise the longest token that the label begins with
    is assumed to be; since that is a guess, the label's probability may be 0, that of any token it begins with, or that
    of a single hidden token. A token that several labels begin with says nothing about any of them.
    """
    found = [_label_share(label, labels, visible) for label in labels]
    return LabelShares(*(tuple(column) for column in zip(*found, strict=True)))


def _label_share(label: str, labels: Sequence[str], visible: Sequence[TokenLogprob]) -> tuple[float, float, float]:
    """Probability, lower and upper bound."""
    starts: dict[str, float] = {}
    for one in visible:
        if one.text and label.startswith(one.text):
            starts[one.text] = starts.get(one.text, 0.0) + math.exp(one.logprob)
    longest = max(starts, key=len, default="")
    most = max(
        [*starts.values(), *(math.exp(one.logprob) for one in visible if _may_split_character(one.text, label))],
        default=0.0,
    )
    if not starts:
        return 0.0, 0.0, max(most, _max_hidden_share(visible))
    if sum(other.startswith(longest) for other in labels) > 1:
        return 0.0, 0.0, most
    share = starts[longest]
    return (share, share, share) if longest == label else (share, 0.0, most)


def _may_split_character(text: str, label: str) -> bool:
    """Whether a label may begin with a token that ends within a character, shown as a replacement character."""
    whole = text.rstrip("\ufffd")
    after = label[len(whole) : len(whole) + 1]
    return whole != text and label.startswith(whole) and after != "" and not after.isascii()


def share_of_token(token: int, visible: Sequence[TokenLogprob]) -> float | None:
    """The probability of a token by its id; None if it isn't shown."""
    return next((math.exp(one.logprob) for one in visible if one.id == token), None)


def _max_hidden_share(visible: Sequence[TokenLogprob]) -> float:
    """Highest possible probability of a single hidden token."""
    shown = [math.exp(one.logprob) for one in visible]
    return min(max(0.0, 1.0 - math.fsum(shown)), min(shown, default=1.0))
