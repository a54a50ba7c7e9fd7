"""How many queries it takes to learn UDCG's weights: the table of docs/learning.md.

    python benchmarks/learning.py
    python benchmarks/learning.py --queries 20 50 --seeds 3

Outcomes of simulated contexts follow known weights, with noise. Weights are learned from them and compared with the
true ones; the figures are means over seeds.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

if sys.path[0] == str(Path(__file__).resolve().parent):
    # Run as a script: our coverage.py must not stand for the package of that name.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from tests.fitting.samples import ALPHA, BETA, cosine, world

from ragworth.fitting import fit

NOISE = (0.5, 2.0)
FIGURES = ("in_sample", "held_out", "udcg")


def row(noise: float, queries: int, seeds: int) -> str:
    """A line of the table."""
    values, gains = [], 0
    for seed in range(seeds):
        made = world(queries, noise=noise, seed=seed)
        theta = fit(made.contexts, made.judgments, made.outcomes, 5)
        near = cosine(theta.alpha + theta.beta, ALPHA + BETA)
        values.append([near, *(theta.figures[name]["value"] for name in FIGURES)])
        gains += theta.figures["gain"]["low"] > 0
    means = " | ".join(f"{mean:.2f}" for mean in np.mean(values, axis=0))
    return f"| {noise:.1f} | {queries} | {means} | {gains} of {seeds} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, nargs="+", default=[20, 50, 100, 200, 500])
    parser.add_argument("--seeds", type=int, default=10, help="half as many for 500 queries and more")
    given = parser.parse_args()
    print("| noise | queries | cosine | in-sample | held out | UDCG@5 | clear gain |\n|" + " ---: |" * 7)
    for noise in NOISE:
        for queries in given.queries:
            print(row(noise, queries, given.seeds if queries < 500 else given.seeds // 2), flush=True)


if __name__ == "__main__":
    main()
