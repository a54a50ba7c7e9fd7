"""docs/prompts.md: what attacks in passages do with and without fences."""

import re

from figures.declare import MODEL, Shown, figure
from figures.running import Run
from figures.tables import table


@figure("python benchmarks/injections.py embedded:base", seconds=900, needs=MODEL)
def attacks(run: Run) -> Shown:
    command = "python benchmarks/injections.py embedded:base"
    plain, fenced = run.tables(command)
    rows = [(a[0], a[1], b[1]) for a, b in zip(plain.rows, fenced.rows, strict=True)]
    yield "table", str(table(("attack", "plain", "fenced"), rows, "lrr"))
    right = re.findall(r"without an attack: (\d+) of", run.output(command))
    yield "right-plain", right[0]
    yield "right-fenced", right[1]
