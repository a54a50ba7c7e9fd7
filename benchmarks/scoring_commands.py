"""The commands ``score`` and ``compare`` and their start, against trec_eval and against another version of ragworth.

Run by ``python benchmarks/scoring.py --commands [--before SRC]``, where SRC is the ``src`` folder of the other version,
such as that of ``git worktree add old COMMIT``. Commands check their input, compute intervals and print. Each is a
fresh process, and all take turns. CPU seconds are those of all threads, from the kernel.
"""

from __future__ import annotations

import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

SCORING = Path(__file__).with_name("scoring.py")
METRICS = ("nDCG@10", "AP", "RR@10", "P@10", "R@100")
MEASURES = ("ndcg_cut.10", "map", "recip_rank", "P.10", "recall.100")
SMALL_RUNS, SMALL_QUERIES, SMALL_DEPTH = 20, 1000, 100


class Cost(NamedTuple):
    """Seconds by the clock and of the processor, and peak megabytes."""

    clock: float
    cpu: float
    peak: float


class Task(NamedTuple):
    """Something to do, and the processes that each program needs for it, one after the other."""

    name: str
    program: str
    commands: Sequence[Sequence[str]]
    source: Path | None = None
    """The ``src`` folder of another version of ragworth."""


def run_task(task: Task) -> Cost:
    """Run the processes of a task from start to end."""
    environment = os.environ | ({} if task.source is None else {"PYTHONPATH": str(task.source.resolve())})
    begin, cpu, peak = time.perf_counter(), 0.0, 0.0
    for command in task.commands:
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment) as child:
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise SystemExit(f"{task.program} failed with {child.returncode}: {task.name}")
        cpu, peak = cpu + usage.ru_utime + usage.ru_stime, max(peak, usage.ru_maxrss / 1e3)
    return Cost(time.perf_counter() - begin, cpu, peak)


def make_variants(run: Path) -> dict[str, Path]:
    """The run with its rows shuffled, with tabs, and with line ends of Windows."""
    made = {name: run.with_name(f"{run.stem}-{name}.txt") for name in ("shuffled", "tabs", "CRLF")}
    if not all(path.exists() for path in made.values()):
        text = run.read_bytes()
        made["tabs"].write_bytes(text.replace(b" ", b"\t"))
        made["CRLF"].write_bytes(text.replace(b"\n", b"\r\n"))
        lines = text.splitlines(keepends=True)
        order = np.random.default_rng(7).permutation(len(lines))
        made["shuffled"].write_bytes(b"".join(lines[at] for at in order))
    return made


def make_small(folder: Path) -> tuple[list[Path], Path]:
    """Twenty runs of 1,000 queries × 100 passages, and qrels with eight passages for each query."""
    runs, qrels = [folder / f"run{i:02}.txt" for i in range(SMALL_RUNS)], folder / "qrels.txt"
    if qrels.exists():
        return runs, qrels
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(11)
    names = [f"q{name}" for name in rng.choice(90_000, SMALL_QUERIES, replace=False) + 10_000]
    pools = [rng.choice(8_841_823, 4 * SMALL_DEPTH, replace=False) for _ in names]
    for i, path in enumerate(runs):
        with path.open("w") as out:
            for query, pool in zip(names, pools, strict=True):
                scores = rng.gamma(4, 3, len(pool))
                scores[:8] += i / 4
                best = np.argsort(-scores)[:SMALL_DEPTH]
                out.writelines(f"{query} Q0 {pool[at]} {r} {scores[at]:.6f} s\n" for r, at in enumerate(best, 1))
    with qrels.open("w") as out:
        for query, pool in zip(names, pools, strict=True):
            out.writelines(f"{query} 0 {passage} {rng.integers(1, 4)}\n" for passage in pool[:8])
    return runs, qrels


def ragworth(command: str, qrels: Path, runs: Sequence[Path], *more: str) -> list[list[str]]:
    given = [*(part for metric in METRICS for part in ("-m", metric)), "-f", "json", *more]
    return [[sys.executable, "-m", "ragworth", command, "-q", str(qrels), *given, *map(str, runs)]]


def pytrec_eval(qrels: Path, runs: Sequence[Path]) -> list[list[str]]:
    return [[sys.executable, str(SCORING), "--child", "pytrec_eval", str(run), str(qrels)] for run in runs]


def trec_eval(qrels: Path, runs: Sequence[Path]) -> list[list[str]]:
    measures = [part for measure in MEASURES for part in ("-m", measure)]
    return [["trec_eval", *measures, str(qrels), str(run)] for run in runs]


def list_tasks(run: Path, qrels: Path, before: Path | None) -> Iterator[Task]:
    """All tasks, with those of one name next to each other."""
    peers: dict[str, Callable[[Path, Sequence[Path]], list[list[str]]]] = {"pytrec_eval": pytrec_eval}
    peers |= {"trec_eval": trec_eval} if shutil.which("trec_eval") else {}
    small, labels = make_small(run.parent / "small")
    with ProcessPoolExecutor(1) as other:  # the kernel counts the memory of a parent as that of its children
        variants = other.submit(make_variants, run).result()
    large, twenty = "score, from text", f"score, {SMALL_RUNS} small runs"
    packed = run.with_suffix(".parquet")
    start = [sys.executable, "-m", "ragworth"]
    commands = {
        large: ragworth("score", qrels, [run]),
        "score, from Parquet": ragworth("score", qrels, [packed]),
        "score, from text, 100 resamples": ragworth("score", qrels, [run], "--resamples", "100"),
        **{f"score, {name}": ragworth("score", qrels, [path]) for name, path in variants.items()},
        twenty: ragworth("score", labels, small),
        f"compare, {SMALL_RUNS} small runs": ragworth("compare", labels, small),
        "start: --version": [[*start, "--version"]],
        "start: score --help": [[*start, "score", "--help"]],
    }
    for name, given in commands.items():
        yield Task(name, "now", given)
        if before is not None:
            yield Task(name, "before", given, before)
        for peer, make in peers.items() if name in (large, twenty) else ():
            yield Task(name, peer, make(*((qrels, [run]) if name == large else (labels, small))))


def measure_commands(run: Path, qrels: Path, before: Path | None, repeats: int) -> None:
    """Print medians of all tasks, and ratios to this version in the same round."""
    tasks = list(list_tasks(run, qrels, before))
    costs: dict[tuple[str, str], list[Cost]] = {(task.name, task.program): [] for task in tasks}
    for _ in range(repeats):
        for task in tasks:
            costs[task.name, task.program].append(run_task(task))
    print(f"medians of {repeats}; {platform.machine()}, {os.cpu_count()} cores\n")
    print("| command | program | seconds | × now | CPU seconds | × now | peak MB |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for (name, program), found in costs.items():
        now = costs[name, "now"]
        cells = []
        for side in ("clock", "cpu"):
            mine, theirs = [getattr(cost, side) for cost in now], [getattr(cost, side) for cost in found]
            ratios = [their / my for my, their in zip(mine, theirs, strict=True)]
            cells += [f"{statistics.median(theirs):.2f}", f"{statistics.median(ratios):.1f}"]
        print(f"| {name} | {program} | {' | '.join(cells)} | {max(c.peak for c in found):.0f} |")
