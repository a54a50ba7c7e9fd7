"""From results to the report: everything is computed once, and then said as a page and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from ragworth.diagnosis import ETA, Diagnosis, Examiner, Facts
from ragworth.errors import FormatError, InputError, counted
from ragworth.report.page import budget, costs, sections, studies, systems
from ragworth.report.page.chosen import MOST, chosen_queries
from ragworth.report.page.depths import shown_depth
from ragworth.report.page.document import document
from ragworth.report.page.explorer import explorer
from ragworth.report.page.figure import Sources
from ragworth.report.page.figures import Pictures, pictures
from ragworth.report.page.findings import findings
from ragworth.report.page.html import Safe, text
from ragworth.report.page.overview import Overview, overview
from ragworth.report.page.provenance import provenance
from ragworth.report.page.query_blocks import QueryBlocks
from ragworth.report.page.survey import Survey, survey
from ragworth.report.page.theme import themes
from ragworth.results import Results, record_of


@dataclass(frozen=True)
class Page:
    """A report: what it says, and what it is made from.

    ``facts`` and the rows of ``diagnosis`` are those of the queries that the explorer holds; all counts are of all
    queries.
    """

    results: Results
    title: str
    facts: Facts
    survey: Survey
    overview: Overview
    diagnosis: Diagnosis
    pictures: Pictures

    @property
    def lead(self) -> str:
        """What was evaluated, in one line."""
        view = self.overview
        models = self.results.manifest.get("models")
        names = (
            [str(each["name"]) for each in models if isinstance(each, dict) and "name" in each]
            if isinstance(models, list)
            else []
        )
        asked = f", read by {', '.join(dict.fromkeys(names))}" if names else ""
        return (
            f"{counted(len(view.standings), 'system')} on {counted(view.queries, 'query', 'queries')}, "
            f"{counted(self.survey.passages, 'different passage')} shown{asked}."
        )

    @cached_property
    def budget(self) -> budget.Budget | None:
        """What a better judge of a sample says; None where there was none."""
        return budget.budget(self.results, self.overview)

    @cached_property
    def systems(self) -> list[systems.System]:
        """What each system is, in the order of the leaderboard."""
        return systems.systems(self.results, self.survey, self.overview)

    @cached_property
    def html(self) -> str:
        """The page, in one piece."""
        names = [each.system for each in self.overview.standings]
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
            "explored": sections.explored(len(self.explored), self.overview.queries, len(names)),
            "findings": findings(self.diagnosis, names, self._example_texts()),
            "provenance": provenance(self.results, self.overview.metrics),
        }
        specs = {panel.name: panel.spec for figure in self.pictures.figures for panel in figure.panels}
        return document(parts, self.title, {"specs": specs, "themes": themes()}, data)

    @cached_property
    def explored(self) -> list[str]:
        """The queries that the explorer holds."""
        return list(dict.fromkeys(query for _, query in self.facts.shown))

    def _example_texts(self) -> dict[str, str]:
        """Texts of the queries that have findings."""
        found = self.diagnosis.frame.select("query").unique()
        return dict(
            self.results.collection.queries.join(found, on="query", how="semi").select("query", "text").iter_rows()
        )

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
    queries: int = MOST,
) -> Page:
    """Everything that the report says, computed.

    Parameters
    ----------
    metrics: those to show, the first being the one that systems are ordered and compared by; by default all that
        were computed, UDCG first.
    seed: of all resampling.
    level: lowest relevance that counts as relevant in the diagnosis.
    eta: lowest rating that counts as an answer there.
    queries: how many the explorer holds at most; if there are more, `chosen_queries` says which.
    """
    if queries < 1:
        raise InputError(f"the explorer would hold {queries} queries", expected="1 or more")
    k = shown_depth(results)
    blocks = QueryBlocks(results, results.contexts if k is None else results.contexts.cut(k), level, eta)
    known = survey(blocks, seed)
    view = overview(results, known, metrics, seed)
    facts, diagnosis = _explored(blocks, known, chosen_queries(known, results.scores, view.main, queries, seed))
    title = results.manifest.get("title") or results.manifest.get("name")
    return Page(
        results,
        title if isinstance(title, str) else "What the passages are worth",
        facts,
        known,
        view,
        diagnosis,
        pictures(Sources(results, known, view, seed)),
    )


def _explored(blocks: QueryBlocks, known: Survey, chosen: pl.Series) -> tuple[Facts, Diagnosis]:
    """The facts and findings of the queries that the explorer holds; the counts are of all queries."""
    facts = blocks.of(chosen)
    return facts, known.examiner.diagnosis(Examiner().examine(facts))


def write(
    results: Results,
    path: str | Path,
    *,
    metrics: Sequence[str] | None = None,
    seed: int = 0,
    level: float = 1.0,
    eta: float = ETA,
    queries: int = MOST,
) -> Page:
    """Build the report and write it: ``path``, the Markdown beside it and the figures below it."""
    page = build(results, metrics=metrics, seed=seed, level=level, eta=eta, queries=queries)
    page.write(path)
    return page
