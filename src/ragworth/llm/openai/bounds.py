"""What can be said when only the likeliest tokens of a distribution are visible: bounds, not guesses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ragworth.llm.contract import Trace
from ragworth.llm.openai.protocol import GeneratedToken, TokenLogprob

DEFAULT_VOCABULARY = 300_000
"""Taken for the size of a vocabulary that nobody tells: more than any model in use has, so that bounds hold."""


class EntropyBounds(NamedTuple):
    low: float
    high: float


class LabelShares(NamedTuple):
    """A probability for each label, and the least and the greatest that it can have."""

    probabilities: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


def entropy_bounds(top: Sequence[float], vocabulary: int, others: Iterable[float] = ()) -> EntropyBounds:
    """Least and greatest entropy, in nats, of a distribution whose likeliest tokens are visible.

    ``top`` are the log-probabilities of the likeliest tokens, ``others`` those of tokens that are known
    besides and are less likely. What is hidden sums to m, and no hidden token is likelier than the least
    likely of ``top``, c. Entropy is least when m is packed into as few tokens as that allows (m / c of them
    with probability c, and one with the rest), and greatest when it is spread evenly over all tokens not seen.
    """
    seen = [math.exp(value) for value in (*top, *others)]
    visible = sum(_entropy_term(p) for p in seen)
    hidden = max(0.0, 1.0 - math.fsum(seen))
    most = math.exp(min(top))
    if hidden <= 0.0 or most < 1e-300:  # a quotient by less would overflow
        return EntropyBounds(visible, visible)
    full = math.floor(hidden / most)
    low = visible + full * _entropy_term(most) + _entropy_term(max(0.0, hidden - full * most))
    unseen = max(vocabulary - len(seen), math.ceil(hidden / most), 1)
    return EntropyBounds(low, max(low, visible + unseen * _entropy_term(hidden / unseen)))


def _entropy_term(p: float) -> float:
    return -p * math.log(p) if p > 0 else 0.0


def build_trace(steps: Sequence[GeneratedToken], vocabulary: int) -> Trace:
    """The tokens of an output with their log-probabilities, and entropy bounds where the likeliest ones are shown."""
    bounds = None
    if all(step.top for step in steps):
        bounds = tuple(
            entropy_bounds([one.logprob for one in step.top], vocabulary, _own_if_hidden(step)) for step in steps
        )
    return Trace(tuple(s.token.text for s in steps), tuple(s.token.logprob for s in steps), None, bounds)


def _own_if_hidden(step: GeneratedToken) -> list[float]:
    """The log-probability of the token itself, where it is not among the likeliest."""
    among = any(_is_same_token(step.token, other) for other in step.top)
    return [] if among or step.token.logprob > min(one.logprob for one in step.top) else [step.token.logprob]


def _is_same_token(one: TokenLogprob, other: TokenLogprob) -> bool:
    return (one.id, one.text) == (other.id, other.text)


def exact_shares(values: Sequence[float]) -> LabelShares:
    """Probabilities that are known for certain."""
    return LabelShares(tuple(values), tuple(values), tuple(values))


def shares_by_text(labels: Sequence[str], visible: Sequence[TokenLogprob]) -> LabelShares:
    """Probabilities of labels by their first token, where nobody tells how labels fall into tokens.

    A visible token that is the whole label is its first token. Where none is, the longest that the label begins
    with is taken for it; that is a guess, so the label may have nothing, or as much as any token it begins with,
    or what a single hidden token can have. A token that several labels begin with says nothing of one alone.
    """
    found = [_label_share(label, labels, visible) for label in labels]
    return LabelShares(*(tuple(column) for column in zip(*found, strict=True)))


def _label_share(label: str, labels: Sequence[str], visible: Sequence[TokenLogprob]) -> tuple[float, float, float]:
    """Probability, least and greatest."""
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
    """Whether a label may begin with a token that ends within a character, where a sign of its own is shown."""
    whole = text.rstrip("\ufffd")
    after = label[len(whole) : len(whole) + 1]
    return whole != text and label.startswith(whole) and after != "" and not after.isascii()


def share_of_token(token: int, visible: Sequence[TokenLogprob]) -> float | None:
    """The probability of a token by its id; None where it is not shown."""
    return next((math.exp(one.logprob) for one in visible if one.id == token), None)


def _max_hidden_share(visible: Sequence[TokenLogprob]) -> float:
    """The most that a single hidden token can have."""
    shown = [math.exp(one.logprob) for one in visible]
    return min(max(0.0, 1.0 - math.fsum(shown)), min(shown, default=1.0))
