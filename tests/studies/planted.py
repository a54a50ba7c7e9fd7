"""What a reader without noise must answer, worked out from the texts alone; and what the tables of a case say."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from benchmarks.simulated_reader import VOICE
from scipy import stats

from ragworth import Collection, Contexts, Judgments, Ratings, score
from ragworth.report.study import Findings
from ragworth.results import Results
from ragworth.studies.contract import Case

Key = tuple[str, str]


def contexts(case: Case) -> dict[Key, list[str]]:
    """Passages by system and query, in the order shown."""
    made: dict[Key, list[str]] = {}
    for system, query, passage in case.results.contexts.frame.sort("rank").select("system", "query", "passage").rows():
        made.setdefault((system, query), []).append(passage)
    return made


def grades(case: Case) -> dict[Key, float]:
    """Grades by system and query."""
    assert case.results.outcomes is not None
    rows = case.results.outcomes.frame.select("system", "query", "aspect", "value").rows()
    return {(system, query): value for system, query, aspect, value in rows if aspect == "grade"}


def sureness(case: Case) -> Callable[[str], float]:
    """How loudly a passage speaks."""
    texts = dict(case.results.collection.passages.select("passage", "text").rows())

    def of(passage: str) -> float:
        voice = VOICE.search(texts[passage])
        return float(voice[1]) if voice else 0.0

    return of


def expected(case: Case, weights: Sequence[float] = (1.0,), threshold: float = 0.3) -> dict[Key, float]:
    """The grade of each context, if the loudest voice is believed and there is no noise."""
    sure, made = sureness(case), {}
    for key, shown in contexts(case).items():
        loud = [weights[min(at, len(weights) - 1)] * sure(each) for at, each in enumerate(shown)]
        right = "gold" in shown[loud.index(max(loud))]
        made[key] = 0.0 if max(loud) < threshold else 1.0 if right else -1.0
    return made


def wilcoxon(gaps: npt.NDArray[np.float64]) -> float:
    """Wilcoxon's p: exact for up to 50 that are not 0, by the number of ways to each sum of ranks; else by SciPy."""
    moved = gaps[gaps != 0]
    if len(moved) > 50:
        return float(stats.wilcoxon(moved, method="approx").pvalue)
    ranks = stats.rankdata(np.abs(moved))
    ways = Counter({0.0: 1})
    for rank in ranks:
        further: Counter[float] = Counter()
        for total, number in ways.items():
            further[total + rank] += number
            further[total - rank] += number
        ways = further
    found = abs(float((np.sign(moved) * ranks).sum()))
    far: int = sum(number for total, number in ways.items() if abs(total) >= found)
    return far / ways.total()


def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have studies write their tables, and neither figures nor page, which cost seconds."""

    def write(findings: Findings, folder: Path, *, back: Path | None = None) -> Path:
        return folder / "study.html"

    monkeypatch.setattr("ragworth.studies.cases.write_study", write)


def alike(one: Findings, other: Findings) -> bool:
    """Whether two studies say the same, to the last digit."""
    tables = zip(one.tables, other.tables, strict=True)
    same = all(a.frame.equals(b.frame) for a, b in tables) and one.left_out.equals(other.left_out)
    return same and one.sentences == other.sentences and one.figures == other.figures


def given(folder: Path, systems: int = 6, queries: int = 12, depth: int = 8) -> Results:
    """Results of runs with labels and ratings, and no answers: the better a system, the earlier what is relevant."""
    draw = random.Random(3)
    shown, labels, ratings = [], [], []
    for number in range(queries):
        query = f"q{number:02d}"
        for at in range(30):
            good = at < 10
            labels.append({"query": query, "passage": f"{query}p{at}", "relevance": int(good)})
            for part in range(4):
                value = 5 if good and draw.random() < 0.5 else 0
                ratings.append(
                    {"query": query, "passage": f"{query}p{at}", "subquestion": f"{query}s{part}", "value": value}
                )
        for system in range(systems):
            places = [((at >= 10) * system * 0.15 + draw.random(), at) for at in range(30)]
            order = [at for _, at in sorted(places)]
            rows = enumerate(order[:depth], 1)
            shown += [
                {"system": f"s{system}", "query": query, "passage": f"{query}p{at}", "rank": rank} for rank, at in rows
            ]
    contexts, judged, rated = Contexts(shown), Judgments(labels), Ratings(ratings)
    scores = score(contexts, judged, ["nDCG@5", "RR@5"], complete=False)
    made = Results(Collection(), contexts, judged, rated, None, None, scores, {}, {"title": "given"})
    made.write(folder)
    return made
