"""The report as Markdown, with figures as SVG files: for repositories, issues and letters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ragworth.diagnosis import FINDINGS
from ragworth.report import render, summary_tables
from ragworth.report.page import budget, costs, studies, systems
from ragworth.report.page.drawing import render_svg
from ragworth.report.page.figures import FigureSet
from ragworth.report.page.findings import MEANINGS
from ragworth.report.page.overview import LEVEL, MetricMean, Standing, format_signed
from ragworth.report.page.provenance import collect_notes, metric_definitions, value_sources
from ragworth.report.page.sections import comparison_note

if TYPE_CHECKING:
    from ragworth.report.page.building import Page


def draw_figures(pictures: FigureSet) -> dict[str, str]:
    """Every chart as an SVG file, by its name."""
    return {f"{panel.name}.svg": render_svg(panel.spec) for figure in pictures.figures for panel in figure.panels}


def report_markdown(page: Page) -> str:
    """The whole report but for the explorer."""
    view = page.overview
    parts = [f"# {escape_line(page.title)}", escape_line(page.lead)]
    parts += ["\n".join(f"- {escape_line(each.sentence)}" for each in view.standings)]
    parts += ["## Leaderboard", render.markdown_table(_board(page)).rstrip(), escape_line(comparison_note(view))]
    parts += [f"### {systems.TITLE}", _systems(page)]
    total = costs.total_cost(page.results.manifest)
    parts.append(f"Cost: {total.words()}" if total is not None else "What it cost is not recorded.")
    parts += _budget(page)
    parts.append("## Pictures")
    for figure in page.pictures.figures:
        parts.append(f"### {escape_line(figure.title)}")
        parts += [
            f"![{escape_line(f'{figure.title} {panel.title}'.strip())}](figures/{panel.name}.svg)"
            for panel in figure.panels
        ]
        parts.append(escape_line(figure.caption))
    if page.pictures.absent:
        parts.append(
            "Left out:\n\n"
            + "\n".join(f"- {escape_line(t)}: {escape_line(r)}" for t, r in page.pictures.absent.items())
        )
    parts += ["## Diagnosis", *_diagnosis(page), studies.PLACE]
    parts += [
        "## Provenance",
        render.markdown_table(metric_definitions(view.metrics)).rstrip(),
        render.markdown_table(value_sources(page.results)).rstrip(),
    ]
    stages = costs.stage_table(page.results.manifest)
    parts += [render.markdown_table(stages).rstrip()] if stages is not None else []
    if notes := collect_notes(page.results):
        parts.append("Noticed on the way:\n\n" + "\n".join(f"- {escape_line(note)}" for note in notes))
    parts.append("The queries one by one, the prompts and what the model said are in the page beside this file.")
    return "\n\n".join(parts) + "\n"


def _systems(page: Page) -> str:
    """What the systems are, as a table, and below it what was noticed of them."""
    rows = [{"system": each.name, "pipeline or file": each.written, "shows": each.shows} for each in page.systems]
    noted = [f"- {escape_line(each.name)}: {escape_line(note)}" for each in page.systems for note in each.notes]
    return "\n\n".join([render.markdown_table(pl.DataFrame(rows)).rstrip(), *(["\n".join(noted)] if noted else [])])


def _budget(page: Page) -> list[str]:
    found = page.budget
    if found is None:
        return []
    parts = [
        f"## {budget.TITLE}",
        *map(escape_line, found.sentences),
        render.markdown_table(budget.two_judges_table(found)).rstrip(),
    ]
    parts.append(escape_line(budget.METHOD_NOTE))
    if found.notes:
        parts.append("\n".join(f"- {escape_line(note)}" for note in found.notes))
    if found.differences.height:
        parts.append(
            render.markdown_table(summary_tables.estimated_difference_table(found.differences, LEVEL)).rstrip()
        )
    return parts


def escape_line(text: str) -> str:
    """A text on one line, with nothing in it that Markdown or HTML would act on."""
    cell = render.format_cell(" ".join(text.split()))
    html = cell.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join(f"\\{sign}" if sign in "\\|*_`[]~#" else sign for sign in html)


def _board(page: Page) -> pl.DataFrame:
    rows = [
        {
            "system": each.system,
            "group": each.group,
            **{metric: _mean(each.means.get(metric)) for metric in page.overview.metrics},
            **_shares(each),
        }
        for each in page.overview.standings
    ]
    return pl.DataFrame(rows)


def _mean(mean: MetricMean | None) -> str:
    if mean is None or mean.mean is None:
        return "–"
    span = f" {mean.ends}" if mean.ends else ""
    return f"{format_signed(mean.mean, 3)}{span} {mean.n} of {mean.total}"


def _shares(each: Standing) -> dict[str, str]:
    shares = {"misleading": each.misleading, "correct": each.correct, "wrong": each.wrong}
    return {
        name: "–" if value is None else f"{100 * value:.0f} % {n:,} of {total:,}"
        for name, value in shares.items()
        for n, total in [each.count(name)]
    }


def _diagnosis(page: Page) -> list[str]:
    counts = {(row["system"], row["finding"]): row for row in page.diagnosis.counts.iter_rows(named=True)}
    systems = [each.system for each in page.overview.standings]
    examined = [finding for finding in FINDINGS if any((system, finding) in counts for system in systems)]
    rows = [
        {
            "finding": FINDINGS[finding],
            **{
                s: f"{row['n']} of {row['of']}" if (row := counts.get((s, finding))) is not None else "–"
                for s in systems
            },
        }
        for finding in examined
    ]
    parts = [render.markdown_table(pl.DataFrame(rows)).rstrip()] if rows else ["Nothing could be examined."]
    parts.append("\n".join(f"- {FINDINGS[finding]}: {MEANINGS[finding]}" for finding in examined))
    if page.diagnosis.absent:
        absent = page.diagnosis.absent.items()
        parts.append("Cannot be had from these tables:\n\n" + "\n".join(f"- {FINDINGS[f]}: {why}" for f, why in absent))
    return [each for each in parts if each]
