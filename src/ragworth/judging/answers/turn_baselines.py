"""Search texts of turns by rule: what a rewriter has to beat."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ragworth.data.conversations import Turn


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
"""Rules that need nothing but the turn. `ragworth.retrieval.history_terms` needs the passages too."""
