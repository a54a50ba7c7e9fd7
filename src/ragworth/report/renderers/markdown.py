"""A document as Markdown, with its figures as files beside it: for repositories, issues and letters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from ragworth.core.errors import format_cell
from ragworth.report import document as doc
from ragworth.report.answer_views import AnswerView, HopTimeline
from ragworth.report.render import escape_markdown, markdown_grid


def render_markdown(document: doc.Document) -> str:
    """The whole document but for what only a page can do."""
    first, *others = document.sections
    parts = [f"# {escape_line(document.title)}", escape_line(document.lead), *_blocks(first.blocks)]
    for section in others:
        content = render_section(section)
        parts.append(f"<!--{section.id}-->{content}<!--/{section.id}-->" if section.replaceable else content)
    return "\n\n".join(filter(None, parts)) + "\n"


def render_section(section: doc.Section) -> str:
    """A section alone; nothing of one without anything for Markdown."""
    parts = [*_blocks(section.blocks)]
    if not parts:
        return ""
    made = "\n\n".join([f"## {escape_line(section.title)}", *parts])
    return f"\n{made}\n\n" if section.replaceable else made


def escape_line(text: str) -> str:
    """A text on one line, with nothing in it that Markdown or HTML would act on."""
    return escape_markdown(format_cell(" ".join(text.split()))).replace("#", "\\#")


def _blocks(blocks: Sequence[doc.DocumentBlock]) -> Iterator[str]:
    for block in blocks:
        yield from filter(None, _block(block))


def _block(block: doc.DocumentBlock) -> Iterator[str]:
    """The paragraphs of a block; none of what only a page can do."""
    match block:
        case doc.Paragraph(text, style):
            yield f"**{_text(text)}**" if style == "first" else _text(text)
        case doc.Heading(title, level, _, count):
            yield f"{'#' * level} {escape_line(title)}"
            yield escape_line(count)
        case doc.Bullets(items) | doc.Notes(items):
            yield "\n".join(f"- {_text(item)}" for item in items)
        case doc.TableBlock():
            yield "" if block.hidden else f"**{escape_line(block.caption)}**"
            yield from _rows(block)
        case doc.Figure(_, title, caption, panels):
            yield f"### {escape_line(title)}"
            for panel in panels:
                yield f"![{escape_line(f'{title} {panel.title}')}](figures/{quote(panel.name)}.svg)"
            yield escape_line(caption)
        case doc.Details(title, [doc.TableBlock(caption) as table]) if caption == title:
            yield f"### {escape_line(title)}"
            yield from _rows(table)
        case doc.Details(title, blocks):
            yield from [f"### {escape_line(title)}", *_blocks(blocks)]
        case doc.DataBlock(_, value):
            pairs = [[_cell(key), _cell(each)] for key, each in flatten(value)]
            yield markdown_grid([["setting", "value"], *pairs], [False, False]).rstrip() if pairs else ""
        case doc.Group() | doc.Only(medium="markdown") | AnswerView() | HopTimeline():
            yield from _blocks(block.blocks)


def _text(text: doc.RichText) -> str:
    return "".join(map(_span, text if isinstance(text, list) else [text])).strip()


def _span(text: str | doc.TextSpan) -> str:
    """A piece of a text; links inside the page lead nowhere from here."""
    words = text.text if isinstance(text, doc.TextSpan) else text
    made = f"{' ' * words[:1].isspace()}{escape_line(words)}{' ' * words[-1:].isspace()}"
    return f"[{made}]({text.link})" if isinstance(text, doc.TextSpan) and text.link and text.link[0] != "#" else made


def _cell(value: doc.Cell) -> str:
    if isinstance(value, list):
        return " ".join(filter(None, (_span(part).strip() for part in value)))
    if isinstance(value, doc.TextSpan):
        return _span(value).strip()
    return escape_markdown(format_cell(value))


def _rows(block: doc.TableBlock) -> Iterator[str]:
    """A table without its caption, which may say the same as the heading above it."""
    grid = [[_cell(each.title) for each in block.columns], *([_cell(cell) for cell in row] for row in block.rows)]
    yield markdown_grid(grid, [each.numeric for each in block.columns]).rstrip()
    if block.total > len(block.rows):
        where = f"; all are in [{escape_line(block.file)}.csv]({quote(block.file)}.csv)" if block.file else ""
        yield f"The first {len(block.rows)} of {block.total:,} rows{where}."
    yield escape_line(block.note)


def flatten(value: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """Nested settings as pairs: ``models.0.name`` and what it is."""
    if isinstance(value, Mapping | list):
        for key, each in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from flatten(each, f"{before}.{key}" if before else str(key))
    else:
        yield before, str(value)
