"""What the passages are worth to the model: a sentence each, the leaderboard, the cost, and what each system is."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from ragworth.core.errors import format_count
from ragworth.data import Judgments
from ragworth.metrics.utility import READER_JUDGED, READER_REASON, UNLABELLED_SOURCES
from ragworth.report.document import (
    Bullets,
    Cell,
    Heading,
    Paragraph,
    RichText,
    Section,
    TableBlock,
    TableColumn,
    TextSpan,
)
from ragworth.report.page.answers import AnswerStanding
from ragworth.report.page.costs import total_cost
from ragworth.report.page.overview import Overview, Standing
from ragworth.report.page.rankings import DRAWN_TURNS, TEST, MetricMean, Ranking
from ragworth.report.page.view import ReportView
from ragworth.report.wording import signed

SHOWN = 6
"""Systems with a sentence; the others have theirs on request."""


def lead(view: ReportView) -> str:
    """What was evaluated, in one line."""
    models = view.results.manifest.get("models")
    given = [each for each in models if isinstance(each, dict)] if isinstance(models, list) else []
    names = dict.fromkeys(str(each["name"]) for each in given if "name" in each)
    asked = f", read by {', '.join(names)}" if names else ""
    shown = format_count(view.survey.passages, "different passage") if view.survey.passages else "no passages"
    return (
        f"{format_count(len(view.overview.standings), 'system')} on "
        f"{format_count(view.overview.queries, 'query', 'queries')}, {shown} shown{asked}."
    )


def section(view: ReportView) -> Section | None:
    """Return the section on the passages' worth, at the top if no answer has an outcome; None if it isn't known."""
    overview = view.overview
    if not view.judges_passages:
        return None
    blocks = [
        *([Paragraph(reader_note(view), "note warn")] if view.survey.reader_judged else []),
        *([Paragraph(note, "note")] if (note := unlabelled_note(view.results.judgments)) else []),
        sentence_list(overview.standings, overview.ranking),
        Heading("Leaderboard", 2),
        leaderboard(overview, {each.name for each in view.systems if each.notes}),
        Paragraph(comparison_note(overview), "note"),
        *([Paragraph(sample, "note")] if (sample := view.survey.sample_note) else []),
        _cost(view),
        Heading("Systems", id="systems"),
        _systems(view),
    ]
    if view.answers is None:
        return Section("verdict", "Verdict", blocks)
    return Section("verdict", "What the passages are worth", blocks, "Passages")


def sentence_list(standings: Iterable[Standing | AnswerStanding], ranking: Ranking) -> Bullets:
    """A sentence for each system, with its name first; numbered if all are ranked."""
    sentences: list[RichText] = [
        [TextSpan(each.system, "strong"), each.sentence.removeprefix(each.system)] for each in standings
    ]
    return Bullets(
        sentences, "verdicts", ordered=not set(ranking.order) - set(ranking.ranked.order), shown=SHOWN, unit="system"
    )


def unlabelled_note(judgments: Judgments | None) -> str:
    """Who says which passages are relevant, if relevance is known and none of it comes from labels; else empty."""
    sources = judgments.of("relevance")["source"].unique() if judgments is not None else pl.Series(dtype=pl.String)
    if not len(sources) or not sources.str.contains(UNLABELLED_SOURCES).all():
        return ""
    matched = sources.str.starts_with("containment ")
    judges = [
        *(["a model"] if not matched.all() else []),
        *(["a match with the accepted answers"] if matched.any() else []),
    ]
    return (
        f"No passage has a label: {' or '.join(judges)} says which are relevant, and only of passages that some system "
        "shows. So recall and nDCG don't know of relevant passages that no system found."
    )


def reader_note(view: ReportView) -> str:
    """What can't be concluded where the reader judged relevance itself."""
    own, shown = view.survey.reader_judged, view.survey.shown
    n, total = sum(own.values()), sum(shown[system] for system in own)
    which = f"Whether {n:,} of the {total:,} passages shown mislead" if n < total else "Which passages mislead"
    return (
        f"{which} {READER_REASON}. A model that finds a passage irrelevant "
        "doesn't answer from it, so it never seems to be misled. For the same reason UDCG shows here how readily the "
        "model answers, not whether it should. To measure both, add relevance labels or accepted answers, or let "
        "another model judge relevance."
    )


def leaderboard(view: Overview, noted: set[str]) -> TableBlock:
    """Means with intervals, groups, n of N, shares and cost.

    ``noted``: systems of which something was noticed that belongs to their numbers; they are marked.
    """
    extra = [name for name in EXTRA if any(getattr(each, EXTRA[name]) is not None for each in view.standings)]
    if "misleading" not in extra and any(each.unmeasured for each in view.standings):
        extra = ["misleading", *extra]
    shared = view.ranking.shared_means
    names = [view.main, *extra, *view.metrics[1:]]
    rows: list[list[Cell]] = []
    for each in view.standings:
        name: list[str | TextSpan] = [TextSpan(view.ranking.place(each.system), "place"), f" {each.system}"]
        if each.system in noted:
            name.append(TextSpan("see its note", "small", "#systems"))
        numbers = [_extra_cell(each, key) if key in extra else _mean_cell(each.means.get(key)) for key in names]
        common = [_mean_cell(shared.get(each.system), "not ranked")] if shared else []
        rows.append([name, TextSpan(each.group, "group", title=view.ranking.groups.words), *common, *numbers])
    turns = f" of {format_count(view.conversations, 'conversation')}" if view.conversations is not None else ""
    counts = f"{format_count(len(view.standings), 'system')}, {format_count(view.queries, 'query', 'queries')}{turns}"
    heads = [*([f"{view.main} (shared)"] if shared else []), *names]
    columns = [TableColumn("System"), TableColumn("Group"), *(TableColumn(name, True) for name in heads)]
    return TableBlock(f"{counts}, {view.ranking.ordered_by(heads[0])}", columns, rows, "board")


EXTRA = {"misleading": "misleading", "tokens read": "read"}
"""Columns besides metrics, and the fields of :class:`Standing` that they show."""


def _extra_cell(each: Standing, name: str) -> Cell:
    value = getattr(each, EXTRA[name])
    if value is None:
        own = name == "misleading" and each.unmeasured
        return ["–", TextSpan(READER_JUDGED, "warn", title=each.unmeasured)] if own else "–"
    if name == "tokens read":
        return f"{value:,.0f}"
    return [f"{100 * value:.0f} %", count(each.judged, each.shown, "passages")]


def count(n: int, total: int, title: str) -> TextSpan:
    """How many a number is from; it stands out where some are missing."""
    return TextSpan(f"{n:,} of {total:,}", "small" if n == total else "warn", title=title)


def _mean_cell(mean: MetricMean | None, without: str = "not computed") -> Cell:
    if mean is None or mean.mean is None:
        return ["–", TextSpan(mean.missing if mean is not None else without, "small")]
    return [signed(mean.mean, 3), TextSpan(mean.ends, "small"), count(mean.n, mean.total, mean.missing)]


def comparison_note(view: Overview) -> str:
    """How the groups and intervals were made, in words."""
    drawn = f" {DRAWN_TURNS}" if view.conversations is not None else ""
    if len(view.standings) < 2:
        return f"In brackets the 95 % interval of the mean over queries (seed {view.seed}).{drawn}"
    note = view.ranking.note
    ranked = f" Systems have values for different queries. {note}" if view.ranking.shared_means else f" {note}".rstrip()
    if not view.ranking.ranked.order:
        return f"In brackets the 95 % interval of the mean over queries (seed {view.seed}).{drawn}{ranked}"
    return (
        f"In brackets the 95 % interval of the mean over queries.{drawn}{ranked} {view.ranking.groups.words} "
        f"by {view.main}: paired {TEST} tests of {view.ranking.tested} ({view.ranking.resamples:,} "
        f"resamples, seed {view.seed}), Holm's correction, 5 % level. n of N: queries that have a value; "
        "passages that were judged."
    )


def _cost(view: ReportView) -> Paragraph:
    total = total_cost(view.results.manifest)
    if total is None:
        return Paragraph("What it cost is not recorded.", "note")
    return Paragraph([TextSpan("Cost: ", "strong"), total.words()], "note")


def _systems(view: ReportView) -> TableBlock:
    """What the systems are, with what was noticed below each of them."""
    rows: list[list[Cell]] = [
        [each.name, [TextSpan(each.written, "code"), *(TextSpan(note, "warning") for note in each.notes)], each.shows]
        for each in view.systems
    ]
    caption = "What each system is, and what was noticed while it retrieved"
    columns = [TableColumn("System"), TableColumn("Pipeline or file"), TableColumn("Shows")]
    return TableBlock(caption, columns, rows, "systems", hidden=True)
