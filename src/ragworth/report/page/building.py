"""From results to the report: everything is computed once, and then said as a page and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from ragworth.diagnosis import ETA, ContextFacts, Diagnosis, Examiner
from ragworth.errors import FormatError, InputError, format_count
from ragworth.report.page import budget, costs, sections, studies, systems
from ragworth.report.page.chosen import MAX_QUERIES, chosen_queries
from ragworth.report.page.depths import shown_depth
from ragworth.report.page.document import render_page
from ragworth.report.page.explorer import build_explorer
from ragworth.report.page.figure import FigureSources
from ragworth.report.page.figures import FigureSet, build_figures
from ragworth.report.page.findings import findings_html
from ragworth.report.page.html import SafeHtml, escape_text
from ragworth.report.page.overview import Overview, build_overview
from ragworth.report.page.provenance import provenance_html
from ragworth.report.page.query_blocks import QueryBlocks
from ragworth.report.page.survey import Survey, build_survey
from ragworth.report.page.theme import themes
from ragworth.results import Results, results_record


@dataclass(frozen=True)
class Page:
    """A report: what it says, and what it is made from.

    ``facts`` and the rows of ``diagnosis`` are those of the queries that the explorer holds; all counts are of all
    queries.
    """

    results: Results
    title: str
    facts: ContextFacts
    survey: Survey
    overview: Overview
    diagnosis: Diagnosis
    pictures: FigureSet

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
            f"{format_count(len(view.standings), 'system')} on {format_count(view.queries, 'query', 'queries')}, "
            f"{format_count(self.survey.passages, 'different passage')} shown{asked}."
        )

    @cached_property
    def budget(self) -> budget.TwoJudgesSection | None:
        """What a better judge of a sample says; None where there was none."""
        return budget.two_judges_section(self.results, self.overview)

    @cached_property
    def systems(self) -> list[systems.SystemEntry]:
        """What each system is, in the order of the leaderboard."""
        return systems.describe_systems(self.results, self.survey, self.overview)

    @cached_property
    def html(self) -> str:
        """The page, in one piece."""
        names = [each.system for each in self.overview.standings]
        data = build_explorer(self.results, self.facts, self.overview, self.diagnosis)
        parts: dict[str, SafeHtml] = {
            "lead": escape_text(self.lead),
            "sentences": sections.sentences_html(self.overview),
            "leaderboard": sections.leaderboard_html(self.overview, {each.name for each in self.systems if each.notes}),
            "systems": systems.systems_html(self.systems),
            "cost": sections.cost_html(costs.total_cost(self.results.manifest)),
            "budget": budget.two_judges_html(self.budget),
            "budget_link": budget.two_judges_link(self.budget),
            "gallery": sections.gallery_html(self.pictures),
            "explored": sections.explorer_note(len(self.explored), self.overview.queries, len(names)),
            "findings": findings_html(self.diagnosis, names, self._example_texts()),
            "provenance": provenance_html(self.results, self.overview.metrics),
        }
        specs = {panel.name: panel.spec for figure in self.pictures.figures for panel in figure.panels}
        return render_page(parts, self.title, {"specs": specs, "themes": themes()}, data)

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
        from ragworth.report.page.markdown import draw_figures, report_markdown

        path = Path(path)
        if not path.parent.is_dir():
            raise FormatError("there is no folder to write to", file=str(path.parent))
        found = studies.list_studies(path.parent / studies.FOLDER)
        files = {
            path.name: studies.insert_in_page(self.html, found),
            path.with_suffix(".md").name: studies.insert_in_markdown(report_markdown(self), found),
        }
        figures = {f"figures/{name}": svg for name, svg in draw_figures(self.pictures).items()}
        record = results_record(path.parent)
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
    queries: int = MAX_QUERIES,
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
    known = build_survey(blocks, seed)
    view = build_overview(results, known, metrics, seed)
    facts, diagnosis = _explorer_facts(blocks, known, chosen_queries(known, results.scores, view.main, queries, seed))
    title = results.manifest.get("title") or results.manifest.get("name")
    return Page(
        results,
        title if isinstance(title, str) else "What the passages are worth",
        facts,
        known,
        view,
        diagnosis,
        build_figures(FigureSources(results, known, view, seed)),
    )


def _explorer_facts(blocks: QueryBlocks, known: Survey, chosen: pl.Series) -> tuple[ContextFacts, Diagnosis]:
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
    queries: int = MAX_QUERIES,
) -> Page:
    """Build the report and write it: ``path``, the Markdown beside it and the figures below it."""
    page = build(results, metrics=metrics, seed=seed, level=level, eta=eta, queries=queries)
    page.write(path)
    return page
