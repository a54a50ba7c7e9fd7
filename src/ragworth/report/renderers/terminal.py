"""A document in a terminal, in short: tables, notes, and what came out, which stands last, where a terminal ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ragworth.core.errors import format_cell, format_count
from ragworth.report.document import (
    Bullets,
    Cell,
    Document,
    DocumentBlock,
    Notes,
    Paragraph,
    RichText,
    TableBlock,
    TextSpan,
)
from ragworth.report.render import printable, text_grid

ROWS = 24
"""Rows of a table that are printed."""


def render_text(document: Document, rows: int = ROWS) -> str:
    """Of a table with more than ``rows`` rows the first ones are printed, and how many more its file has."""
    first, *others = document.sections
    parts = [f"{format_cell(document.title)}\n{printable(document.lead)}\n"]
    parts += [text for section in others for block in section.blocks for text in _block(block, rows)]
    said = "".join(_said(first.blocks))
    return "\n".join([*parts, said] if said else parts)


def _block(block: DocumentBlock, rows: int) -> Iterator[str]:
    if isinstance(block, Notes):
        yield "".join(f"note: {printable(note)}\n" for note in block.items)
    elif isinstance(block, TableBlock) and block.rows:
        yield _table(block, rows)
    else:
        for part in block.blocks:
            yield from _block(part, rows)


def _table(table: TableBlock, rows: int) -> str:
    title, file, total = format_cell(table.caption), format_cell(table.file), max(table.total, len(table.rows))
    if table.aside:
        return f"{title}: {format_count(total, 'row')} in {file}.csv\n"
    grid = [[_cell(cell) for cell in row] for row in ([each.title for each in table.columns], *table.rows[:rows])]
    shown = text_grid(grid, [each.numeric for each in table.columns])
    more = f"… and {format_count(total - rows, 'more row')} in {file}.csv\n" if total > rows else ""
    note = f"{printable(table.note)}\n" if table.note else ""
    return f"{title}\n\n{shown}{more}{note}"


def _said(blocks: Sequence[DocumentBlock]) -> Iterator[str]:
    """What came out, sentence by sentence."""
    for block in blocks:
        if isinstance(block, Paragraph):
            yield f"{_text(block.text)}\n"
        elif isinstance(block, Bullets):
            yield from (f"{_text(item)}\n" for item in block.items)


def _text(text: RichText) -> str:
    pieces = text if isinstance(text, list) else [text]
    return printable("".join(each.text if isinstance(each, TextSpan) else each for each in pieces))


def _cell(value: Cell) -> str:
    if isinstance(value, list):
        return " ".join(filter(None, (_cell(part).strip() for part in value)))
    return format_cell(value.text if isinstance(value, TextSpan) else value)
