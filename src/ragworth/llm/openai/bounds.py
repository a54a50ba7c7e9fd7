"""Bounds on probabilities and entropies if only the likeliest tokens of a distribution are visible."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ragworth.llm.contract import Trace
from ragworth.llm.openai.replies import GeneratedToken, TokenLogprob

DEFAULT_VOCABULARY = 300_000
"""Assumed size of an unknown vocabulary: more than any model in use has, so that bounds hold."""


class LabelShares(NamedTuple):
    """A probability for each label, with lower and upper bounds."""

    probabilities: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


def entropy_bounds(top: Sequence[float], vocabulary: int, others: Iterable[float] = ()) -> tuple[float, float]:
    """Bounds of the entropy, in nats, of a distribution whose likeliest tokens are visible.

    ``top`` are the log-probabilities of the likeliest tokens, ``others`` those of other known tokens, which are less
    likely. The hidden probabilities sum to m, and no hidden token is likelier than the least likely of ``top``, c.
    Entropy is lowest if m is packed into as few tokens as possible (m / c of them with probability c, and one with the
    rest), and highest if it is spread evenly over all hidden tokens.
    """
    seen = [math.exp(value) for value in (*top, *others)]
    visible = sum(_entropy_term(p) for p in seen)
    hidden = max(0.0, 1.0 - math.fsum(seen))
    most = math.exp(min(top))
    if hidden <= 0.0 or most < 1e-300:  # dividing by less would overflow
        return visible, visible
    full = math.floor(hidden / most)
    low = visible + full * _entropy_term(most) + _entropy_term(max(0.0, hidden - full * most))
    unseen = max(vocabulary - len(seen), math.ceil(hidden / most), 1)
    return low, max(low, visible + unseen * _entropy_term(hidden / unseen))


def _entropy_term(p: float) -> float:
    return -p * math.log(p) if p > 0 else 0.0


def build_trace(steps: Sequence[GeneratedToken], vocabulary: int) -> Trace:
    """The tokens of an output with their log-probabilities, and entropy bounds if the likeliest ones are shown."""
    bounds = None
    if all(step.top for step in steps):
        bounds = tuple(
            entropy_bounds([one.logprob for one in step.top], vocabulary, _own_if_hidden(step)) for step in steps
        )
    return Trace(tuple(s.token.text for s in steps), tuple(s.token.logprob for s in steps), None, bounds)


def _own_if_hidden(step: GeneratedToken) -> list[float]:
    """The log-probability of the token itself, if it isn't among the likeliest."""
    among = any((step.token.id, step.token.text) == (other.id, other.text) for other in step.top)
    return [] if among or step.token.logprob > min(one.logprob for one in step.top) else [step.token.logprob]


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
