"""The card of a trained rewriter: what it is, what it was trained on and how, and its loss curves."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import polars as pl

import ragworth
from ragworth.report.document import ChartPanel, DataBlock, Document, Figure, Paragraph, Section, TableBlock
from ragworth.storage.output import write_output

PACKAGES = ("torch", "transformers", "trl", "peft", "datasets", "accelerate")


def package_versions() -> dict[str, str]:
    """Versions of everything that training depends on."""
    found = {"ragworth": ragworth.__version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def curves_table(report: dict[str, Any]) -> pl.DataFrame:
    """The losses of all stages and rates, a row for each that was logged."""
    schema = {"stage": pl.String, "rate": pl.Float64, "step": pl.Int64, "epoch": pl.Float64, "loss": pl.Float64}
    schema |= dict.fromkeys(("held_out_loss", "accuracy", "held_out_accuracy"), pl.Float64)
    rows = [
        {"stage": stage["kind"], "rate": stage["rate"], **row} for stage in report["curves"] for row in stage["curve"]
    ]
    return pl.DataFrame(rows, schema=schema, orient="row")


def loss_points(curves: pl.DataFrame) -> pl.DataFrame:
    """The losses as points of curves, one curve for each stage, rate and kind of loss."""
    names = {"loss": "training", "held_out_loss": "held out"}
    parts = [
        curves.filter(pl.col(column).is_not_null()).select(
            "stage",
            pl.format("{} · {}", pl.col("rate").map_elements(lambda rate: f"{rate:g}", pl.String), pl.lit(name)).alias(
                "line"
            ),
            pl.col("step").cast(pl.Float64).alias("place"),
            pl.col(column).alias("value"),
        )
        for column, name in names.items()
    ]
    return pl.concat(parts)


def training_document(name: str, about: dict[str, Any], *, draws: bool = True) -> Document:
    """The card as a document."""
    rows = [{**row, "rate": f"{row['rate']:g}"} for row in about["chosen"]]
    schema = {"stage": pl.String, "rate": pl.String, "epoch": pl.Float64, "loss": pl.Float64}
    chosen = pl.DataFrame(rows, schema=schema, orient="row")
    data = {key: value for key, value in about["data"].items() if key != "held-out conversations"}
    facts = {
        "base": about["base"],
        "prompt": about["prompt"],
        "started from": about["start"],
        "data": data | {"held-out conversations": len(about["data"]["held-out conversations"])},
        "settings": about["settings"],
        "versions": about["versions"],
    }
    lead = (
        "A LoRA adapter that rewrites the last turn of a conversation into a question that can be searched for alone, "
        "trained by ragworth rewrite train. The files are safetensors and JSON."
    )
    sections = [
        Section(
            "chosen",
            "Chosen learning rates and epochs",
            [
                TableBlock.of(chosen.rename({"loss": "held-out loss"}), "Smallest loss on held-out conversations"),
                Paragraph("SFT's loss is the mean surprisal of a rewrite's tokens, DPO's that of the preferences."),
            ],
        ),
        Section("curves", "Loss curves", [_loss_figure(about)] if draws else []),
        Section("facts", "Data, settings and versions", [DataBlock("Training", facts)]),
    ]
    return Document("report", name, lead, sections)


def _loss_figure(about: dict[str, Any]) -> Figure:
    from ragworth.report.charts.planes import curve_chart

    curves = curves_table(about)
    points = loss_points(curves)
    panels = [
        ChartPanel(f"losses-{stage}", stage.upper(), curve_chart(part, "step", "loss"))
        for (stage,), part in points.group_by("stage", maintain_order=True)
        if isinstance(stage, str)
    ]
    return Figure("losses", "Losses", "Losses while training, for each learning rate.", panels, curves)


def write_card(folder: Path, name: str, about: dict[str, Any]) -> None:
    """Write ``README.md``, ``losses.csv`` and, if the extra ``report`` is installed, the curves as pictures."""
    from ragworth.errors import MissingExtraError
    from ragworth.formats.spreadsheet import write_csv
    from ragworth.report.charts.drawing import draw_charts
    from ragworth.report.renderers.markdown import render_markdown

    write_output(folder / "losses.csv", write_csv(curves_table(about)), inside=folder)
    try:
        document = training_document(name, about)
        pictures = draw_charts({f"{panel}.svg": spec for panel, spec in document.charts.items()})
    except MissingExtraError:
        document, pictures = training_document(name, about, draws=False), {}
    (folder / "figures").mkdir()
    for file, svg in pictures.items():
        write_output(folder / "figures" / file, svg, inside=folder)
    write_output(folder / "README.md", render_markdown(document).encode(), inside=folder)
