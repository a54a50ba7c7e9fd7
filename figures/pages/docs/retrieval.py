"""docs/retrieval.md: the kinds of steps, and retrieval on Vaswani."""

import json
from collections.abc import Mapping
from dataclasses import Field
from pathlib import Path
from typing import Any

from figures.declare import DATA, ENCODER, MODEL, Shown, figure
from figures.running import Run
from figures.tables import table

from ragworth.retrieval import STEPS
from ragworth.retrieval.contract import format_value
from ragworth.tasks.options import options_of

PLACES = {"first": "first", "behind": "behind another", "either": "both"}
STEMMED = 'bm25(stopwords="english", stemmer="english") % 1000'
BM25 = (
    "bm25 % 1000",
    "bm25(k1=0.9, b=0.4) % 1000",
    'bm25(stopwords="english") % 1000',
    'bm25(stemmer="porter") % 1000',
    'bm25(stopwords="english", stemmer="porter") % 1000',
    STEMMED,
)
WORKSPACE = """\
k = 1000

[collection]
queries = "queries.jsonl"
passages = "passages.jsonl"
qrels = "qrels.txt"

[systems]
{systems}

[metrics]
use = ["nDCG@10", "AP"]
"""
HYBRIDS = {
    "bm25": f"`{STEMMED}`",
    "dense": "`dense % 1000`",
    "hybrid-rrf": "both, `fused`, `rrf`",
    "hybrid-minmax": "both, `weighted`, `minmax`",
    "hybrid-z": "both, `weighted`, `z`",
    "hybrid-mmr": '… `minmax`, re-ranked by `mmr(0.7, by="embedded", depth=100)`',
    "hybrid-useful": "… `minmax`, re-ranked by `useful(depth=20)`",
    "bm25-likelihood": 'BM25, re-ranked by `pointwise(by="likelihood", model="embedded:base", depth=20)`',
}
"""What the page calls the runs of benchmarks/retrieval.py."""


@figure("ragworth.retrieval.STEPS, in Python", seconds=1)
def steps(run: Run) -> Shown:
    kinds = [(f"`{kind.kind}`", kind.title, PLACES[kind.place], ", ".join(kind.needs) or "–") for kind in STEPS]
    yield "kinds", str(table(("kind", "what it gives", "stands", "needs"), kinds, "llll"))
    settings = [
        (f"`{kind.kind}`", f"`{each.name}`", f"`{format_value(each.default)}`", takes(each), each.metadata["help"])
        for kind in STEPS
        for each in options_of(kind)
    ]
    yield "settings", str(table(("kind", "setting", "default", "may be", "meaning"), settings, "lllll"))


def takes(each: Field[Any]) -> str:
    """What a setting may be."""
    low, high, choices = (each.metadata[name] for name in ("low", "high", "choices"))
    if choices:
        return ", ".join(choices)
    if isinstance(each.default, bool | str):
        return "true, false" if isinstance(each.default, bool) else "a text"
    number = "a whole number" if isinstance(each.default, int) else "a number"
    if low is None and high is None:
        return number
    return f"{number}, {low:g} or more" if high is None else f"{number} from {low:g} to {high:g}"


def scored(run: Run, name: str, pipelines: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """Mean nDCG@10 and AP of pipelines on Vaswani, by system."""
    folder = vaswani(run, name, pipelines)
    said = json.loads(run.output(f"ragworth evaluate {folder} --json --quiet"))
    return {
        each["system"]: {metric: mean["mean"] for metric, mean in each["metrics"].items()} for each in said["systems"]
    }


def vaswani(run: Run, name: str, pipelines: Mapping[str, str]) -> Path:
    """A workspace of the collection with these systems."""
    source, folder = run.workspace("vaswani"), run.work / name
    folder.mkdir(exist_ok=True)
    for file in ("queries.jsonl", "passages.jsonl", "qrels.txt"):
        (folder / file).write_bytes((source / file).read_bytes())
    systems = "\n".join(f"{system} = '{pipeline}'" for system, pipeline in pipelines.items())
    (folder / "ragworth.toml").write_text(WORKSPACE.format(systems=systems), encoding="utf-8")
    return folder


@figure(
    "ragworth evaluate, on benchmarks/workspaces.py vaswani with the pipelines of the table", seconds=60, needs=DATA
)
def bm25(run: Run) -> Shown:
    found = scored(run, "vaswani-bm25", {f"s{number}": pipeline for number, pipeline in enumerate(BM25)})
    means = [found[f"s{number}"] for number in range(len(BM25))]
    rows = [
        (f"`{line}`", f"{mean['nDCG@10']:.3f}", f"{mean['AP']:.3f}") for line, mean in zip(BM25, means, strict=True)
    ]
    yield "", str(table(("pipeline", "nDCG@10", "AP"), rows, "lll"))
    yield "gain", f"{means[-1]['nDCG@10'] - means[0]['nDCG@10']:.2f}"
    yield "porter", f"{means[-2]['AP']:.4f}"


@figure(
    "python benchmarks/retrieval.py --vaswani work; ragworth compare work/*.run -m nDCG@10 -m AP -b bm25",
    seconds=3600,
    needs=(DATA, MODEL, ENCODER),
)
def hybrid(run: Run) -> Shown:
    run.output("python benchmarks/retrieval.py --vaswani {work}/vaswani-runs")
    folder, qrels = run.work / "vaswani-runs", run.workspace("vaswani") / "qrels.txt"
    runs = " ".join(str(folder / f"{name}.run") for name in HYBRIDS)
    options = f"-q {qrels} -m nDCG@10 -m AP {runs} --quiet -f json"
    said = json.loads(run.output(f"ragworth compare -b bm25 {options}"))
    means = {(row["metric"], row["system"]): row["mean"] for row in json.loads(run.output(f"ragworth score {options}"))}
    apart = {(row["metric"], row["system"]): row for row in said["differences"]}
    rows = [
        (title, *cells("nDCG@10", system, means, apart), *cells("AP", system, means, apart))
        for system, title in HYBRIDS.items()
    ]
    head = ("system", "nDCG@10", "difference", "p", "AP", "difference", "p")
    yield "systems", str(table(head, rows, "lrrrrrr"))
    ann = scored(run, "vaswani-ann", {"ann": 'dense(search="ann") % 1000'})["ann"]
    for metric, name in (("nDCG@10", "ndcg"), ("AP", "ap")):
        yield f"ann-{name}", f"{ann[metric]:.3f}"
        yield f"dense-{name}", f"{means[metric, 'dense']:.3f}"


def cells(
    metric: str, system: str, means: Mapping[tuple[str, str], float], apart: Mapping[tuple[str, str], Mapping[str, Any]]
) -> tuple[str, str, str]:
    """Mean, difference from the baseline, and p after Holm's correction."""
    row = apart.get((metric, system))
    mean = f"{means[metric, system]:.3f}"
    if row is None:
        return mean, "–", "–"
    p = row["p_holm"]
    return mean, f"{row['difference']:+.3f}".replace("-", "−"), f"{p:.3f}" if p >= 0.001 else f"{p:.4f}"
