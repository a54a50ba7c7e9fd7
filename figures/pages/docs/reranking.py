"""docs/reranking.md: re-rankers on NovelEval."""

from figures.declare import DATA, MODEL, Shown, figure
from figures.running import Run
from figures.tables import Table, tables

FOLDER = "{work}/noveleval"


@figure(
    "python benchmarks/rerankers.py work/noveleval; ragworth evaluate work/noveleval; "
    "python benchmarks/rerankers.py work/noveleval --table",
    seconds=2 * 3600,
    needs=(DATA, MODEL),
)
def noveleval(run: Run) -> Shown:
    run.output(f"python benchmarks/rerankers.py {FOLDER}")
    run.output(f"ragworth evaluate {FOLDER} --quiet {run.pick('', '--limit 2')}")
    (found,) = tables(run.output(f"python benchmarks/rerankers.py {FOLDER} --table"))
    yield "", str(ordered(found)).replace("-0.", "−0.")


def ordered(found: Table) -> Table:
    """BM25 first, the oracle last, the others by nDCG@10."""
    place = found.head.index("nDCG@10")
    first, last = (next(row for row in found.rows if row[0] == name) for name in ("bm25", "oracle"))
    others = sorted((row for row in found.rows if row not in (first, last)), key=lambda row: -float(row[place]))
    return Table(found.head, found.rule, (first, *others, last))
