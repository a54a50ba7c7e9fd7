"""What all charts share: Altair, short names, safe frames, finished Vega-Lite specifications, colours and type.

A chart is as wide as its place in the page. Its data are inside the specification; nothing is ever loaded.

A chart's specification names its colours (`ink("good")`); what they are is filled in when it is drawn, by the page for
the theme that the reader has chosen, and by :func:`apply_colors` for files. Hues are those of Okabe and Ito, which
people with any common colour blindness can tell apart. Nothing is said by colour alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import polars as pl

from ragworth.core.errors import MissingExtraError, format_cell

MARK = "\u0001"
"""Begins the name of a colour; no text of a chart does."""

LIGHT = {
    "text": "#1c1e21",
    "soft": "#5b6066",
    "line": "#d9dce0",
    "paper": "#ffffff",
    "main": "#0a5e9c",
    "good": "#0072b2",
    "fair": "#7db8dd",
    "none": "#b4b8be",
    "poor": "#e8a35c",
    "bad": "#c2410c",
    "plus": "#0a5e9c",
    "middle": "#f4f4f2",
    "minus": "#c2410c",
    "strong": "#ffffff",
}
DARK = {
    "text": "#e6e7e9",
    "soft": "#a3a8af",
    "line": "#3a3f46",
    "paper": "#16181c",
    "main": "#6cb6ea",
    "good": "#4aa3df",
    "fair": "#2b648c",
    "none": "#5d636b",
    "poor": "#b97a35",
    "bad": "#f0743e",
    "plus": "#5fb2ea",
    "middle": "#24272c",
    "minus": "#f0743e",
    "strong": "#101114",
}
SYSTEMS_LIGHT = ["#0072b2", "#d55e00", "#009e73", "#b3589a", "#a77700", "#3b9bd6", "#5c5c5c", "#7a4fb5"]
SYSTEMS_DARK = ["#4aa3df", "#f0743e", "#2ec095", "#dd8cc4", "#e0b03c", "#8fd0f7", "#b9bcc1", "#b39be0"]
LIGHT |= {f"system-{i}": color for i, color in enumerate(SYSTEMS_LIGHT)}
DARK |= {f"system-{i}": color for i, color in enumerate(SYSTEMS_DARK)}
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left"]
DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3]]


def theme_color(name: str) -> str:
    """A colour of the theme, by its name."""
    return MARK + name


def vega_config(colors: Mapping[str, str], font: str) -> dict[str, Any]:
    """Vega-Lite's configuration for one theme."""
    words = {"labelColor": colors["soft"], "titleColor": colors["text"], "labelFontSize": 12, "titleFontSize": 12}
    return {
        "font": font,
        "background": "transparent",
        "view": {"stroke": None},
        "axis": {
            **words,
            "titleFontWeight": 500,
            "gridColor": colors["line"],
            "domainColor": colors["line"],
            "tickColor": colors["line"],
            "labelLimit": 240,
            "titleLimit": 320,
            "titlePadding": 8,
        },
        "legend": {
            **words,
            "titleFontWeight": 500,
            "orient": "bottom",
            "columns": 4,
            "labelLimit": 160,
            "symbolSize": 90,
        },
        "text": {"color": colors["text"], "fontSize": 12},
    }


def themes(font: str = "system-ui, sans-serif") -> dict[str, dict[str, Any]]:
    """Both themes, as the page needs them."""
    return {
        "light": {"colors": LIGHT, "config": vega_config(LIGHT, font)},
        "dark": {"colors": DARK, "config": vega_config(DARK, font)},
    }


def apply_colors(spec: Any, colors: Mapping[str, str] = LIGHT) -> Any:
    """A specification with its colours filled in; its data are left as they are."""
    if isinstance(spec, Mapping):
        return {key: value if key == "values" else apply_colors(value, colors) for key, value in spec.items()}
    if isinstance(spec, list):
        return [apply_colors(each, colors) for each in spec]
    return colors[spec[1:]] if isinstance(spec, str) and spec[:1] == MARK and spec[1:] in colors else spec


LONGEST = 24
"""Signs that there is room for, on a phone too."""
TAIL = 13


def shorten_names(names: Sequence[str]) -> dict[str, str]:
    """Names that fit stay; of long ones goes what all names have in common, then the middle; never two alike.

    The middle, because names of systems often differ in how they end: ``all-mpnet-base-v2__top_k=3__chunk_size=64``
    among others of its kind is ``all-mpnet-…k=3 size=64``.
    """
    words = [set(_words(name)) for name in names]
    common = set.intersection(*words) if len(names) > 1 else set()
    short: dict[str, str] = {}
    for number, name in enumerate(names, 1):
        brief = name if len(name) <= LONGEST else _elide(_distinct_parts(name, common))
        short[name] = f"{brief[: LONGEST - 4]}…{number}" if brief in short.values() else brief
    return short


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text)


def _distinct_parts(name: str, common: set[str]) -> str:
    """The parts of a name, between blanks, underscores, commas and slashes, that say something of their own."""
    parts = [part for part in re.split(r"[\s_,/|]+", name) if part and not set(_words(part)) <= common]
    return " ".join(parts) or name


def _elide(name: str) -> str:
    if len(name) <= LONGEST:
        return name
    tail = name[-TAIL:]
    before, blank, rest = tail.partition(" ")
    # A letter or two of a word that was cut say nothing.
    return f"{name[: LONGEST - TAIL - 1]}…{rest if blank and len(before) < 3 else tail}"


ROW_HEIGHT = 24
"""Height of a system's row."""

Spec = dict[str, Any]


def load_altair() -> Any:
    """Altair, or the line that installs it."""
    try:
        import altair
    except ImportError as error:
        raise MissingExtraError("altair", "report", "drawing the report's charts") from error
    return altair


class _Rows:
    """The rows of a chart. Altair copies lists whenever a chart is changed, which takes longer than all the rest."""

    _schema: ClassVar[dict[str, str]] = {"type": "array"}  # Altair asks what it turns to a dict whether it has one

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    def to_dict(self) -> list[dict[str, Any]]:
        return self.rows


def chart_data(frame: pl.DataFrame) -> Any:
    """A frame as the data of a chart."""
    return load_altair().Data(values=_Rows(frame.to_dicts()))


def escape_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """Texts with control characters as escapes: XML cannot hold them, and drawing one would end the process.

    Systems get short names to stand beside axes, and ``name`` keeps the whole one.
    """
    made = frame.with_columns(pl.col(pl.String).map_elements(format_cell, return_dtype=pl.String))
    if "system" not in made.columns:
        return made
    short = shorten_names(made["system"].unique(maintain_order=True).to_list())
    return made.with_columns(
        pl.col("system").alias("name"), pl.col("system").replace_strict(short, return_dtype=pl.String)
    )


def finish_chart(chart: Any, height: int, width: str | dict[str, int] = "container") -> Spec:
    """A finished chart: as wide as its place, no schema to be looked up anywhere."""
    # Set here: each of Altair's own methods copies the whole chart.
    spec = {**chart.to_dict(validate=False), "width": width, "height": height}
    spec.pop("$schema", None)
    spec.pop("config", None)
    if width == "container":
        spec["autosize"] = {"type": "fit-x", "contains": "padding"}
    return dict(_printable(spec))


def _printable(spec: Any, key: str = "") -> Any:
    """The same of titles, which hold names of metrics.

    A backslash in a title is drawn as the sign that looks like it: Vega-Lite puts titles into expressions, for
    tooltips and descriptions, and there it would begin an escape.
    """
    if isinstance(spec, dict):
        return {key: value if key == "values" else _printable(value, key) for key, value in spec.items()}
    if isinstance(spec, list):
        return [_printable(each) for each in spec]
    if not isinstance(spec, str) or spec.startswith(MARK):
        return spec
    return format_cell(spec).replace("\\", "∖") if key == "title" else format_cell(spec)
