"""What each passage did for the answers: who carries them, and what the context supports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from statistics import median

import numpy as np
import polars as pl

from ragworth.core.errors import format_count
from ragworth.data import OK
from ragworth.judging.contribution import MOST
from ragworth.judging.contribution.outcomes import SHARE, threshold
from ragworth.judging.contribution.rows import (
    carrying,
    context_rows,
    contributing_from,
    contribution_notes,
    position_profile,
    split_answers,
)
from ragworth.report.answer_views import MARKS
from ragworth.report.document import Bullets, Details, DocumentBlock, Notes, Only, Paragraph, Section, TableBlock
from ragworth.report.page.answer_contexts import answer_contexts, count_shown
from ragworth.report.page.view import GRADED_CONTRIBUTION, ReportView

CONTEXTS = 40
"""Answers that are shown one by one."""


def section(view: ReportView) -> Section | None:
    """None if nothing is known of contributions or support."""
    frame, support = view.contributions, view.support
    if frame is None and support is None:
        return None
    blocks: list[DocumentBlock] = []
    if frame is not None:
        given = GRADED_CONTRIBUTION in view.results.said
        blocks += _summary(frame, view.results.conversations, given)
    if support is not None:
        blocks.append(Paragraph(_support_sentence(support)))
    shown, explored, total = answer_contexts(view, frame, support, CONTEXTS)
    if shown:
        more = count_shown(len(shown), explored, total)
        hint = "Point to a sentence to mark the passages behind it, or click it to keep the marks; [1] leads to one."
        blocks.append(Details(f"Sentences and passages: {more}", [Only("html", [Paragraph(hint, "note")]), *shown]))
    return Section("contribution", "What each passage did for the answer", blocks, "Contribution")


def _summary(frame: pl.DataFrame, conversations: Mapping[str, str], given: bool) -> list[DocumentBlock]:
    known = context_rows(frame).filter(pl.col("contributions").is_not_null())
    accepted = "gain" in frame["aspect"].to_list()
    least = contributing_from(frame)
    sentences = [
        _system_sentence(str(name), mine, accepted, least)
        for (name,), mine in known.group_by("system", maintain_order=True)
    ]
    note = (
        "A contribution is what a passage adds to the log-probability of "
        f"{split_answers(frame, graded=given)}. It is in nats, averaged over the orders in which the passages could be "
        f"added (Shapley value). More than {least:g} nats, and {100 * SHARE:.0f} % of all contributions of the "
        "context, counts as contributing."
    )
    profile = position_profile(frame, conversations=conversations)
    table = TableBlock.of(profile, "Mean contribution by position, with 95 % intervals", style="")
    missing = context_rows(frame).height - known.height
    notes = contribution_notes(frame)
    notes += [f"{format_count(missing, _unit(frame))} without contributions: {_reasons(frame)}"] if missing else []
    return [Bullets(sorted(sentences), shown=20), Paragraph(note, "note"), table, Notes(notes, "note")]


def _unit(frame: pl.DataFrame) -> str:
    """What a row is about: a context, or one of several answers from it."""
    return "answer" if "repeat" in frame.columns and frame["repeat"].fill_null(0).max() else "context"


def _reasons(frame: pl.DataFrame) -> str:
    lost = context_rows(frame).filter(pl.col("contributions").is_null())
    return ", ".join(f"{status} {number:,}" for status, number in Counter(lost["status"].to_list()).most_common())


def _system_sentence(system: str, contexts: pl.DataFrame, accepted: bool, least: float) -> str:
    values = [np.array(each) for each in contexts["contributions"].to_list() if len(each)]
    if not values:
        return f"{system}: no context has passages."
    sizes = [number for each in values if (number := carrying(each, least))]
    against = sum(bool((each < -threshold(each, least)).any()) for each in values)
    unit = _unit(contexts)
    verb = "does harm" if accepted else "goes against the answer"
    tail = f"in {against:,} of {format_count(len(values), unit)}, a passage {verb}."
    if not sizes:
        return f"{system}: no passage contributes to any answer; {tail}"
    few = round(median(sizes))
    carried = f"{format_count(few, 'passage')} {'carries' if few == 1 else 'carry'} {100 * MOST:.0f} % of the answer"
    return f"{system}: in the median {unit}, {carried} ({len(sizes):,} of {len(values):,} {unit}s); {tail}"


def _support_sentence(support: pl.DataFrame) -> str:
    every = context_rows(support)
    known = every.filter(pl.col("labels").is_not_null(), pl.col("status") == OK)
    if not known.height:
        reasons = Counter(support["status"].to_list()).most_common(1)
        return (
            f"Whether the context supports the answers is not known: {reasons[0][0] if reasons else 'nothing judged'}."
        )
    labels = Counter(label for each in known["labels"].to_list() for label in each)
    parts = ", ".join(f"{MARKS[name].partition(' ')[2]} {labels[name]:,}" for name in MARKS)
    return f"Sentences of {known.height:,} of {format_count(every.height, 'answer')}: {parts}."
