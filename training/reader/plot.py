"""A reliability plot from what ``evaluate judging --plot FILE`` wrote: how many passages lack the answer, by p_abstain.

python -m training.reader.plot FILE -o calibration.png
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

BINS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw how well p_abstain is calibrated.")
    parser.add_argument("file", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    values: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for line in given.file.read_text(encoding="utf-8").splitlines():
        name, p, kind = json.loads(line)
        if kind != "random":
            values[name].append((p, kind != "good"))
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(5.5, 6.5), sharex=True, height_ratios=[3, 1])
    top.plot([0, 1], [0, 1], color="grey", linewidth=1, linestyle=":")
    for name, pairs in values.items():
        points = []
        for number in range(BINS):
            mine = [(p, lacks) for p, lacks in pairs if min(int(p * BINS), BINS - 1) == number]
            if len(mine) >= 5:
                points.append((sum(p for p, _ in mine) / len(mine), sum(lacks for _, lacks in mine) / len(mine)))
        top.plot(*zip(*points, strict=True), marker="o", markersize=4, label=f"{name} ({len(pairs)})")
        bottom.hist([p for p, _ in pairs], bins=BINS, range=(0, 1), histtype="step")
    top.set_ylabel("share that lack the answer")
    top.legend(fontsize=8)
    bottom.set_xlabel("calibrated p_abstain")
    bottom.set_ylabel("passages")
    figure.tight_layout()
    figure.savefig(given.output, dpi=120)


if __name__ == "__main__":
    main()
