"""examples/demo/README.md: what the embedded reader makes of the demo."""

from figures.declare import MODEL, Shown, figure
from figures.demo import Evaluated, demo
from figures.running import Run

ORDER = ("oracle", "bm25", "reordered", "random", "adversary")


def listed(found: Evaluated, grade: str) -> str:
    """74, 38, 24, 6 and 0 %"""
    shares = [found.share(system, grade).removesuffix(" %") for system in ORDER]
    return f"{', '.join(shares[:-1])} and {shares[-1]} %"


@figure("ragworth evaluate examples/demo", seconds=240, needs=MODEL)
def first(run: Run) -> Shown:
    found = demo(run)
    yield "correct", listed(found, "correct")
    yield "wrong", listed(found, "wrong")
    yield "asked", str(sum(stage.get("calls", 0) + stage.get("stored", 0) for stage in found.stages.values()))


@figure("ragworth evaluate examples/demo --all", seconds=330, needs=MODEL)
def every(run: Run) -> Shown:
    found = demo(run, "--all")
    yield "correct", listed(found, "correct")
    yield "wrong", listed(found, "wrong")
