"""Agreement on the labels of a project as they are now, as tables for a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from ragworth.label.agreement import LabelAgreement
from ragworth.label.site.exporting import labelled_data
from ragworth.label.site.models import Project, ProjectItem
from ragworth.stats.estimate import Estimate

MOST_DISPUTES = 50
"""Items on which people disagree that the page shows."""
MOST_TEXT = 120
MOST_PAIRS = 28
"""Pairs of people that the page shows, those of eight people."""
NO_VALUE = "–"


class AgreementTable(NamedTuple):
    """One table of the page. ``note`` says what it is about."""

    title: str
    note: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def agreement_of(project: Project) -> LabelAgreement:
    data = labelled_data(project, texts=False)
    return LabelAgreement(data.task, data.items, data.labels)


def agreement_tables(project: Project) -> list[AgreementTable]:
    """What a project's labels say about agreement; tables without rows are left out."""
    agreement = agreement_of(project)
    return [table for table in (*_tables(agreement), _disputes(agreement, project)) if table.rows]


def _tables(agreement: LabelAgreement) -> Iterator[AgreementTable]:
    estimates = ("", "Value", "95 % interval", "Items", "Note")
    left_out = ", ".join(f"{count:,} ({reason})" for reason, count in agreement.left_out.items())
    note = "Labels of all annotators. " + (f"Labels left out: {left_out}." if left_out else "")
    yield AgreementTable("Agreement", note, estimates, [_row(*each) for each in agreement.together.items()])
    spans = [
        _row(f"{field}: {name}", estimate)
        for field, found in agreement.spans.items()
        for name, estimate in found._asdict().items()
        if isinstance(estimate, Estimate)
    ]
    yield AgreementTable("Highlights", "F1 of the highlights of every two people.", estimates, spans)
    rates = [_row(*each) for each in agreement.base_rates.items()] if len(agreement.labels) else []
    yield AgreementTable("Base rates", "How often each value is chosen.", estimates, rates)
    yield _people(agreement)
    yield from _pairs(agreement)


def _people(agreement: LabelAgreement) -> AgreementTable:
    rows = [
        (
            each.name,
            f"{each.labels:,}",
            f"{each.skipped:,}",
            NO_VALUE if each.median_seconds is None else f"{each.median_seconds:.1f}",
            _share(each.gold),
            _share(each.self_agreement),
        )
        for each in agreement.people
    ]
    columns = ("Person", "Labels", "Skipped", "Seconds (median)", "Gold items right", "Repeats equal")
    return AgreementTable("People", "", columns, rows)


def _pairs(agreement: LabelAgreement) -> Iterator[AgreementTable]:
    """Cohen's κ of every two people, and the confusion of those who disagree."""
    names = agreement.annotators
    rows = [_row(f"{names[pair.first]} – {names[pair.second]}", pair.kappa) for pair in agreement.pairs[:MOST_PAIRS]]
    yield AgreementTable("Cohen’s κ of every two people", "", ("", "Value", "95 % interval", "Items", "Note"), rows)
    words = {code: value for value, code in agreement.codes.items()}
    for first, second in list(combinations(range(len(names)), 2))[:MOST_PAIRS]:
        found = agreement.confusion(first, second)
        cells = [(words[each.first], words[each.second], f"{each.items:,}") for each in found]
        yield AgreementTable(f"{names[first]} and {names[second]}", "", (names[first], names[second], "Items"), cells)


def _disputes(agreement: LabelAgreement, project: Project) -> AgreementTable:
    """Items on which people disagree, with their values and without names."""
    most = agreement.disputes[:MOST_DISPUTES]
    found = ProjectItem.objects.filter(project=project, key__in=[one.item.id for one in most])
    texts = {key: str(next(iter(parts.values()), "")) for key, parts in found.values_list("key", "parts")}
    rows = []
    for one in most:
        values = [f"{value} × {count}" for value, count in Counter(one.values.values()).most_common()]
        rows.append((texts[one.item.id][:MOST_TEXT], ", ".join(values), f"{one.distance:.2f}"))
    note = f"The widest {len(most)} of {len(agreement.disputes):,}; nobody has decided them yet."
    return AgreementTable("Items on which people disagree", note, ("Item", "Answers", "Distance"), rows)


def _row(name: str, estimate: Estimate) -> tuple[str, ...]:
    value = NO_VALUE if estimate.value is None else f"{estimate.value:.3f}"
    known = estimate.low is not None and estimate.high is not None
    interval = f"{estimate.low:.3f} to {estimate.high:.3f}" if known else NO_VALUE
    return (name, value, interval, f"{estimate.n:,}", estimate.reason)


def _share(counts: tuple[int, int]) -> str:
    equal, every = counts
    return f"{equal:,} of {every:,}" if every else NO_VALUE
