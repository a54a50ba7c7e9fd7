"""``ragworth score``."""

from __future__ import annotations

from typing import Any

import click

from ragworth.cli.output import OutputTable, emit, output_format, output_options, print_notes
from ragworth.cli.scoring_options import ScoringOptions, narrowing_options, score_inputs, scoring_options


@click.command("score", short_help="Score runs with any metrics.")
@scoring_options
@narrowing_options
@click.option("--per-query", is_flag=True, help="One row for each query instead of means.")
@click.option(
    "--correlate",
    type=click.Choice(["systems", "queries"]),
    help="Correlate the metrics as well, over systems' means or over all queries.",
)
@output_options
def command(
    per_query: bool,
    correlate: str | None,
    look: str | None,
    output: str | None,
    level: float,
    resamples: int | None,
    seed: int,
    quiet: bool,
    **given: Any,
) -> None:
    """Score runs: every metric for every system, mean with its interval, or query by query.

    With --correlate, CSV and Parquet have the correlations; the other formats have both tables.

    \b
    ragworth score --qrels qrels.txt -m nDCG@10 -m AP bm25.run dense.run
    ragworth score --qrels qrels.txt --judgments abstention.csv -m UDCG@5 --per-query bm25.run -o scores.csv
    ragworth score --collection exam:dl19.jsonl.gz -m nDCG@10 -m 'Cov(eta=4)@10' --correlate systems
    """
    if per_query and correlate:
        raise click.UsageError("--per-query and --correlate are two different tables; ask for one of them")
    look = output_format(look, output, level)
    scores, conversations = score_inputs(ScoringOptions(**given))
    print_notes(scores.notes, quiet)
    from ragworth import comparison
    from ragworth.report import summary_tables

    if per_query:
        emit([OutputTable("scores", "", scores.frame, scores.frame)], look, output)
        return
    summary = comparison.summarise(
        scores, level=level, resamples=resamples or 2000, seed=seed, conversations=conversations
    )
    sections = [OutputTable("summary", "", summary, summary_tables.summary_table(summary, level))]
    if correlate is not None:
        frame = comparison.correlate(scores, over=correlate)  # type: ignore[arg-type]
        what = "means of the systems" if correlate == "systems" else "values of all systems and queries"
        title = f"Agreement of the metrics: correlation of the {what}"
        both = [OutputTable("correlations", title, frame, summary_tables.correlation_table(frame)), *sections]
        sections = both if look in ("csv", "parquet") else both[::-1]
    emit(sections, look, output, {"level": level, "resamples": resamples or 2000, "seed": seed})
