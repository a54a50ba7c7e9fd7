"""docs/papers/recall.md: measures for narrow and wide contexts, on ARAGOG's answers."""

from figures.declare import DATA, Shown, figure
from figures.demo import evaluated
from figures.papers import planted_table
from figures.running import Run
from figures.studies import spanned, study
from figures.tables import table

METRICS = ("F", "T", "T_u", "nDCG(ideal=retrieved)", "P", "R")


@figure(
    r"ragworth study top-k work/aragog/results --outcome f1 --least 50 --same '__(top_k|chunk_size)=\d+'",
    seconds=200,
    needs=DATA,
)
def segments(run: Run) -> Shown:
    folder = run.workspace("aragog")
    evaluated(run, folder)
    wanted = " ".join(f"-m '{name}'" for name in METRICS)
    same = r"'__(top_k|chunk_size)=\d+'"
    options = run.pick("", "--resamples 100")
    found = study(run, f"top-k {folder}/results --outcome f1 --least 50 --same {same} {wanted} {options}")
    first = found.tables["correlations"][0]["system"]
    told = {
        (row["metric"], row["K/N_p"]): spanned(row, "correlation")
        for row in found.tables["correlations"]
        if row["system"] == first
    }
    rows = [(name, told[name, "narrow"], told[name, "wide"]) for name in METRICS]
    yield "table", str(table(("measure", "narrow (K < N_p)", "wide (K ≥ N_p)"), rows, "lll"))
    best = [
        (row["K/N_p"], row["metric"], f"{row['best α']:g}", f"{row['in-sample']:.3f}", spanned(row, "cross-validated"))
        for row in found.tables["alpha"]
        if row["system"] == first and row["best α"] is not None and row["cross-validated"] is not None
    ]
    yield "alpha", str(table(("contexts", "measure", "best α", "ρ in-sample", "ρ cross-validated"), best, "llrrl"))


@figure("python benchmarks/planted.py top-k", seconds=20)
def planted(run: Run) -> Shown:
    yield "", planted_table(run, "top-k")
