"""First stages on synthetic passages, side by side with the libraries used directly.

    python benchmarks/retrieval.py                      # 50,000, 150,000 and 500,000 passages, 1,000 queries
    python benchmarks/retrieval.py --sizes 20000 60000 --queries 200
    RAGWORTH_DATA=FOLDER python benchmarks/retrieval.py --vaswani work
    ragworth compare work/*.run --qrels FOLDER/vaswani/qrels.gz -m nDCG@10 -m AP -b bm25

The last two make runs of first stages and re-rankers on Vaswani, some of which ask the embedded models, and compare
them.

Passages are some 60 words out of a vocabulary with Zipf's frequencies; queries are five of them. For dense search the
vectors are drawn (384 numbers, length 1, in a thousand groups), because encoding costs the same whoever searches.
Each way runs in a process of its own, from making the index to the last query; seconds and the peak of memory are
those of the whole process. Both take the 100 best passages. Whether they are the same is checked: by scores for BM25,
since bm25s breaks ties at will, by passages for dense search.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

if sys.path[0] == str(Path(__file__).resolve().parent):
    # Run as a script: our coverage.py must not stand for the package of that name.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

WIDTH, GROUPS, DEPTH, WORDS = 384, 1000, 100, 100_000
SIZES = (50_000, 150_000, 500_000)
Timed = tuple[dict[str, float], Any]
"""Seconds of each part, and for each query the scores or the passages found."""


def texts(count: int, low: int, high: int, seed: int) -> list[str]:
    """Texts of random words: frequent ones often."""
    chance = np.random.default_rng(seed)
    shares = 1 / np.arange(1, WORDS + 1)
    words = np.array([f"w{number}" for number in range(WORDS)])
    lengths = chance.integers(low, high + 1, size=count)
    drawn = words[chance.choice(WORDS, size=int(lengths.sum()), p=shares / shares.sum())]
    ends = np.cumsum(lengths)
    return [" ".join(drawn[end - length : end]) for end, length in zip(ends, lengths, strict=True)]


def points(count: int, seed: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Vectors of length 1 in groups."""
    middle = np.random.default_rng(0).normal(size=(GROUPS, WIDTH)).astype(np.float32)
    chance = np.random.default_rng(seed)
    made = middle[chance.integers(GROUPS, size=count)]
    for low in range(0, count, 50_000):
        part = made[low : low + 50_000]
        part += chance.standard_normal(part.shape, dtype=np.float32)
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return made


def prepare(folder: Path, size: int, queries: int) -> None:
    """The files that all ways read."""
    (folder / "texts.json").write_text(json.dumps([texts(size, 40, 80, 1), texts(queries, 5, 5, 2)]))
    np.save(folder / "points.npy", points(size, 3))
    np.save(folder / "asked.npy", points(queries, 4))


def timed(parts: dict[str, float], name: str, work: Callable[[], Any]) -> Any:
    begun = time.perf_counter()
    made = work()
    parts[name] = time.perf_counter() - begun
    return made


def ragworth_bm25(folder: Path) -> Timed:
    from ragworth.collection import Collection
    from ragworth.retrieval import StepContext
    from ragworth.retrieval.steps.bm25 import Bm25

    passages, queries = json.loads((folder / "texts.json").read_text())
    collection = Collection.of(
        queries={"query": [f"q{n:06}" for n in range(len(queries))], "text": queries},
        passages={"passage": [f"p{n:07}" for n in range(len(passages))], "text": passages},
    )
    parts: dict[str, float] = {}
    context, step = StepContext.of(collection, cache=folder / "cache"), Bm25()
    timed(parts, "index", lambda: step.index(collection.passages, context.cache))
    found = timed(parts, "search", lambda: step.apply(None, context)).frame
    return parts, [list(part["score"]) for _, part in found.group_by("query", maintain_order=True)]


def direct_bm25(folder: Path) -> Timed:
    import bm25s

    passages, queries = json.loads((folder / "texts.json").read_text())
    parts: dict[str, float] = {}

    def index() -> Any:
        made = bm25s.BM25(k1=1.2, b=0.75, method="lucene", dtype="float64")
        made.index(bm25s.tokenize(passages, stopwords=None, show_progress=False), show_progress=False)
        made.save(folder / "direct")
        return made

    made = timed(parts, "index", index)

    def search() -> Any:
        asked = bm25s.tokenize(queries, stopwords=None, show_progress=False)
        return made.retrieve(asked, k=DEPTH, show_progress=False).scores

    return parts, timed(parts, "search", search).tolist()


def ragworth_dense(folder: Path) -> Timed:
    from ragworth.retrieval.encoders.exact_search import MAX_UNIT_LENGTH, search_exact

    vectors, asked = np.load(folder / "points.npy", mmap_mode="r"), np.load(folder / "asked.npy")
    parts: dict[str, float] = {}
    places = np.arange(len(vectors))
    found = timed(parts, "search", lambda: search_exact(vectors, asked, places, DEPTH, MAX_UNIT_LENGTH))
    return parts, [sorted(each.rows.tolist()) for each in found]


def direct_dense(folder: Path) -> Timed:
    import faiss

    vectors, asked = np.load(folder / "points.npy"), np.load(folder / "asked.npy")
    parts: dict[str, float] = {}
    made = faiss.IndexFlatIP(WIDTH)
    timed(parts, "index", lambda: made.add(vectors))
    _, rows = timed(parts, "search", lambda: made.search(asked, DEPTH))
    return parts, [sorted(row) for row in rows.tolist()]


WAYS: dict[str, Callable[[Path], Timed]] = {
    "ragworth bm25": ragworth_bm25,
    "bm25s": direct_bm25,
    "ragworth dense": ragworth_dense,
    "faiss IndexFlatIP": direct_dense,
}


def measured(way: str, folder: Path) -> dict[str, Any]:
    """A way in a process of its own."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, __file__, "--way", way, "--folder", str(folder)], check=True)
    said: dict[str, Any] = json.loads((folder / "said.json").read_text())
    return said | {"whole": time.perf_counter() - begun}


def run(way: str, folder: Path) -> None:
    parts, found = WAYS[way](folder)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    (folder / "said.json").write_text(json.dumps({"parts": parts, "found": found, "peak": peak}))


def same(ours: list[list[float]], theirs: list[list[float]]) -> float:
    """The share of what the other way finds that ours finds too; scores are equal to five digits."""
    pairs = zip(ours, theirs, strict=True)
    hits = [
        len({round(x, 5) for x in a} & {round(x, 5) for x in b}) / max(1, len({round(x, 5) for x in b}))
        for a, b in pairs
    ]
    return float(np.mean(hits))


STEMMED = 'bm25(stopwords="english", stemmer="english")'
HYBRID = f'fused({STEMMED} % 1000, dense % 1000, method="weighted") % 1000'

SYSTEMS = {
    "bm25": f"{STEMMED} % 1000",
    "dense": "dense % 1000",
    "hybrid-rrf": f"fused({STEMMED} % 1000, dense % 1000) % 1000",
    "hybrid-minmax": HYBRID,
    "hybrid-z": f'fused({STEMMED} % 1000, dense % 1000, method="weighted", scale="z") % 1000',
    "hybrid-mmr": f'{HYBRID} >> mmr(0.7, by="embedded", depth=100)',
    "hybrid-useful": f"{HYBRID} >> useful(depth=20)",
    "bm25-likelihood": f'{STEMMED} % 1000 >> pointwise(by="likelihood", model="embedded:base", depth=20)',
}


def vaswani(data: Path, folder: Path) -> None:
    """Runs of first stages and re-rankers on 11,429 abstracts and 93 queries; what was killed goes on where it was."""
    from ragworth.collection import Collection
    from ragworth.formats import write
    from ragworth.retrieval import StepContext, retrieve

    def read(name: str, form: str) -> dict[str, str]:
        with gzip.open(data / name, "rt", encoding="utf-8") as stream:
            return dict(re.findall(form, stream.read(), re.S))

    passages = read("doc-text.trec.gz", r"<DOCNO>\s*(\S+?)\s*</DOCNO>(.*?)</DOC>")
    queries = read("query-text.trec.gz", r"<num>\s*(\S+?)\s*</num>\s*<title>(.*?)</title>")
    collection = Collection.of(
        queries={"query": list(queries), "text": list(queries.values())},
        passages={"passage": list(passages), "text": list(passages.values())},
    )

    def told(what: str, done: int, total: int) -> None:
        print(f"{what}: {done:,} of {total:,}", file=sys.stderr, flush=True)

    folder.mkdir(parents=True, exist_ok=True)
    context = StepContext.of(collection, cache=folder / "cache", store=folder / "calls.sqlite", progress=told)
    made = retrieve(SYSTEMS, context)
    for name in SYSTEMS:
        write(made.only(name), folder / f"{name}.run")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--way", choices=list(WAYS))
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--vaswani", type=Path, help="folder for runs")
    given = parser.parse_args()
    if given.vaswani:
        vaswani(Path(os.environ["RAGWORTH_DATA"]) / "vaswani", given.vaswani)
        return
    if given.way:
        run(given.way, given.folder)
        return
    print("| passages | way | index s | search s | whole s | peak MB | × the library | same |")
    print("| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for size in given.sizes:
        with tempfile.TemporaryDirectory() as folder:
            prepare(Path(folder), size, given.queries)
            for ours, theirs in (("ragworth bm25", "bm25s"), ("ragworth dense", "faiss IndexFlatIP")):
                other, own = measured(theirs, Path(folder)), measured(ours, Path(folder))
                spent = {way: sum(said["parts"].values()) for way, said in ((ours, own), (theirs, other))}
                for way, said in ((ours, own), (theirs, other)):
                    cells = [f"{said['parts'].get(part, 0):.2f}" for part in ("index", "search")]
                    ratio, share = f"{spent[way] / spent[theirs]:.2f}", f"{same(own['found'], other['found']):.4f}"
                    rest = [f"{said['whole']:.1f}", f"{said['peak']:,.0f}", ratio, share if way == ours else "–"]
                    print(f"| {size:,} | {way} | {' | '.join([*cells, *rest])} |", flush=True)


if __name__ == "__main__":
    main()
