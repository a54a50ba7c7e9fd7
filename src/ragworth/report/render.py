"""One frame, six looks: terminal text, CSV, JSON, Markdown, LaTeX, Parquet.

Ids and names come from files that nobody vetted: control characters are shown as escapes, and what has a
meaning in Markdown or LaTeX is escaped.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import polars as pl

from ragworth.errors import FormatError

Look = Literal["text", "csv", "json", "markdown", "latex", "parquet"]
ENDINGS: dict[str, Look] = {
    ".txt": "text",
    ".csv": "csv",
    ".json": "json",
    ".md": "markdown",
    ".tex": "latex",
    ".parquet": "parquet",
}


def cell(value: object) -> str:
    """A value as a person reads it: four decimals, nothing for null, control characters escaped."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4f}" if math.isfinite(value) else str(value)
    text = str(value)
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def p_value(p: float | None) -> str:
    """A p-value: never 0."""
    if p is None:
        return "–"
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def _grid(frame: pl.DataFrame) -> list[list[str]]:
    return [[cell(value) for value in row] for row in frame.iter_rows()]


def text(frame: pl.DataFrame) -> str:
    """Aligned columns: numbers to the right, words to the left; repeated leading words left out."""
    right = [
        kind.is_numeric() or name.endswith(("95 %", "interval", "p", "n of N")) for name, kind in frame.schema.items()
    ]
    rows = [list(frame.columns), *_grid(frame)]
    widths = [max(len(row[i]) for row in rows) for i in range(frame.width)]
    lines = []
    for row in rows:
        parts = [
            value.rjust(width) if to_right else value.ljust(width)
            for value, width, to_right in zip(row, widths, right, strict=True)
        ]
        lines.append("  ".join(parts).rstrip())
    lines.insert(1, "  ".join("─" * width for width in widths))
    return "\n".join(lines) + "\n"


def markdown(frame: pl.DataFrame) -> str:
    """A Markdown table."""
    clean = [
        [value.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;") for value in row] for row in _grid(frame)
    ]
    marks = ["---:" if kind.is_numeric() else "---" for kind in frame.dtypes]
    rows = [frame.columns, marks, *clean]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


LATEX = {
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
}


def latex(frame: pl.DataFrame) -> str:
    """A LaTeX tabular with booktabs rules."""

    def escaped(value: str) -> str:
        return "".join(LATEX.get(sign, sign) for sign in value)

    kinds = "".join("r" if kind.is_numeric() else "l" for kind in frame.dtypes)
    rows = [" & ".join(escaped(value) for value in row) + r" \\" for row in [frame.columns, *_grid(frame)]]
    body = "\n".join(rows[1:])
    return f"\\begin{{tabular}}{{{kinds}}}\n\\toprule\n{rows[0]}\n\\midrule\n{body}\n\\bottomrule\n\\end{{tabular}}\n"


def as_json(frame: pl.DataFrame) -> str:
    """A list of objects, values in full precision."""
    return json.dumps([_finite(row) for row in frame.iter_rows(named=True)], ensure_ascii=False, indent=1) + "\n"


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    return {k: (None if isinstance(v, float) and not math.isfinite(v) else v) for k, v in row.items()}


LOOKS: dict[str, Callable[[pl.DataFrame], str]] = {
    "text": text,
    "csv": lambda frame: frame.write_csv(),
    "json": as_json,
    "markdown": markdown,
    "latex": latex,
}


def render(frame: pl.DataFrame, look: str) -> bytes:
    """``frame`` in one of the looks."""
    if look == "parquet":
        stream = io.BytesIO()
        frame.write_parquet(stream)
        return stream.getvalue()
    return LOOKS[look](frame).encode()


def look_of(path: str | Path) -> Look:
    """The look that a file's ending asks for."""
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise FormatError(
            f"the ending {ending or '(none)'} names no output format", file=str(path), expected=" ".join(ENDINGS)
        )
    return ENDINGS[ending]


def save(frame: pl.DataFrame, path: str | Path, look: str | None = None) -> None:
    """Write ``frame`` to a file, in the look its ending asks for."""
    data = render(frame, look or look_of(path))
    try:
        Path(path).write_bytes(data)
    except OSError as error:
        raise FormatError(f"cannot be written: {error.strerror or error}", file=str(path)) from error
