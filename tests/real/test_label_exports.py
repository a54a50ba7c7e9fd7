"""CRUX's released annotations, read as labels: the agreement that the paper prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragworth.label.agreement import LabelAgreement
from ragworth.label.dataset import LabelledData
from ragworth.label.exports import export_labels
from ragworth.label.imports import import_labels
from ragworth.label.tasks import load_task
from ragworth.stats.estimate import Resampling


def test_released_annotations_agree_as_in_the_paper(data: Path, tmp_path: Path) -> None:
    task = load_task("answerability")
    found = import_labels(data / "crux_labels", "crux", task)
    assert (len(found.items), len(found.labels), len(found.labels.annotators)) == (435, 3 * 435, 3)
    agreement = LabelAgreement(task, {one.id: one for one in found.items}, found.labels, Resampling(resamples=50))
    assert agreement.together["Fleiss κ"].value == pytest.approx(0.5157, abs=5e-5)
    assert agreement.together["Krippendorff α, nominal"].value == pytest.approx(0.5161, abs=5e-5)
    assert agreement.together["Fleiss κ"].n == 435
    # Written and read again, it is the same.
    export_labels(LabelledData.of(task, found.items, found.labels, imported=True), "crux", tmp_path)
    again = import_labels(tmp_path, "crux", task)
    assert {(one.annotator, one.value["answerable"]) for one in again.labels.answers if one.value} == {
        (one.annotator, one.value["answerable"]) for one in found.labels.answers if one.value
    }
    assert len(again.labels) == len(found.labels)


def test_released_ratings_are_read(data: Path) -> None:
    found = import_labels(data / "crux_labels", "crux", load_task("coverage"))
    assert len(found.labels) >= 226  # the paper counts 226 of them
