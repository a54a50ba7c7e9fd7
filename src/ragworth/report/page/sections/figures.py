"""The charts, and those that the tables do not allow."""

from __future__ import annotations

from ragworth.report.document import Bullets, DocumentBlock, Group, Heading, RichText, Section, TextSpan
from ragworth.report.page.view import ReportView


def section(view: ReportView) -> Section:
    """All figures, and why others are left out."""
    blocks: list[DocumentBlock] = [*view.figure_set.figures]
    if view.figure_set.absent:
        items: list[RichText] = [
            [TextSpan(title, "strong"), f": {reason}"] for title, reason in view.figure_set.absent.items()
        ]
        blocks.append(Group("absent", [Heading("Left out"), Bullets(items)]))
    return Section("figures", "Charts", [Group("gallery", blocks)])
