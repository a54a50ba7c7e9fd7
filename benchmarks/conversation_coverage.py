"""Intervals and tests over turns of conversations: with conversations drawn whole, and as if turns were independent.

Differences of turns share a part of their variance within a conversation, and their true mean is 0. Counts how often a
95 % interval holds 0, and how often a randomisation test at the 5 % level finds a difference. Prints a table of
docs/statistics.md.

    python benchmarks/conversation_coverage.py --trials 800 --resamples 400
"""

from __future__ import annotations

import argparse

import numpy as np
import numpy.typing as npt

from ragworth.stats.estimate import Resampling
from ragworth.stats.paired import difference

CONVERSATIONS = (10, 30, 100)
SHARED = (0.0, 0.3, 0.6)
"""Shares of the variance that the turns of a conversation have in common."""
MOST_TURNS = 9


def draw_turns(rng: np.random.Generator, number: int, shared: float) -> tuple[npt.NDArray[np.float64], list[int]]:
    """Differences of all turns, and the conversation of each; conversations have 1 to 9 turns."""
    clusters = np.repeat(np.arange(number), rng.integers(1, MOST_TURNS + 1, number))
    between, within = np.sqrt(shared), np.sqrt(1 - shared)
    moved = between * rng.normal(size=number)[clusters] + within * rng.normal(size=len(clusters))
    return moved, clusters.tolist()


def count(number: int, shared: float, trials: int, resamples: int) -> npt.NDArray[np.float64]:
    """In per cent: covered and rejected, with whole conversations and with independent turns."""
    rng, plan = np.random.default_rng([number, round(100 * shared)]), Resampling(0.95, resamples, 0)
    hits = np.zeros((2, 2))
    for _ in range(trials):
        moved, clusters = draw_turns(rng, number, shared)
        for at, drawn in enumerate((clusters, None)):
            found = difference(moved, np.zeros(len(moved)), "randomisation", plan, clusters=drawn)
            assert found.low is not None and found.high is not None and found.p is not None
            hits[at] += found.low <= 0 <= found.high, found.p < plan.alpha
    return 100 * hits / trials


def main() -> None:
    reading = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reading.add_argument("--trials", type=int, default=800)
    reading.add_argument("--resamples", type=int, default=400)
    given = reading.parse_args()
    print(f"| shared variance | {' | '.join(f'{number} conversations' for number in CONVERSATIONS)} |")
    print(f"| ---: | {' | '.join('---:' for _ in CONVERSATIONS)} |")
    for shared in SHARED:
        cells = []
        for number in CONVERSATIONS:
            whole, single = count(number, shared, given.trials, given.resamples)
            cells.append(f"{whole[0]:.1f} / {whole[1]:.1f} ({single[0]:.1f} / {single[1]:.1f})")
        print(f"| {shared:.0%} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
