"""A document as one HTML file: template, style, scripts and data, under a policy that lets nothing else run or load.

Templates escape everything that is not :class:`markupsafe.Markup`: ids, names and texts come from files nobody vetted.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from markupsafe import Markup, escape

import ragworth
from ragworth.core.cache import cache_folder
from ragworth.core.errors import FormatError, MissingExtraError, format_cell
from ragworth.core.files import write_output
from ragworth.report.charts.base import themes
from ragworth.report.document import Cell, Document, DocumentBlock, Figure, Section, TableBlock, TextSpan

if TYPE_CHECKING:
    from jinja2 import Environment


def pack_json(value: Any) -> bytes:
    """JSON, gzipped (without a time, so that equal data give equal pages) and in base64."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), 6, mtime=0))


def source_hash(content: str) -> str:
    """The name of an inline script or style in a Content-Security-Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


SCRIPTS = ("data.js", "theme.js", "charts.js", "list.js", "query.js", "sentences.js", "app.js")
"""Ours, in the order in which they need each other."""
ELEMENTS = {"strong": "b", "warn": "small", "place": "span", "group": "abbr", "warning": "p"}
"""Elements of roles that are not called the same."""
CLASSES = {"warn": "warn", "place": "place", "warning": "warn"}
LONG = 22
"""Letters of a system's name from which on charts need more room."""
TALL = 560
"""Height from which on a chart has the width of the page for itself: beside it would be nothing."""


def render_page(document: Document, islands: Mapping[str, bytes] | None = None) -> str:
    """The whole page. ``islands`` are packed data for the scripts, by their ids."""
    style = read_asset("style.css")
    ours = "\n".join(map(read_asset, SCRIPTS))
    scripts = [vega_bundle(), _inline(f"(() => {{\n'use strict';\n{ours}}})();")]
    data = {"charts": pack_json({"specs": document.charts, "themes": themes()}), **(islands or {})}
    return (
        _environment()
        .get_template("page.html")
        .render(
            document=document,
            version=ragworth.__version__,
            policy=content_policy(scripts, style),
            style=Markup(style),
            # Letters, digits, + and / only: nothing in it can end the element.
            islands={name: Markup(packed.decode()) for name, packed in data.items()},
            scripts=map(Markup, scripts),
        )
    )


def render_section(section: Section) -> str:
    """A section alone; nothing of an empty one."""
    return _macro("section", section) if section.blocks else ""


def render_link(section: Section) -> str:
    """The entry of a section in the navigation; nothing of an empty one."""
    return _macro("link", section) if section.blocks else ""


def render_block(block: DocumentBlock) -> Markup:
    """A block, by the macro that is named like it."""
    return _macro(type(block).__name__.removesuffix("Block").lower(), block)


def render_text(value: Cell) -> Markup:
    """A text, or a value of a table, escaped."""
    if isinstance(value, list):
        return Markup("").join(map(render_text, value))
    if not isinstance(value, TextSpan):
        return escape(_shown(value))
    words = escape(_shown(value.text))
    if value.role:
        element = ELEMENTS.get(value.role, value.role)
        words = Markup("<{0}{1}>{2}</{0}>").format(
            Markup(element), attributes(title=value.title, class_=CLASSES.get(value.role, "")), words
        )
    return Markup("<a{}>{}</a>").format(attributes(href=value.link), words) if value.link else words


def attributes(**given: str) -> Markup:
    """Attributes of an element, those that are not empty; ``class_`` is class, and ``data_label`` is data-label."""
    made = [
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _shown(value))
        for key, value in given.items()
        if value
    ]
    return Markup("").join(made)


def _shown(value: object) -> object:
    """A value as a page has it: three decimals, control characters as escapes."""
    if isinstance(value, Markup):
        return value
    return f"{value:.3f}".replace("-", "−") if isinstance(value, float) else format_cell(value)


def _label(table: TableBlock, column: int) -> str:
    """What a cell of a leaderboard is called where a phone shows its row as a card."""
    title = table.columns[column].title
    return title if table.style == "board" and isinstance(title, str) else ""


def _figure_style(figure: Figure) -> str:
    """How much room a figure takes."""
    wide = any((panel.spec.get("usermeta") or {}).get("wide") for panel in figure.panels)
    tall = not wide and len(figure.panels) == 1 and figure.panels[0].spec.get("height", 0) > TALL
    many = len(figure.panels) > 1 or wide or tall
    return f"figure-{figure.name}{' many' if many else ''}{' tall' if tall else ''}"


def _panel_style(figure: Figure) -> str:
    """How charts stand beside each other: long names beside axes need room."""
    if len(figure.panels) == 1:
        return "panels one"
    names = figure.data["system"].to_list() if "system" in figure.data.columns else []
    return "panels wide" if any(len(name) > LONG for name in names) else "panels"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _signed(value: float) -> str:
    """A number with its sign, with two decimals."""
    return f"{value:+.2f}".replace("-", "−")


def _lines(text: str) -> Markup:
    """A text of several lines, each with its control characters shown."""
    return Markup("\n").join(escape(format_cell(line)) for line in text.split("\n"))


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader(__package__ or ""),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"render": render_block, "text": render_text, "attributes": attributes}
    made.globals |= {"label": _label}
    made.globals |= {"figure_style": _figure_style, "panel_style": _panel_style}
    made.filters |= {"plain": _plain, "lines": _lines, "address": quote, "signed": _signed, "fixed": "{:.2f}".format}
    return made


def _macro(name: str, *given: object) -> Markup:
    return Markup(getattr(_environment().get_template("blocks.html").module, name)(*given))


def read_asset(name: str) -> str:
    """A style or script of the page."""
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


@cache
def vega_bundle() -> str:
    """Vega, Vega-Lite and vega-embed as one script that leaves one name behind.

    vega-embed brings the interpreter of expressions with which charts need no ``eval``, which the policy forbids.
    """
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtraError("vl-convert-python", "report", "drawing the report's charts") from error
    return _inline(f"(() => {{{bundle_vega(vl_convert, 'window.drawChart = vegaEmbed;')}}})();")


def bundle_vega(vl_convert: Any, snippet: str) -> str:
    """The libraries and ``snippet``, cached for each version of vl-convert: bundling takes four seconds.

    The file begins with the hash of the rest. Without a home folder, or with a damaged file, it is bundled again.
    """
    key = hashlib.sha256(f"{vl_convert.__version__}\n{snippet}".encode()).hexdigest()[:16]
    with suppress(OSError, RuntimeError):
        path = cache_folder() / "scripts" / f"vega-{key}.js"
        digest, _, script = path.read_bytes().partition(b"\n")
        if hashlib.sha256(script).hexdigest().encode() == digest:
            return script.decode()
    script = str(vl_convert.javascript_bundle(snippet)).encode()
    with suppress(FormatError, RuntimeError):  # a cache that can't be written to only costs time
        path = cache_folder() / "scripts" / f"vega-{key}.js"
        write_output(path, hashlib.sha256(script).hexdigest().encode() + b"\n" + script)
    return script.decode()


def _inline(script: str) -> str:
    """A script that no HTML parser takes the end of before its end."""
    return re.sub(r"<(?=/script|!--)", r"\\x3c", script, flags=re.IGNORECASE)


def content_policy(scripts: list[str], style: str) -> str:
    """No requests of any kind; only these scripts and this style, by their hashes, and no ``eval``."""
    return (
        f"default-src 'none'; script-src {' '.join(map(source_hash, scripts))}; style-src {source_hash(style)}; "
        "base-uri 'none'; form-action 'none'"
    )
