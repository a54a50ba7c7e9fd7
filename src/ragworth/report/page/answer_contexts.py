"""Answers one by one: the passages behind each sentence, from contributions and from support."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ragworth.contribution.profile import context_sentence
from ragworth.contribution.rows import context_passages, context_rows
from ragworth.contribution.summary import LEAST
from ragworth.report.answer_views import AnswerPassage, AnswerSentence, AnswerView
from ragworth.report.document import Details, Only, Paragraph, TextSpan
from ragworth.report.page.view import ReportView, explorer_address
from ragworth.text_match.citations import without_citations

TEXT = 300
"""Characters of a passage that are shown."""
BEHIND = 4
"""Passages that a sentence names at most."""

Key = tuple[str, str]


def answer_contexts(
    view: ReportView, frame: pl.DataFrame | None, support: pl.DataFrame | None, most: int
) -> tuple[list[Details], int]:
    """The first ``most`` answers that contributions or support are known of, and how many there are."""
    split, judged = _known(view, frame, "contributions"), _known(view, support, "labels")
    accepted = frame is not None and "gain" in frame["aspect"].to_list()
    keys = list(split or judged)
    passages = {name for key in keys[:most] for name in _shown(view, key, split.get(key))}
    texts = _texts(view.results.collection.passages, "passage", passages)
    questions = _texts(view.results.collection.queries, "query", {query for _, query in keys[:most]})
    made = []
    for number, key in enumerate(keys[:most], 1):
        row, marks = split.get(key), judged.get(key, {})
        if row is not None and (row.get("repeat") or 0) != (marks.get("repeat") or 0):
            marks = {}
        shown = _shown(view, key, row)
        block = AnswerView(
            f"answer-{number}",
            list(_sentences(row, marks, shown)),
            [each._replace(text=_short(texts.get(each.name, ""))) for each in _passages(row, shown)],
        )
        words = []
        if row is not None:
            told = context_sentence(np.array(row["contributions"], dtype=np.float64), LEAST, accepted=accepted)
            words = [Paragraph(f"{told[:1].upper()}{told[1:]}.")]
        link = TextSpan("Open in the explorer", link=explorer_address(query=key[1]))
        more = Only("html", [Paragraph(link, "note")])
        made.append(Details(f"{questions.get(key[1]) or key[1]} · {key[0]}", [*words, block, more]))
    return made, len(keys)


def _known(view: ReportView, frame: pl.DataFrame | None, column: str) -> dict[Key, dict[str, Any]]:
    """The rows of the queries in the page that have a value; of several answers to a query, the first."""
    if frame is None:
        return {}
    rows = context_rows(frame).filter(
        pl.col(column).is_not_null(), pl.col("query").is_in(view.explored), pl.col("status") != "unfit-model"
    )
    found: dict[Key, dict[str, Any]] = {}
    for row in rows.iter_rows(named=True):
        found.setdefault((row["system"], row["query"]), row)
    return found


def _shown(view: ReportView, key: Key, row: Mapping[str, Any] | None) -> list[str]:
    """Ids of the passages in the order shown."""
    return row["passages"] if row is not None else [each.passage for each in view.facts.shown.get(key, ())]


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
    for text, values in zip(row["sentences"], row["by_sentence"], strict=True):
        order = sorted(range(len(values)), key=lambda i: -values[i])
        behind = tuple(i + 1 for i in order if values[i] > LEAST)[:BEHIND]
        against = tuple(i + 1 for i in reversed(order) if values[i] < -LEAST)[:BEHIND]
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
