"""docs/studies/long-form.md: eight pipelines on the demo's report requests, with the settings that the page shows."""

import re
from pathlib import Path

from figures.declare import ENCODER, MODEL, Shown, figure
from figures.running import ROOT, Run
from figures.studies import Row, study
from figures.tables import table

COLUMNS = {
    "Cov": "Cov",
    "α-nDCG": "alpha_nDCG",
    "Den": "Den",
    "nDCG": "nDCG",
    "coverage of the report": "coverage of the answer",
    "density of the report": "density of the answer",
}


def reports(run: Run) -> Path:
    """The demo's folder with the settings of the page and the report requests alone."""
    folder = run.copy("examples/demo", "reports")
    page = (ROOT / "docs" / "studies" / "long-form.md").read_text(encoding="utf-8")
    (settings,) = re.findall(r"```toml\n(title = .*?)```", page, re.DOTALL)
    (folder / "ragworth.toml").write_text(settings, encoding="utf-8")
    lines = (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "reports.jsonl").write_text("".join(line for line in lines if '"_id": "r' in line), encoding="utf-8")
    return folder


@figure("ragworth study long-form . (in the folder that the page describes)", seconds=420, needs=(MODEL, ENCODER))
def pipelines(run: Run) -> Shown:
    rows = study(run, f"long-form {reports(run)}").tables["systems"]
    bounds = ("(required)", "(none)")
    ranked = sorted((row for row in rows if row["system"] not in bounds), key=lambda row: -row["Cov"])
    ranked += [row for name in bounds for row in rows if row["system"] == name]
    cells = [(row["system"], *(cell(row, column) for column in COLUMNS.values())) for row in ranked]
    yield "", str(table(("system", *COLUMNS), cells, "lrrrrrr"))


def cell(row: Row, column: str) -> str:
    value = row.get(column)
    return "–" if value is None else f"{value:.2f}"
