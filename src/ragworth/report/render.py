"""One frame, six looks: terminal text, CSV, JSON, Markdown, LaTeX, Parquet.

Ids and names come from files that nobody vetted: control characters are shown as escapes, and what has a
meaning in Markdown or LaTeX is escaped.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal
from unicodedata import combining, east_asian_width

import polars as pl

from ragworth.core.errors import FormatError, format_cell
from ragworth.core.files import open_output
from ragworth.formats.csv import write_csv

Look = Literal["text", "csv", "json", "markdown", "latex", "parquet"]
ENDINGS: dict[str, Look] = {
    ".txt": "text",
    ".csv": "csv",
    ".json": "json",
    ".md": "markdown",
    ".tex": "latex",
    ".parquet": "parquet",
}


def printable(text: str) -> str:
    """Words for a terminal: lines stay lines, other control characters are shown as escapes."""
    return "\n".join(format_cell(line) for line in text.split("\n"))


def format_p_value(p: float | None) -> str:
    """A p-value: never 0."""
    if p is None:
        return "–"
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def _grid(frame: pl.DataFrame) -> list[list[str]]:
    """Names of columns, then the rows, as they are shown."""
    return [[format_cell(value) for value in row] for row in (tuple(frame.columns), *frame.iter_rows())]


def _right_aligned(frame: pl.DataFrame) -> list[bool]:
    """Which columns are of numbers, or of what is made of numbers."""
    made = ("interval", " p", "p_holm", "difference", "n of N", "won/tied/lost")
    return [kind.is_numeric() or f" {name}".endswith(made) for name, kind in frame.schema.items()]


def _width(text: str) -> int:
    """How many columns of a terminal a text takes: East Asian signs take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def text_table(frame: pl.DataFrame) -> str:
    """Aligned columns: numbers to the right, words to the left. The same everywhere; rich fits tables to a terminal."""
    return text_grid(_grid(frame), _right_aligned(frame))


def text_grid(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    """Rows of texts, the first being the head, as aligned columns. Very long names of systems are shortened."""
    rows = shorten_cells(rows)
    widths = [max(_width(row[i]) for row in rows) for i in range(len(right))]
    lines = []
    for row in rows:
        parts = []
        for value, width, numeric in zip(row, widths, right, strict=True):
            space = " " * (width - _width(value))
            parts.append(space + value if numeric else value + space)
        lines.append("  ".join(parts).rstrip())
    lines.insert(1, "  ".join("─" * width for width in widths))
    return "\n".join(lines) + "\n"


def markdown_table(frame: pl.DataFrame) -> str:
    """A Markdown table. Whatever could become a link, emphasis, code or HTML is escaped."""
    return markdown_grid([[escape_markdown(value) for value in row] for row in _grid(frame)], _right_aligned(frame))


def markdown_grid(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    """Rows of Markdown, the first being the head, as a table."""
    marks = ["---:" if numeric else "---" for numeric in right]
    return "".join(f"| {' | '.join(row)} |\n" for row in [rows[0], marks, *rows[1:]])


def escape_markdown(text: str) -> str:
    """A text without anything that Markdown or HTML would act on inside a line."""
    html = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join(f"\\{sign}" if sign in "\\|*_`[]~" else sign for sign in html)


LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "−": "$-$",
    "ρ": r"$\rho$",
    "τ": r"$\tau$",
    "[": "{[}",  # after a line's end it would be taken for an option
}


def latex_table(frame: pl.DataFrame) -> str:
    """A LaTeX tabular with booktabs rules."""

    def escaped(value: str) -> str:
        return "".join(LATEX_ESCAPES.get(sign, sign) for sign in value)

    kinds = "".join("r" if right else "l" for right in _right_aligned(frame))
    rows = [" & ".join(escaped(value) for value in row) + r" \\" for row in _grid(frame)]
    body = "\n".join(rows[1:])
    return f"\\begin{{tabular}}{{{kinds}}}\n\\toprule\n{rows[0]}\n\\midrule\n{body}\n\\bottomrule\n\\end{{tabular}}\n"


def as_json(frame: pl.DataFrame) -> str:
    """A list of objects, values in full precision."""
    return json.dumps([_finite(row) for row in frame.iter_rows(named=True)], ensure_ascii=False, indent=1) + "\n"


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    return {k: (None if isinstance(v, float) and not math.isfinite(v) else v) for k, v in row.items()}


LOOKS: dict[str, Callable[[pl.DataFrame], str]] = {
    "text": text_table,
    "csv": lambda frame: write_csv(frame).decode(),
    "json": as_json,
    "markdown": markdown_table,
    "latex": latex_table,
}


def render(frame: pl.DataFrame, look: str) -> bytes:
    """``frame`` in one of the looks."""
    if look == "parquet":
        stream = io.BytesIO()
        frame.write_parquet(stream)
        return stream.getvalue()
    return LOOKS[look](frame).encode()


def look_for_path(path: str | Path) -> Look:
    """The look that a file's ending asks for."""
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise FormatError(f"unknown file extension {ending or '(none)'}", file=str(path), expected=", ".join(ENDINGS))
    return ENDINGS[ending]


def save_bytes(data: bytes, path: str | Path) -> None:
    """Write a rendered table to a file that the user named."""
    with open_output(Path(path), private=False) as part:
        part.stream.write(data)


LONGEST = 60
"""Characters of a name that are printed in full."""
END = 24
"""Characters that stay at the end; what tells names apart has as many between beginning and end."""
MINUS = " − "
_COLUMN_TEXT = "system systems group baseline first second against best better judge model retriever reader run"
NAME_COLUMNS = frozenset(_COLUMN_TEXT.split())


def shorten_cells(rows: Sequence[Sequence[str]]) -> Sequence[Sequence[str]]:
    """Rows, the first being the head, with short names in the head and in columns of names."""
    head, *others = rows
    places = [place for place, title in enumerate(head) if title in NAME_COLUMNS]
    parts = {part for row in others for place in places for part in row[place].split(MINUS)}
    short = elide_names([*head, *parts])
    if not short:
        return rows
    shortened = [[short.get(title, title) for title in head]]
    for row in others:
        cells = list(row)
        for place in places:
            cells[place] = MINUS.join(short.get(part, part) for part in row[place].split(MINUS))
        shortened.append(cells)
    return shortened


def elide_names(names: Iterable[str]) -> dict[str, str]:
    """The long names with "…" for their middle. Where that makes names equal, the part in which they differ stays."""
    every = set(names)
    short = _elide(sorted(name for name in every if len(name) > LONGEST), None)
    distinct = len({short.get(name, name) for name in every}) == len(every)
    return short if distinct else {}


def _elide(names: Sequence[str], at: int | None) -> dict[str, str]:
    """Sorted names without their middle; ``at`` is where the first and the last of them differ."""
    shortened: dict[str, str] = {}
    groups: dict[str, list[str]] = {}
    for name in names:
        kept = "…" if at is None else f"…{name[at - END // 2 : at + END // 2]}…"
        shortened[name] = f"{name[: LONGEST - END - len(kept)]}{kept}{name[-END:]}"
        groups.setdefault(shortened[name], []).append(name)
    for group in groups.values():
        if len(group) > 1:
            shortened |= _elide(group, _first_difference(group[0], group[-1]))
    return shortened


def _first_difference(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
