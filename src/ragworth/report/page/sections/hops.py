"""What each search of an agent added to the answers, and when it could have stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

import polars as pl

from ragworth.core.errors import format_count
from ragworth.judging.contribution.hops import hop_profile, hop_rows, hops_needed, stop_sentence
from ragworth.judging.contribution.rows import context_rows, contributing_from, split_answers
from ragworth.report.answer_views import HopStep, HopTimeline
from ragworth.report.charts.planes import curve_chart
from ragworth.report.document import (
    Bullets,
    ChartPanel,
    Details,
    DocumentBlock,
    Figure,
    Group,
    Paragraph,
    Section,
    TableBlock,
)
from ragworth.report.page.answer_contexts import count_shown
from ragworth.report.page.view import ReportView

CONTEXTS = 40
"""Answers that are shown one by one."""


def section(view: ReportView) -> Section | None:
    """None if nothing is known of hops."""
    frame = view.results.said.get("hops")
    if frame is None:
        return None
    known = context_rows(frame).filter(pl.col("growing").is_not_null())
    if not known.height:
        reasons = ", ".join(sorted(frame["status"].unique()))
        return Section("hops", "What each search added", [Paragraph(f"Not known: {reasons}.")], "Hops")
    least = contributing_from(known)
    systems = known.group_by("system", maintain_order=True)
    sentences = [_system_sentence(str(name), mine, least) for (name,), mine in systems]
    note = (
        "The worth of the first n searches is the number of nats that their passages add to the log-probability of "
        f"{split_answers(frame)}. An agent could have stopped when all further searches together add no more than "
        f"{least:g} nats. A search that only prepares another one adds nothing when it comes, but contributes: its "
        "contribution is the Shapley value among all searches."
    )
    missing = context_rows(frame).height - known.height
    blocks: list[DocumentBlock] = [
        Bullets(sentences),
        Paragraph(note, "note"),
        Group("gallery", [_figure(view, frame)]),
    ]
    if missing:
        blocks.insert(1, Paragraph(f"{format_count(missing, 'answer')} could not be split among searches.", "note"))
    searches = hop_rows(frame).drop("logprob").sort("added", maintain_order=True)
    table = TableBlock.of(searches, "Searches, those that added least first", aside=True)
    blocks += [Details("Every search", [table]), *_timelines(view, known, least)]
    return Section("hops", "What each search added", blocks, "Hops")


def _system_sentence(system: str, contexts: pl.DataFrame, least: float) -> str:
    curves: list[list[float]] = contexts["growing"].to_list()
    needed = [hops_needed(each, least) for each in curves]
    hops = [len(each) - 1 for each in curves]
    spare = sum(hops) - sum(needed)
    early = sum(n < most for n, most in zip(needed, hops, strict=True))
    harmful = sum(after - before < -least for each in curves for before, after in pairwise(each))
    words = f"{system}: the median answer needs {median(needed):g} of {median(hops):g} searches; "
    words += f"{early:,} of {format_count(len(curves), 'answer')} could have come earlier, which would have saved "
    words += f"{spare:,} of {format_count(sum(hops), 'search', 'searches')}"
    return f"{words}; {harmful:,} made the answer less likely by more than {least:g} nats." if harmful else f"{words}."


def _figure(view: ReportView, frame: pl.DataFrame) -> Figure:
    profile = hop_profile(frame, conversations=view.results.conversations)
    lines = profile.rename({"system": "line", "hops": "place", "worth": "value", "reached": "n"})
    spec = curve_chart(lines, "searches", "worth, nats", zero=True)
    caption = (
        "Mean worth of the first n searches, with 95 % intervals over queries. An answer with fewer searches keeps the "
        "worth after its last one; reached is the number of answers with so many."
    )
    return Figure("hops", "Worth after each search", caption, [ChartPanel("hops", "", spec)], profile)


def _timelines(view: ReportView, known: pl.DataFrame, least: float) -> Sequence[Details]:
    rows = known.filter(pl.col("query").is_in(view.explored))
    texts = dict(view.results.collection.queries.select("query", "text").iter_rows())
    shown = [_timeline(row, texts, least) for row in rows.head(CONTEXTS).iter_rows(named=True)]
    more = count_shown(len(shown), rows.height, known.height)
    return [Details(f"Timelines: {more}", shown)] if shown else []


def _timeline(row: Mapping[str, Any], texts: Mapping[str, str], least: float) -> Details:
    growing: list[float] = row["growing"]
    steps = [
        HopStep(name, search, after - growing[0], after - before, value)
        for name, search, value, (before, after) in zip(
            row["passages"], row["searches"], row["contributions"], pairwise(growing), strict=True
        )
    ]
    words = stop_sentence(growing, least)
    blocks = [Paragraph(f"{words[0].upper()}{words[1:]}."), HopTimeline(steps, hops_needed(growing, least))]
    return Details(f"{texts.get(row['query']) or row['query']} · {row['system']}", blocks)
