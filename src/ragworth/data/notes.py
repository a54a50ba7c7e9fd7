"""Notes: remarks for people that come with a table."""

from __future__ import annotations

from typing import Self


class Note(str):
    """A remark, and whom it concerns: a system by its name, or a step of a pipeline by its written form."""

    __slots__ = ("step", "system")
    system: str
    step: str

    def __new__(cls, text: str, *, system: str = "", step: str = "") -> Self:
        note = super().__new__(cls, text)
        note.system, note.step = system, step
        return note
