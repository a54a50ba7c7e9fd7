"""The interface of a file format.

A format is a module in this package that ends in ``FORMAT = Format(…)``, plus a line in the registry of
:mod:`ragworth.formats`. Its functions take a path (or an identifier) and return a checked table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ragworth.collection import Collection
from ragworth.tables import Answers, Contexts, Judgments, Outcomes, Ratings


class LoadedCollection(NamedTuple):
    """A collection, and what else is in the same file: contexts, answers of systems, and grades of these answers."""

    collection: Collection
    contexts: Contexts | None = None
    answers: Answers | None = None
    outcomes: Outcomes | None = None


@dataclass(frozen=True)
class Format:
    """A file format.

    Readers of rows accept ``skip_bad_lines``; readers of contexts also accept ``system`` and ``ties``.

    Attributes
    ----------
    endings: file extensions, before ``.gz`` or ``.zst``; not needed with ``name:path``.
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

    def can(self, what: str) -> bool:
        """Whether the format has a function of this name."""
        return getattr(self, what, None) is not None

    def do(self, what: str) -> Callable[..., Any]:
        """Return the function of this name."""
        return getattr(self, what)  # type: ignore[no-any-return]
