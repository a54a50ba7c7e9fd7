"""``ragworth evaluate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ragworth.cli.output import tell
from ragworth.errors import counted

STAGES = click.Choice(["retrieve", "annotate", "answer", "grade", "score", "report"])


@click.command("evaluate", short_help="Run a workspace: from its files to the report.")
@click.argument("workspace", default=".", type=click.Path())
@click.option("--only", type=STAGES, help="Run this stage alone; what comes before it must be there.")
@click.option("--until", type=STAGES, help="End after this stage.")
@click.option("--limit", type=click.IntRange(1), help="Only the first so many queries.")
@click.option("--all", "every", is_flag=True, help="All queries, whatever limit the workspace has.")
@click.option("--dry-run", is_flag=True, help="Say what it would take, and ask nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--wait", type=click.FloatRange(0, 86400), default=0, help="Seconds to wait for a store that is in use.")
@click.option("--quiet", is_flag=True, help="No progress and no notes on standard error.")
def command(
    workspace: str,
    only: str | None,
    until: str | None,
    limit: int | None,
    every: bool,
    dry_run: bool,
    as_json: bool,
    wait: float,
    quiet: bool,
) -> None:
    """Retrieve, judge, answer, grade, score, compare and report, as a ragworth.toml says.

    WORKSPACE is the file or its folder; ragworth init writes one. What was done before and is still right is not done
    again, and no model is asked the same twice: after Ctrl-C, a crash or kill -9 the same command goes on where it
    was. Tables and the report go to results/.

    \b
    ragworth evaluate
    ragworth evaluate examples/demo --dry-run
    ragworth evaluate examples/demo --until annotate
    """
    from ragworth import config
    from ragworth.evaluation.planning import planned
    from ragworth.evaluation.running import evaluate

    space = config.read(workspace)
    if dry_run:
        for stage in planned(space, limit=limit, every=every):
            click.echo(f"{stage.stage}: {stage.words}")
        return
    found = evaluate(
        space, only=only, until=until, limit=limit, every=every, console=None if quiet else Lines(), wait=wait
    )
    tell(found.notes, quiet)
    if as_json:
        click.echo(json.dumps(facts(found), ensure_ascii=False, indent=1))
    elif found.page is not None and found.report is not None:
        from ragworth.report.render import printable, render

        click.echo(render(leaderboard(found.page), "text").decode(), nl=False)
        click.echo()
        for standing in found.page.overview.standings:
            click.echo(printable(standing.sentence))
        click.echo(f"\nReport: {shown(found.report)}")


class Lines:
    """A line on standard error for each stage, and one that changes while a model is asked."""

    def stage(self, name: str) -> Any:
        from ragworth.calls.progress import Progress

        click.echo(f"{name} …", err=True)
        return Progress(None)

    def ended(self, facts: dict[str, Any]) -> None:
        words = [f"{facts['name']}: {'as before' if facts['status'] == 'kept' else 'done'}"]
        if "calls" in facts and facts["status"] == "done":
            words.append(f"{counted(facts['calls'], 'call')} in {facts['seconds']:.0f} s")
            if facts["failed"]:
                words.append(f"{facts['failed']:,} failed, and are tried again next time")
        click.echo(" · ".join(words), err=True)
        if facts["status"] == "done":
            tell(tuple(facts.get("notes", ())), False)


def leaderboard(page: Any) -> Any:
    """The systems, best first, with the main metrics and what came of the answers."""
    import polars as pl

    view = page.overview
    metrics = view.metrics[:4]
    rows = []
    for standing in view.standings:
        row: dict[str, Any] = {"system": standing.system, "group": standing.group}
        for metric in metrics:
            mean = standing.means.get(metric)
            known = mean is not None and mean.mean is not None
            row[metric] = (
                f"{mean.mean:.3f} [{mean.low:.3f}, {mean.high:.3f}]" if known and mean.low is not None else "–"
            )
        row |= {name: _share(getattr(standing, name)) for name in ("misleading", "correct", "wrong")}
        rows.append(row)
    frame = pl.DataFrame(rows)
    return frame.select([name for name in frame.columns if name in ("system", "group") or (frame[name] != "–").any()])


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"


def facts(found: Any) -> dict[str, Any]:
    """What an evaluation came to, for machines."""
    made: dict[str, Any] = {"stages": list(found.stages), "notes": list(found.notes)}
    if found.page is None:
        return made
    view = found.page.overview
    systems = [
        {
            "system": each.system,
            "group": each.group,
            "metrics": {name: mean._asdict() for name, mean in each.means.items()},
            "misleading": each.misleading,
            "correct": each.correct,
            "wrong": each.wrong,
            "sentence": each.sentence,
        }
        for each in view.standings
    ]
    return made | {"metric": view.main, "systems": systems, "results": str(found.folder), "report": str(found.report)}


def shown(path: Path) -> str:
    """A path as it can be opened from here."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path.resolve())
