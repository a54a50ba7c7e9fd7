"""The cache of indexes: nothing is made twice, nothing damaged is used, nothing half-written is seen."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ragworth.data import Contexts
from ragworth.retrieval import retrieve
from ragworth.retrieval.artifacts import FILE_LIST, load_or_build, table_fingerprint
from ragworth.retrieval.words import WordTokenizer
from tests.retrieval.samples import PASSAGES, world
from tests.tiers import slow


def run(cache: Path | None, pipeline: str = "bm25", **texts: str) -> Contexts:
    return retrieve({"s": pipeline}, world({**PASSAGES, **texts}, cache=cache))


@pytest.fixture
def split(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether a vocabulary grew, each time texts were taken apart: then it was for an index."""
    calls: list[bool] = []
    real = WordTokenizer.split

    def watched(self: WordTokenizer, texts: pl.Series, vocabulary: dict[str, int], *, grow: bool) -> object:
        calls.append(grow)
        return real(self, texts, vocabulary, grow=grow)

    monkeypatch.setattr(WordTokenizer, "split", watched)
    return calls


def entry(cache: Path) -> Path:
    (found,) = cache.iterdir()
    return found


def test_other_passages_or_settings_have_an_index_of_their_own(tmp_path: Path, split: list[bool]) -> None:
    run(tmp_path)
    run(tmp_path, p5="one more")
    run(tmp_path, p6="")
    run(tmp_path, "bm25(k1=0.9)")
    run(tmp_path, "bm25(stopwords=english)")
    assert split.count(True) == len(list(tmp_path.iterdir())) == 5
    run(tmp_path, "bm25(k1=1.2) % 2 >> reversed")
    assert split.count(True) == 5


ARRAYS = ["data.csc.index.npy", "indices.csc.index.npy", "indptr.csc.index.npy"]
"""Files of an index, besides its words and the list of files."""


@pytest.mark.parametrize("how", ["cut", "changed", "gone", "empty"])
@pytest.mark.parametrize("name", ["vocab.index.json", FILE_LIST, *slow(*ARRAYS)])
def test_a_damaged_index_is_made_again(name: str, how: str, tmp_path: Path, split: list[bool]) -> None:
    whole = run(tmp_path)
    path = entry(tmp_path) / name
    content = path.read_bytes()
    if how == "gone":
        path.unlink()
    else:
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        path.write_bytes({"cut": content[:middle], "changed": flipped, "empty": b""}[how])
    assert run(tmp_path) == whole
    assert split.count(True) == 2
    assert path.read_bytes() == content
    assert run(tmp_path) == whole
    assert split.count(True) == 2
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_cannot_be_written_to_costs_nothing_but_time(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert run(blocked / "cache") == run(None)


def test_what_fails_while_it_is_written_is_not_there(tmp_path: Path) -> None:
    def save(made: str, folder: Path) -> None:
        (folder / "half").write_text(made)
        raise OSError("no space left")

    made = load_or_build(tmp_path, "thing", make=lambda: "made", save=save, load=lambda folder: "loaded")
    assert made == "made"
    assert list(tmp_path.iterdir()) == []


def test_fingerprints() -> None:
    frame = pl.DataFrame({"passage": ["a", "bc"], "text": ["é", ""]})
    same = pl.concat([frame[:1], frame[1:]], rechunk=False)
    assert table_fingerprint(frame) == table_fingerprint(same)
    others = [frame[::-1], frame[:1], frame.with_columns(passage=pl.Series(["ab", "c"]))]
    others.append(frame.with_columns(text=pl.Series(["", "é"])))
    assert len({table_fingerprint(each) for each in (frame, *others)}) == 5
