"""``ragworth score``."""

from __future__ import annotations

from typing import Any

import click

from ragworth.cli.options import Inputs, emit, output_options, scored, scoring_options, tell


@click.command("score", short_help="Score runs with any metrics.")
@scoring_options
@click.option("--per-query", is_flag=True, help="One row for each query instead of means.")
@click.option(
    "--correlate",
    type=click.Choice(["systems", "queries"]),
    help="Correlate the metrics, over systems' means or over all queries.",
)
@output_options
def command(per_query: bool, correlate: str | None, look: str | None, output: str | None, level: float,
            resamples: int | None, seed: int, quiet: bool, **given: Any) -> None:  # fmt: skip
    """Score runs: every metric for every system, mean with its interval, or query by query.

    \b
    ragworth score --qrels qrels.txt -m nDCG@10 -m AP bm25.run dense.run
    ragworth score --qrels qrels.txt --judgments abstention.csv -m UDCG@5 --per-query bm25.run -o scores.csv
    ragworth score --collection exam:dl19.jsonl.gz -m nDCG@10 -m 'Cov(eta=4)@10' --correlate systems
    """
    from ragworth import comparison
    from ragworth.report import words

    scores = scored(Inputs(**given))
    tell(scores.notes, quiet)
    if per_query:
        emit(scores.frame, scores.frame, look, output)
        return
    summary = comparison.summarise(scores, level=level, resamples=resamples or 2000, seed=seed)
    if correlate is None:
        emit(summary, words.summary_table(summary, level), look, output)
        return
    correlations = comparison.correlate(scores, over=correlate)  # type: ignore[arg-type]
    if look in (None, "text") and output is None:
        emit(summary, words.summary_table(summary, level), "text", None)
        what = "means of the systems" if correlate == "systems" else "values of all systems and queries"
        click.echo(f"\nAgreement of the metrics: correlation of the {what}\n")
    emit(correlations, words.correlation_table(correlations), look, output)
