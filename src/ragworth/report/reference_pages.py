"""The reference pages of the documentation, made from the code so that they cannot drift from it.

``make figures`` writes them; a test compares them with what is checked in.
"""

from __future__ import annotations

import click

from ragworth.metrics import METRICS
from ragworth.metrics.declaration import Declaration, format_parameter

NEEDS = {
    "relevance": "relevance judgments",
    "abstention": "abstention probabilities",
    "downstream": "downstream scores",
    "likelihood": "answer likelihoods",
    "ratings": "ratings of sub-questions",
    "tokens": "passage lengths",
    "runs": "at least two runs",
}


def metric_facts(metric: Declaration) -> list[tuple[str, str]]:
    """What is declared about a metric, as (title, words)."""
    return [
        ("Written", f"{metric.name}@k, or {metric.name} without a cutoff" if metric.takes_cutoff else metric.name),
        ("Formula", metric.formula),
        ("Needs", ", ".join(NEEDS[need] for need in metric.needs)),
        ("Range", metric.range),
        ("Better", "higher" if metric.higher_is_better else "lower"),
        ("Order of passages", "does not matter within the cutoff" if metric.order_free else "matters"),
        ("One more irrelevant passage", "never raises it" if metric.irrelevant_never_raises else "may raise it"),
        ("From", metric.paper),
    ]


def metric_page(metric: Declaration) -> str:
    """The page of one metric."""
    lines = [f"# {metric.name}", "", f"{metric.title[0].upper()}{metric.title[1:]}.", "", "| | |", "| --- | --- |"]
    lines += [
        f"| {title} | {_table_safe(f'`{words}`' if title == 'Formula' else words)} |"
        for title, words in metric_facts(metric)
    ]
    lines += ["", metric.doc, ""]
    if metric.parameters:
        lines += ["## Parameters", "", "| name | default | takes | meaning |", "| --- | --- | --- | --- |"]
        lines += [
            f"| `{p.name}` | `{format_parameter(p.default)}` | {p.takes} | {_table_safe(p.doc)} |"
            for p in metric.parameters
        ]
    lines += ["", "<!-- made by `make figures` from the metric's declaration -->", ""]
    return "\n".join(lines)


def _table_safe(text: str) -> str:
    return text.replace("|", "\\|")


def metric_index() -> str:
    """The list of all metrics."""
    lines = ["# Metrics", "", "| metric | what it says | needs |", "| --- | --- | --- |"]
    lines += [
        f"| [{m.name}]({m.name}.md) | {_table_safe(m.title)} | {', '.join(NEEDS[n] for n in m.needs)} |"
        for m in METRICS
    ]
    lines += ["", "<!-- made by `make figures` from the metrics' declarations -->", ""]
    return "\n".join(lines)


def command_page(command: click.Command, names: tuple[str, ...] = ("ragworth",)) -> str:
    """The help of a command and of all below it."""
    context = click.Context(
        command,
        info_name=" ".join(names),
        max_content_width=100,
        terminal_width=100,
        help_option_names=["-h", "--help"],
    )
    parts = [f"{'#' * len(names)} {' '.join(names)}\n\n```\n{command.get_help(context)}\n```\n"]
    if isinstance(command, click.Group):
        parts += [command_page(command.commands[name], (*names, name)) for name in sorted(command.commands)]
    return "\n".join(parts)
