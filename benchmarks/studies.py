"""How long a whole alignment study takes where judgments and answers are given.

    python benchmarks/studies.py

Makes 500 queries × 10 contexts of 5 passages with judgments and grades, and runs ``ragworth study alignment`` on them
with 15 metrics, in a process of its own: scores, correlations within queries, 2,000 resamples, differences, figures and
the page. Then the same with 10,000 resamples.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

import ragworth
from ragworth.results import Results
from ragworth.tables import Contexts, Judgments, Outcomes, Scores

QUERIES, CONTEXTS, K, DEPTH = 500, 10, 5, 25
METRICS = (
    *("UDCG@5", "UDCG(gamma=0)@5", "Utility@5", "Distraction@5", "nDCG@5", "P@5", "R@5", "RR@5", "AP@5", "Success@5"),
    *("F@5", "T@5", "T_u@5", "F1@5"),
)


def results() -> Results:
    """Contexts whose answers depend on the utilities of their passages, with noise."""
    draw = np.random.default_rng(0)
    relevant = draw.random((QUERIES, DEPTH)) < 0.15
    declines = np.where(relevant, draw.beta(2, 4, relevant.shape), draw.beta(4, 2, relevant.shape))
    rows, grades = [], []
    for query in range(QUERIES):
        for context in range(CONTEXTS):
            shown = draw.choice(DEPTH, K, replace=False)
            rows += [(f"c{context:02d}", f"q{query}", rank, f"q{query}p{p}", None) for rank, p in enumerate(shown, 1)]
            sure = 1 - declines[query, shown]
            total = np.where(relevant[query, shown], sure, -sure / 3).sum() + draw.normal(0, 0.3)
            value = 1.0 if total > 0.4 else -1.0 if total < -0.4 else 0.0
            grades.append((f"c{context:02d}", f"q{query}", "grade", value, "ok", "made up"))
    judged = []
    for query in range(QUERIES):
        for p in range(DEPTH):
            judged.append((f"q{query}", f"q{query}p{p}", "relevance", float(relevant[query, p]), "ok", "made up"))
            judged.append((f"q{query}", f"q{query}p{p}", "abstention", float(declines[query, p]), "ok", "made up"))
    return Results(
        ragworth.Collection(),
        Contexts.trusted(pl.DataFrame(rows, schema=Contexts.schema, orient="row")),
        Judgments.trusted(pl.DataFrame(judged, schema=Judgments.schema, orient="row")),
        None,
        None,
        Outcomes.trusted(pl.DataFrame(grades, schema=Outcomes.schema, orient="row")),
        Scores.trusted(pl.DataFrame(schema=Scores.schema)),
        manifest={"title": f"{QUERIES} queries"},
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "results"
        results().write(place)
        for resamples in (2000, 10_000):
            options = [option for metric in METRICS for option in ("-m", metric)]
            command = [
                sys.executable,
                "-m",
                "ragworth",
                "study",
                "alignment",
                str(place),
                "--resamples",
                str(resamples),
            ]
            begun = time.monotonic()
            made = subprocess.run([*command, *options, "--quiet"], check=True, capture_output=True, text=True)
            print(f"{resamples:,} resamples: {time.monotonic() - begun:.1f} s")
        print(made.stdout.splitlines()[-3])


if __name__ == "__main__":
    main()
