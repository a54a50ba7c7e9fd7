"""What a page's script is made of: functions that yield figures, with what they need and how long they take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from figures.running import Run

DATA = "data"
"""Real data: the folder that RAGWORTH_DATA names."""
MODEL = "model"
"""The embedded model, with its weights."""
ENCODER = "encoder"
"""The embedded encoder, with its weights."""
GPU = "gpu"
BROWSER = "browser"
CLOCK = "clock"
"""An idle machine: the figures are times or memory, so they differ from run to run."""
PEERS = "peers"
"""Other tools to compare with, which `make bench` installs."""
NEEDS = (DATA, MODEL, ENCODER, GPU, BROWSER, CLOCK, PEERS)


@dataclass(frozen=True)
class Picture:
    """An image: shown in the page from ``path``, relative to the page, and copied there from ``made``."""

    alt: str
    path: str
    made: Path

    def __str__(self) -> str:
        return f"![{self.alt}]({self.path})"


@dataclass(frozen=True)
class Page:
    """A page that is generated as a whole, without marks; its name is its path from the root of the repository."""

    text: str

    def __str__(self) -> str:
        return self.text


Shown = Iterator[tuple[str, "str | Picture | Page"]]
Make = Callable[["Run"], Shown]
Function = TypeVar("Function", bound=Make)


@dataclass(frozen=True)
class Figure:
    """Figures that one function makes."""

    name: str
    make: Make
    command: str
    """What to type to see the same numbers, without the page."""
    seconds: int
    """How long it takes, roughly, on two virtual cores."""
    needs: tuple[str, ...]
    whole: str
    """A pattern of the pages that it generates as a whole, if it does."""

    @property
    def takes(self) -> str:
        if self.seconds < 100:
            return f"{self.seconds} s"
        return f"{self.seconds / 60:.0f} min" if self.seconds < 6000 else f"{self.seconds / 3600:.0f} h"


def figure(
    command: str, *, seconds: int, needs: tuple[str, ...] | str = (), whole: str = ""
) -> Callable[[Function], Function]:
    """Declare a function of a page's script as one that makes figures."""
    wanted = (needs,) if isinstance(needs, str) else needs
    if unknown := [need for need in wanted if need not in NEEDS]:
        raise ValueError(f"unknown need {unknown[0]!r}; known: {', '.join(NEEDS)}")

    def declared(make: Function) -> Function:
        name = make.__name__.replace("_", "-")
        make.figure = Figure(name, make, command, seconds, wanted, whole)  # type: ignore[attr-defined]
        return make

    return declared
