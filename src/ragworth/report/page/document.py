"""The page as one file: template, style, scripts and data, under a policy that lets nothing else run or load."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

import ragworth
from ragworth.errors import MissingExtraError
from ragworth.report.page.explorer import Explorer
from ragworth.report.page.html import Safe, join, text
from ragworth.report.page.pack import packed, source_hash

SCRIPTS = ("data.js", "theme.js", "charts.js", "prompts.js", "list.js", "query.js", "app.js")
"""Ours, in the order in which they need each other."""


def part(name: str) -> str:
    """A file of this package."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def vega() -> str:
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


def document(parts: Mapping[str, Safe], title: str, charts: Mapping[str, Any], data: Explorer) -> str:
    """The whole page."""
    islands = {"charts": packed(charts), "index": data.index}
    islands |= {f"piece-{i}": piece for i, piece in enumerate(data.pieces)}
    ours = "\n".join(part(name) for name in SCRIPTS)
    return assembled(part("template.html"), part("style.css"), ours, {**parts, "title": text(title)}, islands)


def assembled(template: str, style: str, script: str, parts: Mapping[str, Safe], islands: Mapping[str, bytes]) -> str:
    """A template filled in: parts by their names, a style, Vega and a script of ours, packed data by their ids."""
    scripts = [vega(), _inline(f"(() => {{\n'use strict';\n{script}}})();")]
    filled = {
        **parts,
        "version": text(ragworth.__version__),
        "policy": text(policy(scripts, style)),
        "style": Safe(style),
        # Letters, digits, + and / only: nothing in it can end the element.
        "islands": join(
            [Safe(f'<script type="text/plain" id="{k}">{v.decode()}</script>') for k, v in islands.items()], "\n"
        ),
        "scripts": join([Safe(f"<script>{script}</script>") for script in scripts], "\n"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: filled[found[1]], template)


def policy(scripts: list[str], style: str) -> str:
    """No requests of any kind; only these scripts and this style, by their hashes, and no ``eval``."""
    return (
        f"default-src 'none'; script-src {' '.join(map(source_hash, scripts))}; style-src {source_hash(style)}; "
        "base-uri 'none'; form-action 'none'"
    )
