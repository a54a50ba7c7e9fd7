"""Where each number comes from: how metrics are defined, and everything that the manifest records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import polars as pl

from ragworth.errors import RagworthError
from ragworth.metrics.parsing import parse
from ragworth.report.page.costs import stage_table
from ragworth.report.page.html import SafeHtml, details_box, html_table, join_html, scroll_box, tag
from ragworth.results import TABLES, Results

SHOWN_ELSEWHERE = {"title", "name", "systems", "stages", "prompts"}
DEEPEST = 6


def provenance_html(results: Results, metrics: list[str]) -> SafeHtml:
    """The last part of the page."""
    manifest = results.manifest
    parts = [details_box("How the metrics are defined", html_table(metric_definitions(metrics), "Metrics"), open="")]
    made = stage_table(manifest)
    if made is not None:
        parts.append(details_box("What was run, and what it took", html_table(made, "Stages")))
    if isinstance(manifest.get("prompts"), Mapping) and manifest["prompts"]:
        parts.append(
            details_box("Prompts, word for word", *(_prompt(str(n), p) for n, p in manifest["prompts"].items()))
        )
    rest = {
        str(key): value
        for key, value in manifest.items()
        if key not in SHOWN_ELSEWHERE and value not in (None, {}, [], "")
    }
    plain = {key: value for key, value in rest.items() if not isinstance(value, Mapping | list)}
    parts += [details_box("This run", json_tree(plain))] if plain else []
    parts += [details_box(_title(key), json_tree(value)) for key, value in rest.items() if key not in plain]
    if notes := collect_notes(results):
        parts.append(details_box("What was noticed on the way", tag("ul", *(tag("li", note) for note in notes))))
    parts.append(
        details_box("Sources of the judgments, answers and outcomes", html_table(value_sources(results), "Sources"))
    )
    if len(manifest) == 0:
        parts.append(tag("p", "These results have no manifest: what made them is not known.", class_="note"))
    return join_html(parts)


def collect_notes(results: Results) -> list[str]:
    """What tables and stages have to say besides their numbers, each once."""
    notes = [note for name in TABLES if (part := getattr(results, name)) is not None for note in part.notes]
    stages = results.manifest.get("stages")
    for stage in stages if isinstance(stages, list) else []:
        said = stage.get("notes") if isinstance(stage, Mapping) else None
        notes += [f"{stage.get('name', 'a stage')}: {note}" for note in (said or []) if note not in notes]
    return list(dict.fromkeys(notes))


def _title(key: str) -> str:
    return key[:1].upper() + key[1:].replace("_", " ")


def metric_definitions(metrics: list[str]) -> pl.DataFrame:
    """Each metric with what it says and how it is computed."""
    rows = []
    for written in metrics:
        try:
            declared = parse(written).declaration
        except RagworthError:
            rows.append((written, "a metric of another tool", "", ""))
            continue
        better = "higher" if declared.higher_is_better else "lower"
        rows.append((written, declared.title, declared.formula, f"{declared.range}; {better} is better"))
    return pl.DataFrame(rows, schema=["metric", "what it says", "formula", "range"], orient="row")


def value_sources(results: Results) -> pl.DataFrame:
    """Who made the values of each table: table, aspect, source, rows and how many of them have a value."""
    parts: list[pl.DataFrame] = []
    for name in ("judgments", "ratings", "answers", "outcomes"):
        part = getattr(results, name)
        if part is None:
            continue
        aspect = pl.col("aspect") if "aspect" in part.frame.columns else pl.lit("")
        parts.append(
            part.frame.group_by(aspect.alias("aspect"), "source", maintain_order=True)
            .agg(
                pl.len().cast(pl.Int64).alias("rows"),
                (pl.col("status") == "ok").sum().cast(pl.Int64).alias("with a value"),
            )
            .select(pl.lit(name).alias("table"), "aspect", "source", "rows", "with a value")
        )
    if not parts:
        return pl.DataFrame(schema=["table", "aspect", "source", "rows", "with a value"])
    return pl.concat(parts).head(200)


def _prompt(name: str, prompt: Any) -> SafeHtml:
    given = prompt if isinstance(prompt, Mapping) else {}
    messages = given.get("messages")
    shown = [
        tag("div", tag("b", each[0]), tag("pre", escape_lines(str(each[1]))))
        for each in (messages if isinstance(messages, list) else [])
        if isinstance(each, list | tuple) and len(each) == 2
    ]
    return tag(
        "section", tag("h3", name, tag("small", f" version {given.get('version', 'unknown')}")), *shown, class_="prompt"
    )


def escape_lines(text: str) -> SafeHtml:
    """A text of several lines, each with its control characters shown."""
    return join_html(text.split("\n"), "\n")


def json_tree(value: Any, depth: int = 0) -> SafeHtml:
    """Any JSON as nested lists; small tables of plain values as tables."""
    if isinstance(value, Mapping) and depth < DEEPEST:
        plain = all(not isinstance(each, Mapping | list) for each in value.values())
        if plain and value:
            rows = [tag("tr", tag("th", str(key), scope="row"), tag("td", _plain(each))) for key, each in value.items()]
            return scroll_box(tag("table", tag("tbody", *rows), class_="plain"), "values")
        return tag(
            "dl",
            *(join_html([tag("dt", str(key)), tag("dd", json_tree(each, depth + 1))]) for key, each in value.items()),
        )
    if isinstance(value, list) and depth < DEEPEST:
        return tag("ul", *(tag("li", json_tree(each, depth + 1)) for each in value))
    return tag("span", _plain(value))


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
