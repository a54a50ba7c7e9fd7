"""``ragworth compare``."""

from __future__ import annotations

from typing import Any, NamedTuple

import click

from ragworth.cli.comparables import split_comparables
from ragworth.cli.output import OutputTable, emit, output_format, output_options, print_notes
from ragworth.cli.scoring_options import (
    ScoringOptions,
    narrowing_options,
    read_conversations,
    score_inputs,
    scoring_options,
)

WORSE = 3
"""Exit code when a drop is significant."""


@click.command("compare", short_help="Compare systems query by query, by metrics or answers, with tests.")
@scoring_options
@narrowing_options
@click.option("-b", "--baseline", help="The system the others are compared with.  [default: the first]")
@click.option("--all-pairs", is_flag=True, help="Compare every two systems.")
@click.option(
    "--test",
    type=click.Choice(["randomisation", "t", "wilcoxon", "sign", "bootstrap", "bounded"]),
    default="randomisation",
    show_default=True,
    help="Paired test of the mean difference; wilcoxon and sign are of ranks and signs. bounded holds its level for "
    "very different distributions too.",
)
@click.option(
    "--family",
    type=click.Choice(["metric", "all"]),
    default="metric",
    show_default=True,
    help="What Holm's correction goes over: the systems of one metric, or everything.",
)
@click.option(
    "--fail-if-worse",
    metavar="METRIC",
    multiple=True,
    help="Exit with 3 if a system is significantly worse than the baseline by this metric or outcome, or lacks values.",
)
@output_options
def command(
    baseline: str | None,
    all_pairs: bool,
    test: str,
    family: str,
    fail_if_worse: tuple[str, ...],
    look: str | None,
    output: str | None,
    level: float,
    resamples: int | None,
    seed: int,
    quiet: bool,
    **given: Any,
) -> None:
    """Compare systems: differences with intervals, p-values, wins and losses, and the smallest detectable difference.

    Each RUN is a run to be scored, a folder of results, or a table of outcomes (system, query, aspect, value) or scores
    (system, query, metric, value). Outcomes of answers have names like metrics: correct, wrong, abstained, grade, em,
    f1, or what a file calls them. Without -m, all outcomes and scores of results are compared.

    "detectable" is the smallest true difference that this many queries show in four of five cases, after correction.
    CSV and Parquet have the differences; the other formats have means and changed queries too.

    \b
    ragworth compare --qrels qrels.txt -m nDCG@10 bm25.run dense.run rerank.run
    ragworth compare --qrels qrels.txt -m UDCG@5 -j abstention.csv old.run new.run --fail-if-worse UDCG@5
    ragworth compare results --fail-if-worse correct
    ragworth compare old=main/results new=branch/results -m correct
    """
    if baseline and all_pairs:
        raise click.UsageError("--all-pairs compares every two systems and has no --baseline")
    look = output_format(look, output, level)
    (scores, pairs, lost), gates, conversations = _read(given, fail_if_worse)
    print_notes(scores.notes, quiet)
    from ragworth import comparison
    from ragworth.cli.difference_notes import difference_notes
    from ragworth.report import summary_tables

    facts: dict[str, Any] = {"level": level, "resamples": resamples or 10_000, "seed": seed}
    testing: dict[str, Any] = {"test": test, "family": family, "level": level, "seed": seed}
    testing |= {"conversations": conversations} | ({} if resamples is None else {"resamples": resamples})
    result = comparison.compare(
        scores,
        baseline=baseline,
        all_pairs=all_pairs,
        pairs=None if baseline or all_pairs else pairs,
        **testing,
    )
    print_notes(difference_notes(result), quiet)
    summary = _with_groups(comparison.summarise(scores, **facts, conversations=conversations), scores, testing)
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
    emit(sections, look, output, {"test": test, "family": family} | facts | {"resamples": result.resamples})
    gone = lost if gates and not baseline and not all_pairs else ()
    lacking = not given["incomplete"] and (lacks_systems(gone) | lacks_values(result, gates))
    if lacking or gate(result, gates, 1 - level):
        raise SystemExit(WORSE)


class _Inputs(NamedTuple):
    """Scores of everything with the systems to compare, the gates in their written form, and conversations of turns."""

    joined: Any
    gates: list[str]
    conversations: dict[str, str]


def _read(given: dict[str, Any], fail_if_worse: tuple[str, ...]) -> _Inputs:
    """Read results and tables, and score runs."""
    from ragworth import comparison
    from ragworth.core.errors import MetricError, format_list

    inputs = split_comparables(given["runs"], given["skip_bad_lines"])
    tables: dict[str, Any] = {name: comparison.to_scores(table) for name, table in inputs.tables.items()}
    known = list(dict.fromkeys(metric for table in tables.values() for metric in table.distinct("metric")))
    gates = [name for each in fail_if_worse for name in _written(each, known)]
    wanted = [*(name for each in given["metrics"] for name in _written(each, known)), *gates]
    others = [name for name in wanted if name not in known]
    if others and not inputs.runs and tables:
        raise MetricError(
            f"{format_list(others)} {'has' if len(others) == 1 else 'have'} no values here",
            expected=format_list(known, 20),
            remedy="name one of these, or give runs and judgments to compute it from",
        )
    _check_gates(tables, [gate for gate in gates if gate in known])
    if wanted:
        tables = {name: table.having("metric", wanted) for name, table in tables.items()}
    conversations = comparison.conversations_of(inputs.tables)
    if inputs.runs or not tables:
        given |= {"runs": inputs.runs, "metrics": tuple(others) or ("nDCG@10",)}
        scored = score_inputs(ScoringOptions(**given))
        tables, conversations = {"runs": scored.scores, **tables}, conversations | scored.conversations
    else:
        conversations |= read_conversations(given["collection"], given["skip_bad_lines"])
    return _Inputs(comparison.join_scores(tables), gates, conversations)


def _check_gates(tables: dict[str, Any], gates: list[str]) -> None:
    """An input without a gated outcome would be left out of the comparison, and the gate would pass."""
    from ragworth.core.errors import MetricError, format_list

    for name, table in tables.items():
        there = table.distinct("metric")
        if lacking := [gate for gate in gates if gate not in there]:
            raise MetricError(f"{name} has no values of {format_list(lacking)}", expected=format_list(there, 20))


def _written(metric: str, known: list[str]) -> list[str]:
    """A metric or outcome as tables name it."""
    from ragworth.core.errors import MetricError, format_list
    from ragworth.scoring import split_metrics

    if metric in known:
        return [metric]
    try:
        return [str(each) for part in split_metrics((metric,)) for each in part]
    except MetricError as error:
        if not known:
            raise
        raise MetricError(f"{metric} has no values here", expected=format_list(known, 20)) from error


def _with_groups(summary: Any, scores: Any, testing: dict[str, Any]) -> Any:
    """Means of outcomes with groups: systems that share a letter are not significantly different."""
    import polars as pl

    from ragworth.answer_outcomes import outcome_type

    outcomes = [name for name in scores.distinct("metric") if outcome_type(name) is not None]
    if not outcomes or len(scores.distinct("system")) < 2:
        return summary
    from ragworth.report.page.rankings import rank_systems, read_means

    means = read_means(summary)
    rows = [
        (name, system, letters)
        for name in outcomes
        for system, letters in rank_systems(scores, means, name, **testing).groups.of.items()
    ]
    groups = pl.DataFrame(rows, schema=dict.fromkeys(("metric", "system", "group"), pl.String), orient="row")
    return summary.join(groups, on=["metric", "system"], how="left", maintain_order="left")


def lacks_systems(lost: tuple[str, ...]) -> bool:
    """Whether an input lacks systems of the first one that a gate is about; says which."""
    from ragworth.core.errors import format_list
    from ragworth.report.render import printable

    if lost:
        words = f"there is no {printable(format_list(list(lost)))}, so nothing shows that it isn't worse"
        click.echo(f"missing: {words}; evaluate it again, or give --incomplete", err=True)
    return bool(lost)


def lacks_values(result: Any, metrics: list[str]) -> bool:
    """Whether a system has too few values for a gate; says which."""
    from ragworth.core.errors import format_count
    from ragworth.report.render import printable

    rows = [row for metric in metrics for row in result.lacking(metric).iter_rows(named=True)]
    for row in rows:
        some, other = format_count(row["n_system"], "query", "queries"), f"{row['n_baseline']:,}"
        words = f"{row['system']} has a value of {row['metric']} for {some}, {row['baseline']} for {other}"
        words += f", and {row['n']:,} of these are the same queries" if 2 * row["n"] < row["n_baseline"] else ""
        click.echo(f"missing: {printable(words)}, so it may be worse; grade the others, or give --incomplete", err=True)
    return bool(rows)


def gate(result: Any, metrics: list[str], alpha: float) -> bool:
    """Whether any system is significantly worse than its baseline by one of the metrics; says which."""
    import polars as pl

    from ragworth.core.errors import format_count
    from ragworth.report.render import format_p_value, printable
    from ragworth.stats.power import SIGN_FLIPS

    failed = False
    for metric in metrics:
        for row in result.worse(metric, alpha).iter_rows(named=True):
            failed = True
            words = f"{row['system']} is {abs(row['difference']):.4f} worse than {row['baseline']} by {metric}"
            # The interval allows for unseen values and the test does not, so few differing queries may part them.
            doubt = row["low"] is not None and row["low"] <= 0 <= row["high"]
            but = "; its interval includes 0, because few queries differ: --test bounded allows for that"
            click.echo(
                f"worse: {printable(words)} (Holm p {format_p_value(row['p_holm'])}{but if doubt else ''})",
                err=True,
            )
        few = (pl.col("metric") == metric) & (2 * 0.5 ** pl.col("n") >= alpha)
        for row in result.differences.filter(few).iter_rows(named=True) if result.test in SIGN_FLIPS else ():
            click.echo(
                f"note: no difference on {format_count(row['n'], 'query', 'queries')} can be significant, so "
                f"{printable(row['system'])} can't be found worse than {printable(row['baseline'])} by {metric}",
                err=True,
            )
        partly = (pl.col("metric") == metric) & (pl.col("n") < pl.col("total"))
        for row in result.differences.filter(partly).iter_rows(named=True):
            click.echo(
                f"note: {printable(row['system'])} was compared with {printable(row['baseline'])} by {metric} "
                f"on {row['n']} of {row['total']} queries only",
                err=True,
            )
    return failed
