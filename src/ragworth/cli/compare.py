"""``ragworth compare``."""

from __future__ import annotations

from typing import Any

import click

from ragworth.cli.output import OutputTable, chosen_look, emit, output_options, print_notes
from ragworth.cli.scoring_options import ScoringOptions, narrowing_options, score_inputs, scoring_options

WORSE = 3
"""Exit code when a drop is significant."""


@click.command("compare", short_help="Compare systems query by query, with tests.")
@scoring_options
@narrowing_options
@click.option("-b", "--baseline", help="The system the others are compared with.  [default: the first]")
@click.option("--all-pairs", is_flag=True, help="Compare every two systems.")
@click.option(
    "--test",
    type=click.Choice(["randomisation", "t", "wilcoxon", "sign", "bootstrap", "bounded"]),
    default="randomisation",
    show_default=True,
    help="Paired test of the mean difference. bounded holds its level for very different distributions too.",
)
@click.option(
    "--family",
    type=click.Choice(["metric", "all"]),
    default="metric",
    show_default=True,
    help="What Holm's correction goes over: the systems of one metric, or everything.",
)
@click.option(
    "--changes",
    type=click.IntRange(0),
    default=5,
    show_default=True,
    help="How many of the queries that changed most to list.",
)
@click.option(
    "--fail-if-worse",
    metavar="METRIC",
    multiple=True,
    help="Exit with 3 when a system is significantly worse than the baseline by this metric.",
)
@output_options
def command(
    baseline: str | None,
    all_pairs: bool,
    test: str,
    family: str,
    changes: int,
    fail_if_worse: tuple[str, ...],
    look: str | None,
    output: str | None,
    level: float,
    resamples: int | None,
    seed: int,
    quiet: bool,
    **given: Any,
) -> None:
    """Compare systems: differences with intervals, p-values, wins and losses, and what could have been seen.

    "detectable" is the smallest true difference that this many queries show in four of five cases.
    CSV and Parquet hold the differences; the other looks hold means and changed queries too.

    \b
    ragworth compare --qrels qrels.txt -m nDCG@10 bm25.run dense.run rerank.run
    ragworth compare --qrels qrels.txt -m UDCG@5 -j abstention.csv old.run new.run --fail-if-worse UDCG@5
    """
    from ragworth import comparison
    from ragworth.report import summary_tables
    from ragworth.scoring import split_metrics

    if baseline and all_pairs:
        raise click.UsageError("--all-pairs compares every two systems and has no --baseline")
    look = chosen_look(look, output, level)
    gates = [str(metric) for part in split_metrics(fail_if_worse) for metric in part] if fail_if_worse else []
    given["metrics"] = (*(given["metrics"] or (() if gates else ("nDCG@10",))), *gates)
    scores = score_inputs(ScoringOptions(**given))
    print_notes(scores.notes, quiet)
    facts: dict[str, Any] = {"level": level, "resamples": resamples or 10_000, "seed": seed}
    result = comparison.compare(
        scores,
        baseline=baseline,
        all_pairs=all_pairs,
        test=test,  # type: ignore[arg-type]
        family=family,  # type: ignore[arg-type]
        changes=changes,
        **facts,
    )
    summary = comparison.summarise(scores, **facts)
    resampled = (
        f", {result.resamples:,} resamples, seed {seed}" if test in ("randomisation", "bootstrap", "bounded") else ""
    )
    sections = [
        OutputTable("summary", "Means", summary, summary_tables.summary_table(summary, level)),
        OutputTable(
            "differences",
            f"Differences ({test} test{resampled})",
            result.differences,
            summary_tables.difference_table(result),
        ),
        OutputTable("changes", "Queries that changed most", result.changes, summary_tables.change_table(result)),
    ]
    if look in ("csv", "parquet"):
        sections = sections[1:]
    emit(sections, look, output, {"test": test, "family": family} | facts)
    if gate(result, gates, 1 - level):
        raise SystemExit(WORSE)


def gate(result: Any, metrics: list[str], alpha: float) -> bool:
    """Whether any system is significantly worse than its baseline by one of the metrics; says which."""
    import polars as pl

    from ragworth.report.render import format_p_value, printable

    failed = False
    for metric in metrics:
        for row in result.worse(metric, alpha).iter_rows(named=True):
            failed = True
            summary_tables = f"{row['system']} is {abs(row['difference']):.4f} worse than {row['baseline']} by {metric}"
            # The interval allows for unseen values and the test does not, so few differing queries may part them.
            doubt = row["low"] is not None and row["low"] <= 0 <= row["high"]
            but = "; its interval includes 0, because few queries differ: --test bounded allows for that"
            click.echo(
                f"worse: {printable(summary_tables)} (Holm p {format_p_value(row['p_holm'])}{but if doubt else ''})",
                err=True,
            )
        partly = (pl.col("metric") == metric) & (pl.col("n") < pl.col("total"))
        for row in result.differences.filter(partly).iter_rows(named=True):
            click.echo(
                f"note: {printable(row['system'])} was held against {printable(row['baseline'])} by {metric} "
                f"on {row['n']} of {row['total']} queries only",
                err=True,
            )
    return failed
