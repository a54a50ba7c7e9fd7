"""``ragworth compare``."""

from __future__ import annotations

from typing import Any

import click

from ragworth.cli.options import Inputs, emit, output_options, scored, scoring_options, tell

WORSE = 3
"""Exit code when a drop is significant."""


@click.command("compare", short_help="Compare systems query by query, with tests.")
@scoring_options
@click.option("-b", "--baseline", help="The system the others are compared with. Default: the first.")
@click.option("--all-pairs", is_flag=True, help="Compare every two systems.")
@click.option(
    "--test",
    type=click.Choice(["randomisation", "t", "wilcoxon", "sign", "bootstrap"]),
    default="randomisation",
    show_default=True,
    help="Paired test of the mean difference.",
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
def command(baseline: str | None, all_pairs: bool, test: str, family: str, changes: int, fail_if_worse: tuple[str, ...],
            look: str | None, output: str | None, level: float, resamples: int | None, seed: int, quiet: bool,
            **given: Any) -> None:  # fmt: skip
    """Compare systems: differences with intervals, p-values, wins and losses, and what could have been seen.

    "detectable" is the smallest true difference that this many queries show in four of five cases.

    \b
    ragworth compare --qrels qrels.txt -m nDCG@10 bm25.run dense.run rerank.run
    ragworth compare --qrels qrels.txt -m UDCG@5 -j abstention.csv old.run new.run --fail-if-worse UDCG@5
    """
    from ragworth import comparison
    from ragworth.report import words
    from ragworth.scoring import split

    gates = [str(metric) for part in split(fail_if_worse) for metric in part] if fail_if_worse else []
    asked = tuple(given["metrics"]) or ("nDCG@10",)
    given["metrics"] = (*asked, *gates)
    scores = scored(Inputs(**given))
    tell(scores.notes, quiet)
    result = comparison.compare(
        scores,
        baseline=baseline,
        all_pairs=all_pairs,
        test=test,  # type: ignore[arg-type]
        family=family,  # type: ignore[arg-type]
        level=level,
        resamples=resamples or 10_000,
        seed=seed,
        changes=changes,
    )
    if look in (None, "text") and output is None:
        summary = comparison.summarise(scores, level=level, resamples=resamples or 10_000, seed=seed)
        emit(summary, words.summary_table(summary, level), "text", None)
        click.echo(f"\nDifferences ({test} test, {result.resamples:,} resamples, seed {seed})\n")
    emit(result.differences, words.difference_table(result), look, output)
    if look in (None, "text") and output is None and result.changes.height:
        click.echo("\nQueries that changed most\n")
        emit(result.changes, words.change_table(result), "text", None)
    worse = [row for gate in gates for row in result.worse(gate, 1 - level).iter_rows(named=True)]
    for row in worse:
        click.echo(
            f"worse: {row['system']} is {abs(row['difference']):.4f} worse than {row['baseline']} by {row['metric']} "
            f"(Holm p {row['p_holm']:.4f})",
            err=True,
        )
    if worse:
        raise SystemExit(WORSE)
