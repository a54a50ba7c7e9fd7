"""Scoring a large run: time and memory against other tools.

    python benchmarks/scoring.py            # all tools that are installed, medians of 3
    python benchmarks/scoring.py --only pytrec_eval --only "ragworth score, the command"
    python benchmarks/scoring.py --commands --before old/src   # score, compare and their start, also of another version

Each measurement is a fresh process, from its start to its end: imports, reading both files, scoring, means. The command
(``ragworth score``) computes bootstrap intervals and prints besides, which the others do not.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

HERE = Path(__file__).parent
DATA = HERE / "data"
METRICS = ["nDCG@10", "AP", "RR@10", "P@10", "R@100"]
QUERIES, DEPTH = 6980, 1000


def make(queries: int) -> tuple[Path, Path]:
    """A run of ``queries`` × 1,000 passages with string ids, about 38 bytes a line, and sparse qrels."""
    run, qrels = DATA / f"run-{queries}.txt", DATA / f"qrels-{queries}.txt"
    if run.exists() and qrels.exists():
        return run, qrels
    DATA.mkdir(exist_ok=True)
    rng = np.random.default_rng(7)
    names = rng.choice(9_000_000, queries, replace=False) + 1_000_000
    with run.open("w") as out, qrels.open("w") as judged:
        for query in names:
            passages = rng.choice(8_841_823, DEPTH, replace=False)
            scores = np.sort(rng.gamma(4, 3, DEPTH))[::-1]
            rows = zip(passages, scores, strict=True)
            out.writelines(f"{query} Q0 {p} {r} {s:.6f} bench\n" for r, (p, s) in enumerate(rows, 1))
            relevant = {int(passages[min(int(rng.geometric(0.02)), DEPTH - 1)]), int(rng.integers(8_841_823))}
            judged.writelines(f"{query} 0 {p} {rng.integers(1, 4)}\n" for p in sorted(relevant))
    return run, qrels


def make_with_parquet(queries: int) -> tuple[Path, Path]:
    """The same, with a Parquet file of the run beside it."""
    run, qrels = make(queries)
    if not run.with_suffix(".parquet").exists():
        import ragworth

        ragworth.write(ragworth.read_contexts(run), run.with_suffix(".parquet"))
    return run, qrels


def ragworth_text(run: str, qrels: str) -> dict[str, float]:
    import ragworth

    scores = ragworth.score(ragworth.read_contexts(run), ragworth.read_judgments(qrels), METRICS)
    means = scores.frame.select("metric", "value").group_by("metric").mean()
    return dict(means.iter_rows())


def ragworth_parquet(run: str, qrels: str) -> dict[str, float]:
    return ragworth_text(str(Path(run).with_suffix(".parquet")), qrels)


def with_pytrec_eval(run: str, qrels: str) -> dict[str, float]:
    import pytrec_eval

    with Path(run).open() as r, Path(qrels).open() as q:
        judged, ranked = pytrec_eval.parse_qrel(q), pytrec_eval.parse_run(r)
    wanted = {"nDCG@10": "ndcg_cut_10", "AP": "map", "RR@10": "recip_rank", "P@10": "P_10", "R@100": "recall_100"}
    evaluator = pytrec_eval.RelevanceEvaluator(judged, {"ndcg_cut.10", "map", "recip_rank", "P.10", "recall.100"})
    rows = list(evaluator.evaluate(ranked).values())
    means = {ours: statistics.fmean(row[theirs] for row in rows) for ours, theirs in wanted.items()}
    # It has no cutoff for the reciprocal rank.
    first = [row["recip_rank"] for row in rows]
    return means | {"RR@10": statistics.fmean(rr if rr >= 0.1 else 0.0 for rr in first)}


def with_ir_measures(run: str, qrels: str) -> dict[str, float]:
    import ir_measures

    measures = {name: ir_measures.parse_measure(name) for name in METRICS}
    judged, ranked = ir_measures.read_trec_qrels(qrels), ir_measures.read_trec_run(run)
    values = ir_measures.calc_aggregate(list(measures.values()), judged, ranked)
    return {name: values[measure] for name, measure in measures.items()}


def with_ranx(run: str, qrels: str) -> dict[str, float]:
    from ranx import Qrels, Run, evaluate

    names = {"nDCG@10": "ndcg@10", "AP": "map", "RR@10": "mrr@10", "P@10": "precision@10", "R@100": "recall@100"}
    judged, ranked = Qrels.from_file(qrels, kind="trec"), Run.from_file(run, kind="trec")
    values = evaluate(judged, ranked, list(names.values()))
    return {ours: float(values[theirs]) for ours, theirs in names.items()}


def with_trec_eval(run: str, qrels: str) -> dict[str, float]:
    measures = ["-m", "ndcg_cut.10", "-m", "map", "-m", "recip_rank", "-m", "P.10", "-m", "recall.100"]
    out = subprocess.run(["trec_eval", *measures, qrels, run], capture_output=True, text=True, check=True).stdout
    values = {line.split()[0]: float(line.split()[2]) for line in out.splitlines()}
    names = {"nDCG@10": "ndcg_cut_10", "AP": "map", "P@10": "P_10", "R@100": "recall_100"}
    return {ours: values[theirs] for ours, theirs in names.items()}


COMMAND = "ragworth score, the command"
"""A process of its own, and not a function that another one calls."""


def with_command(run: str, qrels: str) -> list[str]:
    """The command line that gives means and intervals as JSON."""
    metrics = [part for metric in METRICS for part in ("-m", metric)]
    return [sys.executable, "-m", "ragworth", "score", "-q", qrels, *metrics, run, "-f", "json"]


TOOLS: dict[str, tuple[Callable[[str, str], dict[str, float]], Callable[[], bool]]] = {
    "ragworth, from text": (ragworth_text, lambda: True),
    "ragworth, from Parquet": (ragworth_parquet, lambda: True),
    COMMAND: (ragworth_text, lambda: True),
    "pytrec_eval": (with_pytrec_eval, lambda: find_spec("pytrec_eval") is not None),
    "ir_measures": (with_ir_measures, lambda: bool(find_spec("ir_measures") and find_spec("pytrec_eval"))),
    "ranx": (with_ranx, lambda: find_spec("ranx") is not None),
    "trec_eval": (with_trec_eval, lambda: shutil.which("trec_eval") is not None),
}


class Measured(NamedTuple):
    """One fresh process: seconds by the clock and of the processor, peak megabytes, and means of the metrics."""

    seconds: float
    cpu: float
    peak: float
    means: dict[str, float]


def measure(tool: str, run: Path, qrels: Path) -> Measured:
    """Run a tool from the start of its process to the end."""
    command = [sys.executable, __file__, "--child", tool, str(run), str(qrels)]
    if tool == COMMAND:
        command = with_command(str(run), str(qrels))
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        out = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - start
    if child.returncode:
        raise SystemExit(f"{tool} failed with {child.returncode}")
    found = json.loads(out) if tool == COMMAND else json.loads(out.splitlines()[-1])
    means = {row["metric"]: row["mean"] for row in found} if tool == COMMAND else found
    return Measured(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3, means)


def side_by_side(repeats: int, only: list[str], queries: int) -> None:
    """All tools in turn, so that a slow minute of the machine hits all of them; ``only`` those named, if any are."""
    run, qrels = make_with_parquet(queries)
    asked = [tool for tool in TOOLS if not only or tool in only or tool == next(iter(TOOLS))]
    there = [tool for tool in asked if TOOLS[tool][1]()]
    results: dict[str, list[Measured]] = {tool: [] for tool in there}
    for _ in range(repeats):
        for tool in there:
            results[tool].append(measure(tool, run, qrels))
    ours = results[there[0]]
    size = run.stat().st_size / 1e6
    what = f"{queries:,} queries × {DEPTH:,} passages, {size:.0f} MB of text"
    print(f"{what}, medians of {repeats}; {platform.machine()}\n")
    print("| tool | seconds | × ragworth from text | CPU seconds | peak MB | largest deviation of a mean |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for tool in there:
        seconds = statistics.median(each.seconds for each in results[tool])
        # In each round the tools run one after the other; a slow minute of the machine hits both sides of a ratio.
        ratio = statistics.median(each.seconds / mine.seconds for each, mine in zip(results[tool], ours, strict=True))
        cpu = statistics.median(each.cpu for each in results[tool])
        peak = max(each.peak for each in results[tool])
        off = max(abs(value - ours[0].means[name]) for name, value in results[tool][0].means.items())
        print(f"| {tool} | {seconds:.2f} | {ratio:.1f} | {cpu:.2f} | {peak:.0f} | {off:.0e} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", action="append", default=[], choices=list(TOOLS), help="this tool, beside ours")
    parser.add_argument("--queries", type=int, default=QUERIES, help=f"of {DEPTH:,} passages each")
    parser.add_argument("--commands", action="store_true", help="the commands score and compare, and their start")
    parser.add_argument("--before", type=Path, metavar="SRC", help="another version's src folder, for --commands")
    parser.add_argument("--child", nargs=3, metavar=("TOOL", "RUN", "QRELS"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        tool, run, qrels = given.child
        print(json.dumps(TOOLS[tool][0](run, qrels)))
    elif given.commands:
        sys.path.insert(0, str(HERE.parent))
        from benchmarks.scoring_commands import measure_commands

        measure_commands(*make_with_parquet(given.queries), given.before, given.repeats)
    else:
        side_by_side(given.repeats, given.only, given.queries)


if __name__ == "__main__":
    main()
