"""docs/papers/propagation.md: the utility of contexts on RGB, with the embedded reader and encoder."""

from figures.declare import DATA, ENCODER, MODEL, Shown, figure
from figures.running import Run
from figures.studies import spanned, study
from figures.tables import table

COMMAND = "ragworth study propagation work/rgb --protocol paper --relevant 1 --encoder embedded --limit 40"


@figure(COMMAND, seconds=3600, needs=(DATA, MODEL, ENCODER))
def utility(run: Run) -> Shown:
    options = run.pick("--limit 40", "--limit 4 --sizes 2 --resamples 100")
    found = study(run, f"propagation {run.workspace('rgb')} --protocol paper --relevant 1 --encoder embedded {options}")
    rows = found.tables["utility"]
    sizes = sorted({row["k"] for row in rows})
    names = list(dict.fromkeys(row["context"] for row in rows))
    cells = {(row["context"], row["k"]): f"{row['utility']:.2f}{row['marks']}" for row in rows}
    made = [(name, *(cells[name, k] for k in sizes)) for name in names]
    yield "table", str(table(("context", *(f"k = {k}" for k in sizes)), made, "l" + "r" * len(sizes)))
    yield "bare", f"{rows[0]['P without']:.2f}"
    systems = [name for name in names if "only" not in name]
    told = {(row["context"], row["k"]): spanned(row, "correlation") for row in found.tables["correlations"]}
    made = [(name, *(told[name, k] for k in sizes)) for name in (*systems, "all contexts")]
    yield "correlations", str(table(("context", *(f"k = {k}" for k in sizes)), made, "l" * (len(sizes) + 1)))
