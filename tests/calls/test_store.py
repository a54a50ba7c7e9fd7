"""The file that calls are kept in: made, reopened, refused, damaged, shared."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from ragworth.calls import maintenance
from ragworth.calls.job import Job
from ragworth.calls.store import Store
from ragworth.core.errors import RagworthError, StoreError
from ragworth.llm.scripted import Scripted
from tests.calls.samples import filled, fresh, question, questions, share, tampered


def test_what_was_kept_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "calls.sqlite"
    first = filled(path, questions(5))
    model, noted = fresh()
    with Store(path, create=False) as kept:
        assert list(Job(model, kept).run(questions(5))) == first
    assert noted.seen == []


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="this is a folder"):
        Store(tmp_path)


def test_a_store_of_another_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    filled(path, questions(2))
    tampered(path, "ALTER TABLE answers ADD COLUMN grade REAL")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="its tables are not those of a call store") as caught:
        Store(path)
    assert "another store" in str(caught.value)
    assert path.read_bytes() == before


def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(other)) as db, db:
        db.execute("CREATE TABLE bookmarks (url TEXT)")
    text = tmp_path / "notes.txt"
    text.write_text("not a database, but long enough to look like one\n" * 100)
    for path in (other, text):
        before = path.read_bytes()
        with pytest.raises(StoreError) as caught:
            Store(path)
        assert path.name in str(caught.value)
        assert path.read_bytes() == before


def test_many_may_make_the_same_store_at_once(tmp_path: Path) -> None:
    problems: list[BaseException] = []
    for number in range(10):
        path = tmp_path / f"{number}.sqlite"
        start = threading.Barrier(6)

        def make(path: Path = path, start: threading.Barrier = start) -> None:
            start.wait(10)
            try:
                Store(path).close()
            except BaseException as error:
                problems.append(error)

        threads = [threading.Thread(target=make) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert problems == []


def test_others_read_while_one_writes(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    seen: list[int] = []

    class Reader:
        """Opens the store for itself after every batch."""

        def update(self, tally: object, waiting: int) -> None:
            with Store(path, create=False) as other:
                seen.append(other.query("SELECT count(*) FROM answers")[0][0])
                assert maintenance.verify(other).problems == []

    with Store(path) as kept:
        list(Job(Scripted(share, batch=2), kept, watcher=Reader()).run(questions(10)))
    assert seen == [2, 4, 6, 8, 10]


HOLDER = """
import sys
from ragworth.calls.store import Store
with Store(sys.argv[1]) as store, store.writing():
    print("held", flush=True)
    sys.stdin.readline()
"""


@contextmanager
def held(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that writes to a store, until it is told to end."""
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def let_go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_a_second_writer_is_told_who_the_first_is(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    model, noted = fresh()
    with held(path) as process, Store(path) as kept:
        with pytest.raises(StoreError, match="another process is writing") as caught:
            list(Job(model, kept).run([question(1)]))
        assert f"process {process.pid} on " in str(caught.value)
        assert noted.seen == []
        assert Job(model, kept).plan([question(1)]).missing == 1  # planning only reads
        let_go(process)
        process.wait(10)
        assert len(list(Job(model, kept).run([question(1)]))) == 1


def test_a_second_writer_may_wait_for_the_first(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with held(path) as process, Store(path) as kept:
        threading.Timer(0.3, let_go, [process]).start()
        assert len(list(Job(Scripted(share), kept, wait=30).run([question(1)]))) == 1


def test_a_writer_that_was_killed_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with held(path) as process, Store(path) as kept:
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        assert len(list(Job(Scripted(share), kept).run([question(1)]))) == 1
        assert kept.query("SELECT process FROM writer") == []


ENTRIES: dict[str, Callable[[Path], object]] = {}


def entry(name: str) -> Callable[[Callable[[Store], object]], Callable[[Store], object]]:
    """Something a user can do with a store."""

    def add(function: Callable[[Store], object]) -> Callable[[Store], object]:
        def opened(path: Path) -> object:
            with Store(path) as kept:
                return function(kept)

        ENTRIES[name] = opened
        return function

    return add


entry("open")(lambda kept: kept.path)
entry("run")(lambda kept: list(Job(Scripted(share), kept).run(questions(70))))
entry("plan")(lambda kept: Job(Scripted(share), kept).plan(questions(70)))
entry("show")(maintenance.stored_calls)
entry("verify")(maintenance.verify)
entry("export")(lambda kept: list(maintenance.export_calls(kept)))


def damages(whole: bytes) -> Iterator[bytes]:
    """A file with pieces flipped, overwritten and cut off."""
    draw = random.Random(7)
    for _ in range(12):
        at = draw.randrange(100, len(whole) - 400)
        yield whole[:at] + bytes(byte ^ 0xFF for byte in whole[at : at + 300]) + whole[at + 300 :]
    for page in range(0, len(whole) // 4096, 3):
        yield whole[: page * 4096] + b"\x00" * 4096 + whole[(page + 1) * 4096 :]
    for size in (50, 100, 4096, len(whole) // 2, len(whole) - 1000):
        yield whole[:size]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A store of several pages, with answers and prompts in it."""
    path = tmp_path_factory.mktemp("sound") / "c.sqlite"
    filled(path, questions(60, words=40))
    return path.read_bytes()


@pytest.mark.parametrize("name", ENTRIES)
def test_a_damaged_store_is_an_error_in_words(name: str, sound: bytes, tmp_path: Path) -> None:
    wrong: list[str] = []
    for number, content in enumerate(damages(sound)):
        path = tmp_path / f"{number}.sqlite"
        path.write_bytes(content)
        try:
            ENTRIES[name](path)
        except RagworthError as error:
            assert path.name in str(error), error
        except Exception as error:
            wrong.append(f"{number}: {type(error).__name__}: {error}")
    assert wrong == []
