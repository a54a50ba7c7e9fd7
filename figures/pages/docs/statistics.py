"""docs/statistics.md: how well intervals and tests hold, in simulation."""

from figures.declare import CLOCK, Shown, figure
from figures.running import Run
from figures.tables import Table, table

MEASURES = {"pearson": "Pearson", "spearman": "Spearman", "kendall": "Kendall τ-b", "kendall-c": "Kendall τ-c"}


def simulated_by(run: Run, sections: str, trials: int, resamples: int) -> list[Table]:
    """The tables of benchmarks/coverage.py for these sections."""
    some = run.pick(f"--trials {trials} --resamples {resamples}", "--trials 8 --resamples 100")
    return run.tables(f"python benchmarks/coverage.py {sections} {some}")


@figure("python benchmarks/coverage.py means tests predicted --trials 1600 --resamples 600", seconds=3600)
def simulated(run: Run) -> Shown:
    means, tests, predicted = simulated_by(run, "means tests predicted", 1600, 600)
    yield "means", str(means)
    yield "tests", str(tests.where(lambda row: row["test"] != "bounded").aligned("llrrr"))
    yield "predicted", str(predicted)


@figure("python benchmarks/coverage.py rare --trials 1000 --resamples 400", seconds=600)
def rare(run: Run) -> Shown:
    (found,) = simulated_by(run, "rare", 1000, 400)
    yield "", str(found)


@figure("python benchmarks/coverage.py shares", seconds=3)
def shares(run: Run) -> Shown:
    found = run.table("python benchmarks/coverage.py shares")
    yield "", str(found.renamed("n", "least coverage (%)", "mean coverage (%)").aligned("rrr"))


@figure("python benchmarks/coverage.py unequal --trials 400 --resamples 400", seconds=300)
def unequal(run: Run) -> Shown:
    (found,) = simulated_by(run, "unequal", 400, 400)
    yield "", str(found)


@figure("python benchmarks/coverage.py power --trials 1000 --resamples 400", seconds=300)
def power(run: Run) -> Shown:
    (found,) = simulated_by(run, "power", 1000, 400)
    yield "", str(found)


@figure(
    "python benchmarks/coverage.py pooled --trials 1000 --resamples 500; … within --trials 1600 --resamples 600",
    seconds=4 * 3600,
)
def correlations(run: Run) -> Shown:
    (pooled,) = simulated_by(run, "pooled", 1000, 500)
    (within,) = simulated_by(run, "within", 1600, 600)
    rows = [
        (form, MEASURES[measure], contexts, "yes" if ties == "ties" else "no", *cells)
        for form, part in (("pooled", pooled), ("within", within))
        for measure, contexts, ties, *cells in part.rows
    ]
    yield "", str(table(("form", *pooled.head), rows, "llrlrrr"))


@figure("python benchmarks/noise.py", seconds=600)
def noise(run: Run) -> Shown:
    yield "", str(run.table(f"python benchmarks/noise.py {run.pick('', '--noise 2 --planted 1')}"))


@figure("python benchmarks/coverage.py many", seconds=30, needs=CLOCK)
def many(run: Run) -> Shown:
    means, differences = run.table("python benchmarks/coverage.py many").column("processor seconds")
    # The version that resampled 100,000 queries is gone; its times stay as they were measured.
    rows = [
        ("means with intervals (2,000 resamples)", "14.6", means),
        ("differences with intervals and randomisation tests (10,000 resamples)", "75.8", differences),
    ]
    yield "", str(table(("", "100,000 queries, resampled", "1,000,000 queries, the limit"), rows, "lrr"))


@figure("python benchmarks/coverage.py large", seconds=30)
def limit(run: Run) -> Shown:
    yield "", str(run.table("python benchmarks/coverage.py large"))


@figure("python benchmarks/coverage.py speed", seconds=60, needs=CLOCK)
def speed(run: Run) -> Shown:
    found = run.table("python benchmarks/coverage.py speed").only("of", "processor seconds")
    rows = [
        (name.replace("queries × 20", "queries × 20 metrics"), seconds)
        for name, seconds in found.rows
        if "1,000,000" not in name
    ]
    yield "", str(table(found.head, rows, "lr"))
