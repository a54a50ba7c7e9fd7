"""HTML from values. Everything that is not `Safe` is escaped: ids, names and texts come from files nobody vetted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

import polars as pl

from ragworth.report.render import format_cell


class SafeHtml(str):
    """HTML that may be put into a page as it is."""

    __slots__ = ()


def escape_text(value: object) -> SafeHtml:
    """A value as text of a page; control characters are shown as escapes."""
    return (
        value
        if isinstance(value, SafeHtml)
        else SafeHtml(escape(format_cell(value) if not isinstance(value, float) else _format_float(value)))
    )


def _format_float(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")


def tag(name: str, *content: object, **attributes: object) -> SafeHtml:
    """An element. ``class_`` is the attribute class, ``data_x`` is data-x; None leaves an attribute out."""
    words = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(format_cell(str(value)))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return SafeHtml(f"<{name}{words}>{join_html(content)}</{name}>")


def join_html(parts: Sequence[object], between: str = "") -> SafeHtml:
    """Parts one after the other."""
    return SafeHtml(SafeHtml(between).join(escape_text(part) for part in parts))


def chart_placeholder(name: str, label: str) -> SafeHtml:
    """The place of a chart, that a keyboard can reach."""
    return tag("div", class_="chart", data_chart=name, role="img", aria_label=label, tabindex="0")


def html_table(
    frame: pl.DataFrame, caption: str, numbers: Callable[[pl.Series], bool] | None = None, **attributes: object
) -> SafeHtml:
    """A table with a caption, column headings and a heading in each row; numbers to the right.

    ``numbers`` says which columns are of numbers, where others than those of a numeric kind are.
    """
    numeric = [numbers(column) if numbers else column.dtype.is_numeric() for column in frame.get_columns()]
    head = join_html(
        [
            tag("th", name, scope="col", class_="n" if n else None)
            for name, n in zip(frame.columns, numeric, strict=True)
        ]
    )
    body = []
    for row in frame.iter_rows():
        cells = [
            tag("th", value, scope="row") if i == 0 else tag("td", value, class_="n" if numeric[i] else None)
            for i, value in enumerate(row)
        ]
        body.append(tag("tr", *cells))
    return scroll_box(
        tag("table", tag("caption", caption), tag("thead", tag("tr", head)), tag("tbody", *body), **attributes),
        caption,
    )


def scroll_box(content: SafeHtml, label: str) -> SafeHtml:
    """What may be wider than a phone, in a box that scrolls and that a keyboard can reach."""
    return tag("div", content, class_="scroll", tabindex="0", role="region", aria_label=label)


def details_box(summary: object, *content: object, **attributes: object) -> SafeHtml:
    """What is shown on request."""
    return tag("details", tag("summary", summary), *content, **attributes)
