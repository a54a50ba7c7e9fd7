"""What each passage did for the answers: who carries them, what the context supports, and what went wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from statistics import median
from typing import Any

import numpy as np
import polars as pl

from ragworth.contribution.notes import contribution_notes
from ragworth.contribution.profile import MOST, context_sentence, position_profile
from ragworth.contribution.rows import context_passages, context_rows, passage_rows
from ragworth.contribution.summary import LEAST, SHARE, threshold
from ragworth.diagnosis.contributions import CONTRIBUTION_FINDINGS, diagnose_contributions
from ragworth.errors import format_count
from ragworth.report.document import (
    Bullets,
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
from ragworth.report.page.view import ReportView

GRADED, JUDGED, SUPPORT = "graded-contribution", "contribution", "support"
"""What the model said: of the answers that were given, of its own or accepted ones, and whether they are supported."""

CONTEXTS = 40
"""Contexts that are shown one by one."""
BAR = 12
"""Characters of the longest bar of a context."""
MARKS = {"supported": "✓ supported", "contradicted": "✗ contradicted", "neither": "? not supported"}


def section(view: ReportView) -> Section | None:
    """None if nothing is known of contributions or support."""
    said = view.results.said
    frame = said.get(GRADED, said.get(JUDGED))
    support = said.get(SUPPORT)
    if frame is None and support is None:
        return None
    blocks: list[DocumentBlock] = []
    if frame is not None:
        blocks += _summary(frame, view.results.conversations)
    if support is not None:
        blocks.append(Paragraph(_support_sentence(support)))
    # Contributions to other answers than those that were graded say nothing about them.
    given = passage_rows(frame) if frame is not None and GRADED in said else None
    blocks += _findings(given, support, view.facts.grades)
    blocks += _contexts(view, frame, support)
    return Section("contribution", "What each passage did for the answer", blocks, "Contribution")


def _summary(frame: pl.DataFrame, conversations: Mapping[str, str]) -> list[DocumentBlock]:
    known = context_rows(frame).filter(pl.col("contributions").is_not_null())
    accepted = "gain" in frame["aspect"].to_list()
    whose = "an accepted answer" if accepted else "the answer"
    sentences = [_system_sentence(str(name), mine, accepted) for (name,), mine in known.group_by("system")]
    note = (
        f"A contribution is what a passage adds to the log-probability of {whose}, in nats, averaged over the "
        f"orders in which the passages could be added (Shapley value). More than {LEAST:g} nats, and {SHARE:.0%} of "
        "all contributions of the context, counts as contributing."
    )
    profile = position_profile(frame, conversations=conversations)
    table = TableBlock.of(profile, "Mean contribution by position, with 95 % intervals", style="")
    missing = context_rows(frame).height - known.height
    notes = contribution_notes(frame)
    notes += [f"{format_count(missing, 'context')} without contributions: {_reasons(frame)}"] if missing else []
    return [Bullets(sorted(sentences), shown=20), Paragraph(note, "note"), table, Notes(notes, "note")]


def _reasons(frame: pl.DataFrame) -> str:
    lost = context_rows(frame).filter(pl.col("contributions").is_null())
    return ", ".join(f"{status} {number:,}" for status, number in Counter(lost["status"].to_list()).most_common())


def _system_sentence(system: str, contexts: pl.DataFrame, accepted: bool) -> str:
    values = [np.array(each) for each in contexts["contributions"].to_list() if len(each)]
    if not values:
        return f"{system}: no context has passages."
    sizes, against = [], 0
    for each in values:
        positive = np.sort(np.maximum(each, 0))[::-1]
        if positive[0] > LEAST:
            sizes.append(int(np.searchsorted(np.cumsum(positive) / positive.sum(), MOST - 1e-12)) + 1)
        against += bool((each < -threshold(each, LEAST)).any())
    verb = "does harm" if accepted else "goes against the answer"
    tail = f"in {against:,} of {format_count(len(values), 'context')}, a passage {verb}."
    if not sizes:
        return f"{system}: no passage contributes to any answer; {tail}"
    carried = f"in the median context, {format_count(round(median(sizes)), 'passage')} of {len(values[0])} "
    return f"{system}: {carried}carry {MOST:.0%} of the answer ({len(sizes):,} of {len(values):,} contexts); {tail}"


def _support_sentence(support: pl.DataFrame) -> str:
    known = support.filter(pl.col("labels").is_not_null(), pl.col("status") == "ok")
    if not known.height:
        reasons = Counter(support["status"].to_list()).most_common(1)
        return (
            f"Whether the context supports the answers is not known: {reasons[0][0] if reasons else 'nothing judged'}."
        )
    labels = Counter(label for each in known["labels"].to_list() for label in each)
    parts = ", ".join(f"{MARKS[name].partition(' ')[2]} {labels[name]:,}" for name in MARKS)
    answers = f"{known.height:,} of {format_count(support['query'].n_unique(), 'question')}"
    return f"Sentences of the answers ({answers} judged): {parts}."


def _findings(
    passages: pl.DataFrame | None, support: pl.DataFrame | None, grades: Mapping[tuple[str, str], str]
) -> list[DocumentBlock]:
    found = diagnose_contributions(passages, support, grades)
    if not found.counts:
        return []
    lines = [f"{CONTRIBUTION_FINDINGS[name]}: {n:,} of {total:,}" for name, (n, total) in found.counts.items()]
    rows: list[list[Cell]] = [list(each) for each in found.findings[:200]]
    heads = [TableColumn(name) for name in ("System", "Query", "Finding", "Detail")]
    table = TableBlock("Findings", heads, rows, total=len(found.findings), aside=True)
    return [Bullets(lines), *([Details("All findings", [table])] if rows else [])]


def _contexts(view: ReportView, frame: pl.DataFrame | None, support: pl.DataFrame | None) -> list[DocumentBlock]:
    """The first contexts one by one, with every sentence and every passage."""
    if frame is None:
        return []
    texts = dict(view.results.collection.queries.select("query", "text").iter_rows())
    marks = _marks(support)
    wanted = set(view.explored)
    rows = context_rows(frame).filter(pl.col("contributions").is_not_null(), pl.col("query").is_in(list(wanted)))
    shown = [_context(row, texts, marks) for row in rows.head(CONTEXTS).iter_rows(named=True)]
    more = f"the first {len(shown)} of {rows.height:,} contexts" if rows.height > len(shown) else "every context"
    return [Details(f"Sentences and passages: {more}", shown)] if shown else []


def _marks(support: pl.DataFrame | None) -> dict[tuple[str, str], dict[str, str]]:
    if support is None:
        return {}
    known = support.filter(pl.col("statements").is_not_null(), pl.col("status") == "ok").iter_rows(named=True)
    return {(row["system"], row["query"]): dict(zip(row["statements"], row["labels"], strict=True)) for row in known}


def _context(
    row: Mapping[str, Any], texts: Mapping[str, str], marks: Mapping[tuple[str, str], Mapping[str, str]]
) -> DocumentBlock:
    values = np.array(row["contributions"], dtype=np.float64)
    mine = marks.get((row["system"], row["query"]), {})
    question = texts.get(row["query"], row["query"])
    blocks: list[DocumentBlock] = [
        Paragraph(f"{context_sentence(values, LEAST)[:1].upper()}{context_sentence(values, LEAST)[1:]}."),
        _sentence_table(row, mine),
        _passage_table(row, values),
    ]
    return Details(f"{question} · {row['system']}", blocks)


def _sentence_table(row: Mapping[str, Any], marks: Mapping[str, str]) -> TableBlock:
    """Each sentence with the passages that carry it, strongest first."""
    rows: list[list[Cell]] = []
    for sentence, values in zip(row["sentences"], row["by_sentence"], strict=True):
        behind = sorted((n for n, value in enumerate(values) if value > LEAST), key=lambda n: -values[n])
        words = ", ".join(f"[{n + 1}] {row['passages'][n]} (+{values[n]:.1f})" for n in behind[:4]) or "none"
        label = marks.get(sentence)
        mark: Cell = "" if label is None else TextSpan(MARKS[label], "" if label == "supported" else "warn")
        rows.append([sentence, words, *([mark] if marks else [])])
    heads = [TableColumn("Sentence"), TableColumn("Passages behind it"), *([TableColumn("Context")] if marks else [])]
    return TableBlock("Sentences of the answer", heads, rows)


def _passage_table(row: Mapping[str, Any], values: np.ndarray[Any, np.dtype[np.float64]]) -> TableBlock:
    largest = float(np.abs(values).max()) if len(values) else 1.0
    rows: list[list[Cell]] = [
        [
            f"[{each['rank']}] {each['passage']}",
            [TextSpan(signed_bar(each["contribution"], largest), "code"), f"{each['contribution']:+.2f}"],
            "" if not each["error"] else f"±{each['error']:.2f}",
            each["redundant_with"] or "",
            "cited" if each["cited"] else "",
        ]
        for each in context_passages(row)
    ]
    heads = [TableColumn(name) for name in ("Passage", "Contribution, nats", "Error", "Redundant with", "")]
    return TableBlock("Passages", heads, rows)


def signed_bar(value: float, largest: float) -> str:
    """A bar to the right of a middle line for what helps, to the left for what goes against the answer."""
    size = round(BAR * abs(value) / largest) if largest > 0 else 0
    left, right = ("█" * size, "") if value < 0 else ("", "█" * size)
    return f"{left:>{BAR}}│{right:<{BAR}}"
