"""``ragworth export``."""

from __future__ import annotations

import click

from ragworth.cli.output import print_notes


@click.command("export", short_help="Write scores for OpenTelemetry or Langfuse, or a ragas dataset.")
@click.argument("results")
@click.option("--to", type=click.Choice(["otel", "langfuse", "ragas"]), required=True, help="The tool to write for.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), required=True, help="File to write.")
def command(results: str, to: str, output: str) -> None:
    """Write RESULTS, a folder of results or a RAG log, for another tool.

    otel: OTLP JSON with one gen_ai.evaluation.result event for each score and outcome.
    langfuse: a JSON list, each element the body of a request to the scores API.
    ragas: JSON lines with questions, passages, answers and references.

    \b
    ragworth export results --to otel -o scores.json
    ragworth export results --to langfuse -o scores.json
    ragworth export log.jsonl --to ragas -o dataset.jsonl
    """
    from ragworth.exports import export

    print_notes(export(results, output, to), quiet=False)  # type: ignore[arg-type]  # click checked it
    click.echo(f"wrote {output}")
