"""Make this example's files: simulated judgments and runs, the same ones every time.

For each of 40 questions there are 20 passages: a few that answer it, a few near misses that look as if they did
and mislead a model, and unrelated ones on which a model rightly abstains. `dense` finds what answers the
question and the near misses alike, `rerank` tells them apart, `bm25` knows little of either.
"""

import csv
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
QUESTIONS, PASSAGES, SUBQUESTIONS = 40, 20, 6
KINDS = ("answer", "near miss", "unrelated")
# How high each system scores a passage of each kind, before noise.
LIKES = {"bm25": (1.0, 0.7, 0.3), "dense": (2.0, 1.9, 0.0), "rerank": (2.2, 0.8, 0.1)}


def main() -> None:
    rng = np.random.default_rng(20)
    qrels, judgments, ratings, lengths = [], [], [], []
    runs: dict[str, list[str]] = {system: [] for system in LIKES}
    for q in range(1, QUESTIONS + 1):
        query = f"q{q:02}"
        answers, misses = int(rng.integers(1, 4)), int(rng.integers(3, 7))
        kinds = [0] * answers + [1] * misses + [2] * (PASSAGES - answers - misses)
        names = [f"{query}-p{p:02}" for p in rng.permutation(PASSAGES) + 1]
        for name, kind in zip(names, kinds, strict=True):
            abstain = rng.beta(*((1.2, 9), (2, 5), (14, 1.5))[kind])
            judgments.append((query, name, "abstention", f"{abstain:.4f}"))
            lengths.append((name, int(rng.integers(40, 121))))
            if kind < 2 or rng.random() < 0.5:  # assessors did not see every unrelated passage
                qrels.append(f"{query} 0 {name} {int(rng.integers(1, 3)) if kind == 0 else 0}")
            for s in range(1, SUBQUESTIONS + 1):
                rating = int(rng.choice([0, 3, 4, 5], p=[0.4, 0.2, 0.2, 0.2]) if kind == 0 else rng.integers(0, 3))
                ratings.append(f"{query} {s} {name} {rating}")
        for system, likes in LIKES.items():
            scores = np.array([likes[kind] for kind in kinds]) + rng.normal(0, 0.6, PASSAGES)
            best = np.argsort(-scores)[:10]
            runs[system] += [f"{query} Q0 {names[i]} {r} {scores[i]:.4f} {system}" for r, i in enumerate(best, 1)]
    (HERE / "qrels.txt").write_text("\n".join(qrels) + "\n")
    (HERE / "ratings.txt").write_text("\n".join(ratings) + "\n")
    for system, lines in runs.items():
        (HERE / "runs" / f"{system}.run").write_text("\n".join(lines) + "\n")
    for name, header, rows in (
        ("abstention.csv", ("query", "passage", "aspect", "value"), judgments),
        ("passages.csv", ("passage", "tokens"), lengths),
    ):
        with (HERE / name).open("w", newline="") as stream:
            csv.writer(stream, lineterminator="\n").writerows([header, *rows])


if __name__ == "__main__":
    main()
