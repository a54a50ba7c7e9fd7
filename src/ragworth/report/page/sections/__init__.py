"""The sections of the report, in their order: a file here with a function ``section``, and a line below."""

from __future__ import annotations

from ragworth.report.document import Document
from ragworth.report.page.sections import (
    answers,
    budget,
    contribution,
    diagnosis,
    explorer,
    figures,
    hops,
    people,
    provenance,
    studies,
    verdict,
)
from ragworth.report.page.view import ReportView

SECTIONS = (
    answers.section,
    people.section,
    verdict.section,
    budget.section,
    figures.section,
    diagnosis.section,
    contribution.section,
    hops.section,
    studies.section,
    explorer.section,
    provenance.section,
)


def build_document(view: ReportView) -> Document:
    """The report. A section that has nothing to say is None, and left out."""
    found = [section(view) for section in SECTIONS]
    return Document("report", view.title, verdict.lead(view), [each for each in found if each is not None])
