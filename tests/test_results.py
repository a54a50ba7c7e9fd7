"""A folder of results: what goes in comes out, and what is not whole is refused with words."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import ragworth
from ragworth.core.errors import FormatError, TableError
from ragworth.data import Contexts, Judgments, Outcomes, Scores
from ragworth.results import TABLES, Results

SCORE = {"system": "a", "query": "q1", "value": 1.0}


def small(**changes: object) -> Results:
    contexts = Contexts({"q1": {"d1": 2.0, "d2": 1.0}}, system="a", empty=[("a", "q2"), ("b", "q1")])
    judgments = Judgments({"q1": {"d1": 1}}, notes=("one line skipped",))
    made = Results(
        ragworth.Collection.of(
            queries={"query": ["q1", "q2"], "text": ["one?", "two?"]},
            passages={"passage": ["d1", "d2"], "text": ["first", "second\n\x00"]},
        ),
        contexts,
        judgments,
        None,
        None,
        None,
        Scores([{"system": "a", "query": "q1", "metric": "RR", "value": 1.0}]),
        {"abstention": pl.DataFrame({"query": ["q1"], "passage": ["d1"], "raw": ["said"], "each": [[0.5, None]]})},
        {"title": "Ünïcode", "seeds": {"bootstrap": 0}},
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def same(a: Results, b: Results) -> bool:
    tables = all(getattr(a, name) == getattr(b, name) for name in TABLES)
    said = a.said.keys() == b.said.keys() and all(a.said[name].equals(b.said[name]) for name in a.said)
    return tables and said and a.collection.equals(b.collection) and a.manifest == b.manifest


def test_what_is_written_is_read(tmp_path: Path) -> None:
    given = small()
    given.write(tmp_path / "new" / "results")
    back = Results.read(tmp_path / "new" / "results")
    assert same(given, back)
    assert back.contexts.empty == {("a", "q2"), ("b", "q1")}
    assert back.judgments is not None
    assert back.judgments.notes == ("one line skipped",)
    assert back.ratings is None
    assert not (tmp_path / "new" / "results" / "ratings.parquet").exists()


def test_what_an_earlier_evaluation_left_is_removed_and_other_files_are_not(tmp_path: Path) -> None:
    small().write(tmp_path)
    (tmp_path / "report.html").write_text("mine")
    small(judgments=None, said={}).write(tmp_path)
    assert not (tmp_path / "judgments.parquet").exists()
    assert not (tmp_path / "said" / "abstention.parquet").exists()
    assert (tmp_path / "report.html").read_text() == "mine"
    assert same(Results.read(tmp_path), small(judgments=None, said={}))


def test_the_manifest_is_json_that_others_can_read(tmp_path: Path) -> None:
    small().write(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["title"] == "Ünïcode"
    assert manifest["results"]["empty"] == [["a", "q2"], ["b", "q1"]]


def test_nothing_is_written_when_the_manifest_is_not_json(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        small(manifest={"when": object()}).write(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_step_that_cannot_name_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"'\.\./x' cannot name a file"):
        small(said={"../x": pl.DataFrame()}).write(tmp_path)


def test_a_folder_that_was_left_half_way_is_recognised(tmp_path: Path) -> None:
    small().write(tmp_path)
    small(scores=Scores([{"system": "a", "query": "q1", "metric": "RR", "value": 0.5}])).write(tmp_path / "other")
    (tmp_path / "other" / "scores.parquet").replace(tmp_path / "scores.parquet")
    (tmp_path / "texts" / "passages.parquet").unlink()
    with pytest.raises(FormatError) as error:
        Results.read(tmp_path)
    message = str(error.value)
    assert "2 files of these results cannot be used" in message
    assert "scores.parquet: not the file that the manifest was written with" in message
    assert "texts/passages.parquet: No such file" in message
    assert "to do: delete the damaged files and evaluate again" in message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "has no manifest.json"),
        ("{", "cannot be read as JSON"),
        ("[]", "does not say what the folder holds"),
        ('{"results": {"format": 1}}', "does not say what the folder holds"),
        ('{"results": {"format": 2, "empty": [], "notes": {}, "files": {}}}', "of format 2"),
        ('{"results": {"format": 1, "empty": [], "notes": {}, "files": {}}}', "names no contexts, scores"),
    ],
)
def test_what_are_no_results_is_said(tmp_path: Path, content: str | None, words: str) -> None:
    if content is not None:
        (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(FormatError, match=words):
        Results.read(tmp_path)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no such folder"):
        Results.read(tmp_path / "nowhere")


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FormatError, match="can't be created"):
        small().write(tmp_path / "file")


def test_a_damaged_table_with_the_right_digest_is_refused(tmp_path: Path) -> None:
    """Digests only show what changed after the manifest was written."""
    small().write(tmp_path)
    data = (tmp_path / "scores.parquet").read_bytes()
    (tmp_path / "scores.parquet").write_bytes(damaged := data[:-8] + b"\xff\xff\xff\x7fPAR1")
    manifest = (tmp_path / "manifest.json").read_text(encoding="utf-8")
    digest = hashlib.sha256(data).hexdigest()
    assert digest in manifest
    manifest = manifest.replace(digest, hashlib.sha256(damaged).hexdigest())
    (tmp_path / "manifest.json").write_text(manifest, encoding="utf-8")
    with pytest.raises(FormatError, match=r"1 file of these results cannot be used") as caught:
        Results.read(tmp_path)
    (found,) = caught.value.more
    assert found.startswith("scores.parquet: can't be read as Parquet")


def test_first_queries_are_those_with_an_outcome() -> None:
    outcomes = Outcomes([{"system": "a", "query": q, "aspect": "grade", "value": 1.0} for q in ("q2", "q1")])
    some = small(outcomes=outcomes).first_queries(1)
    assert some.outcomes is not None and some.outcomes.frame["query"].to_list() == ["q2"]
    assert not some.contexts.frame.height and not some.scores.frame.height
    assert set(small().first_queries(1).contexts.frame["query"]) == {"q1"}


def test_metrics_that_are_lacking_are_computed_and_others_taken_as_they_are() -> None:
    given = Scores([{"system": "a", "query": "q1", "metric": "RR", "value": 0.25}, {**SCORE, "metric": "AP"}])
    frame = small(scores=given).with_metrics(["RR", "P@2"]).scores.frame
    found = frame.filter((pl.col("system") == "a") & (pl.col("query") == "q1"))
    values = dict(found.select("metric", "value").iter_rows())
    assert values == pytest.approx({"RR": 0.25, "P@2": 0.5})
