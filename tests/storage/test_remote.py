"""Object stores: files, copies of folders and commands, on an S3 server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ragworth.cli import main
from ragworth.errors import InputError
from ragworth.storage.file_record import FileRecord
from ragworth.storage.mirror import Mirror, mirrors_folder
from ragworth.storage.remote import RemoteFile, RemotePath, is_url
from tests.storage.s3_server import s3_server

pytestmark = pytest.mark.server

EXAMPLE = Path(__file__).parents[2] / "examples" / "scoring"
NUMBERS = count()


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with s3_server() as url:
        yield url


@pytest.fixture
def folder(bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RemotePath:
    """An empty folder, and no copies on this machine."""
    monkeypatch.setenv("RAGWORTH_MIRRORS", str(tmp_path / "mirrors"))
    return RemotePath(f"{bucket}/{next(NUMBERS)}")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


@pytest.mark.parametrize(
    ("text", "expected"),
    [("s3://b/x", True), ("gs://b", True), ("s3:/b/x", False), ("bm25.run", False), ("https://host/x", False)],
)
def test_addresses(text: str, expected: bool) -> None:
    assert is_url(text) is expected


@pytest.mark.parametrize("text", ["s3://", "s3://b/../x", "s3://b/./x"])
def test_bad_addresses_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="no address"):
        RemotePath(text)


def test_files_are_written_listed_and_read(folder: RemotePath) -> None:
    assert folder.files() == []
    assert not (folder / "one.txt").is_file()
    (folder / "one.txt").write_bytes(b"first")
    (folder / "deep/er/two.txt").write_bytes(b"second")
    assert [file.name for file in folder.files()] == ["deep/er/two.txt", "one.txt"]
    assert (folder / "one.txt").read_bytes() == b"first"
    with pytest.raises(FileNotFoundError, match="no such file"):
        (folder / "three.txt").read_bytes()


def test_a_copy_follows_the_folder_and_sends_back_what_is_new(folder: RemotePath) -> None:
    (folder / "queries.jsonl").write_bytes(b"old")
    (folder / "sub/qrels.txt").write_bytes(b"labels")
    mirror = Mirror(folder)
    local = mirror.fetch()
    assert (local / "sub" / "qrels.txt").read_text() == "labels"
    assert local.stat().st_mode & 0o77 == 0
    (folder / "queries.jsonl").write_bytes(b"new")
    assert (mirror.fetch() / "queries.jsonl").read_text() == "new"
    (local / "results").mkdir()
    (local / "results" / "scores.csv").write_text("a,b\n")
    (local / "calls.sqlite").write_bytes(b"store")
    (local / ".ragworth").mkdir()
    (local / ".ragworth" / "index").write_bytes(b"cache")
    assert mirror.send() == 1
    assert mirror.send() == 0
    assert [file.name for file in folder.files()] == ["queries.jsonl", "results/scores.csv", "sub/qrels.txt"]
    assert mirror.fetch() == local  # what was sent isn't new there


def test_a_file_that_changed_on_both_sides_is_an_error(folder: RemotePath) -> None:
    (folder / "a.txt").write_bytes(b"old")
    local = Mirror(folder).fetch()
    (local / "a.txt").write_text("changed here")
    (folder / "a.txt").write_bytes(b"changed there")
    with pytest.raises(InputError, match="changed too") as error:
        Mirror(folder).fetch()
    assert str(local / "a.txt") in str(error.value)
    assert (local / "a.txt").read_text() == "changed here"


def test_what_somebody_else_uploaded_meanwhile_is_not_overwritten(folder: RemotePath) -> None:
    (folder / "a.txt").write_bytes(b"old")
    mirror = Mirror(folder)
    (mirror.fetch() / "a.txt").write_text("mine")
    (folder / "a.txt").write_bytes(b"theirs")
    with pytest.raises(InputError, match="changed too"):
        mirror.send()
    assert (folder / "a.txt").read_bytes() == b"theirs"


def test_what_is_gone_in_the_store_is_gone_in_the_copy(folder: RemotePath) -> None:
    import obstore

    for name in ("a.run", "b.run"):
        (folder / "runs" / name).write_bytes(b"run")
    local = Mirror(folder).fetch()
    obstore.delete(folder._store, "runs/b.run")
    Mirror(folder).fetch()
    assert [path.name for path in (local / "runs").iterdir()] == ["a.run"]


def test_a_second_machine_goes_on_with_the_results_of_the_first(
    folder: RemotePath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "log.jsonl").write_bytes(b"{}")
    one = Mirror(folder)
    FileRecord(one.fetch() / "results").write("report.md", b"first")
    one.send()
    monkeypatch.setenv("RAGWORTH_MIRRORS", str(tmp_path / "second"))
    other = Mirror(folder)
    FileRecord(other.fetch() / "results").refuse_foreign(["report.md"])


@pytest.mark.parametrize("name", ["run#1", "run?v=2", "a%20b", "a b", "naïve"])
def test_a_path_is_taken_literally(folder: RemotePath, name: str) -> None:
    (folder / name / "q.txt").write_bytes(b"text")
    assert [file.name for file in folder.files()] == [f"{name}/q.txt"]
    assert (Mirror(folder / name).fetch() / "q.txt").read_bytes() == b"text"


def test_empty_files_that_mark_folders_are_left_out(folder: RemotePath) -> None:
    import obstore

    bucket = folder.parent._store
    for key in (f"{folder.name}/", f"{folder.name}/runs/"):
        obstore.put(bucket, key, b"")
    (folder / "runs/a.run").write_bytes(b"run")
    assert [file.name for file in folder.files()] == ["runs/a.run"]
    assert (Mirror(folder).fetch() / "runs" / "a.run").is_file()


def test_a_name_that_leads_out_of_the_copy_is_refused(folder: RemotePath, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = RemoteFile("../../escaped.txt", 1, "v")
    monkeypatch.setattr(RemotePath, "files", lambda self, pattern="*": [hostile])
    with pytest.raises(InputError, match="can't be a file's"):
        Mirror(folder).fetch()


def test_runs_and_labels_are_scored_where_they_are(folder: RemotePath) -> None:
    (folder / "bm25.run").write_bytes((EXAMPLE / "runs" / "bm25.run").read_bytes())
    (folder / "qrels.txt").write_bytes((EXAMPLE / "qrels.txt").read_bytes())
    there = run("score", "-q", folder / "qrels.txt", f"one={folder}/bm25.run", "-f", "json")
    here = run("score", "-q", EXAMPLE / "qrels.txt", f"one={EXAMPLE / 'runs' / 'bm25.run'}", "-f", "json")
    assert (there.exit_code, there.stdout) == (0, here.stdout)
    written = run("score", f"--qrels={folder}/qrels.txt", folder / "bm25.run", "-o", folder / "out/scores.csv")
    assert written.exit_code == 0, written.output
    assert (folder / "out/scores.csv").read_bytes().count(b"\n") > 1


def test_a_comparison_that_fails_is_uploaded_too(folder: RemotePath) -> None:
    for name, run_name in (("old", "rerank"), ("new", "bm25")):
        (folder / f"{name}.run").write_bytes((EXAMPLE / "runs" / f"{run_name}.run").read_bytes())
    (folder / "qrels.txt").write_bytes((EXAMPLE / "qrels.txt").read_bytes())
    asked = ("-q", folder / "qrels.txt", "--fail-if-worse", "nDCG@10", "-m", "nDCG@10")
    ended = run("compare", folder / "old.run", folder / "new.run", *asked, "-o", folder / "compared.csv")
    assert ended.exit_code == 3, ended.output
    assert (folder / "compared.csv").read_bytes()


def test_a_folder_is_checked_and_mistakes_are_told(folder: RemotePath) -> None:
    for name in ("queries.jsonl", "passages.jsonl", "qrels.txt"):
        source = EXAMPLE.parent / "demo" / name
        (folder / name).write_bytes(source.read_bytes())
    found = run("check", folder)
    assert "queries" in found.output
    missing = run("score", "-q", folder / "nothing.txt", folder / "bm25.run")
    assert missing.exit_code == InputError.exit_code
    assert "there is no such file or folder" in missing.output
    store = run("evaluate", folder, "--store", folder / "calls.sqlite")
    assert "expected: a path on this machine" in store.output
    merged = run("calls", "merge", folder / "calls.sqlite", "calls.sqlite")
    assert "the store is an address" in merged.output


def test_no_credential_is_written_down(folder: RemotePath) -> None:
    (folder / "a.txt").write_bytes(b"text")
    Mirror(folder).fetch()
    secret = os.environ["AWS_SECRET_ACCESS_KEY"].encode()
    written = [path.read_bytes() for path in mirrors_folder().rglob("*") if path.is_file()]
    assert written
    assert not any(secret in data for data in written)
