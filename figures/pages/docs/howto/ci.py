"""docs/howto/ci.md: what a comparison prints."""

from figures.declare import Shown, figure
from figures.running import ROOT, Run

COMMAND = "ragworth compare --qrels qrels.txt -j abstention.csv -m nDCG@5 -m UDCG@5"
RUNS = ("bm25", "dense", "rerank")


@figure(f"{COMMAND} bm25.run dense.run rerank.run, on the files of examples/scoring", seconds=3)
def comparison(run: Run) -> Shown:
    runs = " ".join(f"runs/{name}.run" for name in RUNS)
    output = run.output(f"{COMMAND} {runs} --quiet", cwd=ROOT / "examples" / "scoring")
    (found,) = [part for part in output.split("\n\n") if part.partition("\n")[0].split()[2:3] == ["difference"]]
    yield "", f"```\n{found.strip()}\n```"
