"""What stages have made, kept by what it was made from: a stage whose inputs are the same is not run again.

A stage is a folder ``NAME-DIGEST`` with a Parquet file for each of its frames and ``facts.json``. It is written beside
its place and moved there whole, so that a killed process leaves a stage or nothing.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from ragworth.errors import FormatError, InputError

DIGITS = 16


@dataclass(frozen=True)
class Made:
    """What a stage came to: tables by name, and what JSON can hold. ``lasting``: worth keeping."""

    frames: Mapping[str, pl.DataFrame]
    facts: Mapping[str, Any] = field(default_factory=dict)
    lasting: bool = True
    fresh: bool = True
    """False where it was made before."""


class Kept:
    """A folder of stages."""

    def __init__(self, folder: Path, only: str | None = None) -> None:
        self.folder = folder
        self.only = only
        """The one stage that may be made anew."""

    def of(self, name: str, key: Mapping[str, Any], make: Callable[[], Made]) -> Made:
        """The stage as it was made before from the same, or made now."""
        place = self.folder / f"{name}-{digest(key)}"
        if (found := self._read(place)) is not None:
            return found
        if self.only is not None and name.split(".")[0] != self.only:
            raise InputError(
                f"what {name} gives is not there, or out of date",
                expected=f"all that comes before {self.only}",
                remedy="run it without --only, or with --only " + name.split(".")[0],
            )
        made = make()
        if made.lasting:
            self._write(place, made)
            # As it will be read the next time, so that what follows from it has the same key.
            made = replace(self._read(place) or made, fresh=True)
        self._tidy(name, place)
        return made

    def _read(self, place: Path) -> Made | None:
        try:
            facts = json.loads((place / "facts.json").read_text(encoding="utf-8"))
            frames = {path.stem: pl.read_parquet(path) for path in sorted(place.glob("*.parquet"))}
        except (OSError, ValueError, pl.exceptions.PolarsError):
            return None  # not there, or damaged: it is made again
        names = facts.pop("frames", None) if isinstance(facts, dict) else None
        return Made(frames, facts, fresh=False) if names == sorted(frames) else None

    def _write(self, place: Path, made: Made) -> None:
        work = place.with_name(f".{place.name}.{os.getpid()}")
        try:
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True)
            for name, frame in made.frames.items():
                frame.write_parquet(work / f"{name}.parquet")
            facts = {**made.facts, "frames": sorted(made.frames)}
            (work / "facts.json").write_text(json.dumps(facts, ensure_ascii=False), encoding="utf-8")
            shutil.rmtree(place, ignore_errors=True)
            work.rename(place)
        except OSError as error:
            raise FormatError(f"it cannot be written: {error.strerror or error}", file=str(place)) from error
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _tidy(self, name: str, place: Path) -> None:
        """Remove what the same stage has made from something else."""
        for other in self.folder.glob(f"{name}-{'?' * DIGITS}"):
            if other != place:
                shutil.rmtree(other, ignore_errors=True)


def digest(key: Mapping[str, Any]) -> str:
    """A short hash of what JSON can hold."""
    text = json.dumps(key, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def frame_digest(frame: pl.DataFrame | None) -> str:
    """A hash of a table's columns and rows, in their order."""
    if frame is None:
        return ""
    stream = io.BytesIO()
    frame.rechunk().write_ipc(stream, compression="uncompressed")
    return hashlib.sha256(stream.getbuffer()).hexdigest()[:DIGITS]


def file_digest(path: Path) -> str:
    """A hash of a file; of a folder, of all files in it."""
    made = hashlib.sha256()
    files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
    for each in files:
        made.update(f"{each.relative_to(path)}\n".encode() if path.is_dir() else b"")
        with each.open("rb") as stream:
            while block := stream.read(1 << 20):
                made.update(block)
    return made.hexdigest()[:DIGITS]
