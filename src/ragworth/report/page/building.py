"""From results to the report: everything is computed once, and then said as a page and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ragworth.diagnosis import ETA, Diagnosis, Facts, diagnose, facts
from ragworth.errors import FormatError, counted
from ragworth.report.page import budget, costs, sections, studies, systems
from ragworth.report.page.depths import shown_depth
from ragworth.report.page.document import document
from ragworth.report.page.explorer import explorer
from ragworth.report.page.figure import Sources
from ragworth.report.page.figures import Pictures, pictures
from ragworth.report.page.findings import findings
from ragworth.report.page.html import Safe, text
from ragworth.report.page.overview import Overview, overview
from ragworth.report.page.provenance import provenance
from ragworth.report.page.theme import themes
from ragworth.results import Results, record_of


@dataclass(frozen=True)
class Page:
    """A report: what it says, and what it is made from."""

    results: Results
    title: str
    facts: Facts
    overview: Overview
    diagnosis: Diagnosis
    pictures: Pictures

    @property
    def lead(self) -> str:
        """What was evaluated, in one line."""
        view = self.overview
        passages = len({each.passage for many in self.facts.shown.values() for each in many})
        models = self.results.manifest.get("models")
        names = (
            [str(each["name"]) for each in models if isinstance(each, dict) and "name" in each]
            if isinstance(models, list)
            else []
        )
        asked = f", read by {', '.join(dict.fromkeys(names))}" if names else ""
        return (
            f"{counted(len(view.standings), 'system')} on {counted(view.queries, 'query', 'queries')}, "
            f"{counted(passages, 'different passage')} shown{asked}."
        )

    @cached_property
    def budget(self) -> budget.Budget | None:
        """What a better judge of a sample says; None where there was none."""
        return budget.budget(self.results, self.overview)

    @cached_property
    def systems(self) -> list[systems.System]:
        """What each system is, in the order of the leaderboard."""
        return systems.systems(self.results, self.facts, self.overview)

    @cached_property
    def html(self) -> str:
        """The page, in one piece."""
        names = [each.system for each in self.overview.standings]
        texts = dict(self.results.collection.queries.select("query", "text").iter_rows())
        data = explorer(self.results, self.facts, self.overview, self.diagnosis)
        parts: dict[str, Safe] = {
            "lead": text(self.lead),
            "sentences": sections.sentences(self.overview),
            "leaderboard": sections.leaderboard(self.overview, {each.name for each in self.systems if each.notes}),
            "systems": systems.section(self.systems),
            "cost": sections.cost(costs.total(self.results.manifest)),
            "budget": budget.section(self.budget),
            "budget_link": budget.link(self.budget),
            "gallery": sections.gallery(self.pictures),
            "findings": findings(self.diagnosis, names, texts),
            "provenance": provenance(self.results, self.overview.metrics),
        }
        specs = {panel.name: panel.spec for figure in self.pictures.figures for panel in figure.panels}
        return document(parts, self.title, {"specs": specs, "themes": themes()}, data)

    def write(self, path: str | Path) -> None:
        """Write ``path`` (the page), the same as Markdown beside it, and its figures in a folder ``figures``.

        Studies in a folder ``studies`` beside it are listed. A page and a Markdown file of these names are replaced; a
        figure that ragworth did not write is not.
        """
        from ragworth.report.page.markdown import drawn, markdown

        path = Path(path)
        if not path.parent.is_dir():
            raise FormatError("there is no folder to write to", file=str(path.parent))
        found = studies.studies(path.parent / studies.FOLDER)
        files = {
            path.name: studies.in_page(self.html, found),
            path.with_suffix(".md").name: studies.in_markdown(markdown(self), found),
        }
        figures = {f"figures/{name}": svg for name, svg in drawn(self.pictures).items()}
        record = record_of(path.parent)
        record.refuse_foreign(figures)
        for name, content in (files | figures).items():
            record.write(name, content.encode("utf-8", "replace"), adopt=name in files)
        record.finish()


def build(
    results: Results,
    *,
    metrics: Sequence[str] | None = None,
    seed: int = 0,
    level: float = 1.0,
    eta: float = ETA,
) -> Page:
    """Everything that the report says, computed.

    Parameters
    ----------
    metrics: those to show, the first being the one that systems are ordered and compared by; by default all that
        were computed, UDCG first.
    seed: of all resampling.
    level: lowest relevance that counts as relevant in the diagnosis.
    eta: lowest rating that counts as an answer there.
    """
    k = shown_depth(results)
    known = facts(
        results.contexts if k is None else results.contexts.cut(k),
        judgments=results.judgments,
        ratings=results.ratings,
        outcomes=results.outcomes,
        graded=results.said.get("grade"),
        passages=results.collection.passages,
        subquestions=results.collection.subquestions,
        rel=level,
        eta=eta,
    )
    view = overview(results, known, metrics, seed)
    title = results.manifest.get("title") or results.manifest.get("name")
    return Page(
        results,
        title if isinstance(title, str) else "What the passages are worth",
        known,
        view,
        diagnose(known),
        pictures(Sources(results, known, view, seed)),
    )


def write(
    results: Results,
    path: str | Path,
    *,
    metrics: Sequence[str] | None = None,
    seed: int = 0,
    level: float = 1.0,
    eta: float = ETA,
) -> Page:
    """Build the report and write it: ``path``, the Markdown beside it and the figures below it."""
    page = build(results, metrics=metrics, seed=seed, level=level, eta=eta)
    page.write(path)
    return page
