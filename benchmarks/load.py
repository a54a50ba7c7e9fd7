"""A large workspace through every command that asks no model: CPU seconds and peak memory of each.

    python benchmarks/load.py                    # 10⁴ and 10⁵ queries
    python benchmarks/load.py 1000000            # 10⁶ queries: about 3 GB of files
    python benchmarks/load.py 10000 --only check # one command
    python benchmarks/load.py 10000 --digests    # also print a digest of every table in the results folder

Each query has ten passages from each of two systems, about half of them the same. Queries and passages are JSONL, runs
and qrels are TREC files, and abstention is given for every pair in a Parquet file, so no model is asked. Each command
runs in a fresh process. CPU seconds and peak memory are those of the process and its children, from the kernel.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
import polars as pl

Ints = npt.NDArray[np.int64]

DATA = Path(__file__).parent / "data" / "load"
DEPTH = 10
SIZES = (10_000, 100_000)
BATCH = 50_000
"""Queries made at a time."""
METRICS = ("UDCG@10", "Distraction@10", "nDCG@10", "P@10", "R@10", "RR@10")
WORDS = ("archive", "bridge", "canal", "delta", "ember", "fjord", "garden", "harbour", "island", "jetty")

TOML = f"""\
title = "Load"
k = {DEPTH}

[collection]
queries = "queries.jsonl"
passages = "passages.jsonl"
qrels = "qrels.txt"

[systems]
first = {{ run = "first.txt" }}
second = {{ run = "second.txt" }}

[judgments]
files = "abstention.parquet"
"""


def make(folder: Path, queries: int) -> None:
    """Write a workspace: equal sizes give equal files."""
    if (folder / "ragworth.toml").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    names = ("queries.jsonl", "passages.jsonl", "qrels.txt", "first.txt", "second.txt")
    with ExitStack() as stack:
        files = {name: stack.enter_context((folder / name).open("wb")) for name in names}
        parts = []
        for number, low in enumerate(range(0, queries, BATCH)):
            rows = np.arange(low, min(low + BATCH, queries))
            parts.append(folder / f"part-{number:04}.parquet")
            _write_batch(files, parts[-1], rows, 2 * queries, np.random.default_rng([7, number]))
    pl.scan_parquet(parts).sink_parquet(folder / "abstention.parquet")
    for part in parts:
        part.unlink()
    (folder / "ragworth.toml").write_text(TOML, encoding="utf-8")


def _write_batch(
    files: Mapping[str, IO[bytes]], judged: Path, rows: Ints, passages: int, rng: np.random.Generator
) -> None:
    """The lines of some queries: 16 candidates each, of which both systems show ten."""
    start, step = rng.integers(passages, size=len(rows)), rng.integers(1, passages // 16, size=len(rows))
    candidates = (start[:, None] + step[:, None] * np.arange(16)) % passages  # distinct within a query
    ids = np.arange(2 * rows[0], 2 * rows[-1] + 2)
    texts = {"queries.jsonl": (_ids("q", rows), 3, rows), "passages.jsonl": (_ids("p", ids), 12, ids)}
    for name, (keys, length, numbers) in texts.items():
        frame = pl.DataFrame({"_id": keys, "text": [_words(int(number), length) for number in numbers]})
        frame.write_ndjson(files[name])
    relevant = candidates[:, [0, 7]]
    _write_rows(files["qrels.txt"], _ids("q", rows.repeat(2)), "0", _ids("p", relevant.ravel()), "1")
    queries = _ids("q", rows.repeat(DEPTH))
    ranks = pl.Series(np.tile(np.arange(1, DEPTH + 1), len(rows)))
    for system, low in (("first", 0), ("second", 6)):
        shown = _ids("p", rng.permuted(candidates[:, low : low + DEPTH], axis=1).ravel())
        scores = pl.Series(np.sort(rng.gamma(4, 3, (len(rows), DEPTH)), axis=1)[:, ::-1].ravel()).round(6)
        _write_rows(files[f"{system}.txt"], queries, "Q0", shown, ranks, scores, system)
    pairs = {"query": _ids("q", rows.repeat(16)), "passage": _ids("p", candidates.ravel())}
    values = rng.beta(0.5, 0.5, candidates.size)
    pl.DataFrame(pairs).with_columns(aspect=pl.lit("abstention"), value=values).write_parquet(judged)


def _ids(letter: str, numbers: Ints) -> pl.Series:
    return letter + pl.Series(numbers).cast(pl.String).str.zfill(7)


def _write_rows(stream: IO[bytes], *columns: pl.Series | str) -> None:
    """Columns with a space between them; a text is the same in every row."""
    frame = pl.select([pl.lit(column).alias(f"{i}") for i, column in enumerate(columns)])
    frame.write_csv(stream, include_header=False, separator=" ", quote_style="never")


def _words(number: int, length: int) -> str:
    return " ".join(WORDS[(number >> shift) % len(WORDS)] for shift in range(length))


def commands(folder: Path) -> dict[str, list[str]]:
    metrics = [part for metric in METRICS for part in ("-m", metric)]
    files = ["-q", "qrels.txt", "-j", "abstention.parquet", "first.txt", "second.txt"]
    return {
        "check": ["check", "."],
        "score": ["score", *metrics, *files],
        "compare": ["compare", *metrics, *files],
        "evaluate": ["evaluate", "."],
    }


CHILD = """\
import json, resource, subprocess, sys, time
start = time.perf_counter()
with open("out.txt", "wb") as out:
    code = subprocess.call(sys.argv[1:], stdout=out, stderr=subprocess.STDOUT)
spent = resource.getrusage(resource.RUSAGE_CHILDREN)
cpu, peak = spent.ru_utime + spent.ru_stime, spent.ru_maxrss / 1024
print(json.dumps({"code": code, "cpu": cpu, "seconds": time.perf_counter() - start, "peak_mb": peak}))
"""
"""Starts a command. It is small, because a new process inherits the peak of the one that starts it."""


def measure(command: list[str], folder: Path) -> dict[str, float]:
    """Exit code, CPU seconds, seconds and peak megabytes of one command in a fresh process."""
    run = [sys.executable, "-c", "from ragworth.cli import main; main()", *command]
    told = subprocess.run([sys.executable, "-S", "-c", CHILD, *run], cwd=folder, capture_output=True, check=True)
    return dict(json.loads(told.stdout))


def digests(results: Path) -> Iterator[tuple[str, str]]:
    """A digest of every table's content, for comparing two versions of the program."""
    for path in sorted(results.rglob("*.parquet")):
        frame = pl.read_parquet(path)
        content = hashlib.sha256(repr(frame.schema).encode())
        for low in range(0, frame.height, 1 << 18):
            content.update(frame.slice(low, 1 << 18).write_csv(float_precision=17).encode())
        yield str(path.relative_to(results)), content.hexdigest()[:16]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("queries", type=int, nargs="*", default=SIZES, help="sizes of the workspace")
    parser.add_argument("--only", action="append", help="a command to run; repeat for more")
    parser.add_argument("--folder", type=Path, default=DATA, help="where workspaces are made")
    parser.add_argument("--digests", action="store_true", help="print digests of the results")
    given = parser.parse_args()
    print("| queries | command | CPU s | s | peak MB |\n| ---: | --- | ---: | ---: | ---: |", flush=True)
    for queries in given.queries:
        folder = given.folder / str(queries)
        make(folder, queries)
        for name, command in commands(folder).items():
            if given.only and name not in given.only:
                continue
            cost = measure(command, folder)
            if cost["code"]:
                sys.exit(f"{name} failed:\n" + (folder / "out.txt").read_text()[-2000:])
            row = f"| {queries:,} | `{name}` | {cost['cpu']:.1f} | {cost['seconds']:.1f} | {cost['peak_mb']:,.0f} |"
            print(row, flush=True)
        if given.digests:
            for file, digest in digests(folder / "results"):
                print(f"{file}: {digest}")


if __name__ == "__main__":
    main()
