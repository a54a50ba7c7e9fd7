"""Findings as studies have them: realistic ones with every kind of chart, and such as are hard on a page."""

from __future__ import annotations

import numpy as np
import polars as pl

from ragworth.report.study import Findings, StudyFigure, StudyTable, charts
from ragworth.report.study.findings import LEFT_OUT
from tests.report.page.odd_samples import BAD

METRICS = (
    "UDCG@5", "UDCG(gamma=0)@5", "nDCG@5", "nDCG(gain=exponential,ideal=retrieved)@5", "P@5", "R@5", "AP@5", "RR@5",
    "F(alpha=0.5)@5", "Fe(alpha=0.25)@5", "T(alpha=0.5)@5", "Tu(alpha=0.5)@5", "Success@5", "Cov@5", "Den@5",
)  # fmt: skip
DATASETS = ("RGB", "HotpotQA", "2WikiMultihopQA", "ClapNQ", "a collection with a very long name (dev split)")
KINDS = ("correct", "partial", "abstained", "wrong")


def aligned(metrics: int = 15, datasets: int = 5) -> pl.DataFrame:
    """metric, dataset, correlation, low, high, n; one has no value, some are negative."""
    rng = np.random.default_rng(7)
    rows = []
    for i, metric in enumerate(METRICS[:metrics]):
        for j, dataset in enumerate(DATASETS[:datasets]):
            value = None if (i, j) in {(13, 0), (14, 2)} else float(0.33 - 0.03 * i + 0.04 * j + rng.normal(0, 0.02))
            width = float(rng.uniform(0.03, 0.07))
            ends = (None, None) if value is None else (value - width, value + width)
            rows.append((metric, dataset, value, *ends, None if value is None else int(rng.integers(120, 400))))
    names = ("label", "group", "value", "low", "high", "n")
    return pl.DataFrame(
        rows, schema=dict(zip(names, [pl.String] * 2 + [pl.Float64] * 3 + [pl.Int64], strict=True)), orient="row"
    )


def matrix(size: int = 15) -> pl.DataFrame:
    """Correlations of metrics with each other; one pair has none."""
    rng = np.random.default_rng(1)
    found = np.atleast_2d(np.corrcoef(rng.normal(size=(size, 30)) + np.linspace(0, 2, 30)))
    names = METRICS[:size]
    rows = [
        (a, b, float(found[i, j]), 196) for i, a in enumerate(names) for j, b in enumerate(names) if {i, j} != {2, 4}
    ]
    return pl.DataFrame(rows, schema=["first", "second", "value", "n"], orient="row")


def curves(lines: int = 4) -> pl.DataFrame:
    rng = np.random.default_rng(2)
    rows = []
    for i in range(lines):
        for k in (1, 2, 3, 4, 5, 7, 10, 15):
            value = 0.1 + 0.05 * i + 0.1 * np.log(k) / (1 + i) + rng.normal(0, 0.01)
            rows.append((METRICS[i], k, float(value), float(value - 0.05), float(value + 0.05)))
    return pl.DataFrame(rows, schema=["line", "place", "value", "low", "high"], orient="row")


def answered(datasets: int = 3) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    rows = []
    for dataset in DATASETS[:datasets]:
        for label in ("binary relevance", "downstream score (eRAG)", "utility", "without any context"):
            counts = rng.multinomial(200, rng.dirichlet((6, 1, 3, 3)))
            rows += [(dataset, label, k, int(n), n / 200) for k, n in zip(KINDS, counts, strict=True) if n]
    return pl.DataFrame(rows, schema=["group", "label", "kind", "count", "share"], orient="row")


def cloud(size: int = 240, groups: int = 3) -> pl.DataFrame:
    rng = np.random.default_rng(4)
    x = rng.uniform(size=size)
    group = rng.integers(0, groups, size)
    y = 0.2 + (0.5 - 0.3 * group) * x + rng.normal(0, 0.12, size)
    return pl.DataFrame(
        {"x": x, "y": y, "group": [f"system {g}" for g in group], "label": [f"q{i}" for i in range(size)]}
    )


def wins() -> pl.DataFrame:
    rng = np.random.default_rng(5)
    rows = []
    for label in ("PPL", "Entropy", "KeyPPL", "KeyEntropy"):
        for group in ("against a distractor", "against a random one"):
            value = float(rng.uniform(0.5, 0.9))
            rows.append((label, group, value, value - 0.06, value + 0.05))
    return pl.DataFrame(rows, schema=["label", "group", "value", "low", "high"], orient="row")


def realistic() -> Findings:
    """An alignment study over five collections, with a chart of each kind."""
    table = aligned()
    wide = table.pivot("group", index="label", values="value").rename({"label": "metric"})
    names = list(METRICS)
    figures = (
        StudyFigure(
            "alignment",
            "How well each metric predicts the grade",
            "Mean rank correlation within queries with 95 % intervals over queries.",
            charts.dot_chart(table, "mean τ-b within queries", zero=True),
        ),
        StudyFigure(
            "between",
            "How metrics go together",
            "Spearman's ρ over all contexts.",
            charts.heat_chart(matrix(), names, names, "Spearman ρ"),
        ),
        StudyFigure(
            "size",
            "By the size of the context",
            "Correlation by k.",
            charts.curve_chart(curves(), "k passages", "mean τ-b", zero=True),
        ),
        StudyFigure(
            "grades", "What came of the answers", "Shares of 200 answers each.", charts.outcome_chart(answered())
        ),
        StudyFigure(
            "scatter", "Utility and nDCG", "A point for each query.", charts.point_chart(cloud(), "nDCG@5", "utility")
        ),
        StudyFigure(
            "wins",
            "Win rates",
            "Share of queries in which the gold passage has the higher confidence.",
            charts.bar_chart(wins(), "win rate"),
        ),
    )
    left = pl.DataFrame(
        {
            "case": ["RGB", "RGB", "ClapNQ"],
            "reason": ["every context has the same grade", "no relevant passage", "the metric is constant"],
            "queries": [61, 3, 12],
        }
    )
    return Findings(
        "Alignment: which metric predicts the answers",
        "10 contexts of 5 passages for each of 1,204 queries of 5 collections, read by SmolLM2-135M-Instruct; "
        "rank correlation of metric and grade within each query.",
        (
            "Use UDCG@5 for this model on RGB: its mean τ-b within queries is 0.34, 95 % interval 0.29 to 0.39.",
            "It differs from 11 of 14 others (Holm, 5 % level); R@5, AP@5 and nDCG@5 cannot be told from it.",
            "On ClapNQ nothing differs from nDCG@5, which has 0.41, 95 % interval 0.36 to 0.46 (n = 301).",
        ),
        (
            StudyTable("metrics", "Mean correlation within queries", wide, "Missing: no query has both sides varying."),
            StudyTable("full", "Every number", table.rename({"label": "metric", "group": "collection"})),
        ),
        figures,
        left,
        ("Judgments of abstention: first-token.",),
        {
            "seed": 0,
            "resamples": 2000,
            "models": [{"name": "SmolLM2-135M-Instruct", "adapter": "reader"}],
            "versions": {"ragworth": "0.1.0"},
            "study": {"contexts": 10, "k": 5, "depth": 25},
        },
    )


def hostile() -> Findings:
    """HTML and control characters in every text, name and number; nothing finite in some places."""
    names = [f"{BAD}{i}" for i in range(3)]
    values = pl.DataFrame(
        {
            "label": names * 2,
            "group": [names[0]] * 3 + [f"\u0001good{BAD}"] * 3,
            "value": [0.1, None, float("nan"), float("inf"), -0.2, 0.0],
            "low": [0.0, None, None, None, -0.3, -0.1],
            "high": [0.2, None, None, None, -0.1, 0.1],
        }
    )
    cells = pl.DataFrame({"first": names, "second": names, "value": [0.1, -0.5, None], "label": [BAD] * 3})
    lines = pl.DataFrame({"line": names, "place": [BAD, "b", "c"], "value": [0.1, 0.2, float("nan")]})
    graded = pl.DataFrame({"group": names, "label": names, "kind": ["wrong"] * 3, "share": [1.0] * 3, "count": [3] * 3})
    dots = pl.DataFrame({"x": [0.1, 0.2, 0.3], "y": [1.0, 2.0, 3.0], "group": names, "label": names})
    made = {
        "dots": charts.dot_chart(values, BAD, zero=True),
        "bars": charts.bar_chart(values, BAD),
        "heat": charts.heat_chart(cells, names, names, BAD, down=BAD, along=BAD),
        "curve": charts.curve_chart(lines, BAD, BAD),
        "outcomes": charts.outcome_chart(graded, BAD),
        "points": charts.point_chart(dots, BAD, BAD),
    }
    return Findings(
        BAD,
        f"{BAD}\n{{{{style}}}}",
        (BAD, f"[x](javascript:alert(1)) {BAD}", f"# {BAD}"),
        (StudyTable("table-1", BAD, values.rename({"label": BAD}), BAD),),
        tuple(StudyFigure(name, BAD, BAD, spec) for name, spec in made.items()),
        pl.DataFrame({"case": [BAD], "reason": [BAD], "queries": [3]}),
        (BAD, "\x1b[31mred"),
        {BAD: {BAD: [BAD, None, float("nan")]}, "path": object, "```": "```\n# no"},
    )


def bare() -> Findings:
    """Next to nothing: no figures, no tables, nothing left out."""
    return Findings("Bare", "Nothing was done.", (), (), (), pl.DataFrame(schema=LEFT_OUT))
