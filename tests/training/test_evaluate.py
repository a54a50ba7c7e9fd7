"""What the reader is held against: RGB's labels and what two readings say of them, and groups written for it."""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from benchmarks.judgments import rgb
from training.reader import evaluate, written
from training.reader.evaluate import READ, SETS, compared, readings, world

HEADER = "question\tlist\tplace\tfirst\tsecond\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One question in the form of RGB, with what two readings say of its passages."""
    item = {
        "query": "Who won in 2019?",
        "answer": [["Lee, Ann", "A. Lee"]],
        "positive": ["A. Lee won in 2019.", "The winner of that year was never named."],
        "negative": ["A. Lee took the cup in 2019.", "Bob Ray won in 2018."],
    }
    (tmp_path / "rgb").mkdir()
    with gzip.open(tmp_path / "rgb" / "en_fact.json.gz", "wt", encoding="utf-8") as file:
        file.write(json.dumps(item) + "\n")
    rows = ["0\tpositive\t0\tanswers\tanswers", "0\tpositive\t1\tlacks\tlacks"]
    rows += ["0\tnegative\t0\tanswers\tpartly", "0\tnegative\t1\tlacks\tlacks"]
    read = tmp_path / "read.tsv"
    read.write_text(HEADER + "\n".join(rows) + "\n", encoding="utf-8")
    monkeypatch.setattr(evaluate, "READ", read)
    return tmp_path


def test_every_spelling_of_an_answer_is_accepted(folder: Path) -> None:
    (case,) = rgb(folder)
    assert case.answers == ["Lee, Ann", "A. Lee"]


def test_passages_are_compared_by_their_labels_and_by_what_was_read(folder: Path) -> None:
    place = world(rgb(folder), 2)
    texts = dict(place.texts.passages.iter_rows())
    sides = {
        against: {(texts[name][:10], good) for name, good in mine.select("passage", "good").iter_rows()}
        for against, mine in compared("RGB", place, place.judged, folder)
    }
    won, unnamed, took, other = ("A. Lee won", True), ("The winner", True), ("A. Lee too", False), ("Bob Ray wo", False)
    assert sides == {
        "bad": {won, unnamed, took, other},
        "bad, no answer in it": {won, unnamed, other},
        "bad, lack it by reading": {won, unnamed, other},
        "by reading alone": {won, ("The winner", False), other},
    }


def test_readings_that_differ_decide_nothing(folder: Path) -> None:
    place = world(rgb(folder), 2)
    texts = dict(place.texts.passages.iter_rows())
    said = {texts[name]: word for name, word in readings(place, folder).iter_rows()}
    assert said["A. Lee took the cup in 2019."] == "partly"
    evaluate.READ.write_text(HEADER, encoding="utf-8")
    assert set(readings(place, folder)["read"]) == {"unread"}


@pytest.mark.slow
def test_written_groups_are_two_sets(tmp_path: Path) -> None:
    plain, hard = SETS["written"](tmp_path), SETS["written, hard"](tmp_path)
    groups = written.split([group for path in written.files() for group in written.read(path)]).judged_by
    asked = [each for group in groups for each in group.questions]
    assert len(plain) + len(hard) == len(asked)
    assert min(len(plain), len(hard)) > 200
    assert plain == SETS["written"](tmp_path)
    assert {case.question for case in [*plain, *hard]} == {each.text for each in asked}


@pytest.mark.real
def test_every_passage_of_rgb_that_is_judged_was_read(data: Path) -> None:
    place = world(rgb(data), 2)
    frame = readings(place, data).join(place.judged, on="passage")
    counts = Counter(frame.select("kind", "read").iter_rows())
    assert counts["bad", "lacks"] == 158
    assert counts["bad", "answers"] == 16
    assert counts["good", "answers"] == 130
    assert counts["good", "lacks"] == 4
    assert counts.total() == 382
    assert not [read for _, read in counts if read == "unread"]
    with READ.open(encoding="utf-8") as file:
        assert len(list(csv.reader(file, delimiter="\t"))) == 383


def test_the_calibration_error_has_an_interval_over_questions() -> None:
    """By hand: 0.9 where it's true three times in four, 0.2 where it never is: (|3.6 − 3| + |0.4|) / 6."""
    p, yes = np.array([0.9] * 4 + [0.2] * 2), np.array([True, True, True, False, False, False])
    found = evaluate.ece(p, yes, ["a", "a", "b", "c", "b", "c"])
    assert found.value == pytest.approx(1 / 6)
    assert found.interval is not None and found.interval.low <= found.value <= found.interval.high
    draw = np.random.default_rng(0)
    chances = draw.random(400)
    calibrated = evaluate.ece(chances, draw.random(400) < chances, np.arange(400))
    assert calibrated.value < 0.1 and calibrated.interval is not None and calibrated.interval.high < 0.2
    assert evaluate.ece(p, yes, ["a"] * 6).interval is None
