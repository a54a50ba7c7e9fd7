"""Planning, deduplication and pooling of ragworth build as the corpus grows: CPU time, and memory beyond the input.

    python -m benchmarks.build_scale [10000 20000 …] [--stage cluster …]

Each stage of each size runs in a process of its own, on invented documents, questions and runs that another one wrote.
Memory is the peak of the stage, with what it returns, less what the process had before it (Linux only).
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

from ragworth.build.checks.run import CheckSettings
from ragworth.build.clusters import Clusters
from ragworth.build.near_duplicates import minhash_pairs, vector_pairs
from ragworth.build.pooling import estimate_relevant, pool_contexts, unjudged_items
from ragworth.build.questions.build import BuildJobs, BuildSettings, build_questions, prepare_corpus
from ragworth.build.questions.plan import QuestionPlan, plan_clusters, plan_slots
from ragworth.retrieval.documents import Documents
from ragworth.tables import Contexts, Judgments

SIZES = (10_000, 50_000, 100_000)
WORDS = [
    f"{a}{b}{c}" for a in ("mar", "vel", "dun", "quo", "sor") for b in ("ta", "li", "no", "re") for c in ("ck", "sh")
]
SYSTEMS, DEPTH = 4, 100


def prepare(number: int, folder: Path) -> None:
    """Write the input of all stages."""
    draw = random.Random(0)
    texts = [" ".join(draw.choices(WORDS, k=60)) for _ in range(number)]
    frame = pl.DataFrame({"document": [f"d{n}" for n in range(number)], "title": [""] * number, "text": texts})
    frame.write_parquet(folder / "documents.parquet")
    fact = pl.format(
        "The mill of Town{} was built in 1820 by Ann Oake. Words: {}.", pl.int_range(pl.len()), pl.col("text")
    )
    mills = frame.with_columns(fact.alias("text"), pl.format("Mill {}", pl.int_range(pl.len())).alias("title"))
    mills.write_parquet(folder / "mills.parquet")
    (folder / "questions.txt").write_text("\n".join(text[:70] + str(n) for n, text in enumerate(texts)))
    _write_vectors(number, folder / "vectors.npy")
    contexts = _contexts(number)
    contexts.frame.write_parquet(folder / "contexts.parquet")
    pairs = pool_contexts(contexts, DEPTH).frame
    value = (pl.col("rank") % 3 == 0).cast(pl.Float64).alias("value")
    Judgments(pairs.select("query", "passage", value)).frame.write_parquet(folder / "judgments.parquet")


def _write_vectors(number: int, path: Path) -> None:
    """Vectors as the encoder's cache keeps them, with a near-duplicate of every hundredth question."""
    stored = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(number, 384))
    draw = np.random.default_rng(0)
    for start in range(0, number, 1000):
        block = draw.standard_normal((min(1000, number - start), 384), dtype=np.float32)
        block[1::100] = block[::100] + 0.1 * block[1::100]
        stored[start : start + len(block)] = block / np.linalg.norm(block, axis=1, keepdims=True)
    stored.flush()


def _contexts(number: int) -> Contexts:
    """Four systems over as many documents, a hundred passages a query."""
    queries, chance = number // DEPTH, np.random.default_rng(0)
    query = np.repeat(np.arange(queries), DEPTH)
    ranks = np.tile(np.arange(1, DEPTH + 1), queries)
    parts = []
    for system in range(SYSTEMS):
        # The systems share documents of a query's neighbourhood, in different orders.
        near = np.concatenate([chance.permutation(DEPTH * 2)[:DEPTH] for _ in range(queries)])
        frame = pl.DataFrame({"query": query, "passage": (query * DEPTH + near) % number, "rank": ranks})
        parts.append(
            frame.with_columns(pl.lit(f"s{system}").alias("system"), pl.col("query", "passage").cast(pl.String))
        )
    return Contexts(pl.concat(parts))


def cluster(folder: Path) -> Callable[[], object]:
    frame = pl.read_parquet(folder / "documents.parquet")
    return lambda: plan_clusters(frame, 0)


def plan(folder: Path) -> Callable[[], object]:
    frame = pl.read_parquet(folder / "documents.parquet", columns=["document"])
    passages = pl.DataFrame({"passage": frame["document"], "document": frame["document"]})
    clusters = Clusters([n % 8 for n in range(frame.height)], [f"c{n}" for n in range(8)])
    return lambda: plan_slots(QuestionPlan(questions=frame.height // 10), frame, passages, clusters)


def corpus(folder: Path) -> Callable[[], object]:
    """All of it, with the table of passages, which is as large as the documents."""
    given = Documents(pl.read_parquet(folder / "documents.parquet"))
    return lambda: prepare_corpus(given, QuestionPlan(questions=100))


def build(folder: Path) -> Callable[[], object]:
    """All of ``ragworth build questions`` but reading and writing files: rules write 20 questions, and nobody reads."""
    given = Documents(pl.read_parquet(folder / "mills.parquet"))
    settings = BuildSettings(QuestionPlan(questions=20).for_rules(), CheckSettings(encoder="none"))

    def work() -> object:
        built = build_questions(prepare_corpus(given, settings.plan), settings, BuildJobs())
        if not built.drafts.kept or built.checks.contexts is None:
            raise RuntimeError("no question was kept, so nothing was retrieved and this measures no build")
        return built

    return work


def wording(folder: Path) -> Callable[[], object]:
    questions = (folder / "questions.txt").read_text().splitlines()
    return lambda: sum(1 for _ in minhash_pairs(questions))


def meaning(folder: Path) -> Callable[[], object]:
    vectors = np.load(folder / "vectors.npy", mmap_mode="r")
    return lambda: sum(1 for _ in vector_pairs(vectors, 0.92))


def pool(folder: Path) -> Callable[[], object]:
    contexts = Contexts.trusted(pl.read_parquet(folder / "contexts.parquet"))
    return lambda: pool_contexts(contexts, DEPTH)


def unjudged(folder: Path) -> Callable[[], object]:
    """Nine tenths of the pairs are unjudged."""
    pooled = pool_contexts(Contexts.trusted(pl.read_parquet(folder / "contexts.parquet")), DEPTH)
    few = Judgments.trusted(pl.read_parquet(folder / "judgments.parquet").gather_every(10))
    return lambda: unjudged_items(pooled, few)


def estimate(folder: Path) -> Callable[[], object]:
    contexts = Contexts.trusted(pl.read_parquet(folder / "contexts.parquet"))
    pooled, labels = pool_contexts(contexts, DEPTH), Judgments.trusted(pl.read_parquet(folder / "judgments.parquet"))
    return lambda: estimate_relevant(pooled, contexts, labels)


STAGES = {each.__name__: each for each in (cluster, plan, corpus, build, wording, meaning, pool, unjudged, estimate)}


def measure(stage: str, folder: Path) -> None:
    work = STAGES[stage](folder)
    before = _memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again
    start = time.process_time()
    found = work()
    seconds = time.process_time() - start
    print(f"| {seconds:.1f} | {_memory('VmHWM') - before:.0f} |", flush=True)
    del found


def _memory(name: str) -> float:
    """A number of ``/proc/self/status``, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES)
    parser.add_argument("--stage", action="append", choices=tuple(STAGES))
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.folder is not None:
        measure(given.stage[0], given.folder) if given.stage else prepare(given.sizes[0], given.folder)
        return
    print("| documents | stage | CPU seconds | MB more |", "| ---: | --- | ---: | ---: |", sep="\n", flush=True)
    for number in given.sizes:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "benchmarks.build_scale", str(number), "--folder", folder]
            subprocess.run(command, check=True)
            for stage in given.stage or STAGES:
                print(f"| {number:,} | {stage} ", end="", flush=True)
                subprocess.run([*command, "--stage", stage], check=True)


if __name__ == "__main__":
    main()
