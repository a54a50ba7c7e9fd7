"""The pictures, and those that the tables do not allow."""

from __future__ import annotations

from ragworth.report.document import Block, Bullets, Group, Heading, Section, Span, Text
from ragworth.report.page.view import ReportView


def section(view: ReportView) -> Section:
    """All figures, and why others are left out."""
    blocks: list[Block] = [*view.pictures.figures]
    if view.pictures.absent:
        items: list[Text] = [[Span(title, "strong"), f": {reason}"] for title, reason in view.pictures.absent.items()]
        blocks.append(Group("absent", [Heading("Left out"), Bullets(items)]))
    return Section("pictures", "Pictures", [Group("gallery", blocks)])
