"""docs/why.md: the demo's numbers."""

from figures.declare import MODEL, Shown, figure
from figures.demo import SHOWS, abstained_by_kind, demo
from figures.running import ROOT, Run
from figures.tables import table

KINDS = {
    "supporting": ("says the answer plainly", 1),
    "tabular": ("has it in a table or list", 1),
    "convoluted": ("has it in a long sentence full of other names", 1),
    "contradicted": ("tells a mistake, and that it is one", 0),
    "outdated": ("tells what used to be true", 0),
    "wrong entity": ("the same fact about something similar", 0),
    "wrong attribute": ("other facts about the right thing", 0),
}
GRADES = ("correct", "abstained", "wrong")


@figure("ragworth evaluate examples/demo", seconds=240, needs=MODEL)
def demonstration(run: Run) -> Shown:
    found = demo(run)
    rows = [
        (s, shows, found.mean(s, "nDCG@5"), found.mean(s, "UDCG@5"), *(found.share(s, grade) for grade in GRADES))
        for s, shows in SHOWS.items()
    ]
    yield "systems", str(table(("system", "shows", "nDCG@5", "UDCG@5", *GRADES), rows, "llrrrrr"))
    for name in ("random", "adversary"):
        yield f"{name}-ndcg", found.mean(name, "nDCG@5")
    counts = found.graded("random")
    yield "random-declined", f"{counts['abstained']} of {sum(counts.values())}"
    judged = abstained_by_kind(found, ROOT / "examples" / "demo" / "kinds.tsv")
    none = (0, "–")
    kinds = [
        (f"{kind}: {what}", label, *judged.get(kind.replace(" ", "-"), none)) for kind, (what, label) in KINDS.items()
    ]
    yield "kinds", str(table(("kind", "relevance label", "passages", "mean 1 − p_abstain"), kinds, "lrrr"))
    for kind in ("supporting", "tabular", "convoluted"):
        yield kind, judged.get(kind, none)[1]
    lacking = found.diagnosis("nothing relevant retrieved", "bm25")
    yield "relevant", f"{lacking.of - lacking.n} of {lacking.of}"
    yield "unused", str(found.diagnosis("relevant, but unused by the model", "oracle").n)
    yield "misled", str(found.diagnosis("misled by a distractor", "bm25").n)
    for name in ("UDCG@5", "nDCG@5"):
        rho, low, high = found.predicts(name)
        yield name[:4].lower(), f"{rho:.2f}"
        yield f"{name[:4].lower()}-interval", f"{low:.2f} to {high:.2f}".replace("-", "−")
    yield "bm25-right", str(found.graded("bm25")["correct"])
    yield "bm25-wrong", str(found.graded("bm25")["wrong"])
    for name in ("bm25", "random"):
        yield f"{name}-udcg", found.mean(name, "UDCG@5")


@figure(
    "the last lines of the Python block of the page, after `ragworth evaluate examples/demo`", seconds=240, needs=MODEL
)
def reordered(run: Run) -> Shown:
    outcomes = demo(run).results.outcomes
    assert outcomes is not None
    grades = outcomes.frame.filter(aspect="grade").pivot("system", index="query", values="value")
    changes = (grades["reordered"] - grades["bm25"]).drop_nulls().to_list()
    worse, better = sum(change < 0 for change in changes), sum(change > 0 for change in changes)
    yield "changed", f"{worse + better} of {len(changes)}"
    yield "worse", str(worse)
    yield "better", str(better)
    results = demo(run).folder / "results"
    compared = run.output(
        f"ragworth compare {results}/contexts.parquet -j {results}/judgments.parquet -m nDCG@5 -b bm25 -f csv --quiet"
    )
    (row,) = [line.split(",") for line in compared.splitlines() if "reordered" in line]
    names = compared.splitlines()[0].split(",")
    yield "p", f"{float(row[names.index('p')]):.2f}"
    yield "difference", f"{float(row[names.index('difference')]):.2f}".replace("-", "−")
