"""Everything that can go wrong on purpose.

::

    RagworthError
    ├── InputError            what was given cannot be used; exit code 2
    │   ├── MissingInputError queries, answers or labels are needed, and none fits
    │   ├── UnknownNameError  a name that nobody registered
    │   ├── FormatError       a file cannot be read as what it was said to be
    │   │   ├── RunGivenError     it is a run, and judgments belong here
    │   │   └── QrelsGivenError   it is qrels, and a run belongs here
    │   ├── TableError        rows break a table's schema (ids, duplicates, types, ranks)
    │   ├── MetricError       a metric is unknown, misspelt, or lacks what it needs
    │   ├── ModelError        a model cannot be had, or cannot do what it is asked for
    │   ├── PromptError       a prompt's file or the values for its slots are not right
    │   └── StoreError        a store of calls cannot be opened, is in use, or is damaged
    ├── MissingExtraError     an optional dependency is not installed; exit code 2
    ├── Stopped               a job ended early, on request or by its budget; what is done is kept; exit code 4
    └── ResourceError         the machine has too little memory, or too few threads or files; exit code 5

Each says what was found, where, what was expected and what to do about it. None of them is worth
retrying unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

MAX_NAMED = 5
"""How many problems of one kind an error spells out before it only counts them."""

QUOTE_WIDTH = 80
"""How much of a piece of input an error quotes."""


SURFACE: ContextVar[Literal["python", "command"]] = ContextVar("SURFACE", default="python")
"""Where people read an error: hints are worded for it. The command line sets its own."""


class Hint(NamedTuple):
    """What to do about an error, in words for each place where people meet it.

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
    """What was given cannot be used as it is.

    Parameters are kept as attributes, so that a program can act on them; ``str(error)`` is the
    message for a person.
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
        """What to do, in words for where we are."""
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
    """A file cannot be read as what it was said to be."""


class RunGivenError(FormatError):
    """A run was given where judgments or ratings belong."""


class QrelsGivenError(FormatError):
    """Qrels were given where a run belongs."""


class TableError(InputError):
    """Rows break a table's schema: ids, duplicates, types, ranks, missing columns."""


class MetricError(InputError):
    """A metric is unknown or misspelt, or what it needs was not given."""


class ModelError(InputError):
    """A model cannot be had, or cannot do what it is asked for."""


class PromptError(InputError):
    """A prompt's file cannot be used, or the values for its slots do not fit it."""


class StoreError(InputError):
    """A store of calls cannot be opened, is in use by another process, or is damaged."""


class JobStopped(RagworthError):  # noqa: N818 (it is not a mistake)
    """A job ended early, on request or because its budget was spent. What is done is kept."""

    exit_code = 4


class ResourceError(RagworthError):
    """The machine has too little memory, or allows too few threads or open files. What is done is kept."""

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
    """Whether a run was given as qrels and qrels as a run, among the problems with several files."""
    return all(any(isinstance(p, kind) for p in problems) for kind in (RunGivenError, QrelsGivenError))


SWAPPED_REMEDY = "the run and the qrels look swapped: exchange them"
"""What to do about :func:`look_swapped`."""


@dataclass(frozen=True, slots=True)
class BadLine:
    """One line of a file that could not be used, and why."""

    line: int
    found: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.found}"


MAX_PATH_LENGTH = 4096
"""Characters of a path that an error shows: all of them, since the user has to judge where it leads."""


def quote_short(text: object, width: int = QUOTE_WIDTH) -> str:
    """``text`` as a short, printable quotation: control characters escaped, long input cut."""
    shown = repr(text if isinstance(text, str) else str(text))
    return shown if len(shown) <= width else f"{shown[: width - 2]}…{shown[0]}"


def format_list(items: list[str], most: int = MAX_NAMED) -> str:
    """The first few of ``items`` in words, with how many more there are."""
    rest = len(items) - most
    shown = ", ".join(items[:most])
    return f"{shown} and {rest:,} more" if rest > 0 else shown


def format_names(names: list[str], most: int = 12) -> str:
    """Names of columns out of somebody's file, each cut to a readable length."""
    return format_list(
        [name if name.isprintable() and len(name) <= 24 else quote_short(name, 24) for name in names], most
    )


def with_article(noun: str) -> str:
    """``a table``, ``an answer``: a noun, quoted or not, with its article."""
    return f"{'an' if noun.lstrip(chr(39))[:1] in tuple('aeiou') else 'a'} {noun}"


def format_count(number: int, noun: str, plural: str = "") -> str:
    """``1 query``, ``3 queries``: a number with its noun."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
