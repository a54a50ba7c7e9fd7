"""One detector for all formats: the order of the catalogue means nothing, and two candidates are an error."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragworth.core.errors import FormatError
from ragworth.formats import FORMATS, load
from ragworth.formats.contract import Contents, Format, Head
from ragworth.formats.detection import examine, recognise
from ragworth.formats.heads import read_head
from tests.formats.sample_files import HERE

EXAMPLES = Path(__file__).parents[2] / "examples"
LARGEST = 30_000_000
"""Bytes of the largest file that is looked at."""


def real_heads() -> Iterator[Head]:
    """The heads of all real files: written by the libraries, of the examples, and of ``RAGWORTH_DATA``."""
    folders = [HERE, EXAMPLES, *(Path(each) for each in [os.environ.get("RAGWORTH_DATA", "")] if each)]
    for folder in folders:
        for path in sorted(folder.rglob("*.*")):
            if (
                path.is_file()
                and path.stat().st_size < LARGEST
                and path.suffix not in (".md", ".toml", ".py", ".sqlite")
            ):
                try:
                    yield read_head(path)
                except FormatError:
                    continue  # no data of ours


def test_the_order_of_the_catalogue_means_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    heads = list(real_heads())
    assert len(heads) > 40
    names = FORMATS.names()
    found = [examine(head).format for head in heads]
    assert sum(each is not None for each in found) > 30
    for seed in range(3):
        shuffled = random.Random(seed).sample(names, len(names))
        monkeypatch.setattr(FORMATS, "_targets", {name: FORMATS._targets[name] for name in shuffled})
        assert [examine(head).format for head in heads] == found


def test_two_formats_that_know_a_file_are_an_error_with_the_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Format("mine", "mine", inspect=lambda head: [Contents("log")] if head.has("user_input") else [])
    monkeypatch.setattr(FORMATS, "_targets", {**FORMATS._targets, "mine": ""})
    monkeypatch.setitem(FORMATS._loaded, "mine", mine)
    path = str(HERE / "ragas" / "dataset.jsonl")
    with pytest.raises(FormatError, match="it may be of the format mine or ragas") as caught:
        load(path)
    assert f"ragas:{path}" in caught.value.remedy
    assert load(f"ragas:{path}").contexts is not None


def test_a_more_general_format_only_counts_where_no_other_knows_the_file() -> None:
    head = read_head(HERE / "ragas" / "dataset.jsonl")
    known = {each.name: each.general for each in FORMATS if each.inspect is not None and each.inspect(head)}
    assert known == {"ragas": 0, "log": 2}
    found = recognise(head).format
    assert found is not None and found.name == "ragas"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("log.jsonl", '{"question": "Who?", "response": "Ann"}'),
        ("log.json", '[{"question": "Who?", "response": "Ann"}]'),
        ("log.csv", "question,response\nWho?,Ann\n"),
    ],
)
def test_a_small_file_is_opened_once(name: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(content)
    head = read_head(path)
    path.unlink()
    answers = load(head).answers
    assert answers is not None and answers.frame["text"].to_list() == ["Ann"]
