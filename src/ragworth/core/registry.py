"""Registries that map names to ``"module:object"``, for metrics, formats and other extension points.

Objects are imported on first use. Third-party packages add names with an entry point in the registry's group
(``ragworth.metrics``, ``ragworth.formats``, …). A name that is already taken raises an error.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar, cast

from ragworth.core.errors import InputError, UnknownNameError, format_list

T = TypeVar("T")


@cache
def _entry_points() -> Any:
    """All entry points; their class depends on the version of Python. Finding them takes a look at every package."""
    return entry_points()


class Registry(Generic[T]):
    """A table of names.

    Parameters
    ----------
    kind: what the names stand for (``"metric"``), used in messages.
    group: entry-point group in which other packages may add names.
    builtin: names that ship with ragworth, as ``"module:object"``.
    """

    def __init__(self, kind: str, group: str, builtin: dict[str, str]) -> None:
        self.kind = kind
        self.group = group
        self._targets = dict(builtin)
        self._loaded: dict[str, T] = {}
        self._discovered = False

    def names(self) -> list[str]:
        """All names in order of declaration, built-in ones first."""
        self._discover()
        return list(self._targets)

    def __contains__(self, name: str) -> bool:
        return name in self._targets or name in self.names()

    def __iter__(self) -> Iterator[T]:
        return (self.get(name) for name in self.names())

    def add(self, name: str, target: str | T) -> None:
        """Add a name; ``target`` is ``"module:object"`` or the object itself."""
        if name in self._targets:
            raise InputError(
                f"the {self.kind} name {name!r} is taken (by {self._targets[name]})",
                remedy=f"give the new {self.kind} a different name",
            )
        if isinstance(target, str):
            self._targets[name] = target
        else:
            self._targets[name] = f"{type(target).__module__}:{name}"
            self._loaded[name] = target

    def get(self, name: str) -> T:
        """Return the object behind a name, importing it if necessary."""
        if name not in self:
            raise self.unknown(name)
        if name not in self._loaded:
            module, _, attribute = self._targets[name].partition(":")
            self._loaded[name] = cast(T, getattr(import_module(module), attribute))
        return self._loaded[name]

    def unknown(self, name: str) -> UnknownNameError:
        """Return the error for an unregistered name, suggesting the nearest ones."""
        folded = {known.casefold(): known for known in self.names()}
        near = difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.5)
        error = UnknownNameError(
            f"unknown {self.kind} {name!r}",
            expected=format_list(self.names(), most=30),
            remedy="did you mean " + " or ".join(folded[n] for n in near) + "?" if near else "",
        )
        error.name = name
        return error

    def _discover(self) -> None:
        """Read entry points once."""
        if not self._discovered:
            self._discovered = True
            for point in _entry_points().select(group=self.group):
                self.add(point.name, point.value)
