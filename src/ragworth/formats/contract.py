"""What a format can do: the whole contract, on one screen.

A format is one file here that ends in ``FORMAT = Format(…)`` and one line in the registry of
:mod:`ragworth.formats`. Each function it has takes a path (or an identifier) and gives a checked table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ragworth.collection import Collection
from ragworth.tables import Contexts, Judgments, Ratings


class LoadedCollection(NamedTuple):
    """A collection, and the contexts that came in the same file, if any did."""

    collection: Collection
    contexts: Contexts | None = None


@dataclass(frozen=True)
class Format:
    """One file format.

    Readers of rows accept ``skip_bad_lines``; readers of contexts also ``system`` and ``ties``.

    Attributes
    ----------
    endings: of file names, after ``.gz`` or ``.zst``; a spec ``name:path`` needs none.
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
        """Whether it has a function of this name."""
        return getattr(self, what, None) is not None

    def do(self, what: str) -> Callable[..., Any]:
        """The function of this name."""
        return getattr(self, what)  # type: ignore[no-any-return]
