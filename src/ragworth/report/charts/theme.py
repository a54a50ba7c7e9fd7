"""Colours and type of the charts, light and dark.

A chart's specification names its colours (`ink("good")`); what they are is filled in when it is drawn, by the page for
the theme that the reader has chosen, and by :func:`apply_colors` for files. Hues are those of Okabe and Ito, which
people with any common colour blindness can tell apart. Nothing is said by colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
