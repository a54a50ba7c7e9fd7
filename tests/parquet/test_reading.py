"""Parquet files of unknown origin: read if they are sound, refused in a few words if not."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from ragworth.errors import FormatError
from ragworth.formats import read_contexts
from ragworth.parquet import read_parquet, reading
from ragworth.parquet.layout import check_layout
from ragworth.parquet.quiet import quiet_stderr
from ragworth.parquet.thrift import DamagedError
from ragworth.parquet.trial import try_reading
from ragworth.prompt_table import read_rows
from tests.parquet.seeds import FLAT, SEEDS, Change, arrow, changed, polars

ROOT = Path(__file__).parents[2]

TINY = SEEDS["polars tiny"]
PASSAGES = TINY.index(bytes([0x2C, 0x15, 0x04, 0x15, 0x10]), TINY.index(b"d1\2\0\0\0d2")) + 2
"""Where the page of the column ``passage`` has its number of values, 2."""

KILLER = changed(TINY, Change(PASSAGES, 5))
"""The number of values is -3: Polars reserves 2⁶¹ bytes for them, and the process ends."""


@pytest.mark.parametrize("name", SEEDS)
def test_sound_files(name: str, tmp_path: Path) -> None:
    expected = pl.read_parquet(io.BytesIO(SEEDS[name]))
    path = tmp_path / "a.parquet"
    path.write_bytes(SEEDS[name])
    assert read_parquet(path).equals(expected)
    assert read_parquet(SEEDS[name]).equals(expected)
    assert read_parquet(path, rows=7).equals(expected.head(7))


def test_no_columns() -> None:
    assert read_parquet(polars(pl.DataFrame())).shape == (0, 0)


@pytest.mark.slow
def test_the_byte_that_ended_the_process(tmp_path: Path) -> None:
    """In a process of its own, so that a relapse fails this test and not the run."""
    path = tmp_path / "run.parquet"
    path.write_bytes(KILLER)
    done = subprocess.run(
        [sys.executable, "-m", "ragworth", "score", "-q", str(path), "-m", "AP", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "run.parquet: can't be read as Parquet (the values of a page: -3)" in done.stderr
    assert "to do: write or download the file again" in done.stderr
    assert "panicked" not in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
def test_damage_is_refused_quietly() -> None:
    """A few hundred of the mutations of ``python -m tests.parquet.mutations``."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.parquet.mutations", "25", "3"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    counts = {line.split()[1]: int(line.split()[0]) for line in done.stdout.splitlines()}
    assert counts["table"] > 50
    assert counts["error"] > 150


def test_a_checksum_is_checked() -> None:
    data = SEEDS["arrow with checksums"]
    with pytest.raises(FormatError, match="the checksum of a page is wrong"):
        read_parquet(data.replace(b"d7-1", b"d8-1"))


def test_files_are_refused_like_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    for at in range(4, len(TINY) - 8, 9):
        path.write_bytes(changed(TINY, Change(at, TINY[at] ^ 255)))
        try:
            check_layout(memoryview(path.read_bytes()))
        except DamagedError as error:
            with pytest.raises(FormatError) as caught:
                read_parquet(path)
            assert str(error) in str(caught.value)


@pytest.mark.parametrize("size", [0, 1, 4, 8, 11, 12, 400, -1, -5, -9])
def test_cut_short(size: int, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(TINY[:size])
    with pytest.raises(FormatError, match="can't be read as Parquet") as caught:
        read_parquet(path)
    assert caught.value.file == str(path)


def test_rows_must_add_up() -> None:
    """A footer that says fewer rows than there are would give a shorter table."""
    footer = len(TINY) - 8 - int.from_bytes(TINY[-8:-4], "little")
    counts = [at for at in range(footer, len(TINY) - 8) if TINY[at : at + 2] == b"\x16\x04"]
    assert len(counts) >= 5  # of the file, of the row group, and of each column
    for at in counts:
        with pytest.raises(DamagedError):
            check_layout(memoryview(changed(TINY, Change(at + 1, 2))))


def test_a_small_file_that_would_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    data = polars(pl.DataFrame({"value": pl.Series([1.0]).new_from_index(0, 1_000_000)}))
    assert len(data) < 10_000
    monkeypatch.setattr(reading, "MIN_MEMORY_LIMIT", 1 << 20)
    with pytest.raises(FormatError, match=r"may take 24,.* bytes of memory") as caught:
        read_parquet(data, name="bomb.parquet")
    assert "RAGWORTH_MAX_RATIO" in caught.value.remedy
    monkeypatch.setenv("RAGWORTH_MAX_RATIO", "100000")
    assert read_parquet(data).height == 1_000_000


@pytest.mark.parametrize("dictionary", [True, False])
def test_empty_row_groups_are_sound(dictionary: bool) -> None:
    """PyArrow gives an empty table a row group, and a writer one for each empty batch."""
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"query": ["q1", "q2"], "value": [1.0, 0.0]})
    for batches, rows in (([0], 0), ([0, 2, 0, 2], 4)):
        stream = io.BytesIO()
        with parquet.ParquetWriter(stream, table.schema, use_dictionary=dictionary) as writer:
            for size in batches:
                writer.write_table(table.slice(0, size))
        assert read_parquet(stream.getvalue()).shape == (rows, 2)


def test_risky_encodings_are_tried_elsewhere() -> None:
    assert not check_layout(memoryview(SEEDS["arrow delta"])).plain
    assert all(check_layout(memoryview(data)).plain for name, data in SEEDS.items() if name != "arrow delta")
    assert read_parquet(SEEDS["arrow delta"]).equals(FLAT)


@pytest.mark.parametrize("as_file", [True, False])
def test_a_trial_survives_what_ends_the_reader(as_file: bool, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(KILLER)
    with pytest.raises(DamagedError, match="does not survive"):
        try_reading(tmp_path / "a.parquet" if as_file else KILLER, 1000)


def test_rows_to_ask_about_are_checked_too(tmp_path: Path) -> None:
    (tmp_path / "rows.parquet").write_bytes(KILLER)
    with pytest.raises(FormatError, match=r"can't be read as Parquet"):
        read_rows(str(tmp_path / "rows.parquet"))


def test_a_trial_tells_errors(tmp_path: Path) -> None:
    with pytest.raises(DamagedError, match=r"No such file|no such file|not found|os error 2"):
        try_reading(tmp_path / "absent.parquet", 1000)


def test_a_trial_imports_nothing_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("polars", "resource"):
        (tmp_path / f"{name}.py").write_text("open('imported', 'w')\n")
    monkeypatch.chdir(tmp_path)
    try_reading(SEEDS["arrow delta"], 1000)
    assert not (tmp_path / "imported").exists()


def test_errors_of_the_reader_are_kept_off_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError), quiet_stderr():
        os.write(2, b"thread panicked at")
        raise RuntimeError
    assert capfd.readouterr().err == ""
    with quiet_stderr():
        os.write(2, b"a warning")
    assert capfd.readouterr().err == "a warning"


def test_compressed_once_more(tmp_path: Path) -> None:
    import gzip

    path = tmp_path / "run.parquet.gz"
    path.write_bytes(gzip.compress(KILLER))
    with pytest.raises(FormatError, match="can't be read as Parquet") as caught:
        read_contexts(path)
    assert caught.value.file == str(path)
    path.write_bytes(gzip.compress(arrow(FLAT)))
    assert read_contexts(path).frame.height == FLAT.height
