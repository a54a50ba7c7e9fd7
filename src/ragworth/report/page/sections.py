"""The static parts of the page: what can be read without running anything."""

from __future__ import annotations

from collections.abc import Set

from ragworth.errors import format_count
from ragworth.report.page.costs import TotalCost
from ragworth.report.page.figure import ReportFigure
from ragworth.report.page.figures import FigureSet
from ragworth.report.page.html import SafeHtml, chart_placeholder, details_box, html_table, join_html, scroll_box, tag
from ragworth.report.page.overview import MetricMean, Overview, Standing, format_signed


def sentences_html(view: Overview) -> SafeHtml:
    """One sentence for each system, the best first; all but the first few on request."""
    items = [tag("li", tag("b", each.system), each.sentence.removeprefix(each.system)) for each in view.standings]
    few = tag("ol", *items[:6], class_="verdicts")
    if len(items) <= 6:
        return few
    rest = tag("ol", *items[6:], class_="verdicts", start="7")
    return join_html([few, details_box(f"{format_count(len(items) - 6, 'more system')}", rest)])


def leaderboard_html(view: Overview, noted: Set[str] = frozenset()) -> SafeHtml:
    """The table of systems: means with intervals, groups, n of N, shares and cost.

    ``noted``: systems of which something was noticed that belongs to their numbers; they are marked.
    """
    extra = _extra(view)
    head = [
        tag("th", "System", scope="col"),
        tag("th", "Group", scope="col"),
        *(tag("th", name, scope="col", class_="n") for name in [view.main, *extra, *view.metrics[1:]]),
    ]
    rows = []
    for place, each in enumerate(view.standings, 1):
        cells = [
            tag(
                "th",
                tag("span", f"{place}", class_="place"),
                " ",
                each.system,
                _mark(each.system in noted),
                scope="row",
            ),
            tag("td", tag("abbr", each.group, title=view.groups.words)),
            _mean_cell(each.means.get(view.main)),
            *(_extra_cell(each, name) for name in extra),
            *(_mean_cell(each.means.get(metric)) for metric in view.metrics[1:]),
        ]
        rows.append(tag("tr", *cells))
    counts = f"{format_count(len(view.standings), 'system')}, {format_count(view.queries, 'query', 'queries')}"
    caption = f"{counts}, ordered by {view.main}"
    made = tag("table", tag("caption", caption), tag("thead", tag("tr", *head)), tag("tbody", *rows), class_="board")
    return join_html([scroll_box(made, "Leaderboard"), tag("p", comparison_note(view), class_="note")])


def _mark(noted: bool) -> SafeHtml:
    return tag("small", tag("a", "see its note", href="#systems")) if noted else SafeHtml("")


def comparison_note(view: Overview) -> str:
    """How the groups and intervals were made, in words."""
    if len(view.standings) < 2:
        return f"In brackets the 95 % interval of the mean over queries (seed {view.seed})."
    return (
        f"In brackets the 95 % interval of the mean over queries. {view.groups.words} "
        f"by {view.main}: paired {view.test} tests of all {format_count(view.pairs, 'pair')} ({view.resamples:,} "
        f"resamples, seed {view.seed}), Holm's correction, 5 % level. n of N: queries that have a value; "
        "passages that were judged, and answers that were graded."
    )


def _extra(view: Overview) -> list[str]:
    known = {
        "misleading": any(each.misleading is not None for each in view.standings),
        "correct": any(each.correct is not None for each in view.standings),
        "wrong": any(each.wrong is not None for each in view.standings),
        "tokens read": any(each.read is not None for each in view.standings),
    }
    return [name for name, there in known.items() if there]


def _extra_cell(each: Standing, name: str) -> SafeHtml:
    if name == "tokens read":
        return tag("td", "–" if each.read is None else f"{each.read:,.0f}", class_="n")
    value = getattr(each, name)
    if value is None:
        return tag("td", "–", class_="n")
    n, total = each.count(name)
    return tag(
        "td", f"{100 * value:.0f} %", _count(n, total, "passages" if name == "misleading" else "answers"), class_="n"
    )


def _count(n: int, total: int, title: str) -> SafeHtml:
    """How many a number is from; it stands out where some are missing."""
    return tag("small", f"{n:,} of {total:,}", title=title or None, class_=None if n == total else "warn")


def _mean_cell(mean: MetricMean | None) -> SafeHtml:
    if mean is None or mean.mean is None:
        return tag("td", "–", tag("small", mean.missing if mean is not None else "not computed"), class_="n")
    return tag(
        "td", format_signed(mean.mean, 3), tag("small", mean.ends), _count(mean.n, mean.total, mean.missing), class_="n"
    )


def explorer_note(number: int, total: int, systems: int) -> SafeHtml:
    """How many queries the explorer holds, and which, where it does not hold all."""
    if number >= total:
        return SafeHtml("")
    first = "on which the systems differ most" if systems > 1 else "with the worst scores"
    words = (
        f"This page holds {number:,} of {format_count(total, 'query', 'queries')}: a third are those {first}, up to "
        "a third "
        "have problems (drawn from each finding), and the rest were drawn at random. Everything "
        "above is about all queries, and the tables in the folder of the results hold all of them. For more queries "
        "in the page: "
    )
    return tag("p", words, tag("code", "ragworth evaluate --page-queries N"), ".", class_="note", id="explored")


def cost_html(total: TotalCost | None) -> SafeHtml:
    """What it all took, in one line."""
    if total is None:
        return tag("p", "What it cost is not recorded.", class_="note")
    return tag("p", tag("b", "Cost: "), total.words(), class_="note")


def figure_html(each: ReportFigure) -> SafeHtml:
    """A place for each chart, its caption, and its numbers as a table."""
    panels = [
        tag(
            "div",
            tag("h4", panel.title) if panel.title else "",
            chart_placeholder(panel.name, f"Chart: {each.title} {panel.title}. {each.caption}"),
            class_="panel",
        )
        for panel in each.panels
    ]
    return tag(
        "figure",
        tag("h3", each.title, id=f"figure-{each.name}"),
        tag("div", *panels, class_=_layout(each)),
        tag("figcaption", each.caption),
        details_box("The numbers as a table", _numbers(each)),
        class_=f"figure-{each.name} many" if len(panels) > 1 else f"figure-{each.name}",
    )


def _layout(each: ReportFigure) -> str:
    """How charts stand beside each other: long names beside axes need room."""
    names = each.data["system"].to_list() if "system" in each.data.columns else []
    if len(each.panels) == 1:
        return "panels one"
    return "panels wide" if any(len(name) > LONG for name in names) else "panels"


LONG = 22
ROWS = 400


def _numbers(each: ReportFigure) -> SafeHtml:
    """The numbers of a figure: not more rows than a person reads, and then it says so."""
    rows = each.data.height
    return html_table(
        each.data.head(ROWS), each.title if rows <= ROWS else f"{each.title}: the first {ROWS} of {rows:,} rows"
    )


def gallery_html(pictures: FigureSet) -> SafeHtml:
    """All figures, and what is left out."""
    parts: list[object] = [figure_html(each) for each in pictures.figures]
    if pictures.absent:
        items = [tag("li", tag("b", title), f": {reason}") for title, reason in pictures.absent.items()]
        parts.append(tag("div", tag("h3", "Left out"), tag("ul", *items), class_="absent"))
    return join_html(parts)
