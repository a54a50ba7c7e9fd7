"""The diagnosis: counts of every finding, what it means, what helps, and examples to look at."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ragworth.diagnosis import FINDINGS
from ragworth.diagnosis.rules import CONTRIBUTION_FINDINGS
from ragworth.judging.contribution import MOST
from ragworth.report.document import (
    Bullets,
    Cell,
    DocumentBlock,
    Group,
    Heading,
    Only,
    Paragraph,
    RichText,
    Section,
    TableBlock,
    TableColumn,
    TextSpan,
)
from ragworth.report.page.view import ReportView, explorer_address

MEANINGS = {
    "nothing-relevant": "No passage shown is relevant, so the model cannot answer from them. Look at the retriever: "
    "its recall, its index, the query.",
    "misled": "The answer is wrong, and a passage was shown that is irrelevant but makes the model answer (distracting "
    "effect above 0.8). Show fewer passages, or re-rank with something that knows near misses.",
    "unused": "A relevant passage was shown, and the model declined, or answered wrongly though no hard distractor was "
    "there. Look at the passage's form and place, the prompt, or the model.",
    "unsupported": "The answer is correct, and nothing that was shown supports it: the model knew, or guessed. It will "
    "not do so for what it has never seen.",
    "incomplete": "Some sub-questions that passages of the collection answer are not answered by any passage shown. "
    "Look at recall and at diversity.",
    "redundant": "Passages that answer only what passages above them answer, or repeat their words. Their place could "
    "go to others.",
    "unexplained": "The answer is not correct, and the judgments at hand do not say why.",
    "fine": "None of the findings above that could be examined.",
    "misled-by": f"The answer is wrong, and one passage carries at least {100 * MOST:.0f} % of it. Look at what it "
    "says.",
    "redundant-with": "Each of two passages makes up for the other if it is removed. The place of one could go to "
    "another passage.",
    "unsupported-sentence": "A sentence of the answer that the passages shown don't support, by the judge.",
    "contradicted-sentence": "A sentence of the answer that the passages shown contradict, by the judge.",
}
GRADED = "answers with a grade and contributions"
EXAMPLES = 3


Counts = Mapping[tuple[str, str], Mapping[str, Any]]


def section(view: ReportView) -> Section:
    """Counts of every finding by system, and each in words with examples."""
    diagnosis, more = view.diagnosis, view.contribution_diagnosis
    caption = "Contexts with each finding, of those that could be examined for it"
    blocks = _findings(view, diagnosis.frame, diagnosis.counts, FINDINGS, caption)
    blocks = blocks or [Paragraph("Nothing could be examined.")]
    if sample := view.survey.sample_note:
        blocks = [Paragraph(sample, "note"), *blocks]
    if more.counts.height:
        caption = "Answers with each finding from contributions and support, of those that could be examined for it"
        blocks += _findings(view, more.frame, more.counts, CONTRIBUTION_FINDINGS, caption)
    if diagnosis.absent:
        items: list[RichText] = [
            [TextSpan(FINDINGS[name], "strong"), f": {reason}"] for name, reason in diagnosis.absent.items()
        ]
        blocks.append(Group("absent", [Heading("Can't be computed from these tables"), Bullets(items)]))
    return Section("diagnosis", "Diagnosis", blocks)


def _findings(
    view: ReportView, frame: pl.DataFrame, table: pl.DataFrame, names: Mapping[str, str], caption: str
) -> list[DocumentBlock]:
    """Counts of some findings by system, then each with examples."""
    systems = [each.system for each in view.overview.standings]
    counts = {(row["system"], row["finding"]): row for row in table.iter_rows(named=True)}
    examined = [finding for finding in names if any((system, finding) in counts for system in systems)]
    if not examined:
        return []
    hint = Only("html", [Paragraph("Click a number to see its queries.", "note")])
    blocks: list[DocumentBlock] = [_counts(examined, systems, counts, names, caption), hint]
    examples: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in frame.iter_rows(named=True):
        if len(examples[row["finding"]]) < EXAMPLES and row["finding"] != "fine":
            examples[row["finding"]].append(row)
    texts = _query_texts(view, frame)
    for finding in examined:
        if examples[finding]:
            mine = [counts[system, finding] for system in systems if (system, finding) in counts]
            queries = len(view.survey.examined)
            blocks.append(_finding(names[finding], finding, mine, examples[finding], texts, queries))
    return blocks


def _query_texts(view: ReportView, frame: pl.DataFrame) -> dict[str, str]:
    """Texts of the queries that have findings."""
    found = frame.select("query").unique()
    queries: pl.DataFrame = view.results.collection.queries
    return dict(queries.join(found, on="query", how="semi").select("query", "text").iter_rows())


def _counts(
    examined: Sequence[str], systems: Sequence[str], counts: Counts, names: Mapping[str, str], caption: str
) -> TableBlock:
    columns = [TableColumn("System")]
    for finding in examined:
        there = any(counts[system, finding]["n"] for system in systems if (system, finding) in counts)
        link = f"#finding-{finding}" if there and finding != "fine" else ""
        columns.append(TableColumn(TextSpan(names[finding], link=link), True))
    rows: list[list[Cell]] = [
        [system, *(_count(counts.get((system, finding)), finding, system) for finding in examined)]
        for system in systems
    ]
    return TableBlock(caption, columns, rows, "counts")


def _count(row: Mapping[str, Any] | None, finding: str, system: str) -> Cell:
    if row is None:
        return "–"
    link = explorer_address(finding=finding, system=system) if row["n"] else ""
    return [TextSpan(f"{row['n']:,}", "strong", link), TextSpan(f" of {row['of']:,}", "small")]


def _finding(
    name: str,
    finding: str,
    counts: Sequence[Mapping[str, Any]],
    examples: Sequence[dict[str, Any]],
    texts: Mapping[str, str],
    queries: int,
) -> Group:
    n, of = sum(row["n"] for row in counts), sum(row["of"] for row in counts)
    shares = [row["n"] / row["of"] if row["of"] else 0.0 for row in counts]
    most = counts[shares.index(max(shares))]
    enough = all(2 * row["of"] >= queries for row in counts)  # as for any ranking of systems
    what = GRADED if finding == "misled-by" else "answers" if finding in CONTRIBUTION_FINDINGS else "contexts"
    words = f"{n:,} of {of:,} {what} ({100 * n / of:.0f} %)"
    if n and len(counts) > 1 and enough and shares.count(max(shares)) == 1:
        words += f", most of all {most['system']} ({most['n']:,} of {most['of']:,})"
    items: list[RichText] = [
        [
            TextSpan(texts.get(row["query"]) or row["query"], link=explorer_address(query=row["query"])),
            f" – {row['system']}: {row['detail']}",
        ]
        for row in examples
    ]
    head = Heading(name[0].upper() + name[1:], id=f"finding-{finding}", count=words)
    return Group("finding", [head, Paragraph(MEANINGS[finding]), Bullets(items)])
