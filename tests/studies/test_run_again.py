"""Every study asks each thing once, and takes the tables that it wrote without a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks.simulated_reader import collection

import ragworth
from ragworth.studies.run import plan_study
from tests.studies.conftest import Opened
from tests.studies.planted import alike, undrawn
from tests.tiers import slow

LEFT_OUT = {
    "position": "fewer than 4 passages that are not relevant",
    "noise": "fewer than 4 retrieved passages without the answer",
}


@pytest.mark.parametrize(
    ("kind", "settings", "stages"),
    [
        ("position", {}, ["judged.abstention", "answered"]),
        *slow(
            ("noise", {}, ["judged.abstention", "answered.confidence"]),
            ("context-size", {"sizes": "1-3"}, ["judged.abstention", "answered"]),
            ("ideal", {}, ["judged.downstream", "judged.abstention", "answered-at-most"]),
            ("distractors", {"k": 3, "weak": 0.3, "hard": 0.6}, ["judged.abstention", "answered-at-most"]),
            ("propagation", {"sizes": "2,5", "similarity": "f1"}, ["answered"]),
            ("top-k", {"sizes": "1,2", "least": 2}, ["answered"]),
            ("win-rate", {}, ["judged.confidence", "judged.abstention"]),
            ("layouts", {"size": 4}, ["model-1.confidence", "model-2.confidence"]),
        ),
    ],
)
def test_a_study_asks_once_and_takes_its_tables_again(
    tmp_path: Path,
    opened: Opened,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    settings: dict[str, Any],
    stages: list[str],
) -> None:
    undrawn(monkeypatch)
    place = collection(tmp_path / "w", queries=12)
    lines = (place / "run.txt").read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if not line.startswith("q002") or int(line.split()[3]) < 3]
    (place / "run.txt").write_text("\n".join(kept) + "\n", encoding="utf-8")
    plan = plan_study(kind, [place], **settings)
    assert [stage.name for stage in plan] == stages and opened.calls == 0
    first = ragworth.study(kind, place, **settings)
    asked = opened.calls
    assert asked > 0 and first.folder is not None
    again = ragworth.study(kind, place, keep=False, **settings)
    taken = ragworth.study(kind, first.folder / "cases" / "01", keep=False, **settings)
    assert opened.calls == asked
    assert alike(again.findings, first.findings) and alike(taken.findings, first.findings)
    if kind in LEFT_OUT:
        assert first.findings.left_out.rows() == [("w", LEFT_OUT[kind], 1)]
