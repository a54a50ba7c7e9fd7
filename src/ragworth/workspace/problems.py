"""Everything that is wrong with the input, collected one by one and raised as one error."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from ragworth.core.errors import (
    SWAPPED_REMEDY,
    InputError,
    MissingExtraError,
    RagworthError,
    format_count,
    look_swapped,
)

if TYPE_CHECKING:  # pydantic takes longer to import than a small run to score
    from ragworth.workspace.config import Workspace
    from ragworth.workspace.toml import TomlLines

T = TypeVar("T")


class Problems:
    """Collects errors.

    With the ``ragworth.toml`` of a workspace, an error that names no file gets that file and the line of its key.
    """

    def __init__(self, space: Workspace | None = None) -> None:
        self.space = space if space is not None and space.digest else None
        self.found: list[RagworthError] = []

    def of(self, make: Callable[[], T], *path: str) -> T | None:
        """Return what ``make`` returns, or None after recording its error for the key at ``path``."""
        try:
            return make()
        except InputError as error:
            mine = error if self.space is None else error.copy(remedy=error.hint.workspace)
            self.found.append(mine if mine.file else self._placed(mine, path))
        except MissingExtraError as error:
            self.found.append(error)
        return None

    def say(self, message: str, remedy: str, *path: str) -> None:
        """Record a problem of the key at ``path``."""
        self.found.append(self._placed(InputError(message, remedy=remedy), path))

    def done(self) -> None:
        """Raise what was recorded: a single error as it is, several as one."""
        found = list({str(error): error for error in self.found}.values())
        if len(found) == 1:
            raise found[0]
        if found:
            lines = [line for error in found for line in str(error).splitlines()]
            remedy = SWAPPED_REMEDY if look_swapped(found) else ""
            raise InputError(format_count(len(found), "problem"), more=tuple(lines), remedy=remedy)

    def _placed(self, error: InputError, path: tuple[str, ...]) -> InputError:
        if self.space is None:
            return error
        line = self._lines.line(*path) if path else None
        return error.copy(file=str(self.space.file), line=line)

    @cached_property
    def _lines(self) -> TomlLines:
        """Where keys are; nowhere if the file is gone."""
        from ragworth.workspace.toml import TomlLines

        try:
            return TomlLines(self.space.file.read_text(encoding="utf-8-sig") if self.space is not None else "")
        except OSError:
            return TomlLines("")
