"""What contributions and support say about single answers: carried by one passage, redundant, unsupported.

Contributions must be to the answers that were given and graded, not to accepted ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from ragworth.core.errors import format_count, format_list, quote_short
from ragworth.diagnosis.rules import (
    CONTRIBUTION_COLUMNS,
    CONTRIBUTION_COUNTS,
    CONTRIBUTION_FINDINGS,
    ContributionDiagnosis,
)
from ragworth.judging.contribution.outcomes import LEAST
from ragworth.judging.contribution.rows import carrying, context_rows

SENTENCE_LABELS = {"unsupported-sentence": "neither", "contradicted-sentence": "contradicted"}
"""Findings about sentences, with the label of the judge."""


class ContributionFinding(NamedTuple):
    """A finding about one answer."""

    system: str
    query: str
    finding: str
    detail: str


def diagnose_contributions(
    passages: pl.DataFrame | None,
    support: pl.DataFrame | None,
    grades: Mapping[tuple[str, str], Sequence[str | None]],
    least: float = LEAST,
) -> ContributionDiagnosis:
    """Look at every answer.

    ``passages`` has a row for each passage (`contribution.rows.passage_rows`), ``support`` what the grader
    ``support`` said; ``grades`` by system and query the grade of each answer in words, in the order of the answers. If
    the grades of a query are not those of its answers one by one, they say nothing about them.
    """
    found: list[ContributionFinding] = []
    examined: Counter[tuple[str, str]] = Counter()
    if passages is not None:
        every = passages if "repeat" in passages.columns else passages.with_columns(repeat=pl.lit(0))
        for (system, query), mine in every.group_by("system", "query", maintain_order=True):
            key = str(system), str(query)
            answers = mine.partition_by("repeat", maintain_order=True)
            own = grades.get(key, ())
            for answer, grade in zip(answers, own if len(own) == len(answers) else [None] * len(answers), strict=True):
                known = answer.filter(pl.col("status") == "ok", pl.col("passage").is_not_null())
                if not known.height:
                    continue
                examined[key[0], "redundant-with"] += 1
                examined[key[0], "misled-by"] += grade is not None
                own_findings = [
                    *(_misled_by(*key, known, least) if grade == "wrong" else ()),
                    *_redundant_with(*key, known),
                ]
                found += _of_answer(own_findings, answer["repeat"][0], len(answers))
    if support is not None:
        judged = context_rows(support).filter(pl.col("status") == "ok", pl.col("statements").is_not_null())
        several = Counter(context_rows(support).select("system", "query").iter_rows())
        for row in judged.iter_rows(named=True):
            examined.update((row["system"], finding) for finding in SENTENCE_LABELS)
            number = several[row["system"], row["query"]]
            found += _of_answer(_sentence_findings(row), row.get("repeat") or 0, number)
    # Several answers to a query may have the same finding.
    frame = pl.DataFrame(found, schema=CONTRIBUTION_COLUMNS, orient="row")
    holds = Counter(frame.select("system", "finding").iter_rows())
    order = {name: n for n, name in enumerate(CONTRIBUTION_FINDINGS)}
    rows = [(*key, holds[key], of) for key, of in sorted(examined.items(), key=lambda each: order[each[0][1]]) if of]
    return ContributionDiagnosis(frame, pl.DataFrame(rows, schema=CONTRIBUTION_COUNTS, orient="row"))


def _of_answer(findings: Iterable[ContributionFinding], repeat: int, answers: int) -> Iterator[ContributionFinding]:
    """Findings that say which of several answers to the query they are about."""
    for each in findings:
        yield each._replace(detail=f"answer {repeat + 1}: {each.detail}") if answers > 1 else each


def _misled_by(system: str, query: str, passages: pl.DataFrame, least: float) -> Iterator[ContributionFinding]:
    if carrying(passages["contribution"].to_numpy(), least) == 1:
        best = passages.sort("contribution", descending=True).row(0, named=True)
        words = f"rank {best['rank']}, {quote_short(best['passage'], 40)}, makes the wrong answer likelier by "
        yield ContributionFinding(system, query, "misled-by", f"{words}{best['contribution']:.1f} nats")


def _redundant_with(system: str, query: str, passages: pl.DataFrame) -> Iterator[ContributionFinding]:
    rows = passages.filter(pl.col("redundant_with").is_not_null()).select("passage", "redundant_with").iter_rows()
    pairs = list(dict.fromkeys(tuple(sorted(pair)) for pair in rows))
    if pairs:
        words = format_list([f"{quote_short(a, 30)} with {quote_short(b, 30)}" for a, b in pairs], 3)
        yield ContributionFinding(system, query, "redundant-with", words)


def _sentence_findings(row: Mapping[str, list[str]]) -> Iterator[ContributionFinding]:
    for finding, label in SENTENCE_LABELS.items():
        few = [text for text, mark in zip(row["statements"], row["labels"], strict=True) if mark == label]
        if few:
            words = f"{len(few)} of {format_count(len(row['labels']), 'sentence')}: {quote_short(few[0], 80)}"
            yield ContributionFinding(str(row["system"]), str(row["query"]), finding, words)
