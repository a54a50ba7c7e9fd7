"""Where each number comes from: how metrics are defined, and everything that the manifest records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from ragworth.core.errors import RagworthError
from ragworth.metrics.parsing import parse
from ragworth.report.document import (
    DataBlock,
    Details,
    DocumentBlock,
    Group,
    Heading,
    Notes,
    Only,
    Paragraph,
    Preformatted,
    Section,
    TableBlock,
)
from ragworth.report.page.costs import stage_table
from ragworth.report.page.view import ReportView
from ragworth.results import TABLES, Results

ROWS_AT_A_TIME = 1_000_000
"""Rows grouped together, which bounds the memory that it takes."""

SHOWN_ELSEWHERE = {"title", "name", "systems", "stages", "prompts"}


def section(view: ReportView) -> Section:
    """The last part of the report."""
    results, manifest = view.results, view.results.manifest
    blocks: list[DocumentBlock] = [
        Paragraph(
            "Everything needed to make each number again. The tables themselves are in the folder of the results."
        ),
        _folded(metric_definitions(view.overview.metrics), "How the metrics are defined", open=True),
    ]
    stages = stage_table(manifest)
    blocks += [_folded(stages, "What was run, and what it took")] if stages is not None else []
    prompts = manifest.get("prompts")
    if isinstance(prompts, Mapping) and prompts:
        blocks.append(Only("html", [Details("Prompts, word for word", [_prompt(*each) for each in prompts.items()])]))
    rest = {_title(str(key)): value for key, value in manifest.items() if key not in SHOWN_ELSEWHERE}
    blocks.append(Only("html", [DataBlock("This run", {k: v for k, v in rest.items() if v not in (None, {}, [], "")})]))
    if notes := collect_notes(results):
        blocks.append(Details("What was noticed on the way", [Notes(notes)]))
    blocks.append(_folded(value_sources(results), "Sources of the judgments, answers and outcomes"))
    if not manifest:
        blocks.append(Paragraph("These results have no manifest: what made them is not known.", "note"))
    return Section("provenance", "Provenance", blocks)


def _folded(frame: pl.DataFrame, title: str, *, open: bool = False) -> Details:
    return Details(title, [TableBlock.of(frame, title)], open)


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
        table = getattr(results, name)
        if table is None:
            continue
        aspect = pl.col("aspect") if "aspect" in table.schema else pl.lit("")
        counts = [
            rows.group_by(aspect.alias("aspect"), "source", maintain_order=True).agg(
                pl.len().cast(pl.Int64).alias("rows"),
                (pl.col("status") == "ok").sum().cast(pl.Int64).alias("with a value"),
            )
            for rows in table.frame.iter_slices(ROWS_AT_A_TIME)
        ]
        both = pl.concat(counts).group_by("aspect", "source", maintain_order=True).sum()
        parts.append(both.select(pl.lit(name).alias("table"), "aspect", "source", "rows", "with a value"))
    if not parts:
        return pl.DataFrame(schema=["table", "aspect", "source", "rows", "with a value"])
    return pl.concat(parts).head(200)


def _prompt(name: object, prompt: Any) -> Group:
    given = prompt if isinstance(prompt, Mapping) else {}
    messages = given.get("messages")
    shown = [
        Preformatted(str(each[0]), str(each[1]))
        for each in (messages if isinstance(messages, list) else [])
        if isinstance(each, list | tuple) and len(each) == 2
    ]
    return Group("prompt", [Heading(f"{name} version {given.get('version', 'unknown')}"), *shown])
