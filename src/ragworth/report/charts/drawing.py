"""Charts as files: drawn in the light theme, without a browser."""

from __future__ import annotations

from typing import Any

from ragworth.errors import MissingExtraError
from ragworth.report.charts.base import Spec
from ragworth.report.charts.theme import LIGHT, apply_colors, vega_config

WIDTH = 640
SCALE = 2
"""Pixels of a PNG for each of a page."""


def render_svg(spec: Spec) -> str:
    """A chart as an SVG file."""
    return str(_load_vl_convert().vegalite_to_svg(_complete_spec(spec)))


def render_png(spec: Spec) -> bytes:
    """A chart as a PNG file."""
    return bytes(_load_vl_convert().vegalite_to_png(_complete_spec(spec), scale=SCALE))


def _load_vl_convert() -> Any:
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtraError("vl-convert-python", "report", "drawing the report's charts") from error
    return vl_convert


def _complete_spec(spec: Spec) -> Spec:
    """With its colours; as wide as a file's where it is to fill its place in a page."""
    width = WIDTH if spec["width"] == "container" else spec["width"]
    config = {**vega_config(LIGHT, "sans-serif"), "background": LIGHT["paper"]}
    return {**apply_colors(spec), "width": width, "padding": 8, "config": config}
