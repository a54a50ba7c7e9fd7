"""docs/studies/alignment.md: the study's picture, on the demo."""

from figures.declare import MODEL, Shown, figure
from figures.running import Run
from figures.studies import study


@figure("ragworth study alignment examples/demo", seconds=400, needs=MODEL)
def demonstration(run: Run) -> Shown:
    found = study(run, f"alignment {run.copy('examples/demo', 'demo')} {run.pick('', '--limit 14')}")
    alt = "Spearman's ρ of six metrics with the grade, on the demo"
    yield "", found.picture("alignment", "../images/alignment.png", alt)
