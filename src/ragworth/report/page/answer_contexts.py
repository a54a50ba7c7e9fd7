"""Answers one by one: the passages behind each sentence, from contributions and from support."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ragworth.core.errors import format_count
from ragworth.judging.contribution.rows import context_passages, context_rows, context_sentence, context_threshold
from ragworth.report.answer_views import AnswerPassage, AnswerSentence, AnswerView
from ragworth.report.document import Details, Only, Paragraph, TextSpan
from ragworth.report.page.view import ReportView, explorer_address
from ragworth.text_match.sentences import without_citations

TEXT = 300
"""Characters of a passage that are shown."""
BEHIND = 4
"""Passages that a sentence names at most."""

Key = tuple[str, str, int]
"""System, query and repeat of an answer."""


class AnswerEntry(NamedTuple):
    """An answer with its contributions, None if unknown, and its support, empty if unknown."""

    system: str
    query: str
    repeat: int
    row: Mapping[str, Any] | None
    marks: Mapping[str, Any]


class AnswerContexts(NamedTuple):
    """Answers to show one by one: the first ones to queries in the explorer, of ``explored``, of ``total`` answers."""

    shown: list[Details]
    explored: int
    total: int


def count_shown(shown: int, explored: int, total: int) -> str:
    """How many answers are shown one by one, and which: "the first 40 of 120 answers"."""
    if shown == total:
        return "the only answer" if total == 1 else f"all {total:,} answers"
    some = f"{shown:,} of {format_count(total, 'answer')}"
    if explored == total:
        return f"the first {some}"
    return f"{some} ({'queries' if shown == explored else 'the first'} in the explorer)"


def answer_contexts(
    view: ReportView, frame: pl.DataFrame | None, support: pl.DataFrame | None, most: int
) -> AnswerContexts:
    """The first ``most`` answers to queries in the explorer that contributions or support are known of."""
    every = list(_entries(_known(frame, "contributions"), _known(support, "labels")))
    explored = set(view.explored)
    entries = [each for each in every if each.query in explored]
    accepted = frame is not None and "gain" in frame["aspect"].to_list()
    first = entries[:most]
    texts = _texts(view.results.collection.passages, "passage", {name for each in first for name in _shown(view, each)})
    questions = _texts(view.results.collection.queries, "query", {each.query for each in first})
    several = {(each.system, each.query) for each in every if each.repeat}
    made = []
    for number, entry in enumerate(first, 1):
        row, shown = entry.row, _shown(view, entry)
        block = AnswerView(
            f"answer-{number}",
            list(_sentences(row, entry.marks, shown)),
            [each._replace(text=_short(texts.get(each.name, ""))) for each in _passages(row, shown)],
        )
        words = []
        if row is not None:
            told = context_sentence(
                np.array(row["contributions"], dtype=np.float64), context_threshold(row), accepted=accepted
            )
            words = [Paragraph(f"{told[:1].upper()}{told[1:]}.")]
        link = TextSpan("Open in the explorer", link=explorer_address(query=entry.query))
        more = Only("html", [Paragraph(link, "note")])
        title = [questions.get(entry.query) or entry.query, entry.system]
        title += [f"answer {entry.repeat + 1}"] if (entry.system, entry.query) in several else []
        title += ["support alone"] if row is None and frame is not None else []
        made.append(Details(" · ".join(title), [*words, block, more]))
    return AnswerContexts(made, len(entries), len(every))


def _known(frame: pl.DataFrame | None, column: str) -> dict[Key, dict[str, Any]]:
    """The rows that have a value, by their answers."""
    if frame is None:
        return {}
    rows = context_rows(frame).filter(pl.col(column).is_not_null(), pl.col("status") != "unfit-model")
    return {(row["system"], row["query"], row.get("repeat") or 0): row for row in rows.iter_rows(named=True)}


def _entries(split: Mapping[Key, dict[str, Any]], judged: Mapping[Key, dict[str, Any]]) -> Iterator[AnswerEntry]:
    """Every answer. One that was judged stands alone if it says something that the one with contributions doesn't."""
    for key in dict.fromkeys([*split, *judged]):
        row, marks = split.get(key), judged.get(key, {})
        if row is not None:
            yield AnswerEntry(*key, row, marks)
        if row is None or Counter(map(_plain, marks.get("statements") or [])) - Counter(map(_plain, row["sentences"])):
            yield AnswerEntry(*key, None, marks)


def _shown(view: ReportView, entry: AnswerEntry) -> list[str]:
    """Ids of the passages in the order shown."""
    if entry.row is not None:
        return list(entry.row["passages"])
    return [each.passage for each in view.facts.shown.get((entry.system, entry.query), ())]


def _texts(frame: pl.DataFrame, key: str, wanted: set[str]) -> dict[str, str]:
    return dict(frame.filter(pl.col(key).is_in(list(wanted))).select(key, "text").iter_rows())


def _short(text: str) -> str:
    return text if len(text) <= TEXT else f"{text[:TEXT].rstrip()}…"


def _sentences(
    row: Mapping[str, Any] | None, marks: Mapping[str, Any], shown: Sequence[str]
) -> Iterator[AnswerSentence]:
    """Sentences in their order, each with the mark of the statement that says the same.

    Marks may be of another answer, so a sentence without such a statement has no mark.
    """
    statements, labels = marks.get("statements") or [], marks.get("labels") or []
    alone = marks.get("supporting") or [[] for _ in statements]
    numbers = {name: n for n, name in enumerate(shown, 1)}
    judged = [
        AnswerSentence(text, label=label, supporting=tuple(numbers[name] for name in names if name in numbers))
        for text, label, names in zip(statements, labels, alone, strict=True)
    ]
    if row is None:
        yield from judged
        return
    left: defaultdict[str, deque[AnswerSentence]] = defaultdict(deque)
    for each in judged:
        left[_plain(each.text)].append(each)
    least = context_threshold(row)
    for text, values in zip(row["sentences"], row["by_sentence"], strict=True):
        order = sorted(range(len(values)), key=lambda i: -values[i])
        behind = tuple(i + 1 for i in order if values[i] > least)[:BEHIND]
        against = tuple(i + 1 for i in reversed(order) if values[i] < -least)[:BEHIND]
        same = left[_plain(text)]
        mark = same.popleft() if same else AnswerSentence(text)
        yield AnswerSentence(text, behind, against, mark.label, mark.supporting)


def _plain(sentence: str) -> str:
    """A sentence to compare: without citations, and with single blanks."""
    return " ".join(without_citations(sentence).split())


def _passages(row: Mapping[str, Any] | None, shown: Sequence[str]) -> Iterator[AnswerPassage]:
    if row is None:
        yield from (AnswerPassage(n, name, "") for n, name in enumerate(shown, 1))
        return
    numbers = {name: n for n, name in enumerate(shown, 1)}
    for each in context_passages(row):
        partner = each["redundant_with"]
        remarks = [f"redundant with [{numbers[partner]}]"] if partner is not None else []
        remarks += ["cited"] if each["cited"] else []
        yield AnswerPassage(each["rank"], each["passage"], "", each["contribution"], each["error"], " · ".join(remarks))
