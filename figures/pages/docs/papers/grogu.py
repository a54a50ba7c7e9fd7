"""docs/papers/grogu.md: the model's confidence on RGB, with the embedded reader."""

from figures.declare import DATA, MODEL, Shown, figure
from figures.papers import planted_table, share
from figures.running import Run
from figures.studies import spanned, study
from figures.tables import table

PUBLISHED = {
    "PPL": ("71–87 %", "73–91 %"),
    "KeyPPL": ("77–90 %", "84–95 %"),
    "Entropy": ("75–89 %", "76–92 %"),
    "KeyEntropy": ("78–91 %", "83–96 %"),
}


def limited(run: Run) -> str:
    return "--protocol paper " + run.pick("--limit 100", "--limit 6 --resamples 100")


@figure("ragworth study win-rate work/rgb --protocol paper --limit 100", seconds=900, needs=(DATA, MODEL))
def win_rate(run: Run) -> Shown:
    found = study(run, f"win-rate {run.workspace('rgb')} {limited(run)}")
    names = list(dict.fromkeys(row["confidence"] for row in found.tables["win-rate"]))
    rows = []
    for name in names:
        near, far = (found.row("win-rate", confidence=name, against=side) for side in ("distractor", "random"))
        ours = [share(row["win rate"]) if row["queries"] > 1 else "–" for row in (near, far)]
        published = PUBLISHED.get(name, ("–", "–"))
        rows.append((name, published[0], ours[0], published[1], ours[1]))
    head = ("confidence", "over a distractor: published", "RGB", "over a random passage: published", "RGB")
    yield "", str(table(head, rows, "lrrrr"))


@figure("ragworth study noise work/rgb --protocol paper --limit 100", seconds=900, needs=(DATA, MODEL))
def noise(run: Run) -> Shown:
    found = study(run, f"noise {run.workspace('rgb')} {limited(run)}")
    rows = [
        (row["context"], share(row["correct"]), row["wins"], row["ties"], row["queries"])
        for row in found.tables["answers"]
    ]
    yield "answers", str(table(("context", "correct", "wins", "ties", "questions"), rows, "lrrrr"))
    taus = [
        (row["confidence"], spanned(row, "tau"), share(row["right"]), row["concordant"] + row["discordant"])
        for row in found.tables["concordance"]
        if row["tau"] is not None
    ]
    yield "taus", str(table(("confidence", "τ", "tells the right one", "questions"), taus, "llrr"))


@figure("ragworth study layouts work/rgb --protocol paper --limit 100", seconds=2400, needs=(DATA, MODEL))
def layouts(run: Run) -> Shown:
    found = study(run, f"layouts {run.workspace('rgb')} {limited(run)}")
    mine = [row for row in found.tables["accuracy"] if row["measure"] == "KeyEntropy"]
    rows = [(row["answered by"], row["chosen by"], share(row["accuracy"]), row["queries"]) for row in mine]
    yield "", str(table(("answered by", "context chosen by", "correct", "questions"), rows, "llrr"))


@figure("python benchmarks/planted.py win-rate noise layouts", seconds=40)
def planted(run: Run) -> Shown:
    yield "", planted_table(run, "win-rate", "noise", "layouts")
