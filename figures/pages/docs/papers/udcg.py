"""docs/papers/udcg.md: the experiments of the paper on UDCG, with the embedded reader."""

import json

from figures.declare import DATA, MODEL, Shown, figure
from figures.papers import planted_table, share
from figures.running import Run
from figures.studies import Studied, spanned, study
from figures.tables import table

PUBLISHED = {
    "nDCG": "0.24–0.75",
    "RR": "0.23–0.75",
    "AP": "0.23–0.75",
    "P": "0.30–0.77",
    "Success": "0.20–0.80",
    "eRAG": "−0.13–0.44",
    "Likelihood": "0.21–0.23",
    "UDCG": "0.40–0.80",
}

SHOWN = {"Likelihood": "answer likelihood"}


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


def aligned(run: Run) -> Studied:
    places = f"{run.workspace('rgb')} {run.workspace('multihop')}"
    return study(run, f"alignment {places} {limited(run, 50)}")


@figure("ragworth study alignment work/rgb work/multihop --protocol paper", seconds=3000, needs=(DATA, MODEL))
def alignment(run: Run) -> Shown:
    found = aligned(run)
    names = {row["metric"] for row in found.tables["alignment"]}
    cases = list(dict.fromkeys(row["case"] for row in found.tables["alignment"]))
    rows = []
    for metric, published in PUBLISHED.items():
        (name,) = [each for each in names if each.partition("(")[0].partition("@")[0] == metric]
        ours = [spanned(found.row("alignment", case=case, metric=name), "correlation") for case in cases]
        rows.append((SHOWN.get(metric, metric), published, *ours))
    (gap,) = [row for row in found.tables["average"] if " − " in row["metric"]]
    rows.append(("UDCG − nDCG, averaged", "0.10", spanned(gap, "correlation"), ""))
    yield "table", str(table(("metric", "published", "RGB", "multi-hop"), rows, "llll"))
    sure = gap["low"] is not None and gap["low"] > 0
    words = "Here it does so on average over both." if sure else "Here the averaged difference isn't significant."
    yield "verdict", words


@figure("ragworth train ablation work/rgb/results/studies/alignment/cases/*", seconds=3000, needs=(DATA, MODEL))
def ablation(run: Run) -> Shown:
    folder = aligned(run).folder / "cases"
    said = run.output(f"ragworth train ablation {folder}/01 {folder}/02 -f json {run.pick('', '--resamples 100')}")
    yield "", ablated(said)


def ablated(said: str) -> str:
    found = json.loads(said)["correlations"]
    names = {"UDCG@5": "UDCG", "UDCG(gamma=0)@5": "UDCG, γ = 0", "nDCG(ideal=retrieved)@5": "nDCG", "P@5": "P"}
    cases = list(dict.fromkeys(row["case"] for row in found))
    cells = {(row["case"], row["metric"]): spanned(row, "correlation") for row in found}
    metrics = list(dict.fromkeys(row["metric"] for row in found))
    rows = [(names.get(name, name), *(cells.get((case, name), "–") for case in cases)) for name in metrics]
    short = [case.partition(":")[0].partition(" questions")[0] for case in cases]
    return str(table(("metric", *short), rows, "l" * (len(cases) + 1)))


@figure(
    "ragworth study context-size work/rgb --protocol paper",
    seconds=1200,
    needs=(DATA, MODEL),
)
def sizes(run: Run) -> Shown:
    found = study(run, f"context-size {run.workspace('rgb')} {limited(run, 50)}")
    sizes = sorted({row["k"] for row in found.tables["correlation"]})
    lines: dict[str, dict[int, str]] = {}
    for row in found.tables["correlation"]:
        lines.setdefault(row["metric"], {})[row["k"]] = (
            "–" if row["correlation"] is None else f"{row['correlation']:.2f}"
        )
    spread = {row["metric"]: row["deviation"] for row in found.tables["spread"]}
    rows = [
        (name.replace("(ideal=retrieved)", ""), *(line.get(k, "–") for k in sizes), f"{spread[name]:.3f}")
        for name, line in lines.items()
        if spread.get(name) is not None
    ]
    head = ("metric", *(f"k = {k}" for k in sizes), "standard deviation")
    yield "", str(table(head, rows, "l" + "r" * (len(sizes) + 1)))


@figure("python benchmarks/planted.py alignment distractors ideal position context-size", seconds=60)
def planted(run: Run) -> Shown:
    yield "", planted_table(run, "alignment", "distractors", "ideal", "position", "context-size")
