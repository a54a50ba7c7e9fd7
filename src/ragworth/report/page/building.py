"""From results to the report: everything is computed once, and then rendered as a page and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from html import escape
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.answer_outcomes import outcome_scores
from ragworth.comparison import higher_is_better, score_matrices
from ragworth.core.errors import FormatError, InputError
from ragworth.data import Contexts, Outcomes, Scores
from ragworth.diagnosis import ETA, diagnose
from ragworth.metrics.ground_truth import query_numbers
from ragworth.report.charts.drawing import draw_charts
from ragworth.report.document import Bullets, Document, Paragraph, TableBlock
from ragworth.report.page.answers import build_answers, shown_outcomes
from ragworth.report.page.explorer import build_explorer, shown_depth
from ragworth.report.page.figures import ANSWER_FIGURES, FIGURE_BUILDERS, build_figures
from ragworth.report.page.overview import build_overview
from ragworth.report.page.relations import FigureSources
from ragworth.report.page.sections import build_document, studies
from ragworth.report.page.survey import Survey, build_survey, known_facts
from ragworth.report.page.view import ReportView
from ragworth.report.renderers.html import render_block, render_page
from ragworth.report.renderers.markdown import render_markdown
from ragworth.results import Results, results_record

MAX_QUERIES = 5000
"""Queries that the explorer holds at most, unless another number is asked for."""

MIN_QUERIES = 1000
"""Queries that it holds however many systems there are."""

MAX_CONTEXTS = 20_000
"""Contexts that it holds between these two limits: one for each query and system."""

QUIET_FINDINGS = ("fine",)
"""Findings that are no problem."""

Ints = npt.NDArray[np.int64]


def most_queries(systems: int) -> int:
    """How many queries the explorer holds of so many systems, unless another number is asked for."""
    return min(MAX_QUERIES, max(MIN_QUERIES, MAX_CONTEXTS // max(systems, 1)))


def chosen_queries(known: Survey, scores: Scores, main: str, most: int, seed: int) -> pl.Series:
    """All queries where they are at most ``most``. Otherwise ``most`` of them, in the order given:

    - a third: those on which systems differ most by the main metric (with one system, those with the worst scores);
    - up to a third: those with problems, drawn at random from each finding in turn;
    - the rest: drawn at random from all others.
    """
    total = len(known.queries)
    if total <= most:
        return known.queries
    rng = np.random.default_rng(seed)
    chosen = np.zeros(total, dtype=bool)
    chosen[_most_different(known.queries, scores, main, most // 3)] = True
    problems = _with_findings(known, chosen, most // 3, rng)
    chosen[query_numbers(pl.Series(problems, dtype=pl.String), known.queries)] = True
    others = np.flatnonzero(~chosen)
    chosen[rng.choice(others, most - int(chosen.sum()), replace=False)] = True
    return known.queries.filter(pl.Series(chosen))


def _most_different(queries: pl.Series, scores: Scores, main: str, most: int) -> Ints:
    """The queries on which systems differ most; with one system, those with the worst scores."""
    spread = np.full(len(queries), -np.inf)
    for matrix in score_matrices(scores.having("metric", [main])):
        values = matrix.values
        low, high = np.fmin.reduce(values, axis=1), np.fmax.reduce(values, axis=1)
        worst = -low if higher_is_better(main) else high
        found = high - low if values.shape[1] > 1 else worst
        at = query_numbers(matrix.queries, queries)
        spread[at[at >= 0]] = np.nan_to_num(found[at >= 0], nan=-np.inf)
    return np.argsort(-spread, kind="stable")[:most]


def _with_findings(known: Survey, chosen: npt.NDArray[np.bool_], most: int, rng: np.random.Generator) -> list[str]:
    """``most`` other queries with findings: of each an equal share of those still to add, or all that were examined."""
    known_before = known.queries.filter(pl.Series(chosen)).implode()
    problems = known.diagnosis.frame.filter(
        ~pl.col("finding").is_in(QUIET_FINDINGS), ~pl.col("query").is_in(known_before)
    )
    queries = problems.group_by("finding").agg(pl.col("query").unique(maintain_order=True))
    queries = queries.sort(pl.col("query").list.len(), "finding")  # the rarest first
    added: dict[str, None] = {}
    for place, found in enumerate(queries["query"].to_list()):
        those = [query for query in found if query not in added]
        some = min(len(those), (most - len(added)) // (queries.height - place))
        added |= dict.fromkeys(those[i] for i in rng.choice(len(those), some, replace=False))
    return list(added)


@dataclass(frozen=True)
class Page(ReportView):
    """A report: what it is made from, what it says, and its forms."""

    @cached_property
    def document(self) -> Document:
        """What it says."""
        return build_document(self)

    @cached_property
    def html(self) -> str:
        """The page, in one piece."""
        systems = [each.system for each in self.overview.standings]
        more = self.contribution_diagnosis.frame.filter(
            pl.col("query").is_in(self.explored), pl.col("system").is_in(systems)
        )
        found = self.diagnosis._replace(frame=pl.concat([self.diagnosis.frame, more.unique(maintain_order=True)]))
        data = build_explorer(self.results, self.facts, self.overview, found)
        pieces = {f"piece-{i}": piece for i, piece in enumerate(data.pieces)}
        return render_page(self.document, {"index": data.index, **pieces})

    @cached_property
    def markdown(self) -> str:
        """The same as Markdown, but for the explorer."""
        return render_markdown(self.document)

    def _repr_html_(self) -> str:
        """The first section and its picture, for notebooks; without scripts, so that it shows anywhere."""
        top, *_ = self.document.sections
        blocks = [render_block(block) for block in top.blocks if isinstance(block, Paragraph | Bullets | TableBlock)]
        wanted = ("grades", "means")
        drawn = {each.name: each for each in self.figure_set.figures if each.name in wanted}
        figure = next((drawn[name] for name in wanted if name in drawn), None)
        pictures = draw_charts({"figure.svg": figure.panels[0].spec} if figure is not None else {})
        return f"<h3>{escape(self.title)}</h3>{''.join(blocks)}{''.join(svg.decode() for svg in pictures.values())}"

    def write(self, path: str | Path) -> None:
        """Write ``path`` (the page), the same as Markdown beside it, and its figures in a folder ``figures``.

        Studies in a folder ``studies`` beside it are listed. A page and a Markdown file of these names are replaced; a
        figure that ragworth did not write is not.
        """
        path = Path(path)
        if not path.parent.is_dir():
            raise FormatError("there is no folder to write to", file=str(path.parent))
        found = studies.list_studies(path.parent / studies.FOLDER)
        files = {
            path.name: studies.insert_in_page(self.html, found),
            path.with_suffix(".md").name: studies.insert_in_markdown(self.markdown, found),
        }
        charts = {f"figures/{name}.svg": spec for name, spec in self.document.charts.items()}
        record = results_record(path.parent)
        record.refuse_foreign(charts)
        figures = draw_charts(charts)
        for name, text in files.items():
            record.write(name, text.encode("utf-8", "replace"), adopt=True)
        for name, picture in figures.items():
            record.write(name, picture)
        record.remove(charts.keys() - figures.keys())
        record.finish()


def build(
    results: Results,
    *,
    metrics: Sequence[str] | None = None,
    seed: int = 0,
    level: float = 1.0,
    eta: float = ETA,
    queries: int | None = None,
) -> Page:
    """Everything that the report says, computed.

    Parameters
    ----------
    metrics: those to show, the first being the one that systems are ordered and compared by; by default all that
        were computed, UDCG first.
    seed: of all resampling.
    level: lowest relevance that counts as relevant in the diagnosis.
    eta: lowest rating that counts as an answer there.
    queries: how many the explorer holds at most, by default `most_queries`; `chosen_queries` says which.
    """
    if queries is not None and queries < 1:
        raise InputError(f"the explorer would hold {queries} queries", expected="1 or more")
    titles: Sequence[str] = tuple(FIGURE_BUILDERS)
    if not len(results.scores) and results.outcomes is not None:
        titles = ANSWER_FIGURES
        results, metrics = _scored_by_outcomes(results, results.outcomes)
    k = shown_depth(results)
    shown = results if k is None else replace(results, contexts=results.contexts.cut(k))
    known = build_survey(shown, seed, level, eta)
    view = build_overview(results, known, metrics, seed)
    most = most_queries(len(results.contexts.systems)) if queries is None else queries
    chosen = chosen_queries(known, results.scores, view.main, most, seed)
    facts, diagnosis = known.facts, known.diagnosis
    if not chosen.equals(known.examined):
        facts = known_facts(shown, chosen, level, eta)
        diagnosis = diagnosis._replace(frame=diagnose(facts).frame)
    title = results.manifest.get("title") or results.manifest.get("name")
    return Page(
        results,
        title if isinstance(title, str) else "What the passages are worth",
        facts,
        known,
        view,
        build_answers(results, seed),
        diagnosis,
        partial(build_figures, FigureSources(results, known, view, seed), titles),
    )


def _scored_by_outcomes(results: Results, outcomes: Outcomes) -> tuple[Results, list[str]]:
    """Results without metrics: outcomes of answers take their place, and systems without contexts show nothing.

    Returns the outcomes to show as well.
    """
    scores = outcome_scores(outcomes, results.said, results.answers)
    names = shown_outcomes(scores, outcomes)
    if not names:
        raise InputError("there are no scores to report", expected="results of at least one metric or graded answers")
    scores = scores.having("metric", names)
    contexts = results.contexts
    pairs, shown = (set(table.frame.select("system", "query").unique().iter_rows()) for table in (scores, contexts))
    every = Contexts.trusted(contexts.frame, contexts.notes)
    every.empty = frozenset((contexts.empty | pairs) - shown)
    return replace(results, scores=scores, contexts=every), names


def write(
    results: Results,
    path: str | Path,
    *,
    metrics: Sequence[str] | None = None,
    seed: int = 0,
    level: float = 1.0,
    eta: float = ETA,
    queries: int | None = None,
) -> Page:
    """Build the report and write it: ``path``, the Markdown beside it and the figures below it."""
    page = build(results, metrics=metrics, seed=seed, level=level, eta=eta, queries=queries)
    page.write(path)
    return page
