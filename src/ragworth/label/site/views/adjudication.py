"""The tables of agreement, and the queue of items about which people disagree."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from ragworth.label.agreement import LabelAgreement
from ragworth.label.site.disputes import count_undecided, counted_values, next_undecided, skip_reasons
from ragworth.label.site.events import RefusedError, adjudicate
from ragworth.label.site.exporting import labelled_data
from ragworth.label.site.models import LabelEvent, Project, ProjectItem
from ragworth.label.site.project_task import task_of
from ragworth.label.site.projects import status_of
from ragworth.label.site.views.access import find_project, read_json
from ragworth.label.site.views.item_view import describe_value, item_context
from ragworth.label.site.views.labelling import held_items, item_id, parse_submission
from ragworth.stats.estimate import Estimate

MOST_DISPUTES = 50
"""Items on which people disagree that the page shows."""
MOST_TEXT = 120
MOST_PAIRS = 28
"""Pairs of people that the page shows, those of eight people."""
NO_VALUE = "–"


@require_GET
def agreement_page(request: Any, slug: str) -> HttpResponse:
    """How far people agree, with intervals."""
    project = find_project(request, slug)
    tables = agreement_tables(project)
    context = {"project": project, "tables": tables, "status": status_of(project)}
    return render(request, "label/agreement.html", context)


@require_GET
def adjudicate_page(request: Any, slug: str) -> HttpResponse:
    """A disputed item with everybody's answers, anonymous and in random order."""
    project = find_project(request, slug)
    task = task_of(project)
    first = next_undecided(project, [])
    context = {
        "project": project,
        "task": task,
        "card": _card(project, first) if first else "",
        "urls": {
            "answer": reverse("decide", args=[slug]),
            "next": reverse("next-dispute", args=[slug]),
            "undo": "",
            "hold": "",
        },
        "progress": _progress(project),
        "facts": {**task.describe(), "queue": f"{request.user.pk}:{project.pk}:decide"},
        "adjudicating": True,
    }
    return render(request, "label/label.html", context)


@require_POST
def next_dispute(request: Any, slug: str) -> JsonResponse:
    """Another disputed item, besides those that the page has."""
    project = find_project(request, slug)
    return JsonResponse(_following(project, read_json(request)))


@require_POST
def decide(request: Any, slug: str) -> JsonResponse:
    """Store a decision and send the next item."""
    project = find_project(request, slug)
    data = read_json(request)
    try:
        submission = parse_submission(data, LabelEvent.ADJUDICATE)
        receipt = adjudicate(request.user, project, item_id(data), submission)
    except RefusedError as error:
        return JsonResponse({"problems": error.problems}, status=error.status)
    return JsonResponse({"stored": True, "repeated": receipt.repeated, **_following(project, data)})


def _following(project: Project, data: dict[str, Any]) -> dict[str, Any]:
    item = next_undecided(project, held_items(data))
    return {"card": _card(project, item) if item else None, "progress": _progress(project)}


def _card(project: Project, item: ProjectItem) -> str:
    task = task_of(project)
    answers = [describe_value(task, value, item.parts) for value in counted_values(item)]
    random.Random(f"{project.seed}:{item.pk}").shuffle(answers)
    facts = {"answers": answers, "skips": skip_reasons(item), "adjudicating": True}
    context = {**item_context(project, item), **facts}
    return render_to_string("label/card.html", context)


def _progress(project: Project) -> dict[str, Any]:
    status = status_of(project)
    return {"done": status.adjudicated, "left": count_undecided(project), "seconds": None}


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
