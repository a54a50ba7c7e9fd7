"""``ragworth metrics``."""

from __future__ import annotations

import click


@click.command("metrics", short_help="List the metrics, or explain one.")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List all metrics, or explain one with its formula.

    \b
    ragworth metrics
    ragworth metrics UDCG
    """
    from ragworth.metrics import METRICS
    from ragworth.metrics.declaration import format_parameter
    from ragworth.metrics.parsing import parse
    from ragworth.report.reference_pages import NEEDS, metric_facts

    if name is None:
        wide = max(len(each) for each in METRICS.names())
        for metric in METRICS:
            click.echo(f"{metric.name.ljust(wide)}  {metric.title} (needs {', '.join(NEEDS[n] for n in metric.needs)})")
        click.echo("\nragworth metrics NAME explains one.")
        return
    metric = parse(name).declaration
    click.echo(f"{metric.name}: {metric.title}\n")
    for title, words in metric_facts(metric):
        click.echo(f"  {title + ':':<28} {words}")
    click.echo("\n" + "\n".join(f"  {line}" for line in metric.doc.splitlines()))
    if metric.parameters:
        click.echo("\nParameters")
        for parameter in metric.parameters:
            click.echo(
                f"  {parameter.name}={format_parameter(parameter.default)}  ({parameter.takes}): {parameter.doc}"
            )
