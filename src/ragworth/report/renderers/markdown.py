"""A document as Markdown, with its figures as files beside it: for repositories, issues and letters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from ragworth.report.document import (
    Block,
    Bullets,
    Cell,
    Data,
    Details,
    Document,
    Figure,
    Group,
    Heading,
    Notes,
    Only,
    Paragraph,
    Section,
    Span,
    Table,
    Text,
)
from ragworth.report.render import escape_markdown, format_cell, markdown_grid


def render_markdown(document: Document) -> str:
    """The whole document but for what only a page can do."""
    first, *others = document.sections
    parts = [f"# {escape_line(document.title)}", escape_line(document.lead), *_blocks(first.blocks)]
    for section in others:
        content = render_section(section)
        parts.append(f"<!--{section.id}-->{content}<!--/{section.id}-->" if section.replaceable else content)
    return "\n\n".join(filter(None, parts)) + "\n"


def render_section(section: Section) -> str:
    """A section alone; nothing of one without anything for Markdown."""
    parts = [*_blocks(section.blocks)]
    if not parts:
        return ""
    made = "\n\n".join([f"## {escape_line(section.title)}", *parts])
    return f"\n{made}\n\n" if section.replaceable else made


def escape_line(text: str) -> str:
    """A text on one line, with nothing in it that Markdown or HTML would act on."""
    return escape_markdown(format_cell(" ".join(text.split()))).replace("#", "\\#")


def _blocks(blocks: Sequence[Block]) -> Iterator[str]:
    """The blocks that Markdown has a form for."""
    for block in blocks:
        if type(block) in FORMS:
            yield from filter(None, FORMS[type(block)](block))


def _text(text: Text) -> str:
    return "".join(map(_span, text if isinstance(text, list) else [text])).strip()


def _span(text: str | Span) -> str:
    """A piece of a text; links inside the page lead nowhere from here."""
    words = text.text if isinstance(text, Span) else text
    made = f"{' ' * words[:1].isspace()}{escape_line(words)}{' ' * words[-1:].isspace()}"
    return f"[{made}]({text.link})" if isinstance(text, Span) and text.link and text.link[0] != "#" else made


def _cell(value: Cell) -> str:
    if isinstance(value, list):
        return " ".join(filter(None, (_span(part).strip() for part in value)))
    if isinstance(value, Span):
        return _span(value).strip()
    return escape_markdown(format_cell(value))


def _paragraph(block: Paragraph) -> Iterator[str]:
    words = _text(block.text)
    yield f"**{words}**" if block.style == "first" else words


def _heading(block: Heading) -> Iterator[str]:
    yield f"{'#' * block.level} {escape_line(block.text)}"
    yield escape_line(block.count)


def _bullets(block: Bullets | Notes) -> Iterator[str]:
    yield "\n".join(f"- {_text(item)}" for item in block.items)


def _table(block: Table) -> Iterator[str]:
    if not block.hidden:
        yield f"**{escape_line(block.caption)}**"
    yield from _rows(block)


def _rows(block: Table) -> Iterator[str]:
    """A table without its caption, which may say the same as the heading above it."""
    grid = [[_cell(each.title) for each in block.columns], *([_cell(cell) for cell in row] for row in block.rows)]
    yield markdown_grid(grid, [each.numeric for each in block.columns]).rstrip()
    if block.total > len(block.rows):
        where = f"; all are in [{escape_line(block.file)}.csv]({quote(block.file)}.csv)" if block.file else ""
        yield f"The first {len(block.rows)} of {block.total:,} rows{where}."
    yield escape_line(block.note)


def _figure(block: Figure) -> Iterator[str]:
    yield f"### {escape_line(block.title)}"
    for panel in block.panels:
        yield f"![{escape_line(f'{block.title} {panel.title}')}](figures/{quote(panel.name)}.svg)"
    yield escape_line(block.caption)


def _group(block: Group) -> Iterator[str]:
    yield from _blocks(block.blocks)


def _details(block: Details) -> Iterator[str]:
    yield f"### {escape_line(block.summary)}"
    for part in block.blocks:
        same = isinstance(part, Table) and part.caption == block.summary
        yield from _rows(part) if same and isinstance(part, Table) else _blocks([part])


def _data(block: Data) -> Iterator[str]:
    pairs = [[_cell(key), _cell(value)] for key, value in flatten(block.value)]
    if pairs:
        yield markdown_grid([["setting", "value"], *pairs], [False, False]).rstrip()


def flatten(value: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """Nested settings as pairs: ``models.0.name`` and what it is."""
    if isinstance(value, Mapping | list):
        for key, each in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from flatten(each, f"{before}.{key}" if before else str(key))
    else:
        yield before, str(value)


def _only(block: Only) -> Iterator[str]:
    yield from _blocks(block.blocks) if block.medium == "markdown" else ()


FORMS: dict[type[Block], Callable[[Any], Iterator[str]]] = {
    Paragraph: _paragraph,
    Heading: _heading,
    Bullets: _bullets,
    Notes: _bullets,
    Table: _table,
    Figure: _figure,
    Group: _group,
    Details: _details,
    Data: _data,
    Only: _only,
}
"""How each kind of block is written; others are for the page alone."""
