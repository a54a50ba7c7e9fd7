"""docs/judgments.md: how well judgments of the base model tell passages with the answer from others."""

from figures.declare import DATA, MODEL, Shown, figure
from figures.running import Run
from figures.tables import Table, table

SETS = ("RGB", "HotpotQA", "MuSiQue", "ARAGOG")


@figure(
    "python benchmarks/judgments.py --model embedded:base --questions 60 --skip 20",
    seconds=3 * 3600,
    needs=(DATA, MODEL),
)
def base(run: Run) -> Shown:
    some = run.pick("--questions 60 --skip 20", "--questions 3 --skip 20 --each 1")
    found = run.table(f"python benchmarks/judgments.py --model embedded:base {some} --store {{work}}/judgments.sqlite")
    yield "auc", str(by_set(found, "AUC"))
    yield "win-rate", str(by_set(found, "win rate within questions"))


def by_set(found: Table, column: str) -> Table:
    """A row for each judgment, a column for each set."""
    cells = {(row[1], row[0]): row[found.head.index(column)] for row in found.rows}
    kinds = list(dict.fromkeys(row[1] for row in found.rows))
    rows = [(title(kind), *(ends(cells[kind, name]) for name in SETS)) for kind in kinds]
    return table(("judgment", *SETS), rows, "lllll")


def title(kind: str) -> str:
    name, _, graded = kind.partition(", ")
    return f"{name} `--graded`" if graded else name


def ends(cell: str) -> str:
    """0.5 [0.4, 0.6] as 0.5 (0.4–0.6)."""
    return cell.replace(" [", " (").replace(", ", "–").replace("]", ")")
