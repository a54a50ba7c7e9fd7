"""Files that ask for too much: long lines, compression bombs, nothing but empty or bad lines."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from ragworth import evaluate
from ragworth.core.errors import FormatError, InputError, RagworthError
from ragworth.formats import files, load, read_contexts
from ragworth.formats.files import count_lines, numbered_lines, read_lines, split_lines
from ragworth.workspace.read import read_folder

Save = Callable[[str, str | bytes], Path]

RUN = b"q1 Q0 d1 1 2.5 t\nq1 Q0 d2 2 1.5 t\n"
CONTEXT = b'{"query_id": "q1", "retrieved_context": [{"doc_id": "d1", "text": "%s"}]}\n'
ROWS = {
    "trec": (RUN, b"q2 Q0 %s 1 1 t\n"),
    "table": (b"query,passage,score\nq1,d1,1\n", b"q2,%s,1\n"),
    "jsonl": (CONTEXT % b"", b'{"query_id": "q2", "retrieved_context": [{"doc_id": "%s"}]}\n'),
}


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd.compress])
@pytest.mark.parametrize("name", ROWS)
def test_a_long_line(name: str, pack: Callable[[bytes], bytes], save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    start, row = ROWS[name]
    path = save("file", pack(start + row % (b"x" * 5000)))
    number = start.count(b"\n") + 1
    monkeypatch.setenv("RAGWORTH_MAX_LINE", "4K")
    with pytest.raises(FormatError, match="longer than 4,096 bytes") as caught:
        read_contexts(f"{name}:{path}")
    assert (caught.value.file, caught.value.line) == (str(path), number)
    assert "RAGWORTH_MAX_LINE" in caught.value.remedy
    monkeypatch.setenv("RAGWORTH_MAX_LINE", "5100")
    assert read_contexts(f"{name}:{path}").frame.height >= 2


def test_a_line_without_end_is_not_read_to_its_end(save: Save) -> None:
    """40 MB in 40 kB, with more to come: it is refused before that."""
    stream = BytesIO()
    with gzip.GzipFile("", "wb", 1, fileobj=stream, mtime=0) as packed:
        for _ in range(10):
            packed.write(b"a" * (4 << 20))
    with pytest.raises(FormatError, match="longer than 33,554,432 bytes") as caught:
        read_contexts(save("bomb.run.gz", stream.getvalue()))
    assert caught.value.line == 1


@pytest.mark.parametrize("length", [4095, 4096, 4097])
def test_the_longest_line_that_is_read(length: int, save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGWORTH_MAX_LINE", "4096")
    path = save("file", b"short\n" + b"a" * length + b"\r\nlast")
    if length > 4096:
        with pytest.raises(FormatError, match="line 2: this line is longer"):
            list(read_lines(path))
    else:
        assert [number for number, _ in read_lines(path)] == [1, 2, 3]


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress])
def test_a_file_that_unpacks_to_too_much(
    pack: Callable[[bytes], bytes], save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MIN_UNPACKED_SIZE", 1 << 20)
    path = save("file", pack(RUN + b"\n" * (2 << 20)))
    for name in ("trec", "table", "jsonl", "exam"):
        with pytest.raises(FormatError, match="unpacks to more than 200 times its size") as caught:
            load(f"{name}:{path}") if name == "exam" else read_contexts(f"{name}:{path}")
        assert caught.value.file == str(path)
        assert "RAGWORTH_MAX_RATIO" in caught.value.remedy
    monkeypatch.setenv("RAGWORTH_MAX_RATIO", "1000000")
    assert read_contexts(f"trec:{path}").frame.height == 2


def test_a_bomb_in_a_later_member(save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MIN_UNPACKED_SIZE", 1 << 20)
    monkeypatch.setenv("RAGWORTH_MAX_RATIO", "50")
    path = save("file", gzip.compress(RUN) + gzip.compress(b"\n" * (2 << 20)))
    with pytest.raises(FormatError, match="more than 50 times"):
        read_contexts(path)


def archive(data: bytes) -> bytes:
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as packed:
        packed.writestr("run.txt", data)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("pack", "found"),
    [
        (bz2.compress, "this is compressed with bzip2"),
        (lzma.compress, "this is compressed with xz"),
        (archive, "this is a ZIP archive"),
        (lambda data: gzip.compress(data)[:-4], "damaged or truncated"),
        (lambda data: zstd.compress(data)[:-4], "damaged or truncated"),
        (lambda data: gzip.compress(data) + b"rubbish", "damaged or truncated"),
        # A frame that asks for a window of 2 GB: 1 KiB << (168 >> 3).
        (lambda _: b"\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00", "damaged or truncated"),
    ],
)
def test_compression_that_is_not_read(pack: Callable[[bytes], bytes], found: str, save: Save) -> None:
    path = save("run.txt", pack(RUN * 50))
    with pytest.raises(FormatError, match=found) as caught:
        read_contexts(path)
    assert caught.value.file == str(path)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("name", "data", "found", "remedy"),
    [
        ("log.xlsx", archive(RUN), "this is a spreadsheet", "as CSV"),
        ("log.XLS", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "this is a spreadsheet", "pandas.read_excel"),
    ],
)
def test_spreadsheets_say_how_to_export_them(
    name: str, data: bytes, found: str, remedy: str, save: Save, tmp_path: Path
) -> None:
    path = save(name, data)
    for read in (read_contexts, load, evaluate):
        with pytest.raises(RagworthError, match=found) as caught:
            read(path)
        assert isinstance(caught.value, InputError) and remedy in caught.value.remedy
    plan = read_folder(tmp_path).plan
    assert plan is not None and plan.unused and remedy in "".join(plan.unused)


@pytest.mark.parametrize("value", ["0", "-1", "many", "1e9", "10T", "9" * 40])
@pytest.mark.parametrize("variable", ["RAGWORTH_MAX_LINE", "RAGWORTH_MAX_RATIO"])
def test_a_limit_that_is_no_number(variable: str, value: str, save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(InputError, match=f"the environment variable {variable} is "):
        read_contexts(save("file", gzip.compress(RUN)))


def test_empty_lines_keep_the_numbers(save: Save) -> None:
    for name, (start, row) in ROWS.items():
        path = save("file", start + b"\n" * 100_000 + row % b"d" + b"\r\n\r\r" + b"nonsense\n")
        with pytest.raises(FormatError, match="nonsense") as caught:
            read_contexts(f"{name}:{path}")
        assert caught.value.line == start.count(b"\n") + 100_000 + 1 + 3 + 1


@given(st.text(alphabet="ab \r\n", max_size=60).map(str.encode), st.integers(0, 3))
def test_numbered_lines(chunk: bytes, before: int) -> None:
    every = list(enumerate(split_lines(chunk), before + 1))
    assert list(numbered_lines(chunk, before)) == [(number, line) for number, line in every if line]
    assert count_lines(chunk) == len(every)


@given(content=st.text(alphabet="ab\r\n", max_size=60).map(str.encode), size=st.integers(2, 9))
def test_chunks_of_any_size_give_the_same_lines(content: bytes, size: int, scratch: Path) -> None:
    path = scratch / "file"
    path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "CHUNK", size)
        assert list(read_lines(path)) == list(numbered_lines(content, 0))
