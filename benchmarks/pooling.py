"""Pooling at scale: time and peak memory of pooling runs and finding what is unjudged, for growing numbers of passages.

Each size runs in a process of its own. Twice the passages should take twice the time, and memory should grow no faster
than the tables themselves.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

SIZES = (12_500, 25_000, 50_000, 100_000)
SYSTEMS, DEPTH = 4, 100


def measure(documents: int) -> None:
    """Pool four systems over as many documents, a hundred passages a query, a tenth of the pairs judged."""
    import numpy as np
    import polars as pl

    from ragworth import Contexts, Judgments
    from ragworth.build.pooling import estimate_relevant, pool_contexts, unjudged_items

    queries = documents // DEPTH
    chance = np.random.default_rng(0)
    query = np.repeat(np.arange(queries), DEPTH)
    parts = []
    for system in range(SYSTEMS):
        # The systems share documents of a query's neighbourhood, in different orders.
        shown = (
            query * DEPTH + np.concatenate([chance.permutation(DEPTH * 2)[:DEPTH] for _ in range(queries)])
        ) % documents
        columns = {
            "system": f"s{system}",
            "query": query,
            "passage": shown,
            "rank": np.tile(np.arange(1, DEPTH + 1), queries),
        }
        frame = pl.DataFrame({name: value for name, value in columns.items() if name != "system"})
        parts.append(
            frame.with_columns(pl.lit(f"s{system}").alias("system"), pl.col("query", "passage").cast(pl.String))
        )
    contexts = Contexts(pl.concat(parts))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    start = time.process_time()
    pool = pool_contexts(contexts, DEPTH)
    labels = pool.frame.with_columns(value=pl.lit(1.0)).gather_every(10)
    items = unjudged_items(pool, Judgments(labels.select("query", "passage", "value")))
    every = Judgments(pool.frame.select("query", "passage", (pl.col("rank") % 3 == 0).cast(pl.Float64).alias("value")))
    counts = estimate_relevant(pool, contexts, every)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    row = (f"{documents:,}", f"{pool.frame.height:,}", f"{len(items):,}", f"{seconds:.2f}", f"{peak - before:.0f}")
    assert counts.height == queries
    print("| " + " | ".join(row) + " |")


def main() -> None:
    print("| documents | pooled pairs | unjudged | CPU seconds | MB more than the runs |")
    print("| ---: | ---: | ---: | ---: | ---: |", flush=True)
    for size in SIZES:
        subprocess.run([sys.executable, __file__, str(size)], check=True)


if __name__ == "__main__":
    measure(int(sys.argv[1])) if len(sys.argv) > 1 else main()
