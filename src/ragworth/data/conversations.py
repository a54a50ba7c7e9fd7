"""Conversations: queries that are turns, with what was said before them.

A turn is a query of the collection. ``Collection.queries`` has the turn as the user typed it, ``Collection.turns`` its
place in the conversation, the history, and a human rewrite if there is one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Protocol

import polars as pl

from ragworth.core.errors import InputError, TableError, format_count, format_list, format_names, quote_short
from ragworth.data import coercion
from ragworth.data.coercion import Data

Role = Literal["user", "assistant"]
TurnForm = Literal["conversation", "rewrite", "turn"]
"""Forms of the question that the reader is asked in a conversation; see `asked_question`."""

ROLES: Final = ("user", "assistant")
INSTRUCTIONS: Final = ("system", "developer")
"""Roles of messages that set up a model. Nobody said them, so they are left out of histories."""

HISTORY_TYPE: Final = pl.List(pl.Struct({"role": pl.String, "text": pl.String}))

TURN_SCHEMA: Final[dict[str, Any]] = {
    "query": pl.String,
    "conversation": pl.String,
    "number": pl.UInt32,
    "history": HISTORY_TYPE,
    "rewrite": pl.String,
}
"""``number`` counts a conversation's turns from 1; ``history`` is what was said before the turn, oldest first;
``rewrite`` is the turn as a question that can be understood alone, as a person wrote it, or null.
"""


def turns_digest(turns: pl.DataFrame) -> str:
    """A hash of all turns, in their order."""
    return hashlib.sha256(turns.write_json().encode("utf-8", "surrogatepass")).hexdigest()[:16]


def check_turns(data: Data, source: str = "") -> pl.DataFrame:
    """Check a table of turns. ``rewrite`` may be missing; each turn of a conversation occurs once."""
    frame, histories = _split_histories(data, source)
    missing = [name for name in ("query", "conversation", "number") if name not in frame.columns]
    missing += ["history"] if histories is None else []
    if missing or histories is None:
        raise TableError(
            f"a table of turns needs {format_names(missing)}; this one has {format_names(frame.columns)}",
            expected="query, conversation, number, history and optionally rewrite",
            file=source,
        )
    numbers = coercion.to_numbers(frame["number"], source=source, kind=pl.Int64)
    coercion.refuse_rows(
        numbers.is_null() | ~numbers.is_between(1, 2**32 - 1),
        lambda row: f"the turn's number is {numbers[row]}",
        expected="1 for the first turn of a conversation",
        source=source,
    )
    rewrites = frame["rewrite"] if "rewrite" in frame.columns else pl.Series("rewrite", [None] * frame.height)
    rewrites = coercion.to_text(rewrites, source=source, nullable=True)
    coercion.refuse_rows(
        rewrites.str.strip_chars() == "",
        lambda row: "the rewrite is empty",
        expected="text, or null where there is none",
        source=source,
    )
    ids = [coercion.text_ids(frame[name], source=source) for name in ("query", "conversation")]
    checked = pl.Series([_history(each, row, source) for row, each in enumerate(histories, 1)], dtype=HISTORY_TYPE)
    turns = pl.DataFrame([*ids, numbers.cast(pl.UInt32), checked.alias("history"), rewrites])
    for key in (["query"], ["conversation", "number"]):
        coercion.refuse_duplicates(turns, key, source, noun="turn")
    return turns


def _split_histories(data: Data, source: str) -> tuple[pl.DataFrame, list[Any] | None]:
    """The other columns, and the histories as they are: in a column, all messages would need the same fields."""
    if isinstance(data, Sequence) and any(isinstance(row, Mapping) and "history" in row for row in data):
        others = [{name: value for name, value in row.items() if name != "history"} for row in data]
        return coercion.to_frame(others, source=source), [row.get("history") for row in data]
    frame = coercion.to_frame(data, source=source)
    return frame, frame["history"].to_list() if "history" in frame.columns else None


def _history(messages: Any, row: int, source: str) -> list[dict[str, Any]]:
    """The messages of a history, as the table has them, without instructions."""
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        problem = "is missing" if messages is None else f"is {quote_short(messages)}"
        raise TableError(
            f"row {row}: the history {problem}",
            expected="a list of messages; an empty one for a first turn",
            file=source,
        )
    history = []
    for message in messages:
        if is_instruction(message):
            continue
        role, text = (message.get("role"), message_text(message)) if isinstance(message, Mapping) else (None, None)
        if role not in ROLES or not isinstance(text, str):
            raise TableError(
                f"row {row}: the history has the message {quote_short(message)}",
                expected='messages of a user or an assistant, such as {"role": "user", "text": "…"}',
                file=source,
            )
        history.append({"role": role, "text": text})
    return history


def is_instruction(message: Any) -> bool:
    """Return whether a message only sets up a model."""
    return isinstance(message, Mapping) and message.get("role") in INSTRUCTIONS


def message_text(message: Mapping[str, Any]) -> Any:
    """The text of a message: its ``text``, or the ``content`` of an OpenAI message, whose parts are joined."""
    content = message["text"] if message.get("text") is not None else message.get("content")
    if isinstance(content, Sequence) and not isinstance(content, str) and content:
        parts = [part.get("text") if isinstance(part, Mapping) else part for part in content]
        texts = [part for part in parts if isinstance(part, str)]
        return "\n".join(texts) if len(texts) == len(parts) else content
    return content


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
        """The user's messages so far, this turn included."""
        return (*(message.text for message in self.history if message.role == "user"), self.question)


class AskedQuestion(str):
    """A question with the conversation before it, which prompts show in front of everything else.

    It is the text of the question itself, so what only needs its words doesn't have to know about conversations.
    """

    history: tuple[Message, ...]

    __slots__ = ("history",)

    def __new__(cls, text: str, history: tuple[Message, ...]) -> AskedQuestion:
        question = super().__new__(cls, text)
        question.history = history
        return question


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
    """Count the messages that `recent_messages` leaves out or shortens."""
    recent = recent_messages(history, characters)
    return len(history) - len(recent) + (recent[-1:] != history[-1:] if recent else 0)


def asked_question(turn: Turn, form: TurnForm) -> str | None:
    """The question that the reader is asked in a turn; None if the form needs a human rewrite and there is none.

    ``conversation``: the turn, with the latest messages before it. ``rewrite``: the human rewrite, or the turn if
    nothing was said before it. ``turn``: the turn alone.
    """
    if form == "rewrite":
        return turn.rewrite if turn.rewrite is not None or turn.history else turn.question
    if form == "turn" or not turn.history:
        return turn.question
    return AskedQuestion(turn.question, recent_messages(turn.history))


class HasTurns(Protocol):
    """The part of a collection that is about conversations."""

    @property
    def queries(self) -> pl.DataFrame: ...
    @property
    def turns(self) -> pl.DataFrame: ...
    @property
    def turn_form(self) -> TurnForm: ...


def conversation_notes(collection: HasTurns) -> list[str]:
    """Notes on the turns of a collection: histories that are cut, and dependent turns."""
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
    """A note that intervals and tests draw whole conversations; ``conversations`` has that of each turn."""
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


def conversation_ids(collection: HasTurns) -> dict[str, str]:
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
        is_turn = query in conversations
        labels.append(numbers.setdefault((is_turn, conversations[query] if is_turn else query), len(numbers)))
        distinct.add(query)
    return labels if len(numbers) < len(distinct) else None


def turns_of(collection: HasTurns, queries: Sequence[str] | None = None) -> list[Turn]:
    """The turns of a collection, in its order, or those of some queries, in theirs.

    A query that isn't a turn is an error.
    """
    texts = dict(collection.queries.select("query", "text").iter_rows())
    turns = {
        query: Turn(query, conversation, number, texts[query], tuple(Message(**each) for each in history), rewrite)
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
