"""What contributions and support say about single answers: misled by, redundant with, unsupported.

Contributions must be to the answers that were given and graded, not to accepted ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import polars as pl

from ragworth.contribution.summary import LEAST
from ragworth.errors import format_count, format_list, quote_short

CONTRIBUTION_FINDINGS = {
    "misled-by": "wrong, and carried by one passage more than by any other",
    "redundant-with": "passages that make up for each other",
    "unsupported": "a sentence that the context doesn't support",
    "contradicted": "a sentence that the context contradicts",
}
"""Every finding in words."""


class ContributionFinding(NamedTuple):
    """A finding about one answer."""

    system: str
    query: str
    finding: str
    detail: str


class ContributionDiagnosis(NamedTuple):
    """Findings, and for each how many answers have it out of how many that could be examined."""

    findings: list[ContributionFinding]
    counts: dict[str, tuple[int, int]]


def diagnose_contributions(
    passages: pl.DataFrame | None,
    support: pl.DataFrame | None,
    grades: Mapping[tuple[str, str], str],
    least: float = LEAST,
) -> ContributionDiagnosis:
    """Look at every answer.

    ``passages`` has a row for each passage (`ragworth.contribution.rows.passage_rows`), ``support`` what the grader
    ``support`` said; ``grades`` the grade in words by system and query.
    """
    found: list[ContributionFinding] = []
    counts: dict[str, tuple[int, int]] = {}
    if passages is not None:
        known = passages.filter(pl.col("status") == "ok", pl.col("passage").is_not_null())
        contexts = {
            (str(system), str(query)): mine
            for (system, query), mine in known.group_by("system", "query", maintain_order=True)
        }
        graded = {key: mine for key, mine in contexts.items() if key in grades}
        misled = [
            one
            for key, mine in graded.items()
            if grades[key] == "wrong" and (one := _misled_by(*key, mine, least)) is not None
        ]
        redundant = [one for key, mine in contexts.items() if (one := _redundant_with(*key, mine)) is not None]
        found += [*misled, *redundant]
        counts |= {"misled-by": (len(misled), len(graded)), "redundant-with": (len(redundant), len(contexts))}
    if support is not None:
        judged = support.filter(pl.col("status") == "ok", pl.col("statements").is_not_null())
        marks = [one for row in judged.iter_rows(named=True) for one in _unsupported(row)]
        found += marks
        for finding in ("unsupported", "contradicted"):
            counts[finding] = (sum(one.finding == finding for one in marks), judged.height)
    return ContributionDiagnosis(found, {name: each for name, each in counts.items() if each[1]})


def _misled_by(system: str, query: str, passages: pl.DataFrame, least: float) -> ContributionFinding | None:
    best = passages.sort("contribution", descending=True).row(0, named=True)
    if best["contribution"] <= least:
        return None
    words = f"rank {best['rank']}, {quote_short(best['passage'], 40)}, makes the wrong answer likelier by "
    return ContributionFinding(system, query, "misled-by", f"{words}{best['contribution']:.1f} nats")


def _redundant_with(system: str, query: str, passages: pl.DataFrame) -> ContributionFinding | None:
    rows = passages.filter(pl.col("redundant_with").is_not_null()).select("passage", "redundant_with").iter_rows()
    pairs = list(dict.fromkeys(tuple(sorted(pair)) for pair in rows))
    if not pairs:
        return None
    words = format_list([f"{quote_short(a, 30)} with {quote_short(b, 30)}" for a, b in pairs], 3)
    return ContributionFinding(system, query, "redundant-with", words)


def _unsupported(row: Mapping[str, list[str]]) -> Iterator[ContributionFinding]:
    for finding, label in (("unsupported", "neither"), ("contradicted", "contradicted")):
        few = [text for text, mark in zip(row["statements"], row["labels"], strict=True) if mark == label]
        if few:
            words = f"{len(few)} of {format_count(len(row['labels']), 'sentence')}: {quote_short(few[0], 80)}"
            yield ContributionFinding(str(row["system"]), str(row["query"]), finding, words)
