"""Conversations: queries that are turns, with what was said before them.

A turn is a query of the collection. ``Collection.queries`` has the turn as the user typed it, ``Collection.turns`` its
place in the conversation, the history, and a human rewrite if there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ragworth.collection import Collection
from ragworth.errors import InputError, format_count, format_list, quote_short

Role = Literal["user", "assistant"]


@dataclass(frozen=True)
class Message:
    """One message of a conversation."""

    role: Role
    text: str


@dataclass(frozen=True)
class Turn:
    """One turn of a user in a conversation.

    Attributes
    ----------
    query: the turn's id among the queries.
    conversation: the id of the conversation.
    number: the turn's place in the conversation, from 1.
    question: the turn as the user typed it.
    history: the messages before it, oldest first.
    rewrite: the turn as a question that can be understood alone, as a person wrote it.
    """

    query: str
    conversation: str
    number: int
    question: str
    history: tuple[Message, ...] = ()
    rewrite: str | None = None

    @property
    def user_messages(self) -> tuple[str, ...]:
        """What the user said so far, this turn included."""
        return (*(message.text for message in self.history if message.role == "user"), self.question)


def messages_of(history: Iterable[Mapping[str, str]]) -> tuple[Message, ...]:
    """The messages of a history given as dicts with a role and a text."""
    return tuple(Message(each["role"], each["text"]) for each in history)  # type: ignore[arg-type]  # checked in tables


def turns_of(collection: Collection, queries: Sequence[str] | None = None) -> list[Turn]:
    """The turns of a collection, in its order, or those of some queries, in theirs.

    A query that isn't a turn is an error.
    """
    texts = dict(collection.queries.select("query", "text").iter_rows())
    turns = {
        query: Turn(query, conversation, number, texts[query], messages_of(history), rewrite)
        for query, conversation, number, history, rewrite in collection.turns.iter_rows()
    }
    if queries is None:
        return list(turns.values())
    unknown = [query for query in queries if query not in turns]
    if unknown:
        few = format_list([quote_short(query, 24) for query in unknown[:4]], 3)
        raise InputError(
            f"{format_count(len(unknown), 'query', 'queries')} not in a conversation ({few})",
            expected="queries with a conversation, a number and a history",
        )
    return [turns[query] for query in queries]


def single_turn(query: str, question: str) -> Turn:
    """A query of its own, as the only turn of a conversation."""
    return Turn(query, query, 1, question)
