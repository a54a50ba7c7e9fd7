"""Studies of readers whose behaviour is known: what was planted, and what each study finds.

    python benchmarks/planted.py               # all of them, as a Markdown table; about two minutes
    python benchmarks/planted.py alignment     # one study

The passages are invented and the reader is scripted (`simulated_reader.py`), so no model is asked.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

if sys.path[0] == str(Path(__file__).resolve().parent):
    # Run as a script: our coverage.py must not stand for the package of that name.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.simulated_reader import Reader, collection, model

import ragworth
from ragworth.studies.run import StudyResult

Row = dict[str, Any]


class Planted(NamedTuple):
    """A reader, the study of it, and how to say what the study found."""

    study: str
    planted: str
    reader: Reader
    found: Callable[[StudyResult], str]
    settings: dict[str, Any] = {}  # noqa: RUF012 (never changed)
    toml: str = ""


def rows(result: StudyResult, name: str) -> list[Row]:
    return next(table.frame.to_dicts() for table in result.findings.tables if table.name == name)


def percent(value: float) -> str:
    return f"{100 * value:.0f} %"


def number(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def aligned(*metrics: str) -> Callable[[StudyResult], str]:
    """Mean correlations within queries of some metrics."""

    def found(result: StudyResult) -> str:
        known = {row["metric"]: row["correlation"] for row in rows(result, "alignment")}
        return "ρ: " + ", ".join(f"{name.replace('(ideal=retrieved)', '')} {number(known[name])}" for name in metrics)

    return found


def outcomes(label: str, kind: str = "correct") -> Callable[[StudyResult], str]:
    """The share of a kind of answer in each arm."""

    def found(result: StudyResult) -> str:
        return ", ".join(f"{row[label]}: {percent(row[kind])}" for row in rows(result, "outcomes"))

    return found


def changes(metric: str) -> Callable[[StudyResult], str]:
    def found(result: StudyResult) -> str:
        line = [(r["k"], r["correlation"]) for r in rows(result, "correlation") if r["metric"] == metric]
        return f"ρ of {metric}: " + ", ".join(f"k = {k}: {number(value)}" for k, value in line if value is not None)

    return found


def won(result: StudyResult) -> str:
    """How often KeyEntropy is higher with the relevant passage."""
    mine = [row for row in rows(result, "win-rate") if row["confidence"] == "KeyEntropy"]
    return "KeyEntropy wins: " + ", ".join(f"over a {row['against']} {percent(row['win rate'])}" for row in mine)


def noisy(result: StudyResult) -> str:
    shares = ", ".join(f"{row['context']} {percent(row['correct'])}" for row in rows(result, "answers"))
    tau = next(row["tau"] for row in rows(result, "concordance") if row["confidence"] == "KeyEntropy")
    return f"correct: {shares}; τ of KeyEntropy {number(tau)}"


def chosen(result: StudyResult) -> str:
    """How often the first model answers correctly from its own choice, and from others."""
    table = [row for row in rows(result, "accuracy") if row["measure"] == "KeyEntropy"]
    first = table[0]["answered by"]
    return ", ".join(f"{row['chosen by']} {percent(row['accuracy'])}" for row in table if row["answered by"] == first)


def segmented(result: StudyResult) -> str:
    """Correlations of three measures in narrow and wide contexts."""
    table = [row for row in rows(result, "correlations") if row["K/N_p"] in ("narrow", "wide")]
    parts = {place: [row for row in table if row["K/N_p"] == place] for place in ("narrow", "wide")}
    return "; ".join(
        f"{place}: "
        + ", ".join(
            f"{row['metric'].replace('(ideal=retrieved)', '')} {number(row['correlation'])}"
            for row in some
            if row["metric"].partition("(")[0] in ("F", "T", "nDCG") and row["correlation"] is not None
        )
        for place, some in parts.items()
    )


METRICS = ["UDCG@5", "nDCG(ideal=retrieved)@5", "RR@5", "P@5"]
SUMMING = Reader(gamma=1 / 3, threshold=0.5, noise=0.05)

PLANTED: Sequence[Planted] = (
    Planted(
        "alignment",
        "adds up what helps, minus a third of what misleads (UDCG's formula)",
        SUMMING,
        aligned(*METRICS),
        {"metrics": METRICS},
    ),
    Planted(
        "alignment",
        "reads the first passage, and hardly the others",
        Reader(weights=(1.0, 0.35, 0.15, 0.05, 0.02), threshold=0.02, noise=0.0),
        aligned(*METRICS),
        {"metrics": METRICS},
    ),
    Planted("distractors", "believes the loudest passage", Reader(noise=0.05), outcomes("distractors"), {"k": 3}),
    Planted("ideal", "believes the loudest passage", Reader(noise=0.05), outcomes("oracle", "wrong")),
    Planted(
        "position",
        "listens to both ends, less to the middle",
        Reader(weights=(1.0, 0.6, 0.3, 0.6, 1.0), noise=0.0),
        outcomes("position"),
    ),
    Planted(
        "context-size",
        "adds up what helps, minus a third of what misleads",
        SUMMING,
        changes("UDCG"),
        {"sizes": "1,3,5,10"},
    ),
    Planted("win-rate", "is as sure as the loudest passage is loud", Reader(noise=0.05), won),
    Planted("noise", "is as sure as the loudest passage is loud", Reader(noise=0.05), noisy, {"n": 4}),
    Planted(
        "layouts",
        "listens to the first passage, and is as sure as it is loud",
        Reader(weights=(1.0, 0.5, 0.4, 0.3, 0.2), noise=0.05),
        chosen,
        {"models": "embedded,other", "size": 5},
    ),
    Planted("top-k", "believes the loudest passage", Reader(noise=0.05), segmented, {"sizes": "1-10", "least": 50}),
)


def study(each: Planted, folder: Path, queries: int) -> str:
    with patch("ragworth.evaluation.model_pool.llm", model(each.reader)):
        place = collection(folder, queries=queries, toml=each.toml)
        return each.found(ragworth.study(each.study, place, keep=False, **each.settings))


def main() -> None:
    wanted = sys.argv[1:]
    print("| study | planted: the reader … | found |\n| --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for at, each in enumerate(PLANTED):
            if not wanted or each.study in wanted:
                print(f"| {each.study} | {each.planted} | {study(each, Path(folder) / str(at), 120)} |", flush=True)


if __name__ == "__main__":
    main()
