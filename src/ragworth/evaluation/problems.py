"""What is wrong with a workspace: found one by one, told together, each with its file and line."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TypeVar

from ragworth.config import TomlLines, Workspace
from ragworth.errors import SWAPPED_REMEDY, InputError, MissingExtraError, RagworthError, format_count, look_swapped

T = TypeVar("T")


class Problems:
    """Collects what is wrong. Where an error names no file, it is the workspace's, and the line is that of a key."""

    def __init__(self, space: Workspace) -> None:
        self.space = space
        self.found: list[RagworthError] = []

    def of(self, make: Callable[[], T], *path: str) -> T | None:
        """What ``make`` gives; None where that went wrong, which is remembered as the fault of this key."""
        try:
            return make()
        except InputError as error:
            mine = error.copy(remedy=error.hint.workspace)
            self.found.append(mine if mine.file else self._placed(mine, path))
        except MissingExtraError as error:
            self.found.append(error)
        return None

    def say(self, found: str, remedy: str, *path: str) -> None:
        self.found.append(self._placed(InputError(found, remedy=remedy), path))

    def done(self) -> None:
        """Raise what was found: an error alone as it is, several as one."""
        found = list({str(error): error for error in self.found}.values())
        if len(found) == 1:
            raise found[0]
        if found:
            lines = [line for error in found for line in str(error).splitlines()]
            remedy = SWAPPED_REMEDY if look_swapped(found) else ""
            raise InputError(format_count(len(found), "problem"), more=tuple(lines), remedy=remedy)

    def _placed(self, error: InputError, path: tuple[str, ...]) -> InputError:
        line = self._lines.line(*path) if path else None
        return error.copy(file=str(self.space.file), line=line)

    @cached_property
    def _lines(self) -> TomlLines:
        """Where keys stand; nowhere, for a workspace that was made without a file."""
        try:
            return TomlLines(self.space.file.read_text(encoding="utf-8-sig"))
        except OSError:
            return TomlLines("")
