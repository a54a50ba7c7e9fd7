"""The queries one by one."""

from __future__ import annotations

from ragworth.core.errors import format_count
from ragworth.report.document import Fragment, Only, Paragraph, Section
from ragworth.report.page.view import ReportView


def section(view: ReportView) -> Section:
    """The explorer, which only the page can be."""
    some = explorer_note(len(view.explored), view.overview.queries, len(view.overview.standings))
    beside = "The queries one by one, the prompts and what the model said are in the page beside this file."
    page = Only("html", [*([some] if some else []), Fragment("explorer.html")])
    return Section("explorer", "Queries", [page, Only("markdown", [Paragraph(beside)])])


def explorer_note(number: int, total: int, systems: int) -> Paragraph | None:
    """How many queries the explorer holds, and which, where it does not hold all."""
    if number >= total:
        return None
    first = "on which the systems differ most" if systems > 1 else "with the worst scores"
    words = (
        f"This page holds {number:,} of {format_count(total, 'query', 'queries')}: a third are those {first}, up to a "
        "third have problems (drawn from each finding), and the rest were drawn at random. The tables in "
        "the folder of the results hold all queries."
    )
    return Paragraph([words], "note", "explored")
