"""Errors that ragworth raises on purpose.

::

    RagworthError
    ├── InputError            unusable input; exit code 2
    │   ├── MissingInputError queries, answers or labels are needed and missing
    │   ├── UnknownNameError  an unregistered name
    │   ├── FormatError       a file isn't in the expected format
    │   │   ├── RunGivenError     a run instead of judgments
    │   │   └── QrelsGivenError   qrels instead of a run
    │   ├── TableError        rows violate a table's schema (ids, duplicates, types, ranks)
    │   ├── MetricError       a metric is unknown, misspelt, or lacks its inputs
    │   ├── ModelError        a model is unavailable or lacks a capability
    │   │   └── WeightsMissingError  the embedded model's weights aren't installed
    │   ├── PromptError       a prompt file or the values for its slots are invalid
    │   └── StoreError        a call store can't be opened, is in use, or is damaged
    ├── MissingExtraError     an optional dependency is not installed; exit code 2
    ├── JobStopped            a job ended early, on request or out of budget; finished work is saved; exit code 4
    └── ResourceError         too little memory, or too few threads or files; exit code 5

Each error says what was found, where, what was expected and what to do about it. Retrying unchanged never helps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

MAX_NAMED = 5
"""Problems of one kind that an error lists before it only counts them."""

QUOTE_WIDTH = 80
"""Maximum length of a quotation in an error."""


SURFACE: ContextVar[Literal["python", "command"]] = ContextVar("SURFACE", default="python")
"""Where people read an error: hints are worded for it. The command line sets its own."""


class Hint(NamedTuple):
    """Advice on an error, in words for each place where people meet it.

    ``workspace``: where a ``ragworth.toml`` names the files. ``option``: an option that ``command`` advises; a command
    without it gives the advice for workspaces.
    """

    command: str
    workspace: str
    python: str
    option: str = ""


def give_input(*names: str) -> Hint:
    """Advice to give a part of a collection: queries, passages, answers, subquestions, qrels or ratings."""
    options, words = " or ".join(f"--{name} FILE" for name in names), " or ".join(names)
    arguments = " or ".join({"qrels": "relevance"}.get(name, name) for name in names)
    return Hint(
        f"give {options}, or a run or collection that has them",
        f"name {words} under [collection]",
        f"give the collection {arguments}: Collection.of({arguments.split()[0]}=…)",
    )


class RagworthError(Exception):
    """Base of all errors that ragworth raises on purpose."""

    exit_code = 2


class InputError(RagworthError):
    """The input can't be used as it is.

    Parameters are stored as attributes for programs; ``str(error)`` is the message for people.
    """

    def __init__(
        self,
        found: str,
        *,
        expected: str = "",
        remedy: str | Hint = "",
        file: str = "",
        line: int | None = None,
        more: tuple[str, ...] = (),
    ) -> None:
        self.found = found
        self.expected = expected
        self.hint = remedy if isinstance(remedy, Hint) else Hint(remedy, remedy, remedy)
        self.file = file
        self.line = line
        self.more = more
        super().__init__(found)

    @property
    def remedy(self) -> str:
        """The advice, in words for where we are."""
        return self.hint.command if SURFACE.get() == "command" else self.hint.python

    def __str__(self) -> str:
        return self.message(self.remedy)

    def copy(self, **changes: Any) -> Self:
        """The same error with other facts."""
        facts = {name: getattr(self, name) for name in ("expected", "file", "line", "more")}
        facts |= {"found": self.found, "remedy": self.hint} | changes
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        InputError.__init__(other, facts.pop("found"), **facts)
        return other

    def message(self, remedy: str) -> str:
        """The whole message, with this advice."""
        where = self.file
        if self.line is not None:
            where = f"{where}, line {self.line}" if where else f"line {self.line}"
        lines = [f"{where}: {self.found}" if where else self.found]
        lines += [f"  {text}" for text in self.more]
        if self.expected:
            lines.append(f"  expected: {self.expected}")
        if remedy:
            lines.append(f"  to do: {remedy}")
        return "\n".join(lines)


class MissingInputError(InputError):
    """``who`` needs ``what`` of a collection; ``found`` says why nothing there fits."""

    def __init__(self, who: str, what: str, found: str, remedy: Hint) -> None:
        super().__init__(f"{who} needs {what}, and {found}", remedy=remedy)
        self.who, self.what = who, what


class UnknownNameError(InputError):
    """A name that nobody registered: ``name``."""

    name = ""


class FormatError(InputError):
    """A file isn't in the expected format."""


class RunGivenError(FormatError):
    """A run was passed instead of judgments or ratings."""


class QrelsGivenError(FormatError):
    """Qrels were passed instead of a run."""


class TableError(InputError):
    """Rows break a table's schema: ids, duplicates, types, ranks, missing columns."""


class MetricError(InputError):
    """A metric is unknown or misspelt, or its inputs are missing."""


class ModelError(InputError):
    """A model is unavailable or can't do what it is asked for."""


class WeightsMissingError(ModelError):
    """The weights of the embedded model are not installed."""


class PromptError(InputError):
    """A prompt file can't be used, or the values for its slots don't fit."""


class StoreError(InputError):
    """A call store can't be opened, is in use by another process, or is damaged."""


class JobStopped(RagworthError):  # noqa: N818 (it is not a mistake)
    """A job ended early, on request or because its budget was spent. Finished work is saved."""

    exit_code = 4


class ResourceError(RagworthError):
    """Too little memory, or too few threads or open files. Finished work is saved."""

    exit_code = 5


class MissingExtraError(RagworthError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(
            f'{purpose} needs the package {package!r}, which is not installed\n  to do: pip install "ragworth[{extra}]"'
        )


def look_swapped(problems: Sequence[Exception]) -> bool:
    """Return whether, among the problems with several files, a run was passed as qrels and qrels as a run."""
    return all(any(isinstance(p, kind) for p in problems) for kind in (RunGivenError, QrelsGivenError))


SWAPPED_REMEDY = "the run and the qrels look swapped: exchange them"


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line of a file that couldn't be used, and why."""

    line: int
    found: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.found}"


MAX_PATH_LENGTH = 4096
"""Maximum length of a path in an error: shown in full, because the user has to judge where it leads."""


def quote_short(text: object, width: int = QUOTE_WIDTH) -> str:
    """Quote ``text`` on one line, escaping control characters and truncating long input."""
    shown = repr(text if isinstance(text, str) else str(text))
    return shown if len(shown) <= width else f"{shown[: width - 2]}…{shown[0]}"


def format_cell(value: object) -> str:
    """A value as a person reads it: four decimals, a dash for null, control characters escaped."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4f}" if math.isfinite(value) else str(value)
    text = str(value)
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def format_list(items: list[str], most: int = MAX_NAMED) -> str:
    """List the first few ``items`` and count the rest."""
    rest = len(items) - most
    shown = ", ".join(items[:most])
    return f"{shown} and {rest:,} more" if rest > 0 else shown


def format_names(names: list[str], most: int = 12) -> str:
    """List column names of a user's file, truncating long ones."""
    return format_list(
        [name if name.isprintable() and len(name) <= 24 else quote_short(name, 24) for name in names], most
    )


def format_places(places: Iterable[int], unit: str) -> str:
    """The number of records at these places, and the first of the places: ``2 records (line 3, 8)``."""
    numbers = sorted(places)
    noun = unit if unit != "line" else "record"
    few = format_list([f"{number:,}" for number in numbers[:4]], 3)
    few = few.replace(" and 1 more", ", …") if len(numbers) > 3 else few
    return f"{format_count(len(numbers), noun)} ({unit} {few})"


def with_article(noun: str) -> str:
    """Put ``a`` or ``an`` before a noun, quoted or not."""
    return f"{'an' if noun.lstrip(chr(39))[:1] in tuple('aeiou') else 'a'} {noun}"


def format_count(number: int, noun: str, plural: str = "") -> str:
    """Format a number with its noun: ``1 query``, ``3 queries``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def format_seconds(seconds: float) -> str:
    """``42 s``, ``7 min``, ``3 h 20 min``."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
