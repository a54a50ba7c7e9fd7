"""Passages of other sources to choose by: which are taken, how they are shown, and what calibrates a reader."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from training.reader import dev

from ragworth.judging.labels import NO_RESPONSE_LABEL
from ragworth.llm import embedded
from ragworth.llm.contract import Chosen, Usage
from ragworth.llm.local.adapter import Adapter, read_safetensors
from tests.llm.local.made_safetensors import write as write_adapter

QRELS = ["0 Q0 a 2", "0 Q0 b 0", "0 Q0 c 1", "1 Q0 d 0"]


def packed(path: Path, lines: list[str]) -> Path:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return path


def passage(name: str, grade: int, *ranks: int) -> dict[str, Any]:
    judged = {"judgments": [{"relevance": grade}], "rankings": [{"rank": rank} for rank in ranks]}
    return {"paragraph_id": name, "text": f"passage {name}", "paragraph_data": judged}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    packed(tmp_path / "queries.tsv.gz", ["0\twhere does the ferry land", "1\twho built the ferry", ""])
    packed(tmp_path / "corpus.tsv.gz", [f"{name}\tabout {name}\tand more" for name in "abcd"])
    packed(tmp_path / "qrels.txt.gz", QRELS)
    found = [passage("near", 0, 7, 1), passage("far", 0, 9), passage("unranked", 0), passage("good", 3, 2)]
    found += [passage("fair", 2, 0), *(passage(f"more{number}", 0, 10 + number) for number in range(20))]
    packed(tmp_path / "graded.jsonl.gz", [json.dumps(["q", found])])
    packed(tmp_path / "asked.jsonl.gz", [json.dumps({"query_id": "q", "query_text": "what is a ferry"})])
    return tmp_path


def test_the_highest_grade_against_the_lowest(files: Path) -> None:
    found = [(one.question, one.passage, one.answers) for one in dev.noveleval(files)]
    ferry = "where does the ferry land"
    assert found == [
        (ferry, "about a\tand more", True),
        (ferry, "about b\tand more", False),
        ("who built the ferry", "about d\tand more", False),
    ]


def test_of_those_that_do_not_answer_the_highest_ranked(files: Path) -> None:
    found = list(dev.trec(files / "graded.jsonl.gz", files / "asked.jsonl.gz"))
    assert {one.question for one in found} == {"what is a ferry"}
    assert [one.passage for one in found if one.answers] == ["passage good"]
    other = [one.passage for one in found if not one.answers]
    assert other[:3] == ["passage near", "passage far", "passage more0"]
    assert len(other) == dev.EACH


def test_the_file_has_the_form_of_examples_without_what_is_to_be_avoided(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    avoid = packed(files / "avoid.jsonl.gz", [json.dumps({"question": "Who built the ferry?"})])
    output = files / "dev.jsonl"
    trec = ["--trec", str(files / "graded.jsonl.gz"), "--queries", str(files / "asked.jsonl.gz")]
    dev.main(["--noveleval", str(files), *trec, "--avoid", str(avoid), "-o", str(output)])
    items = [json.loads(line) for line in output.read_text().splitlines()]
    assert capsys.readouterr().out.startswith("14 passages, 13 after")
    assert {item["part"] for item in items} == {"dev"}
    assert [item["kind"] for item in items[:3]] == ["NovelEval, answers", "NovelEval, other", "TREC DL 2019, answers"]
    for item in items:
        assert (item["answer"] == NO_RESPONSE_LABEL) == item["kind"].endswith("other")
        assert item["messages"][-1][0] == "user"
    assert "about a" in items[0]["messages"][-1][1]


class Sure:
    """Stands in for the embedded model: log-odds of 4 and −4, right three times in four."""

    def choose(self, asked: list[Any]) -> list[Chosen]:
        values = [1 / (1 + math.exp(-4 if number % 2 else 4)) for number in range(len(asked))]
        return [Chosen((p,), (p,), (p,), "first-token", Usage(1, 1, 0.0)) for p in values]


@pytest.mark.torch
def test_the_temperature_makes_probabilities_mean_what_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from training.reader import calibrate

    declines = [number % 2 == (number % 8 > 1) for number in range(80)]
    rows = [
        {"part": "dev", "kind": "one, any", "answer": NO_RESPONSE_LABEL if yes else "x", "messages": [["user", "u"]]}
        for yes in declines
    ]
    (tmp_path / "dev.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    monkeypatch.setattr(embedded, "open_model", lambda _: Sure())
    monkeypatch.setitem(embedded.SHIPPED, "", embedded.SHIPPED[""]._replace(adapter=None))
    path = write_adapter(tmp_path / "mean.safetensors", {"m.up": np.ones((2, 1), np.float16)}, {"rank": "1"})
    calibrate.main([str(path), str(tmp_path / "dev.jsonl"), "-o", str(tmp_path / "reader.safetensors")])
    assert embedded.SHIPPED[""].adapter == Adapter(path)  # what the model is opened with
    said = capsys.readouterr().out
    assert "ECE 0.0000, 75% of those with the answer answered, 80 passages" in said
    assert float(said.split("temperature ")[1]) == pytest.approx(4 / math.log(3), rel=0.01)  # 4 is three in four
    written = read_safetensors(tmp_path / "reader.safetensors")
    assert written.about == {"rank": "1", "temperature": said.split("temperature ")[1].strip()}
    assert written.arrays["m.up"].tolist() == [[1], [1]]
