"""Planning, deduplication and pooling of ragworth build as the corpus grows: CPU time, and memory beyond the input.

    python -m benchmarks.build_scale [10000 20000 …] [--stage cluster …]

Each stage of each size runs in a process of its own, on invented documents, questions and runs. Memory is the peak of
the stage less what the process had before it (Linux only).
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from ragworth.build.clusters import Clusters
from ragworth.build.near_duplicates import minhash_pairs, vector_pairs
from ragworth.build.pooling import estimate_relevant, pool_contexts, unjudged_items
from ragworth.build.questions.build import prepare_corpus
from ragworth.build.questions.plan import QuestionPlan, plan_clusters, plan_slots
from ragworth.retrieval.documents import Documents
from ragworth.tables import Contexts, Judgments

SIZES = (10_000, 50_000, 100_000)
WORDS = [
    f"{a}{b}{c}" for a in ("mar", "vel", "dun", "quo", "sor") for b in ("ta", "li", "no", "re") for c in ("ck", "sh")
]
SYSTEMS, DEPTH = 4, 100


def texts(number: int) -> list[str]:
    draw = random.Random(0)
    return [" ".join(draw.choices(WORDS, k=60)) for _ in range(number)]


def documents(number: int) -> pl.DataFrame:
    return pl.DataFrame({"document": [f"d{n}" for n in range(number)], "title": [""] * number, "text": texts(number)})


def cluster(number: int) -> Callable[[], object]:
    frame = documents(number)
    return lambda: plan_clusters(frame, 0)


def plan(number: int) -> Callable[[], object]:
    frame = documents(number)
    passages = pl.DataFrame({"passage": frame["document"], "document": frame["document"]})
    clusters = Clusters([n % 8 for n in range(number)], [f"c{n}" for n in range(8)])
    return lambda: plan_slots(QuestionPlan(questions=number // 10), frame, passages, clusters)


def corpus(number: int) -> Callable[[], object]:
    given = Documents(documents(number))
    return lambda: prepare_corpus(given, QuestionPlan(questions=100))


def wording(number: int) -> Callable[[], object]:
    questions = [text[:70] + str(n) for n, text in enumerate(texts(number))]
    return lambda: sum(1 for _ in minhash_pairs(questions))


def meaning(number: int) -> Callable[[], object]:
    """Vectors as the encoder's cache keeps them, with a near-duplicate of every hundredth question."""
    path = Path(tempfile.mkdtemp()) / "vectors.npy"
    stored = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(number, 384))
    draw = np.random.default_rng(0)
    for start in range(0, number, 1000):
        block = draw.standard_normal((min(1000, number - start), 384), dtype=np.float32)
        block[1::100] = block[::100] + 0.1 * block[1::100]
        stored[start : start + len(block)] = block / np.linalg.norm(block, axis=1, keepdims=True)
    stored.flush()
    del stored
    vectors = np.load(path, mmap_mode="r")
    return lambda: sum(1 for _ in vector_pairs(vectors, 0.92))


def pooling(number: int) -> Callable[[], object]:
    """Four systems over as many documents, a hundred passages a query, a tenth of the pairs judged."""
    queries, chance = number // DEPTH, np.random.default_rng(0)
    query = np.repeat(np.arange(queries), DEPTH)
    parts = []
    for system in range(SYSTEMS):
        # The systems share documents of a query's neighbourhood, in different orders.
        near = np.concatenate([chance.permutation(DEPTH * 2)[:DEPTH] for _ in range(queries)])
        ranks = np.tile(np.arange(1, DEPTH + 1), queries)
        frame = pl.DataFrame({"query": query, "passage": (query * DEPTH + near) % number, "rank": ranks})
        parts.append(
            frame.with_columns(pl.lit(f"s{system}").alias("system"), pl.col("query", "passage").cast(pl.String))
        )
    contexts = Contexts(pl.concat(parts))
    pairs = pool_contexts(contexts, DEPTH).frame
    few = Judgments(pairs.gather_every(10).select("query", "passage", pl.lit(1.0).alias("value")))
    every = Judgments(pairs.select("query", "passage", (pl.col("rank") % 3 == 0).cast(pl.Float64).alias("value")))

    def work() -> None:
        pool = pool_contexts(contexts, DEPTH)
        items = unjudged_items(pool, few)
        counts = estimate_relevant(pool, contexts, every)
        assert counts.height == queries and len(items) < pool.frame.height

    return work


STAGES = {each.__name__: each for each in (cluster, plan, corpus, wording, meaning, pooling)}


def measure(stage: str, number: int) -> None:
    work = STAGES[stage](number)
    before = _memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again
    start = time.process_time()
    work()
    seconds = time.process_time() - start
    peak = _memory("VmHWM") - before
    print(f"| {stage} | {number:,} | {seconds:.1f} | {peak:.0f} |", flush=True)


def _memory(name: str) -> float:
    """A number of ``/proc/self/status``, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES)
    parser.add_argument("--stage", action="append", choices=tuple(STAGES))
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        measure(given.stage[0], given.sizes[0])
        return
    print("| stage | documents | CPU seconds | MB more |", "| --- | ---: | ---: | ---: |", sep="\n", flush=True)
    for stage in given.stage or STAGES:
        for number in given.sizes:
            command = [sys.executable, "-m", "benchmarks.build_scale", "--one", str(number), "--stage", stage]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
