"""What a study says, as data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from figures.declare import Picture
from figures.running import Run

Row = dict[str, Any]


class Studied:
    """The tables of a study, its sentences, and its pictures."""

    def __init__(self, said: str) -> None:
        self.facts = json.loads(said)
        self.tables: dict[str, list[Row]] = self.facts["tables"]
        self.sentences: list[str] = self.facts["sentences"]
        self.folder = Path(self.facts["page"]).parent

    def row(self, name: str, **wanted: object) -> Row:
        """The only row of a table that has these values."""
        (found,) = [row for row in self.tables[name] if all(row[key] == value for key, value in wanted.items())]
        return found

    def picture(self, name: str, path: str, alt: str) -> Picture:
        """A figure of the study; some have the number of the case behind their name."""
        folder = self.folder / "figures"
        made = [file for file in (folder / f"{name}.png", folder / f"{name}-1.png") if file.exists()]
        if not made:
            raise FileNotFoundError(
                f"no picture {name!r} in {folder}: {', '.join(p.stem for p in folder.glob('*.png'))}"
            )
        return Picture(alt, path, made[0])


def study(run: Run, command: str) -> Studied:
    """``ragworth study`` with what follows it."""
    return Studied(run.output(f"ragworth study {command} --json --quiet"))


def spanned(row: Row, value: str = "value", digits: int = 2) -> str:
    """A value with its interval: 0.66 [0.58, 0.75]; a dash for none."""
    if row[value] is None:
        return "–"
    low, high = (row[end] if end in row else row[f"{value} {end}"] for end in ("low", "high"))
    ends = f" [{low:.{digits}f}, {high:.{digits}f}]" if low is not None else ""
    return f"{row[value]:.{digits}f}{ends}".replace("-", "−")
