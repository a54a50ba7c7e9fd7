"""What readers of conversations share: rows become turns with queries, answers, passages and labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ragworth.core.errors import BadLine, FormatError, quote_short
from ragworth.data.collection import Collection
from ragworth.data.conversations import Message, Turn
from ragworth.formats.contract import LoadedCollection
from ragworth.formats.files import PathOrStr, skipped_note
from ragworth.formats.log_files import LogRows, bad_rows_error, read_log, reject_row
from ragworth.formats.values import WrongLineError, as_dict, as_list, as_number, as_text


@dataclass
class ConversationBuilder:
    """Collects turns, and builds a collection of them."""

    source: str
    turns: dict[str, Turn] = field(default_factory=dict)
    answers: list[tuple[str, str]] = field(default_factory=list)
    passages: dict[str, str] = field(default_factory=dict)
    relevance: dict[tuple[str, str], float] = field(default_factory=dict)
    without_history: list[str] = field(default_factory=list)
    """Turns whose rows don't repeat the history: it is made from the turns before them when all rows are known."""
    _numbers: set[tuple[str, int]] = field(default_factory=set)

    def add(self, turn: Turn, answers: Iterable[str] = ()) -> None:
        """Add a turn and its accepted answers; blank answers are none."""
        if turn.query in self.turns or (turn.conversation, turn.number) in self._numbers:
            raise WrongLineError(
                f"turn {turn.number} of conversation {quote_short(turn.conversation, 40)} occurs twice"
            )
        if not turn.question.strip():
            raise WrongLineError("the question is empty")
        self.turns[turn.query] = turn
        self._numbers.add((turn.conversation, turn.number))
        known = dict.fromkeys(answer for answer in answers if answer.strip())
        self.answers += [(turn.query, answer) for answer in known]

    def add_passage(self, passage: str, text: str) -> None:
        """Add a passage; another text under the same id is wrong."""
        if self.passages.setdefault(passage, text) != text:
            raise WrongLineError(f"the passage {quote_short(passage, 40)} has another text before")

    def _fill_histories(self) -> None:
        """Make the histories that the rows don't have from the turns before, in whatever order the rows are."""
        given = dict(reversed(self.answers))
        said: dict[str, list[Message]] = {}
        missing = set(self.without_history)
        for turn in sorted(self.turns.values(), key=lambda turn: turn.number):
            before = said.setdefault(turn.conversation, [])
            if turn.query in missing:
                self.turns[turn.query] = replace(turn, history=tuple(before))
            before.append(Message("user", turn.question))
            before += [Message("assistant", given[turn.query])] if turn.query in given else []

    def build(self, notes: tuple[str, ...] = ()) -> LoadedCollection:
        """The collection of everything that was added."""
        if self.without_history:
            self._fill_histories()
        turns = list(self.turns.values())
        labels = [
            {"query": query, "passage": passage, "value": value} for (query, passage), value in self.relevance.items()
        ]
        return LoadedCollection(
            Collection.of(
                queries={"query": [turn.query for turn in turns], "text": [turn.question for turn in turns]},
                turns=turn_rows(turns),
                answers=_texts("query", self.answers) if self.answers else None,
                passages=_texts("passage", list(self.passages.items())) if self.passages else None,
                relevance=labels or None,
                source=self.source,
                notes=notes,
            )
        )


def _texts(name: str, rows: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    return {name: [each for each, _ in rows], "text": [text for _, text in rows]}


def turn_rows(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """Turns as rows of a collection's table."""
    return [
        {
            "query": turn.query,
            "conversation": turn.conversation,
            "number": turn.number,
            "history": [{"role": message.role, "text": message.text} for message in turn.history],
            "rewrite": turn.rewrite,
        }
        for turn in turns
    ]


def load_turns(
    path: PathOrStr,
    add: Callable[[ConversationBuilder, dict[str, Any]], None],
    *,
    expected: str,
    skip_bad_lines: bool,
    unpack: Callable[[LogRows], LogRows] = lambda rows: rows,
) -> LoadedCollection:
    """Read a file of JSON objects, each of which ``add`` adds to the builder. All bad rows are in one error."""
    bad: list[BadLine] = []
    rows = unpack(read_log(path, bad, skip=skip_bad_lines, expected=expected))
    builder = ConversationBuilder(str(path))
    for place, value in rows.values:
        try:
            add(builder, as_dict(value, "the row"))
        except WrongLineError as error:
            reject_row(rows, bad, place, str(error), skip=skip_bad_lines, expected=expected)
    if bad and not skip_bad_lines:
        raise bad_rows_error(rows, bad, expected)
    if not builder.turns:
        raise FormatError("no rows: the file is empty", file=str(path), expected=expected)
    return builder.build(skipped_note(path, bad))


def alternating(texts: Iterable[object], what: str = "history") -> tuple[Message, ...]:
    """A list of texts as messages of the user and the assistant in turn."""
    said = [as_text(text, f"text {number} of the {what}") for number, text in enumerate(texts, 1)]
    return tuple(Message("assistant" if number % 2 else "user", text) for number, text in enumerate(said))


def as_turn_number(value: object, what: str) -> int:
    """A turn's number, from 1; text of digits is fine."""
    number = as_number(float(value) if isinstance(value, str) and value.isdecimal() else value, what)
    if not number.is_integer() or not 1 <= number < 2**32:
        raise WrongLineError(f"the {what} is {quote_short(value, 24)}, not a whole number from 1")
    return int(number)


def optional_text(row: Mapping[str, Any], *names: str) -> str | None:
    """The first of these fields that is there and isn't blank."""
    for name in names:
        if row.get(name) is not None and (text := as_text(row[name], name)).strip():
            return text
    return None


def text_list(row: Mapping[str, Any], name: str) -> list[str]:
    """A list of texts, a single one, or nothing."""
    value = row.get(name)
    values = [] if value is None else [value] if isinstance(value, str) else as_list(value, f"the field {name!r}")
    return [as_text(each, name) for each in values]
