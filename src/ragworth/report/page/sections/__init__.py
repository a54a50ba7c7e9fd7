"""The sections of the report, in their order: a file here with a function ``section``, and a line below."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

from ragworth.answer_outcomes import HUMAN
from ragworth.report.document import Document
from ragworth.report.page.sections import verdict
from ragworth.report.page.view import ReportView


class SectionEntry(NamedTuple):
    """The module of a section, which is imported only if the results have what it is about."""

    module: str
    has_subject: Callable[[ReportView], bool] = lambda view: True


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
    """The report. A section that has nothing to say is None, and left out."""
    modules = [import_module(f"{__name__}.{entry.module}") for entry in SECTIONS if entry.has_subject(view)]
    found = [module.section(view) for module in modules]
    return Document("report", view.title, verdict.lead(view), [each for each in found if each is not None])
