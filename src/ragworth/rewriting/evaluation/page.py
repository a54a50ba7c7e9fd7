"""The report of an evaluation of rewriters: means, differences, and rewrites to read."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from ragworth.comparison import is_different, missing_interval
from ragworth.conversations import FEWEST_CONVERSATIONS
from ragworth.errors import format_count
from ragworth.report.document import Bullets, Document, DocumentBlock, Notes, Paragraph, Section, TableBlock
from ragworth.report.render import format_p_value, render
from ragworth.rewriting.evaluation.run import PROPERTIES, RewritingEvaluation
from ragworth.storage.output import write_output

CORRECT = "correct"
EXAMPLES = 20
"""Turns whose rewrites the report shows."""


def means_table(evaluation: RewritingEvaluation) -> pl.DataFrame:
    """A row for each arm: every measure with its interval."""
    measures = evaluation.means["measure"].unique(maintain_order=True).to_list()
    rows: dict[str, dict[str, str]] = {}
    for row in evaluation.means.iter_rows(named=True):
        value = "–" if row["value"] is None else f"{row['value']:.3f}"
        if row["low"] is not None and row["measure"] not in PROPERTIES:
            value += f" [{row['low']:.3f}, {row['high']:.3f}]"
        rows.setdefault(row["arm"], {})[row["measure"]] = value
    return pl.DataFrame(
        [{"arm": arm, **{measure: cells[measure] for measure in measures}} for arm, cells in rows.items()],
        schema=dict.fromkeys(("arm", *measures), pl.String),
    )


def differences_table(evaluation: RewritingEvaluation) -> pl.DataFrame:
    """A row for each arm and measure compared with another arm."""
    rows = [
        {
            "arm": row["arm"],
            "against": row["against"],
            "measure": row["measure"],
            "difference": "–" if row["difference"] is None else f"{row['difference']:+.3f}",
            "interval": missing_interval(row["n"], row["conversations"])
            if row["low"] is None
            else f"[{row['low']:+.3f}, {row['high']:+.3f}]",
            "p": format_p_value(row["p"]),
            "p_holm": format_p_value(row["p_holm"]),
            "smallest detectable": "–" if row["detectable"] is None else f"{row['detectable']:.3f}",
            "won/tied/lost": "–" if row["wins"] is None else f"{row['wins']}/{row['ties']}/{row['losses']}",
            "turns": row["n"],
            "conversations": row["conversations"],
        }
        for row in evaluation.differences.iter_rows(named=True)
    ]
    return pl.DataFrame(rows)


def sentences(evaluation: RewritingEvaluation, alpha: float = 0.05) -> list[str]:
    """What the numbers allow to say about each arm by the first measure, and by correct answers where there are any."""
    said: list[str] = []
    for row in evaluation.differences.iter_rows(named=True):
        if row["measure"] not in (evaluation.differences["measure"][0], CORRECT):
            continue
        if failed := [arm for arm in (row["arm"], row["against"]) if arm in evaluation.failed]:
            said.append(
                f"{row['arm']} can't be compared with {row['against']}: {failed[0]} gave no rewrite at all, so every "
                "turn was searched as it is."
            )
        elif row["difference"] is None:
            said.append(f"{row['arm']} can't be compared with {row['against']}: no turn has both values.")
        elif is_different(row, alpha):
            verb = "beats" if row["difference"] > 0 else "is worse than"
            said.append(f"{row['arm']} {verb} {row['against']} by {abs(row['difference']):.3f} {row['measure']}.")
        elif row["p_holm"] < alpha:
            said.append(
                f"{row['arm']} is not clearly different from {row['against']} by {row['measure']}: "
                f"{row['difference']:+.3f}; p is {format_p_value(row['p_holm'])}, but the interval, which allows for "
                "conversations unlike these, includes 0."
            )
        else:
            small = "" if row["detectable"] is None else f" (it could show {row['detectable']:.3f})"
            if row["low"] is None and row["conversations"] < min(FEWEST_CONVERSATIONS, row["n"]):
                few = format_count(row["conversations"], "conversation")
                small = f"; {few} {'is' if row['conversations'] == 1 else 'are'} too few for an interval"
            said.append(
                f"{row['arm']} is not significantly different from {row['against']} by {row['measure']}: "
                f"{round(row['difference'], 3) + 0.0:+.3f}{small}."
            )
    return list(dict.fromkeys(said))


def rewriting_document(evaluation: RewritingEvaluation, title: str = "Rewrites compared") -> Document:
    """The report."""
    turns = evaluation.rewrites["query"].n_unique()
    conversations = evaluation.values["conversation"].n_unique()
    lead = (
        f"{format_count(evaluation.rewrites['arm'].n_unique(), 'arm')} on {format_count(turns, 'turn')} of "
        f"{format_count(conversations, 'conversation')}. Intervals and tests draw whole conversations; p is corrected "
        "by Holm over the arms compared with one arm by one measure."
    )
    blocks: list[DocumentBlock] = [Bullets(sentences(evaluation))]
    if evaluation.notes:
        blocks.append(Notes(evaluation.notes))
    sections = [
        Section("result", "Result", blocks),
        Section("means", "All arms", [TableBlock.of(means_table(evaluation), "Means over turns, with 95 % intervals")]),
        Section(
            "differences",
            "Differences",
            [
                TableBlock.of(differences_table(evaluation), "Paired differences", limit=1000),
                Paragraph("The smallest detectable difference is the true one that a test finds with probability 0.8."),
            ],
        ),
        Section("rewrites", "Rewrites", [_examples(evaluation)]),
    ]
    return Document("report", title, lead, sections)


def _examples(found: RewritingEvaluation) -> TableBlock:
    """The rewrites of the first turns that some arm changes."""
    changed = found.rewrites.filter(pl.col("text") != pl.col("turn"))["query"].unique(maintain_order=True)
    wanted = found.rewrites.filter(pl.col("query").is_in(changed.head(EXAMPLES).to_list()))
    return TableBlock.of(wanted.select("query", "arm", "text").sort("query", maintain_order=True), "Rewrites", 1000)


def write_evaluation(evaluation: RewritingEvaluation, folder: Path) -> list[Path]:
    """Write the tables, and the report as a page (if its packages are installed) and as Markdown."""
    from ragworth.errors import MissingExtraError
    from ragworth.formats.spreadsheet import write_csv
    from ragworth.report.renderers.html import render_page
    from ragworth.report.renderers.markdown import render_markdown

    folder.mkdir(parents=True, exist_ok=True)
    write_output(folder / "values.parquet", render(evaluation.values, "parquet"), inside=folder)
    tables = {
        "means.csv": evaluation.means,
        "differences.csv": evaluation.differences,
        "rewrites.csv": evaluation.rewrites,
    }
    for name, table in tables.items():
        write_output(folder / name, write_csv(table), inside=folder)
    document = rewriting_document(evaluation)
    write_output(folder / "report.md", render_markdown(document).encode(), inside=folder)
    try:
        write_output(folder / "report.html", render_page(document).encode(), inside=folder)
    except MissingExtraError:
        return [folder / "report.md"]
    return [folder / "report.html", folder / "report.md"]
