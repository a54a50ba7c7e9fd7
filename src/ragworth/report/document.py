"""What a report says, apart from how it looks: sections made of text, tables, figures and data.

The report of an evaluation and the page of a study are both a :class:`Document`. :mod:`ragworth.report.renderers` turns
one into a page, into Markdown and into text for a terminal. All texts are untrusted: renderers escape them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import polars as pl

TextRole = Literal["", "strong", "code", "small", "warn", "place", "group", "warning"]
NUMBER = re.compile(r"(?:[\d\s.,:;%+−–\-\[\]()<>=≤≥±/†‡*]|of|to)+")
"""What a column made of numbers holds: a mean with its interval, n of N, a p-value with a sign."""
ROWS = 200
"""Rows of a table that people see; its file has all."""


class TextSpan(NamedTuple):
    """A piece of a text: ``role`` is what it is, ``link`` a quoted address, ``title`` what a pointer is told."""

    text: str
    role: TextRole = ""
    link: str = ""
    title: str = ""


RichText = str | TextSpan | list[str | TextSpan]
"""A text, or its pieces."""
Cell = RichText | float | bool | None
"""A value of a table. Pieces of a cell stand below each other where there is room."""


class DocumentBlock:
    """A part of a section. ``blocks`` are those inside it."""

    blocks: Sequence[DocumentBlock] = ()


@dataclass(frozen=True)
class Paragraph(DocumentBlock):
    """A text of its own. ``style``: lead, note, first."""

    text: RichText
    style: str = ""
    id: str = ""


@dataclass(frozen=True)
class Heading(DocumentBlock):
    """A title inside a section; ``count`` says beside it how often."""

    text: str
    level: int = 3
    id: str = ""
    count: str = ""


@dataclass(frozen=True)
class Bullets(DocumentBlock):
    """A list. Of a list longer than ``shown``, the page shows the rest on request."""

    items: Sequence[RichText]
    style: str = ""
    ordered: bool = False
    shown: int | None = None
    unit: str = ""


@dataclass(frozen=True)
class Notes(DocumentBlock):
    """What readers should know besides, one by one."""

    items: Sequence[str]
    style: str = ""


class TableColumn(NamedTuple):
    """The head of a column; those of numbers stand to the right."""

    title: RichText
    numeric: bool = False


@dataclass(frozen=True)
class TableBlock(DocumentBlock):
    """A table; the first cell of each row names the row.

    Parameters
    ----------
    total: rows that there are, where ``rows`` has only the first.
    file: the name, without ending, of the files that have all rows.
    aside: too much for a terminal.
    hidden: whether only screen readers are told the caption.
    """

    caption: str
    columns: Sequence[TableColumn]
    rows: Sequence[Sequence[Cell]]
    style: str = ""
    total: int = 0
    file: str = ""
    note: str = ""
    aside: bool = False
    hidden: bool = False

    @classmethod
    def of(cls, frame: pl.DataFrame, caption: str, limit: int = ROWS, **given: Any) -> TableBlock:
        """The first rows of a frame; it may say of how many."""
        columns = [TableColumn(each.name, is_numeric(each)) for each in frame.head(limit)]
        return cls(caption, columns, frame.head(limit).rows(), **{"total": frame.height} | given)

    @property
    def title(self) -> str:
        """The caption, and how many rows are shown where not all are."""
        cut = self.total > len(self.rows)
        return f"{self.caption}: the first {len(self.rows):,} of {self.total:,} rows" if cut else self.caption


def is_numeric(column: pl.Series) -> bool:
    """Whether a column is of numbers, or of words made of them."""
    if column.dtype.is_numeric():
        return True
    words = column.drop_nulls().cast(pl.String).to_list() if column.dtype == pl.String else []
    return any(map(str.isdigit, "".join(words))) and all(NUMBER.fullmatch(word) or not word for word in words)


class ChartPanel(NamedTuple):
    """One chart of a figure: a Vega-Lite specification."""

    name: str
    title: str
    spec: dict[str, Any]


@dataclass(frozen=True)
class Figure(DocumentBlock):
    """One or more charts under one caption, with the numbers that they show. ``files``: the charts are linked."""

    name: str
    title: str
    caption: str
    panels: Sequence[ChartPanel]
    data: pl.DataFrame
    limit: int = 400
    files: bool = False

    @property
    def numbers(self) -> TableBlock | None:
        """The numbers of the charts; None where the data have no columns."""
        return None if not self.data.width else TableBlock.of(self.data, self.title, self.limit)


@dataclass(frozen=True)
class Group(DocumentBlock):
    """Blocks that belong together; ``style`` says how the page lays them out."""

    style: str
    blocks: Sequence[DocumentBlock]


@dataclass(frozen=True)
class Details(DocumentBlock):
    """What the page shows on request."""

    summary: str
    blocks: Sequence[DocumentBlock]
    open: bool = False


@dataclass(frozen=True)
class DataBlock(DocumentBlock):
    """Settings and the like: any JSON. Plain values come first, under ``title``."""

    title: str
    value: dict[str, Any]
    open: bool = False

    @property
    def items(self) -> dict[str, Any]:
        """What is shown together, by its title."""
        plain = {key: each for key, each in self.value.items() if not isinstance(each, dict | list)}
        return ({self.title: plain} if plain else {}) | {k: v for k, v in self.value.items() if k not in plain}


@dataclass(frozen=True)
class Preformatted(DocumentBlock):
    """A text with its own lines, and what it is."""

    label: str
    text: str


@dataclass(frozen=True)
class Only(DocumentBlock):
    """Blocks for one medium alone."""

    medium: Literal["html", "markdown"]
    blocks: Sequence[DocumentBlock]


@dataclass(frozen=True)
class Fragment(DocumentBlock):
    """A template of the page: what no other medium can do."""

    template: str


@dataclass(frozen=True)
class Section:
    """A part of a document. ``link`` is its name in the navigation.

    A ``replaceable`` section is marked in pages and Markdown, so that it can be rewritten without the rest.
    """

    id: str
    title: str
    blocks: Sequence[DocumentBlock]
    link: str = ""
    replaceable: bool = False


@dataclass(frozen=True)
class Document:
    """A report. The first section says what came out. ``kind`` is what the page calls itself."""

    kind: Literal["report", "study"]
    title: str
    lead: str
    sections: Sequence[Section]
    back: str = ""
    """The address of the report that a study belongs to."""

    @property
    def charts(self) -> dict[str, dict[str, Any]]:
        """All charts, by their names."""
        blocks = [block for section in self.sections for top in section.blocks for block in _walk(top)]
        return {panel.name: panel.spec for block in blocks if isinstance(block, Figure) for panel in block.panels}


def _walk(block: DocumentBlock) -> Iterator[DocumentBlock]:
    yield block
    for part in block.blocks:
        yield from _walk(part)
