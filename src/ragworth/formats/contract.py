"""The interface of a file format.

A format is a module in this package that ends in ``FORMAT = Format(…)``, plus a line in the registry of
:mod:`ragworth.formats`. Its functions take a path (or an identifier) and return a checked table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from ragworth.data import Answers, Contexts, Judgments, Outcomes, Ratings
from ragworth.data.collection import Collection


class LoadedCollection(NamedTuple):
    """A collection, and what else is in the same file: contexts, answers of systems, and grades of these answers."""

    collection: Collection
    contexts: Contexts | None = None
    answers: Answers | None = None
    outcomes: Outcomes | None = None


TextKind = Literal["queries", "passages", "answers", "subquestions"]
TableKind = Literal["run", "qrels", "ratings", "judgments", "written", "outcomes", "lengths"]
Kind = TextKind | TableKind | Literal["log", "references", "collection", "texts"]
"""What a file may hold; ``texts`` are those of queries or of passages."""


class Contents(NamedTuple):
    """A kind of data that a file holds, and what is doubtful about it."""

    kind: Kind
    doubt: str = ""


HEAD_ROWS = 20
"""Rows of a file that are looked at to find out its format."""


@dataclass(frozen=True, eq=False)
class Head(os.PathLike[str]):
    """How a file begins.

    Attributes
    ----------
    data: the beginning of a text that is no table and no JSON.
    rows: the first rows, lines, or elements of a JSON list; ``columns`` are their keys.
    document: the first JSON value, perhaps without its end.
    values: all values of a JSON file that isn't read by lines, if they were parsed.
    lines: the values of the first lines of JSON by number.
    content: all bytes, unpacked, if they are few.
    format: the format that the user named before the path.
    """

    path: str
    kind: Literal["table", "lines", "json", "text"]
    data: bytes = b""
    document: Any = None
    rows: tuple[dict[str, Any], ...] = ()
    columns: tuple[str, ...] = ()
    values: list[Any] | None = None
    lines: Mapping[int, Any] = field(default_factory=dict)
    content: bytes | None = None
    format: str = ""

    def __fspath__(self) -> str:
        return self.path

    def __str__(self) -> str:
        return self.path

    def has(self, *names: str) -> bool:
        """Whether there are all these columns."""
        return set(names) <= set(self.columns)

    def has_any(self, *names: str) -> bool:
        """Whether there is one of these columns."""
        return bool(set(names) & set(self.columns))

    def of_rows(self, rows: Iterable[Any], columns: Iterable[str] = ()) -> Head:
        """The same with these rows."""
        first = [row for row, _ in zip(rows, range(HEAD_ROWS), strict=False)]
        dicts = [row for row in first if isinstance(row, dict)]
        names = dict.fromkeys([*columns, *(str(key) for row in dicts for key in row)])
        return replace(self, rows=tuple(dicts), columns=tuple(names))


@dataclass(frozen=True)
class Format:
    """A file format.

    Readers of rows accept ``skip_bad_lines``; readers of contexts also accept ``system`` and ``ties``.

    Attributes
    ----------
    endings: file extensions, before ``.gz`` or ``.zst``; not needed with ``name:path``.
    inspect: return what a file of this format holds, from its head; nothing for a file of another format.
    load_rows: make tables of rows that are in memory already.
    general: how general the signs are by which it recognises files: 0 for the formats of tools, 1 for our own, 2 for
        logs with usual names, 3 for tables of grades. A more general format counts only where no other knows a file.
    """

    name: str
    title: str
    endings: tuple[str, ...] = ()
    contexts: Callable[..., Contexts] | None = None
    judgments: Callable[..., Judgments] | None = None
    ratings: Callable[..., Ratings] | None = None
    load: Callable[..., LoadedCollection] | None = None
    write_contexts: Callable[..., None] | None = None
    write_judgments: Callable[..., None] | None = None
    write_ratings: Callable[..., None] | None = None
    inspect: Callable[[Head], list[Contents]] | None = None
    load_rows: Callable[..., LoadedCollection] | None = None
    general: int = 0

    def can(self, what: str) -> bool:
        """Whether the format has a function of this name."""
        return getattr(self, what, None) is not None

    def do(self, what: str) -> Callable[..., Any]:
        """Return the function of this name."""
        return getattr(self, what)  # type: ignore[no-any-return]
