"""Everything that can go wrong on purpose.

::

    RagworthError
    ├── InputError            what was given cannot be used; exit code 2
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
from dataclasses import dataclass

MAX_NAMED = 5
"""How many problems of one kind an error spells out before it only counts them."""

QUOTE_WIDTH = 80
"""How much of a piece of input an error quotes."""


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
        remedy: str = "",
        file: str = "",
        line: int | None = None,
        more: tuple[str, ...] = (),
    ) -> None:
        self.found = found
        self.expected = expected
        self.remedy = remedy
        self.file = file
        self.line = line
        self.more = more
        super().__init__(self._message())

    def _message(self) -> str:
        where = self.file
        if self.line is not None:
            where = f"{where}, line {self.line}" if where else f"line {self.line}"
        lines = [f"{where}: {self.found}" if where else self.found]
        lines += [f"  {text}" for text in self.more]
        if self.expected:
            lines.append(f"  expected: {self.expected}")
        if self.remedy:
            lines.append(f"  to do: {self.remedy}")
        return "\n".join(lines)


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
