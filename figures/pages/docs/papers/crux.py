"""docs/papers/crux.md: agreement of CRUX's annotators."""

from figures.declare import DATA, Shown, figure
from figures.running import Run
from figures.studies import spanned, study
from figures.tables import table


@figure("ragworth study judges $RAGWORTH_DATA/crux_labels --protocol crux", seconds=60, needs=DATA)
def annotators(run: Run) -> Shown:
    folder = run.work / "crux"
    options = run.pick("", "--resamples 100")
    found = study(run, f"judges {run.data / 'crux_labels'} --protocol crux -o {folder} {options}")
    rows = [
        (row["aspect"], row["measure"], spanned(row, "value", 3), row["items"], row["by all"])
        for row in found.tables["together"]
        if row["value"] is not None
    ]
    yield "", str(table(("judged", "measure", "agreement", "items", "by all three"), rows, "lllrr"))
