"""docs/learning.md: how many queries it takes to learn weights, in simulation."""

from figures.declare import Shown, figure
from figures.running import Run


@figure("python benchmarks/learning.py", seconds=600)
def simulated(run: Run) -> Shown:
    some = run.pick("", "--queries 12 13 14 15 16 --seeds 1")
    yield "", str(run.table(f"python benchmarks/learning.py {some}"))
