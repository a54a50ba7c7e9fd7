"""From a spec to a format: endings, prefixes, and what to say when there is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ragworth import Contexts
from ragworth.core.errors import FormatError, InputError
from ragworth.core.registry import Registry
from ragworth.formats import FORMATS, choose, load, read_contexts, read_ratings, write
from ragworth.formats.contract import Format, LoadedCollection


@pytest.mark.parametrize(
    ("spec", "name", "path"),
    [
        ("run", "trec", "run"),
        ("run.txt", "trec", "run.txt"),
        ("run.gz", "trec", "run.gz"),
        ("run.trec.zst", "trec", "run.trec.zst"),
        ("run.csv", "table", "run.csv"),
        ("run.CSV", "table", "run.CSV"),
        ("run.tsv.gz", "table", "run.tsv.gz"),
        ("run.parquet", "table", "run.parquet"),
        ("run.jsonl", "jsonl", "run.jsonl"),
        ("run.ndjson.zst", "jsonl", "run.ndjson.zst"),
        ("trec:run.csv", "trec", "run.csv"),
        ("table:run", "table", "run"),
        ("exam:run.jsonl.gz", "exam", "run.jsonl.gz"),
        ("trec:a:b", "trec", "a:b"),
        ("C:\\runs\\bm25", "trec", "C:\\runs\\bm25"),
        ("dir:with:colons/run.csv", "table", "dir:with:colons/run.csv"),
        ("ir_datasets:vaswani", "ir_datasets", "vaswani"),
        (Path("a/run.csv"), "table", str(Path("a/run.csv"))),
    ],
)
def test_specs(spec: str | Path, name: str, path: str) -> None:
    chosen, rest, _ = choose(spec, "contexts")
    assert (chosen.name, rest) == (name, path)


@pytest.mark.parametrize(
    ("reader", "spec", "words"),
    [
        (read_ratings, "beir:folder", "BEIR folder cannot be read as ratings"),
        (read_contexts, "beir:folder", "BEIR folder cannot be read as contexts"),
        (load, "trec:run", "cannot be read as a collection"),
        (load, "run", "cannot be read as a collection"),
    ],
)
def test_what_a_format_cannot_do(reader: Callable[[str], object], spec: str, words: str) -> None:
    with pytest.raises(FormatError, match=words) as caught:
        reader(spec)
    path = spec.partition(":")[2] or spec
    assert caught.value.file == path
    # One of the formats that can is named, in the form that is to be typed.
    able = caught.value.expected.split(" or ")
    assert set(able) <= set(FORMATS.names())
    assert caught.value.remedy.endswith(f"{able[0]}:{path}")


def test_formats_that_cannot_write(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot be written with contexts"):
        write(Contexts({"q": {"d": 1.0}}), f"exam:{tmp_path / 'file'}")


def test_a_prefix_can_be_written_to(tmp_path: Path) -> None:
    write(Contexts({"q": {"d": 1.0}}, system="s"), f"trec:{tmp_path / 'run.csv'}")
    assert (tmp_path / "run.csv").read_text() == "q Q0 d 1 1.0 s\n"


def test_a_format_nobody_registered_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A colon is allowed in file names, so only known names before it are formats."""
    monkeypatch.chdir(tmp_path)
    Path("jason:run").write_text("q Q0 d 1 1.0 t\n")
    assert len(read_contexts("jason:run")) == 1
    with pytest.raises(FormatError, match="jason:other: no such file"):
        read_contexts("jason:other")


def reader(path: str, *, skip_bad_lines: bool = False) -> LoadedCollection:
    raise AssertionError("not called")


def test_registry_finds_and_refuses() -> None:
    registry: Registry[Format] = Registry("format", "ragworth.none", {"trec": "ragworth.formats.trec:FORMAT"})
    mine = Format(name="mine", title="my format", load=reader)
    registry.add("mine", mine)
    assert registry.names() == ["trec", "mine"]
    assert registry.get("mine") is mine
    assert registry.get("trec") is FORMATS.get("trec")
    assert "trec" in registry
    assert "beir" not in registry
    assert [found.name for found in registry] == ["trec", "mine"]
    with pytest.raises(InputError, match="the format name 'trec' is taken"):
        registry.add("trec", mine)
    assert registry.get("trec") is FORMATS.get("trec")


def test_registry_says_what_was_meant() -> None:
    with pytest.raises(InputError, match="unknown format 'jsonI'") as caught:
        FORMATS.get("jsonI")
    assert "did you mean jsonl" in caught.value.remedy
    assert caught.value.expected.startswith("trec, ")
    with pytest.raises(InputError) as caught:
        FORMATS.get("§§§§")
    assert caught.value.remedy == ""


def test_an_unknown_prefix_names_the_known_ones() -> None:
    with pytest.raises(FormatError, match="no format named 'beri'") as caught:
        load("beri:folder")
    assert "beir:" in caught.value.expected
