"""README.md: what the demo shows."""

import json
import re

from figures.declare import BROWSER, MODEL, Picture, Shown, figure
from figures.demo import SHOWS, demo
from figures.pictures import screenshot
from figures.running import ROOT, Run
from figures.studies import spanned, study
from figures.tables import table

DEMO = ROOT / "examples" / "demo"


@figure("wc -l examples/demo/*.jsonl", seconds=1)
def collection(run: Run) -> Shown:
    limit = int(re.findall(r"^limit = (\d+)", (DEMO / "ragworth.toml").read_text(encoding="utf-8"), re.MULTILINE)[0])
    lines = (DEMO / "queries.jsonl").read_text(encoding="utf-8").splitlines()[:limit]
    reports = [line for line in lines if json.loads(line)["_id"].startswith("r")]
    yield "questions", str(limit - len(reports))
    yield "reports", str(len(reports))
    yield "passages", str(len((DEMO / "passages.jsonl").read_text(encoding="utf-8").splitlines()))


@figure("ragworth evaluate examples/demo", seconds=240, needs=MODEL)
def demonstration(run: Run) -> Shown:
    found = demo(run)
    rows = [
        (
            system,
            shows,
            found.mean(system, "nDCG@5"),
            found.mean(system, "UDCG@5", interval=True),
            found.share(system, "correct"),
            found.share(system, "wrong"),
        )
        for system, shows in SHOWS.items()
    ]
    yield (
        "systems",
        str(table(("system", "shows", "nDCG@5", "UDCG@5 [95 % interval]", "correct", "wrong"), rows, "llrrrr")),
    )
    lacking = found.diagnosis("nothing relevant retrieved", "bm25")
    yield "relevant", f"{lacking.of - lacking.n} of {lacking.of}"
    counts = found.graded("bm25")
    yield "answers", str(sum(counts.values()))
    yield "correct", str(counts["correct"])
    yield "misled", str(found.diagnosis("misled by a distractor", "bm25").n)
    for name in ("UDCG@5", "nDCG@5"):
        rho, low, high = found.predicts(name)
        yield name[:4].lower(), f"{rho:.2f}"
        yield f"{name[:4].lower()}-interval", f"{low:.2f} to {high:.2f}".replace("-", "−")


@figure("ragworth evaluate examples/demo; a screenshot of its report", seconds=250, needs=(MODEL, BROWSER))
def report(run: Run) -> Shown:
    page = demo(run).folder / "results" / "report.html"
    alt = "The top of the demo's report: a sentence for each system, the leaderboard, and what each system is"
    yield "", Picture(alt, "docs/images/report.png", screenshot(page, run.work / "report.png"))


@figure("ragworth study alignment examples/demo", seconds=400, needs=MODEL)
def alignment(run: Run) -> Shown:
    found = study(run, f"alignment {run.copy('examples/demo', 'demo')} {run.pick('', '--limit 14')}")
    values = {row["metric"].partition("@")[0]: row["correlation"] for row in found.tables["alignment"]}
    yield "sentence", found.sentences[0]
    others = [values[name] for name in ("P", "R", "nDCG(ideal=retrieved)", "RR")]
    yield "others", f"{min(others):.2f} to {max(others):.2f}".replace("-", "−")
    distraction = found.row("alignment", metric="Distraction@5")
    yield "distraction", spanned(distraction, "correlation")
    yield "constant", str(distraction["left out"])
