"""Search texts of turns by rule: what a rewriter has to beat."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from ragworth.conversations import Turn

TERM = re.compile(r"\w+")
HISTORY_TERMS = 5
"""Terms of the history that ``history-terms`` adds."""


def last_turn(turn: Turn) -> str:
    """The turn as the user typed it."""
    return turn.question


def all_turns(turn: Turn) -> str:
    """Everything the user said so far."""
    return " ".join(turn.user_messages)


def first_and_last(turn: Turn) -> str:
    """The first turn of the conversation, which often names its topic, and this one."""
    said = turn.user_messages
    return " ".join(said if len(said) < 2 else (said[0], said[-1]))


def human_rewrite(turn: Turn) -> str | None:
    """The rewrite that a person wrote, if there is one."""
    return turn.rewrite


BASELINES: Mapping[str, Callable[[Turn], str | None]] = {
    "last": last_turn,
    "all": all_turns,
    "first+last": first_and_last,
    "human": human_rewrite,
}
"""Rules that need nothing but the turn; `add_history_terms` needs the passages too."""


def add_history_terms(turns: Sequence[Turn], passages: Sequence[str], number: int = HISTORY_TERMS) -> list[str]:
    """Each turn with the rarest terms of its history.

    Terms of all messages before the turn that it lacks, ranked by how often the history has them times their idf,
    log(N / n), among the passages. Terms in none of the passages can't help and are left out; ties go by the alphabet.
    """
    frequency: Counter[str] = Counter()
    for passage in passages:
        frequency.update(set(_terms(passage)))
    return [_with_terms(turn, frequency, len(passages), number) for turn in turns]


def _with_terms(turn: Turn, frequency: Mapping[str, int], passages: int, number: int) -> str:
    own = set(_terms(turn.question))
    counts = Counter(term for message in turn.history for term in _terms(message.text))
    weights = {
        term: count * math.log(passages / frequency[term])
        for term, count in counts.items()
        if term not in own and frequency.get(term)
    }
    best = sorted((term for term, weight in weights.items() if weight > 0), key=lambda term: (-weights[term], term))
    return " ".join([turn.question, *best[:number]])


def _terms(text: str) -> list[str]:
    return TERM.findall(text.casefold())
