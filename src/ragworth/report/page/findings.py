"""The diagnosis in words: counts of every finding, what it means, what helps, and examples to look at."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from ragworth.diagnosis import FINDINGS, Diagnosis
from ragworth.report.page.html import SafeHtml, join_html, scroll_box, tag

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
}
EXAMPLES = 3


def explorer_link(words: object, **where: str) -> SafeHtml:
    """A link into the explorer."""
    target = "&".join(f"{key}={quote(value, safe='')}" for key, value in where.items())
    return tag("a", words, href=f"#{target}")


def findings_html(diagnosis: Diagnosis, systems: list[str], texts: Mapping[str, str]) -> SafeHtml:
    """Counts of every finding by system, and each in words with examples."""
    counts = {(row["system"], row["finding"]): row for row in diagnosis.counts.iter_rows(named=True)}
    examined = [finding for finding in FINDINGS if any((system, finding) in counts for system in systems)]
    if not examined:
        body: list[object] = [tag("p", "Nothing could be examined.")]
    else:
        body = [_count_table(examined, systems, counts)]
        examples: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in diagnosis.frame.iter_rows(named=True):
            if len(examples[row["finding"]]) < EXAMPLES and row["finding"] != "fine":
                examples[row["finding"]].append(row)
        body += [
            _finding(finding, systems, counts, examples[finding], texts) for finding in examined if examples[finding]
        ]
    if diagnosis.absent:
        items = [tag("li", tag("b", FINDINGS[name]), f": {reason}") for name, reason in diagnosis.absent.items()]
        body.append(tag("div", tag("h3", "Cannot be had from these tables"), tag("ul", *items), class_="absent"))
    return join_html(body)


def _count_table(
    examined: list[str], systems: list[str], counts: Mapping[tuple[str, str], Mapping[str, Any]]
) -> SafeHtml:
    head = [tag("th", "System", scope="col")]
    for finding in examined:
        there = any(counts[system, finding]["n"] for system in systems if (system, finding) in counts)
        words: object = FINDINGS[finding]
        if there and finding != "fine":
            words = tag("a", words, href=f"#finding-{finding}")
        head.append(tag("th", words, scope="col", class_="n"))
    rows = []
    for system in systems:
        cells = [tag("th", system, scope="row")]
        for finding in examined:
            row = counts.get((system, finding))
            inside: object = "–"
            if row is not None:
                number = join_html([tag("b", f"{row['n']:,}"), tag("small", f" of {row['of']:,}")])
                inside = explorer_link(number, finding=finding, system=system) if row["n"] else number
            cells.append(tag("td", inside, class_="n"))
        rows.append(tag("tr", *cells))
    caption = "Contexts with each finding, of those that could be examined for it; a number opens its queries"
    made = tag("table", tag("caption", caption), tag("thead", tag("tr", *head)), tag("tbody", *rows), class_="counts")
    return scroll_box(made, "Findings by system")


def _finding(
    finding: str,
    systems: list[str],
    counts: Mapping[tuple[str, str], Mapping[str, Any]],
    examples: list[dict[str, Any]],
    texts: Mapping[str, str],
) -> SafeHtml:
    mine = [counts[system, finding] for system in systems if (system, finding) in counts]
    n, of = sum(row["n"] for row in mine), sum(row["of"] for row in mine)
    most = max(mine, key=lambda row: row["n"] / row["of"] if row["of"] else 0.0)
    words = f"{n:,} of {of:,} contexts ({100 * n / of:.0f} %)"
    if n and len(systems) > 1:
        words += f", most of all {most['system']} ({most['n']:,} of {most['of']:,})"
    items = [
        tag(
            "li",
            explorer_link(texts.get(row["query"]) or row["query"], query=row["query"]),
            f" – {row['system']}: {row['detail']}",
        )
        for row in examples
    ]
    return tag(
        "div",
        tag(
            "h3",
            FINDINGS[finding][0].upper() + FINDINGS[finding][1:],
            tag("span", words, class_="count"),
            id=f"finding-{finding}",
        ),
        tag("p", MEANINGS[finding]),
        tag("ul", *items) if items else "",
        class_="finding",
    )
