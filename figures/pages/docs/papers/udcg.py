"""docs/papers/udcg.md: the experiments of the paper on UDCG, with the embedded reader."""

from figures.declare import DATA, MODEL, Shown, figure
from figures.papers import planted_table, share
from figures.running import Run
from figures.studies import spanned, study
from figures.tables import table


def limited(run: Run, queries: int) -> str:
    return run.pick(f"--protocol paper --limit {queries}", "--protocol paper --limit 4 --resamples 100")


@figure("ragworth study distractors work/rgb --protocol paper", seconds=1500, needs=(DATA, MODEL))
def distractors(run: Run) -> Shown:
    found = study(run, f"distractors {run.workspace('rgb')} {limited(run, 100)}")
    rows = [
        (row["distractors"], share(row["correct"]), share(row["abstained"]), share(row["wrong"]), row["queries"])
        for row in found.tables["outcomes"]
    ]
    gap = found.row("differences", measure="accuracy")
    rows.append(("difference", spanned(gap, "difference"), "", f"p = {gap['p']:.3f}", gap["queries"]))
    yield "", str(table(("distractors", "correct", "abstained", "wrong", "questions"), rows, "lrrrr"))


@figure("ragworth study position work/rgb --protocol paper --limit 100", seconds=400, needs=(DATA, MODEL))
def position(run: Run) -> Shown:
    found = study(run, f"position {run.workspace('rgb')} {limited(run, 100)}")
    metrics: dict[str, dict[int, str]] = {}
    for row in found.tables["metrics"]:
        metrics.setdefault(row["metric"], {})[row["position"]] = f"{row['mean']:.2f}"
    names = {name.partition("(")[0].partition("@")[0]: places for name, places in metrics.items()}
    rows = [
        (row["position"], share(row["correct"]), *(places[row["position"]] for places in names.values()))
        for row in found.tables["outcomes"]
    ]
    yield "", str(table(("position", "correct", *names), rows, "rr" + "r" * len(names)))


@figure("ragworth study ideal work/rgb --protocol paper --limit 100", seconds=1500, needs=(DATA, MODEL))
def ideal(run: Run) -> Shown:
    found = study(run, f"ideal {run.workspace('rgb')} {limited(run, 100)}")
    rows = [
        (
            row["oracle"],
            share(row["correct"]),
            share(row["abstained"]),
            share(row["wrong"]),
            share(row["with_relevant"]),
        )
        for row in found.tables["outcomes"]
    ]
    head = ("oracle", "correct", "abstained", "wrong", "contexts with a relevant passage")
    yield "", str(table(head, rows, "lrrrr"))


@figure("python benchmarks/planted.py alignment distractors ideal position context-size", seconds=60)
def planted(run: Run) -> Shown:
    yield "", planted_table(run, "alignment", "distractors", "ideal", "position", "context-size")
