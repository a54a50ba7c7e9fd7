"""Metrics whose weights are in a file of the workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragworth import evaluate
from ragworth.core.errors import InputError
from ragworth.metrics.theta import Theta
from ragworth.results import Results
from tests.evaluation.samples import TOML, Models, statuses, workspace

NAMED = TOML.replace('"nDCG@2"', '"nDCG@2", "UDCG(theta=learned/theta.json)@2"')


def folder_with(theta: Theta, tmp_path: Path) -> Path:
    folder = workspace(tmp_path / "w", NAMED)
    (folder / "learned").mkdir(exist_ok=True)
    theta.write(folder / "learned" / "theta.json")
    return folder


@pytest.mark.slow
def test_other_weights_of_the_same_name_are_scored_anew(
    tmp_path: Path, models: Models, undrawn: list[dict[str, Any]]
) -> None:
    folder = folder_with(Theta(2, "full", (0.7, 0.3), (0.2, 0.1)), tmp_path)
    evaluate(folder)
    before = Results.read(folder / "results").scores.frame
    assert "UDCG(theta=learned/theta.json)@2" in set(before["metric"])
    assert statuses(evaluate(folder).stages)["score"] == "kept"
    Theta(2, "full", (0.3, 0.7), (0.2, 0.1)).write(folder / "learned" / "theta.json")
    again = statuses(evaluate(folder).stages)
    assert again["score"] == "done"
    assert {name for name, status in again.items() if status == "done"} <= {"load", "score", "report"}
    assert not Results.read(folder / "results").scores.frame.equals(before)


def test_weights_for_another_depth_are_found_before_anything_is_asked(tmp_path: Path, models: Models) -> None:
    folder = folder_with(Theta(3, "full", (0.1,) * 3, (0.1,) * 3), tmp_path)
    with pytest.raises(InputError, match="these weights are for the first 3 passages"):
        evaluate(folder)
    (folder / "learned" / "theta.json").unlink()
    with pytest.raises(InputError, match="no such file"):
        evaluate(folder)
    assert models.taken() == []
