"""What the store costs: a second run over 100,000 answered calls, and where its time goes.

A warm run renders nothing and asks nothing: it computes keys, reads SQLite, and reads and checks the answers. The same
rows read by SQLite alone, without looking at them, are the floor. All times but the first run's are CPU time.

    python benchmarks/calls.py
"""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ragworth.calls.job import Job
from ragworth.calls.serialization import call_key, model_digest
from ragworth.calls.store import KEYS_PER_LOOKUP, Store
from ragworth.calls.stored_answers import read_answer
from ragworth.llm.contract import Choose, Prompt
from ragworth.llm.scripted import Scripted

SYSTEM = "Use nothing but the document. If it does not hold the answer, say NO-RESPONSE. " * 2


def requests(number: int) -> list[Choose]:
    """Prompts of about 1,000 characters, all different."""
    words = "lorem ipsum dolor sit amet consectetur adipiscing elit sed do " * 13
    return [
        Choose(Prompt.chat(f"Document {i}: {words}\n\nQuestion: what is {i}?", SYSTEM), ("NO-RESPONSE", "YES"))
        for i in range(number)
    ]


def timed(work: Callable[[], Any], times: int) -> float:
    """Median seconds."""
    return statistics.median(spent(work) for _ in range(times))


def spent(work: Callable[[], Any]) -> float:
    """Seconds of CPU."""
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


def consume(items: Any) -> None:
    deque(items, maxlen=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=5)
    given = parser.parse_args()
    asked = requests(given.calls)
    model = Scripted({"*": {"NO-RESPONSE": 0.31234567, "YES": 0.4512345}}, batch=256)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "calls.sqlite"
        start = time.perf_counter()
        consume(Job(model, path).run(asked))
        cold = time.perf_counter() - start
        with Store(path) as store:
            digest = model_digest(model.card)
            keys = [call_key(digest, request) for request in asked]
            texts = dict(store.look_up(keys))
            warm = timed(lambda: consume(Job(model, store).run(asked)), given.times)
            lines = [
                ("keys of all requests", timed(lambda: [call_key(digest, r) for r in asked], given.times)),
                ("SQLite alone, same rows", timed(lambda: _read(store, keys), given.times)),
                ("answers read and checked", timed(lambda: _check(texts, keys, asked), given.times)),
            ]
        size = path.stat().st_size / 1e6
    print(
        f"{given.calls:,} calls; store of {size:.0f} MB; first run {cold:.1f} s ({given.calls / cold:,.0f} calls/s)\n"
    )
    print("| part of a warm run | CPU seconds | share |\n| --- | --- | --- |")
    for name, seconds in [*lines, ("the whole warm run", warm)]:
        print(f"| {name} | {seconds:.2f} | {seconds / warm:.0%} |")
    print(f"\n{given.calls / warm:,.0f} calls/s")


def _check(texts: dict[bytes, str], keys: list[bytes], asked: list[Choose]) -> None:
    for key, request in zip(keys, asked, strict=True):
        read_answer("choose", texts[key], request)


def _read(store: Store, keys: list[bytes]) -> None:
    for start in range(0, len(keys), KEYS_PER_LOOKUP):
        part = keys[start : start + KEYS_PER_LOOKUP]
        store.query(f"SELECT key, kind, response FROM answers WHERE key IN ({','.join('?' * len(part))})", part)


if __name__ == "__main__":
    main()
