"""The sections of the report, in their order: a file here with a function ``section``, and a line below."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

from ragworth.answer_outcomes import HUMAN
from ragworth.report.document import Document, Section
from ragworth.report.page.sections import verdict
from ragworth.report.page.view import ReportView


class SectionEntry(NamedTuple):
    """The module of a section, which is imported only if the results have what it is about."""

    module: str
    has_subject: Callable[[ReportView], bool] = lambda view: True

    def build(self, view: ReportView) -> Section | None:
        """Build the section; None if it has nothing to say."""
        if not self.has_subject(view):
            return None
        section: Section | None = import_module(f"{__name__}.{self.module}").section(view)
        return section


SECTIONS = (
    SectionEntry("answers", lambda view: view.answers is not None),
    SectionEntry("people", lambda view: any(HUMAN in name.lower() for name in view.outcome_names)),
    SectionEntry("verdict"),
    SectionEntry("budget", lambda view: bool(view.results.estimates)),
    SectionEntry("figures"),
    SectionEntry("diagnosis"),
    SectionEntry("contribution", lambda view: view.contributions is not None or view.support is not None),
    SectionEntry("hops", lambda view: "hops" in view.results.said),
    SectionEntry("studies"),
    SectionEntry("explorer"),
    SectionEntry("provenance"),
)


def build_document(view: ReportView) -> Document:
    """The report. A section that has nothing to say is left out."""
    found = [entry.build(view) for entry in SECTIONS]
    return Document("report", view.title, verdict.lead(view), [each for each in found if each is not None])
