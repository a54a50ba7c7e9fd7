"""Charts as files: drawn in the light theme, without a browser."""

from __future__ import annotations

from typing import Any

from ragworth.errors import MissingExtraError
from ragworth.report.page.charts import Spec
from ragworth.report.page.theme import LIGHT, configuration, painted

WIDTH = 640
SCALE = 2
"""Pixels of a PNG for each of a page."""


def svg(spec: Spec) -> str:
    """A chart as an SVG file."""
    return str(_library().vegalite_to_svg(_complete(spec)))


def png(spec: Spec) -> bytes:
    """A chart as a PNG file."""
    return bytes(_library().vegalite_to_png(_complete(spec), scale=SCALE))


def _library() -> Any:
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtraError("vl-convert-python", "report", "drawing the report's charts") from error
    return vl_convert


def _complete(spec: Spec) -> Spec:
    """With its colours; as wide as a file's where it is to fill its place in a page."""
    width = WIDTH if spec["width"] == "container" else spec["width"]
    config = {**configuration(LIGHT, "sans-serif"), "background": LIGHT["paper"]}
    return {**painted(spec), "width": width, "padding": 8, "config": config}
