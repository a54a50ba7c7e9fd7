"""``ragworth evaluate``."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ragworth.cli.check import interruptible
from ragworth.cli.input_options import (
    TrustOptions,
    check_amount_options,
    input_options,
    open_inputs,
    take_input_options,
    take_trust_options,
    trust_options,
)
from ragworth.cli.output import StageLines as StageLines
from ragworth.cli.output import WorkLine, print_notes
from ragworth.core.errors import format_count

STAGES = click.Choice(["retrieve", "annotate", "answer", "grade", "score", "report"])
TABLE_COLUMNS = ("system", "group", "misleading")
"""Columns of the leaderboard beside those of metrics."""


@click.command("evaluate", short_help="Evaluate a workspace or files, and write the report.")
@input_options
@click.option("--until", type=STAGES, help="Stop after this stage.")
@click.option("--dry-run", is_flag=True, help="Print the calls, tokens and cost it would take, without asking.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option(
    "--wait", type=click.FloatRange(0, 86400), default=0, help="Seconds to wait for a workspace or store in use."
)
@click.option("--quiet", is_flag=True, help="Don't show progress and notes.")
@trust_options
def command(dry_run: bool, as_json: bool, quiet: bool, **chosen: Any) -> None:
    """Retrieve, judge, answer, grade, score, compare and report, as far as a ragworth.toml or the files allow.

    WORKSPACE is a ragworth.toml or its folder. Files, and folders without a ragworth.toml, are evaluated as they are:
    logs of RAG tools, runs, labels, answers and grades. Several logs are several systems. Answers in the data are kept,
    and graded if there are accepted answers; grades in the data are used. Results go to results/ in a folder, and to
    LOG-results/ beside a file.

    Finished work is reused, and no call is made twice: after Ctrl-C, a crash or kill -9, the same command resumes.
    A ragworth.toml can write only to its own folder, and name a server other than this machine only if
    --allow-server allows it.

    \b
    ragworth evaluate
    ragworth evaluate log.jsonl
    ragworth evaluate log.jsonl --model openai:NAME@http://localhost:8000
    ragworth evaluate old.json new.json --map question=Query
    ragworth evaluate examples/demo --dry-run
    ragworth evaluate examples/demo --until annotate
    """
    check_amount_options(chosen["limit"], chosen["sample"], chosen["every"])
    trust = take_trust_options(chosen)
    with interruptible():
        space, _ = open_inputs(take_input_options(chosen), trust.paths, quiet=quiet or as_json)
        if dry_run:
            _plan(space, as_json, quiet, chosen, trust)
        else:
            _run(space, as_json, quiet, chosen, trust)


def _plan(space: Any, as_json: bool, quiet: bool, chosen: Mapping[str, Any], trust: TrustOptions) -> None:
    from ragworth.evaluation.plan import plan_evaluation

    wanted = wanted_stages(chosen["until"])
    found = plan_evaluation(
        space,
        **{name: chosen[name] for name in ("limit", "sample", "every")},
        scores=not {"score", "report"}.isdisjoint(wanted),
        console=None if quiet else WorkLine(),
        allow_servers=trust.allow_servers,
    )
    print_notes(found.notes, quiet)
    stages = [stage for stage in found.stages if stage.name.partition(".")[0] in wanted]
    if as_json:
        click.echo(json.dumps({"stages": [stage._asdict() for stage in stages]}, ensure_ascii=False, indent=1))
        return
    for stage in stages:
        click.echo(f"{stage.name}: {stage.words}")
    if not stages:
        click.echo("no model is asked")


def wanted_stages(until: str | None) -> Sequence[str]:
    """The stages up to one."""
    return STAGES.choices[: STAGES.choices.index(until) + 1] if until else STAGES.choices


def _run(space: Any, as_json: bool, quiet: bool, chosen: Mapping[str, Any], trust: TrustOptions) -> None:
    from ragworth.evaluation.run import MAX_SENTENCES, evaluate
    from ragworth.report.render import printable

    result = evaluate(space, console=None if quiet else StageLines(), allow_servers=trust.allow_servers, **chosen)
    if as_json:
        click.echo(json.dumps(evaluation_record(result), ensure_ascii=False, indent=1))
    elif result.page is not None and result.report is not None:
        answers, passages = result.page.answers, result.page.judges_passages
        room = MAX_SENTENCES // 2 if answers is not None and passages else MAX_SENTENCES
        if answers is not None:
            click.echo(printable(answers.headline_in(display_path(result.report.parent))))
            _print_standings(answer_table(answers), answers.standings, room)
        if passages:
            _print_standings(leaderboard(result.page), result.page.overview.standings, room)
        click.echo(f"Report: {printable(display_path(result.report))}")
    elif result.folder is not None:
        click.echo(f"Results: {printable(display_path(result.folder))}")


def _print_standings(table: Any, standings: Sequence[Any], most: int) -> None:
    """The table, and the sentences of the first systems; the report has the others."""
    from ragworth.report.render import printable, render

    if sys.stdout.isatty():
        table = fit_leaderboard(table, shutil.get_terminal_size().columns)
    click.echo(render(table, "text").decode(), nl=False)
    click.echo()
    for standing in standings[:most]:
        click.echo(printable(standing.sentence))
    if len(standings) > most:
        click.echo(f"… {format_count(len(standings) - most, 'more system')}: see the report")
    click.echo()


def answer_table(found: Any) -> Any:
    """The systems, in the order of their ranking, with the main outcomes of their answers."""
    import polars as pl

    from ragworth.report.wording import share_of_all

    def cell(name: str, mean: Any) -> str:
        if mean is None or mean.mean is None:
            return "–"
        scale = found.scales[name]
        ends = scale.ends(mean.low, mean.high)
        some = f"{mean.n:,} of {mean.total:,}" if mean.n < mean.total else ""
        if some and scale.share:
            some += f" ({share_of_all(mean.mean, mean.n, mean.total)} of all)"
        return " ".join(filter(None, (scale.value(mean.mean, mean.low, mean.high), ends and f"[{ends}]", some)))

    shared = found.ranking.shared_means
    return pl.DataFrame(
        {"system": each.system, "group": each.group}
        | ({f"{found.main} (shared)": cell(found.main, shared.get(each.system))} if shared else {})
        | {name: cell(name, each.means.get(name)) for name in found.outcomes[: 3 if shared else 4]}
        for each in found.standings
    )


def leaderboard(page: Any) -> Any:
    """The systems, in the order of their ranking, with the main metrics."""
    import polars as pl

    view = page.overview
    rows = []
    for standing in view.standings:
        row: dict[str, Any] = {"system": standing.system, "group": standing.group}
        row |= {metric: _interval(standing.means.get(metric)) for metric in view.metrics[:4]}
        row |= {name: _share(getattr(standing, name)) for name in TABLE_COLUMNS[2:]}
        rows.append(row)
    frame = pl.DataFrame(rows)
    return frame.select([name for name in frame.columns if name in TABLE_COLUMNS[:2] or (frame[name] != "–").any()])


def fit_leaderboard(table: Any, room: int) -> Any:
    """The leaderboard in a narrow terminal: without its last metrics, then with short names; the report has all."""
    import polars as pl

    from ragworth.report.charts.base import shorten_names
    from ragworth.report.render import render

    def fits(frame: Any) -> bool:
        return len(render(frame, "text").decode().splitlines()[1]) <= room  # the rule below the names of columns

    metrics = [name for name in table.columns if name not in TABLE_COLUMNS]
    while not fits(table) and len(metrics) > 1:
        table = table.drop(metrics.pop())
    if fits(table):
        return table
    short = shorten_names(table["system"].to_list())
    return table.with_columns(pl.Series("system", [short[name] for name in table["system"]]))


def _interval(mean: Any) -> str:
    if mean is None or mean.mean is None:
        return "–"
    some = f"{mean.n:,} of {mean.total:,}" if mean.n < mean.total else ""
    ends = f"[{mean.low:.3f}, {mean.high:.3f}]" if mean.low is not None else mean.ends and f"({mean.ends})"
    return " ".join(filter(None, (f"{mean.mean:.3f}", ends, some)))


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"


def evaluation_record(found: Any) -> dict[str, Any]:
    """What an evaluation came to, for machines."""
    record: dict[str, Any] = {"stages": list(found.stages)}
    if found.page is None:
        return record
    view = found.page.overview
    systems = [
        {
            "system": each.system,
            "group": each.group,
            "metrics": {name: mean._asdict() for name, mean in each.means.items()},
            "misleading": each.misleading,
            "judged": each.judged,
            "shown": each.shown,
            "sentence": each.sentence,
        }
        for each in view.standings
    ]
    if found.page.answers is not None:
        record["answers"] = answer_record(found.page.answers, display_path(found.folder))
    record |= {"metric": view.main, "queries": view.queries, "baseline": view.baseline}
    record |= {"ranking": view.ranking.ranked.order, "systems": systems}
    return record | {"results": str(found.folder), "report": str(found.report)}


def answer_record(found: Any, folder: str) -> dict[str, Any]:
    """Which system answers better, for machines; ``folder`` has the results."""
    shared = found.ranking.shared_means
    systems = [
        {
            "system": each.system,
            "group": each.group,
            "outcomes": {name: mean._asdict() for name, mean in each.means.items()},
            **({"shared": shared[each.system]._asdict()} if each.system in shared else {}),
            "sentence": each.sentence,
        }
        for each in found.standings
    ]
    return {
        "outcome": found.main,
        "baseline": found.baseline,
        "headline": found.headline_in(folder),
        "ranking": found.ranking.ranked.order,  # best first; empty if too few answers are decided
        "systems": systems,
    }


def display_path(path: Path) -> str:
    """A path as it can be opened from here."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path.resolve())
