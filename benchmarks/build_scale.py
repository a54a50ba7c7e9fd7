"""Planning and deduplication of ragworth build as the corpus grows: time and peak memory.

    python -m benchmarks.build_scale [10000 20000 …]

Each size runs in a process of its own, on invented documents and questions.
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import polars as pl

from ragworth.build.clusters import cluster_documents
from ragworth.build.near_duplicates import minhash_pairs, vector_pairs
from ragworth.build.questions.plan import QuestionPlan, plan_slots

SIZES = (10_000, 20_000, 50_000, 100_000)
WORDS = [
    f"{a}{b}{c}" for a in ("mar", "vel", "dun", "quo", "sor") for b in ("ta", "li", "no", "re") for c in ("ck", "sh")
]


def documents(number: int) -> pl.DataFrame:
    draw = random.Random(0)
    texts = [" ".join(draw.choices(WORDS, k=60)) for _ in range(number)]
    return pl.DataFrame({"document": [f"d{n}" for n in range(number)], "title": [""] * number, "text": texts})


def timed(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def measure(number: int) -> None:
    frame = documents(number)
    texts = frame["text"].to_list()
    before = _peak()
    clusters = cluster_documents(texts, seed=0)
    cluster_seconds = timed(lambda: cluster_documents(texts, seed=0))
    passages = pl.DataFrame({"passage": frame["document"], "document": frame["document"]})
    plan = QuestionPlan(questions=number // 10)
    plan_seconds = timed(lambda: plan_slots(plan, frame, passages, clusters))
    questions = [text[:70] + str(n) for n, text in enumerate(texts)]
    wording = timed(lambda: sum(1 for _ in minhash_pairs(questions)))
    vectors = np.random.default_rng(0).standard_normal((number, 384), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    meaning = timed(lambda: sum(1 for _ in vector_pairs(vectors, 0.92)))
    megabytes = _peak() - before
    print(
        f"| {number:,} | {cluster_seconds:.1f} | {plan_seconds:.1f} | {wording:.1f} | {meaning:.1f} | {megabytes:.0f} |"
    )


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        measure(int(sys.argv[2]))
        return
    print("| documents, questions | cluster s | plan s | duplicates by wording s | by meaning s | MB more |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for number in [int(each) for each in sys.argv[1:]] or SIZES:
        subprocess.run([sys.executable, "-m", "benchmarks.build_scale", "--one", str(number)], check=True)


if __name__ == "__main__":
    main()
