"""Which system answers better: a sentence each, every outcome with intervals, and all differences."""

from __future__ import annotations

from ragworth.report import summary_tables
from ragworth.report.document import (
    Cell,
    Details,
    DocumentBlock,
    Notes,
    Paragraph,
    Section,
    TableBlock,
    TableColumn,
    TextSpan,
)
from ragworth.report.page.answers import AnswerOverview
from ragworth.report.page.rankings import DRAWN_TURNS, TEST, MetricMean
from ragworth.report.page.sections.verdict import sentence_list
from ragworth.report.page.view import ReportView
from ragworth.report.wording import share_of_all


def section(view: ReportView) -> Section | None:
    """The top of the report; None if no answer has an outcome."""
    found = view.answers
    if found is None:
        return None
    headline = found.headline_in(".")
    where = " Run it in the folder of this report." if headline != found.headline else ""
    blocks: list[DocumentBlock] = [
        Paragraph(headline + where, "first"),
        sentence_list(found.standings, found.ranking),
        outcome_table(found),
        Paragraph(_note(found), "note"),
    ]
    blocks += [Notes(found.notes, "note")] if found.notes else []
    if found.comparison is not None:
        title = f"Differences from {found.baseline}, question by question"
        table = summary_tables.difference_table(found.comparison)
        blocks.append(Details(title, [TableBlock.of(table, title)]))
    return Section("answers", "Which system answers better", blocks, "Answers")


def outcome_table(answers: AnswerOverview) -> TableBlock:
    """Means of every outcome with intervals, groups, and n of N."""
    shared = answers.ranking.shared_means
    rows: list[list[Cell]] = [
        [
            [TextSpan(answers.ranking.place(each.system), "place"), f" {each.system}"],
            TextSpan(each.group, "group", title=answers.ranking.groups.words),
            *([_mean(answers, answers.main, shared.get(each.system), "not ranked")] if shared else []),
            *(_mean(answers, name, each.means.get(name)) for name in answers.outcomes),
        ]
        for each in answers.standings
    ]
    names = [*([f"{answers.main} (shared)"] if shared else []), *answers.outcomes]
    columns = [TableColumn("System"), TableColumn("Group"), *(TableColumn(name, True) for name in names)]
    return TableBlock(f"Answers, {answers.ranking.ordered_by(names[0])}", columns, rows, "board")


def _mean(found: AnswerOverview, name: str, mean: MetricMean | None, without: str = "not graded") -> Cell:
    if mean is None or mean.mean is None:
        return ["–", TextSpan(mean.missing if mean is not None else without, "small")]
    scale = found.scales[name]
    ends = scale.ends(mean.low, mean.high)
    number = f"{mean.n:,} of {mean.total:,}"
    if scale.share and mean.n < mean.total:
        number += f", so {share_of_all(mean.mean, mean.n, mean.total)} of all"
    missing = mean.n < mean.total and mean.missing
    count = TextSpan(f"{number}: {mean.missing} ", "warn") if missing else TextSpan(number, "small")
    return [scale.value(mean.mean, mean.low, mean.high), TextSpan(f"[{ends}]" if ends else mean.ends, "small"), count]


def _note(found: AnswerOverview) -> str:
    words = "In brackets the 95 % interval of the mean over questions. n of N: questions that have a value; the others "
    words += "are missing and count neither as correct nor as wrong."
    if any(mean.n < mean.total for each in found.standings for mean in each.means.values()):
        words += " Shares are of the answers that are decided, which aren't a random part of all."
    if any(mean.conversations is not None for each in found.standings for mean in each.means.values()):
        words += f" {DRAWN_TURNS}"
    if found.comparison is None or not found.ranking.ranked.order:
        return words
    return (
        f"{words} {found.ranking.groups.words} by {found.main}: paired {TEST} tests of "
        f"{found.ranking.tested} ({found.ranking.resamples:,} resamples), Holm's correction, 5 % "
        "level. For the other outcomes, Holm's correction is over the systems compared."
    )
