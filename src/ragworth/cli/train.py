"""``ragworth train``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from ragworth.cli.output import OutputTable, emit, output_format, output_options, print_notes
from ragworth.cli.task_output import check_parent_folder

F = TypeVar("F", bound=Callable[..., Any])

RESAMPLES = 2000


@click.group("train", short_help="Learn UDCG weights, or a metric's parameter, from outcomes.")
def command() -> None:
    """Learn which weights, or which parameter value, predict the outcomes best.

    CASE is a results folder of ragworth evaluate or of a study. No model is asked.
    """


def learning_options(function: F) -> F:
    """The options that say what is learned from."""
    options = [
        click.option(
            "--outcome", default="grade", show_default=True, help="Outcome aspect to predict; higher is better."
        ),
        click.option(
            "--folds", type=click.IntRange(2), default=5, show_default=True, help="Folds for cross-validation."
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def fit_options(function: F) -> F:
    """The options that say how weights are learned and tested."""
    options = [
        click.option(
            "-k", type=click.IntRange(1, 1000), default=5, show_default=True, help="Number of passages to weight."
        ),
        click.option(
            "--rel", type=float, default=1.0, show_default=True, help="Lowest relevance that counts as relevant."
        ),
        click.option(
            "--loss",
            type=click.Choice(["squared-hinge", "svmrank"]),
            default="squared-hinge",
            show_default=True,
            help="Squared hinge with the pairs of a query weighing 1 together, or the loss of SVMrank.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


@command.command("udcg", short_help="Learn the weights of UDCG(theta=FILE)@k.")
@click.argument("cases", nargs=-1, required=True, metavar="CASE...")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False),
    callback=check_parent_folder,
    help="Write the weights to this JSON file.",
)
@click.option(
    "--variant",
    type=click.Choice(["full", "relevance", "binary"]),
    default="full",
    show_default=True,
    help="Use utility and distraction, utility alone, or binary relevance.",
)
@fit_options
@learning_options
@click.option(
    "-f",
    "--format",
    "look",
    type=click.Choice(["text", "csv", "json", "markdown", "latex"]),
    default="text",
    show_default=True,
    help="Output format.",
)
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence level of intervals.")
@click.option(
    "--resamples", type=click.IntRange(100), default=RESAMPLES, show_default=True, help="Bootstrap resamples."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of folds and resampling.")
@click.option("--quiet", is_flag=True, help="Don't print notes.")
def udcg(
    cases: tuple[str, ...],
    output: str,
    k: int,
    variant: str,
    rel: float,
    loss: str,
    outcome: str,
    folds: int,
    look: str,
    level: float,
    resamples: int,
    seed: int,
    quiet: bool,
) -> None:
    """Learn the weights of UDCG from contexts of the same query with different outcomes.

    Trust the held-out figure: each query is scored with weights learned from other queries, by cross-validation.

    \b
    ragworth train udcg results/studies/alignment/cases/01 -o theta.json
    ragworth train udcg nq/results trivia/results -o theta.json --loss svmrank
    ragworth score -q qrels.txt -j abstention.csv -m 'UDCG(theta=theta.json)@5' bm25.run
    """
    from ragworth import fitting
    from ragworth.fitting import sentences, summary_tables
    from ragworth.metrics import METRICS
    from ragworth.report.render import printable

    output_format(look, output, level)
    metric = METRICS.get("UDCG").bind(k, theta=output, rel=rel)  # refuses a path that no metric can name
    tables = _read(cases)
    facts: dict[str, Any] = {"level": level, "resamples": resamples, "seed": seed}
    how: dict[str, Any] = {"outcome": outcome, "rel": rel, "loss": loss, "folds": folds, **facts}
    theta = fitting.fit_tables(tables, k, variant=variant, **how)  # type: ignore[arg-type]
    theta.write(output)
    weights, figures = summary_tables.weights_table(theta), summary_tables.correlations_table(theta)
    title = f"Correlation with {outcome} within queries"
    sections = [
        OutputTable("weights", f"Weights of {printable(str(metric))}", weights, weights),
        OutputTable("figures", title, figures, summary_tables.format_for_reading(figures, level)),
    ]
    print_notes(_theta_notes(theta), quiet)
    said = [sentences.theta_sentence(theta)]
    _show(sections, look, None, said, {"metric": str(metric), "c": theta.c, "loss": loss, **facts})


@command.command("ablation", short_help="Compare UDCG with its parts removed, nDCG and P.")
@click.argument("cases", nargs=-1, required=True, metavar="CASE...")
@fit_options
@learning_options
@output_options
def ablation(
    cases: tuple[str, ...],
    k: int,
    rel: float,
    loss: str,
    outcome: str,
    folds: int,
    look: str | None,
    output: str | None,
    level: float,
    resamples: int | None,
    seed: int,
    quiet: bool,
) -> None:
    """Show what each part of UDCG adds to its agreement with the outcome.

    Learned weights (all, without harm, binary relevance) and UDCG (with and without harm) are compared with nDCG and P
    on the same held-out queries of each case. The difference of UDCG and nDCG is always shown.

    \b
    ragworth train ablation results/studies/alignment/cases/01
    ragworth train ablation nq/results trivia/results --loss svmrank
    """
    from ragworth.fitting import ablate_tables, sentences, summary_tables

    wanted = output_format(look, output, level)
    tables = _read(cases)
    facts: dict[str, Any] = {"level": level, "resamples": resamples or RESAMPLES, "seed": seed}
    found = [ablate_tables(each, k, outcome=outcome, rel=rel, loss=loss, folds=folds, **facts) for each in tables]  # type: ignore[arg-type]
    left = [f"{each.name}: {reason}: {n:,} contexts left out" for each in found for reason, n in each.left_out.items()]
    print_notes(tuple(left), quiet)
    metrics, gaps = summary_tables.ablation_table(found), summary_tables.differences_table(found)
    title = f"Correlation with {outcome} within held-out queries"
    sections = [
        OutputTable("correlations", title, metrics, summary_tables.format_for_reading(metrics, level)),
        OutputTable("differences", "Differences", gaps, summary_tables.format_for_reading(gaps, level)),
    ]
    said = [sentences.ablation_sentence(each) for each in found]
    _show(sections, wanted, output, said, {"loss": loss, **facts})


@command.command("sweep", short_help="Find the best value of a metric's parameter.")
@click.argument("pattern", metavar="METRIC")
@click.argument("cases", nargs=-1, required=True, metavar="CASE...")
@click.option("--from", "low", type=float, help="Lowest value.  [default: the parameter's minimum]")
@click.option("--to", "high", type=float, help="Highest value.  [default: the parameter's maximum]")
@click.option("--steps", type=click.IntRange(2, 1000), default=21, show_default=True, help="Number of values.")
@click.option(
    "--measure",
    type=click.Choice(["spearman", "kendall", "kendall-c", "pearson"]),
    default="spearman",
    show_default=True,
    help="Correlation coefficient.",
)
@learning_options
@output_options
def sweep(
    pattern: str,
    cases: tuple[str, ...],
    low: float | None,
    high: float | None,
    steps: int,
    measure: str,
    outcome: str,
    folds: int,
    look: str | None,
    output: str | None,
    level: float,
    resamples: int | None,
    seed: int,
    quiet: bool,
) -> None:
    """Correlate a metric with the outcome for every value of one parameter, written as *.

    The best value on a grid is optimistic, so cross-validation chooses it on some queries and tests it on others.
    CSV and Parquet have the whole grid.

    \b
    ragworth train sweep 'UDCG(gamma=*)@5' results
    ragworth train sweep 'T(alpha=*)@5' nq/results trivia/results --from 0.1 --to 0.9 --steps 17
    """
    from ragworth.fitting import summary_tables, sweep_tables
    from ragworth.fitting.grids import build_grid

    wanted = output_format(look, output, level)
    grid = build_grid(pattern, low, high, steps)
    facts: dict[str, Any] = {"level": level, "resamples": resamples or RESAMPLES, "seed": seed}
    tables = _read(cases)
    swept = [sweep_tables(grid, each, outcome=outcome, measure=measure, folds=folds, **facts) for each in tables]  # type: ignore[arg-type]
    every, chosen = summary_tables.grid_table(swept), summary_tables.choices_table(swept)
    sections = [
        OutputTable(
            "grid", f"{pattern}: correlation with {outcome}", every, summary_tables.format_for_reading(every, level)
        ),
        OutputTable("choices", "What choosing is worth", chosen, summary_tables.format_for_reading(chosen, level)),
    ]
    left = [f"{each.name}: {reason}: {n:,} contexts left out" for each in swept for reason, n in each.left_out.items()]
    print_notes(tuple(left), quiet)
    many = len(swept) > 1
    said = [f"{each.name}: {sentences}" if many else sentences for each in swept for sentences in each.sentences]
    _show(sections, wanted, output, said, {"metric": pattern, "measure": measure, **facts})


def _read(cases: tuple[str, ...]) -> list[Any]:
    """The tables of results folders; all that can't be read are reported together."""
    from ragworth.data.conversations import independence_notes
    from ragworth.fitting import FittingTables
    from ragworth.results import Results
    from ragworth.workspace.problems import Problems

    _check_apart(cases)
    reading = Problems()
    read = [reading.of(partial(Results.read, _folder(path))) for path in cases]
    reading.done()
    names = _number_names([_name(path, results) for path, results in zip(cases, read, strict=True)])
    found = [each for each in read if each is not None]
    notes = [note for each in found for note in independence_notes(each.conversations)]
    print_notes(tuple(dict.fromkeys(notes)), False)
    return [FittingTables.of(results, name) for results, name in zip(read, names, strict=True) if results is not None]


def _folder(path: str) -> Path:
    """The folder of results: that of a workspace, where one is named."""
    folder = Path(path)
    inside = folder / "results"
    return inside if not (folder / "manifest.json").exists() and (inside / "manifest.json").exists() else folder


def _check_apart(cases: tuple[str, ...]) -> None:
    """Refuse results that are named twice."""
    seen: dict[Path, str] = {}
    for path in cases:
        if (first := seen.setdefault(_folder(path).resolve(), path)) is not path:
            raise click.UsageError(f"{path}: the same results as {first}; name them once")


def _name(path: str, results: Any) -> str:
    """What a case is called: as its study calls it, else by the title of the results, else by their folder."""
    about = results.manifest.get("study")
    known = about.get("case") if isinstance(about, dict) else None
    whole = _folder(path).resolve()
    folder = whole.parent.name if whole.name == "results" else whole.name
    return str(known or results.manifest.get("title") or folder)


def _number_names(names: list[str]) -> list[str]:
    """Cases of the same name get a number."""
    return [
        f"{name} ({names[: at + 1].count(name)})" if names.count(name) > 1 else name for at, name in enumerate(names)
    ]


def _theta_notes(theta: Any) -> tuple[str, ...]:
    """What was left out."""
    facts = theta.learned_from
    notes = [f"{reason}: {n:,} contexts left out" for reason, n in facts["left_out"].items()]
    if n := facts["queries_without_pairs"]:
        notes.append(f"{n:,} of {facts['all_queries']:,} queries have no two contexts whose outcomes differ")
    return tuple(notes)


def _show(sections: list[OutputTable], look: str, output: str | None, said: list[str], facts: dict[str, Any]) -> None:
    """Tables, and below them for people what they say."""
    from ragworth.report.render import printable

    emit(sections, look, output, {**facts, "sentences": said})
    if look in ("text", "markdown") and not output:
        click.echo("\n" + "\n".join(printable(each) for each in said))
