"""``ragworth study``: a command for each study, made from its settings."""

from __future__ import annotations

import json
from typing import Any

import click
from click.core import ParameterSource

from ragworth.cli.check import check_limit_options
from ragworth.cli.evaluate import StageLines, display_path
from ragworth.cli.input_options import take_trust_options, trust_options
from ragworth.cli.registry_group import RegistryGroup, help_text, kind_title
from ragworth.cli.task_options import setting_options


@click.group(
    "study",
    cls=RegistryGroup,
    registry="ragworth.studies:STUDIES",
    maker="ragworth.cli.study:command_for",
    short_help="Find out which metric, context or judge you can trust.",
)
def command() -> None:
    """Run a study: one command for each question about metrics, contexts and judges.

    A study of a workspace builds contexts, has them judged, answered and graded through the workspace's call store,
    and reports the findings. A study of a results folder (of an evaluation, or of an earlier run of the same study)
    asks no model. Tables, figures and a page go to results/studies/NAME.

    \b
    ragworth study alignment examples/demo --dry-run
    ragworth study alignment examples/demo
    ragworth study alignment one/results another/results -m UDCG@5 -m nDCG@5
    """


def command_for(kind: str) -> click.Command:
    """The command of a study."""
    from ragworth.judging.contract import options_of
    from ragworth.studies import STUDIES
    from ragworth.studies.contract import OURS

    chosen = STUDIES.get(kind)
    papers = [f"{name}: {design.paper}." for name, design in chosen.published.items()]
    paper = "Published designs (--protocol): " + " ".join(papers) if papers else ""

    @click.command(kind, help=help_text(chosen, paper), short_help=kind_title(chosen))
    @click.argument("places", nargs=-1, metavar="[WORKSPACE|RESULTS]...")
    @setting_options(options_of(chosen))
    @click.option("-m", "--metric", "metrics", multiple=True, help="Metric, such as UDCG@5; repeat for more.")
    @click.option(
        "--protocol",
        type=click.Choice([OURS, *chosen.published]),
        default=OURS,
        help="Our design, or a published one; options that you give replace its settings.",
    )
    @click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N queries that can be studied.")
    @click.option("--all", "every", is_flag=True, help="All queries, even if the workspace has a limit.")
    @click.option("--dry-run", is_flag=True, help="Print what would be asked, without asking.")
    @click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
    @click.option("-o", "--output", type=click.Path(file_okay=False), help="Folder to write to.")
    @click.option(
        "--wait",
        type=click.FloatRange(0, 86400),
        default=0,
        help="Seconds to wait if the workspace or store is in use.",
    )
    @click.option("--quiet", is_flag=True, help="Don't show progress or notes.")
    @trust_options
    def run(places: tuple[str, ...], dry_run: bool, **given: Any) -> None:
        from ragworth.calls.job import JobInterrupted

        check_limit_options(given["limit"], given["every"])
        # A setting that isn't given is that of the protocol.
        source = click.get_current_context().get_parameter_source
        for each in options_of(chosen):
            if source(each.name) is ParameterSource.DEFAULT:
                del given[each.name]
        paths, allow_servers = take_trust_options(given)
        if paths and len(places) > 1:
            raise click.UsageError("--results, --store and --cache are for one workspace; study them one by one")
        given |= {"paths": paths, "allow_servers": allow_servers}
        try:
            if dry_run:
                _plan(kind, places or (".",), **given)
            else:
                _run(kind, places or (".",), **given)
        except KeyboardInterrupt as error:
            raise JobInterrupted("interrupted; what was done is kept: run the same again to go on") from error

    return run


def _plan(
    kind: str,
    places: tuple[str, ...],
    as_json: bool,
    quiet: bool,
    output: str | None,
    wait: float,
    **given: Any,
) -> None:
    from ragworth.studies.run import plan_study

    found = plan_study(kind, places, **given)
    if as_json:
        click.echo(json.dumps({"stages": [stage._asdict() for stage in found]}, ensure_ascii=False, indent=1))
        return
    for stage in found:
        click.echo(f"{stage.name}: {stage.words}")
    if not found:
        click.echo("no model is asked")


def _run(kind: str, places: tuple[str, ...], as_json: bool, quiet: bool, **given: Any) -> None:
    from ragworth.report.render import printable
    from ragworth.report.study import study_text
    from ragworth.studies.run import study

    found = study(kind, places, console=None if quiet else StageLines(), **given)
    if as_json:
        click.echo(json.dumps(study_record(found), ensure_ascii=False, indent=1))
        return
    click.echo(study_text(found.findings), nl=False)
    if found.page is not None:
        click.echo(f"\nPage: {printable(display_path(found.page))}")


def study_record(found: Any) -> dict[str, Any]:
    """What a study came to, for machines."""
    findings = found.findings
    return {
        "title": findings.title,
        "lead": findings.lead,
        "sentences": list(findings.sentences),
        "tables": {table.name: table.frame.to_dicts() for table in findings.tables},
        "left_out": findings.left_out.to_dicts(),
        "notes": list(findings.notes),
        "settings": dict(findings.settings),
        "page": str(found.page) if found.page is not None else None,
    }
