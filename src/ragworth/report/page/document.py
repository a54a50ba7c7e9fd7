"""The page as one file: template, style, scripts and data, under a policy that lets nothing else run or load."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

import ragworth
from ragworth.errors import MissingExtraError
from ragworth.report.page.explorer import ExplorerData
from ragworth.report.page.html import SafeHtml, escape_text, join_html
from ragworth.report.page.pack import pack_json, source_hash

SCRIPTS = ("data.js", "theme.js", "charts.js", "prompts.js", "list.js", "query.js", "app.js")
"""Ours, in the order in which they need each other."""


def read_asset(name: str) -> str:
    """A file of this package."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def vega_bundle() -> str:
    """Vega, Vega-Lite and vega-embed as one script that leaves one name behind.

    vega-embed brings the interpreter of expressions with which charts need no ``eval``, which the policy forbids.
    """
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtraError("vl-convert-python", "report", "drawing the report's charts") from error
    return _inline(f"(() => {{{vl_convert.javascript_bundle('window.drawChart = vegaEmbed;')}}})();")


def _inline(script: str) -> str:
    """A script that no HTML parser takes the end of before its end."""
    return re.sub(r"<(?=/script|!--)", r"\\x3c", script, flags=re.IGNORECASE)


def render_page(parts: Mapping[str, SafeHtml], title: str, charts: Mapping[str, Any], data: ExplorerData) -> str:
    """The whole page."""
    islands = {"charts": pack_json(charts), "index": data.index}
    islands |= {f"piece-{i}": piece for i, piece in enumerate(data.pieces)}
    ours = "\n".join(read_asset(name) for name in SCRIPTS)
    return fill_page(
        read_asset("template.html"), read_asset("style.css"), ours, {**parts, "title": escape_text(title)}, islands
    )


def fill_page(
    template: str, style: str, script: str, parts: Mapping[str, SafeHtml], islands: Mapping[str, bytes]
) -> str:
    """A template filled in: parts by their names, a style, Vega and a script of ours, packed data by their ids."""
    scripts = [vega_bundle(), _inline(f"(() => {{\n'use strict';\n{script}}})();")]
    filled = {
        **parts,
        "version": escape_text(ragworth.__version__),
        "policy": escape_text(content_policy(scripts, style)),
        "style": SafeHtml(style),
        # Letters, digits, + and / only: nothing in it can end the element.
        "islands": join_html(
            [SafeHtml(f'<script type="text/plain" id="{k}">{v.decode()}</script>') for k, v in islands.items()], "\n"
        ),
        "scripts": join_html([SafeHtml(f"<script>{script}</script>") for script in scripts], "\n"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: filled[found[1]], template)


def content_policy(scripts: list[str], style: str) -> str:
    """No requests of any kind; only these scripts and this style, by their hashes, and no ``eval``."""
    return (
        f"default-src 'none'; script-src {' '.join(map(source_hash, scripts))}; style-src {source_hash(style)}; "
        "base-uri 'none'; form-action 'none'"
    )
