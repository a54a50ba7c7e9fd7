"""Conversations: queries that are turns, with what was said before them.

A turn is a query of the collection. ``Collection.queries`` has the turn as the user typed it, ``Collection.turns`` its
place in the conversation, the history, and a human rewrite if there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from ragworth.core.errors import InputError, format_count, format_list, quote_short
from ragworth.data.collection import Collection, TurnForm

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


class AskedQuestion(str):
    """A question with the conversation before it, which prompts show in front of everything else.

    It is the text of the question itself, so what only needs its words doesn't have to know about conversations.
    """

    history: tuple[Message, ...]

    __slots__ = ("history",)

    def __new__(cls, text: str, history: tuple[Message, ...]) -> AskedQuestion:
        made = super().__new__(cls, text)
        made.history = history
        return made


FEWEST_CONVERSATIONS: Final = 5
"""Fewer give no interval; see `ragworth.stats.bootstrap`."""

SPEAKERS: Final = {"user": "User", "assistant": "Assistant"}

READER_HISTORY: Final = 6000
"""Most characters of a history that a reader is shown: the latest messages."""


def spoken_messages(history: Sequence[Message]) -> list[dict[str, str]]:
    """Messages for a list in a prompt, each with its speaker and text."""
    return [{"speaker": SPEAKERS[message.role], "text": message.text} for message in history]


def conversation_text(history: Sequence[Message]) -> str:
    """A conversation as it stands in prompts, a line for each message."""
    lines = [f"{SPEAKERS[message.role]}: {' '.join(message.text.split())}" for message in history]
    return "\n".join(["Conversation so far:", *lines]) if lines else ""


def recent_messages(history: tuple[Message, ...], characters: int = READER_HISTORY) -> tuple[Message, ...]:
    """The latest messages that together have at most so many characters.

    If the latest alone has more, it is shortened to its beginning: otherwise a long reply would hide everything.
    """
    room = characters
    for number, message in enumerate(reversed(history)):
        room -= len(message.text)
        if room < 0:
            latest = history[len(history) - number :]
            return latest if number or not characters else (replace(message, text=message.text[:characters]),)
    return history


def cut_messages(history: tuple[Message, ...], characters: int = READER_HISTORY) -> int:
    """How many messages `recent_messages` leaves out or shortens."""
    shown = recent_messages(history, characters)
    return len(history) - len(shown) + (shown[-1:] != history[-1:] if shown else 0)


def asked_question(turn: Turn, form: TurnForm) -> str | None:
    """What the reader is asked in a turn; None if the form needs a human rewrite and there is none.

    ``conversation``: the turn, with the latest messages before it. ``rewrite``: the human rewrite, or the turn if
    nothing was said before it. ``turn``: the turn alone.
    """
    if form == "rewrite":
        return turn.rewrite if turn.rewrite is not None or turn.history else turn.question
    if form == "turn" or not turn.history:
        return turn.question
    return AskedQuestion(turn.question, recent_messages(turn.history))


def conversation_notes(collection: Collection) -> list[str]:
    """What users should know about the turns of a collection: histories that are cut, and dependent turns."""
    turns = turns_of(collection)
    if not turns:
        return []
    notes = []
    if collection.turn_form == "conversation":
        cut = [cut_messages(turn.history) for turn in turns]
        if some := sum(map(bool, cut)):
            notes.append(
                f"the histories of {format_count(some, 'turn')} are longer than {READER_HISTORY:,} characters: the "
                f"reader isn't shown their oldest {format_count(sum(cut), 'message')}, or only the beginning"
            )
    if bare := sum(turn.number > 1 and not turn.history for turn in turns):
        notes.append(
            f"{format_count(bare, 'turn')} after the first of a conversation {'has' if bare == 1 else 'have'} no "
            "history: nothing can be rewritten there"
        )
    return [*notes, *cluster_notes(conversation_ids(collection))]


def cluster_notes(conversations: Mapping[str, str]) -> list[str]:
    """Whether intervals and tests draw whole conversations, by the conversation of each turn."""
    number = len(set(conversations.values()))
    if not number:
        return []
    few = f", and fewer than {FEWEST_CONVERSATIONS} have no interval" * (number < FEWEST_CONVERSATIONS)
    turns = f"{format_count(len(conversations), 'turn')} of {format_count(number, 'conversation')}"
    return [f"{turns}: intervals and tests draw whole conversations, because their turns aren't independent{few}"]


def independence_notes(conversations: Mapping[str, str]) -> list[str]:
    """A warning for figures whose intervals treat turns as independent queries."""
    number = len(set(conversations.values()))
    if not number:
        return []
    return [
        f"turns of {format_count(number, 'conversation')} count as independent queries here, so these intervals and "
        "p-values are too optimistic"
    ]


def conversation_ids(collection: Collection) -> dict[str, str]:
    """The conversation of each turn; empty if no conversation has several turns, so that queries are independent."""
    turns = collection.turns
    if turns["conversation"].n_unique() == turns.height:
        return {}
    return dict(turns.select("query", "conversation").iter_rows())


def cluster_labels(queries: Iterable[str], conversations: Mapping[str, str]) -> list[int] | None:
    """The number of each query's conversation; a query outside all conversations has its own number.

    None if no two of the queries share a conversation: they are independent.
    """
    if not conversations:
        return None
    numbers: dict[tuple[bool, str], int] = {}
    labels, distinct = [], set()
    for query in queries:
        known = query in conversations
        labels.append(numbers.setdefault((known, conversations[query] if known else query), len(numbers)))
        distinct.add(query)
    return labels if len(numbers) < len(distinct) else None


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
