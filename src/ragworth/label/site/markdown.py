"""The little Markdown that instructions use, as safe HTML.

There are headings, paragraphs, lists, quotes, tables, bold, emphasis and code.

Everything is escaped first, so a custom task can't bring markup of its own. Links stay text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

INLINE = ((r"`([^`]+)`", "code"), (r"\*\*([^*]+)\*\*", "strong"), (r"(?<![\w*])[*_]([^*_]+)[*_](?![\w*])", "em"))
LISTS = {"ul": re.compile(r"[-*] +"), "ol": re.compile(r"\d+[.)] +")}


def render_markdown(text: str) -> SafeString:
    """Instructions as HTML."""
    blocks = re.split(r"\n\s*\n", text.strip())
    return mark_safe("\n".join(html for block in blocks for html in _blocks(block.splitlines())))


def _kind(line: str) -> str:
    line = line.strip()
    if re.match(r"#{1,6} ", line):
        return "heading"
    if line.startswith("> "):
        return "quote"
    if line.startswith("|"):
        return "table"
    return next((name for name, mark in LISTS.items() if mark.match(line)), "p")


def _blocks(lines: list[str]) -> Iterator[str]:
    """The parts of a block of lines; a line that continues a list item belongs to it."""
    kinds: list[str] = []
    for line in lines:
        continues = line.startswith("  ") and kinds and kinds[-1] in LISTS and _kind(line) == "p"
        kinds.append(kinds[-1] if continues else _kind(line))
    for kind, pairs in groupby(zip(kinds, lines, strict=True), key=lambda pair: pair[0]):
        yield _render(kind, [line.strip() for _, line in pairs])


def _render(kind: str, lines: list[str]) -> str:
    if kind == "heading":
        return "".join(f"<h3>{_inline(line.lstrip('# '))}</h3>" for line in lines)
    if kind == "quote":
        return f"<blockquote>{_inline(' '.join(line[2:] for line in lines))}</blockquote>"
    if kind == "table":
        return _table(lines)
    if kind in LISTS:
        items: list[str] = []
        for line in lines:
            if LISTS[kind].match(line):
                items.append(LISTS[kind].sub("", line, count=1))
            else:
                items[-1] += f" {line}"
        return f"<{kind}>{''.join(f'<li>{_inline(item)}</li>' for item in items)}</{kind}>"
    return f"<p>{_inline(' '.join(lines))}</p>"


def _table(lines: list[str]) -> str:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if set(line) - set("|-: ")]
    head, *body = rows or [[""]]
    cells = "".join(f"<th>{_inline(cell)}</th>" for cell in head)
    rest = "".join(f"<tr>{''.join(f'<td>{_inline(cell)}</td>' for cell in row)}</tr>" for row in body)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{rest}</tbody></table>"


def _inline(text: str) -> str:
    html = str(escape(text))
    for pattern, tag in INLINE:
        html = re.sub(pattern, rf"<{tag}>\1</{tag}>", html)
    return html
