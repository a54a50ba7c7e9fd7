"""docs/howto/judge-on-a-budget.md: what a cheap judge saves, in simulation."""

from figures.declare import Shown, figure
from figures.running import Run


@figure("python benchmarks/budget.py --trials 2000", seconds=300)
def simulated(run: Run) -> Shown:
    some = run.pick("--trials 2000", "--trials 10 --queries 3000")
    yield "", str(run.table(f"python benchmarks/budget.py {some}"))
