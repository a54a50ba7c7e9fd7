"""The command line as a process: Ctrl-C at any moment, closed pipes, and machines without memory or threads."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner, Result

from ragworth.calls import maintenance
from ragworth.calls.executors import ThreadWorkers
from ragworth.calls.job import MEMORY_REMEDY, Job, defer_interrupt
from ragworth.calls.store import Store
from ragworth.cli import main
from ragworth.cli.process import resource_error
from ragworth.core import interrupts
from ragworth.core.errors import JobStopped, ResourceError
from ragworth.core.resources import find_shortage
from ragworth.llm.contract import Failure
from ragworth.llm.scripted import Scripted
from tests.calls.samples import count, filled, fresh, questions, share
from tests.tiers import slow

ROOT = Path(__file__).parents[2]
MOMENTS = 10

# Says when our first lines have run. Python's own start, before them, is out of our hands.
STARTED = "from ragworth.__main__ import run; print('up', flush=True); run()"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    filled(tmp_path / "c.sqlite", questions(20))
    return tmp_path / "c.sqlite"


def started(code: str, *arguments: str) -> subprocess.Popen[str]:
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", code, *arguments], cwd=ROOT, **pipes)


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    with process:
        said, complained = process.communicate(timeout=120)
    return process.returncode, said, complained


def up(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"


@pytest.mark.slow
def test_ctrl_c_at_any_moment_has_no_traceback(store: Path) -> None:
    arguments = (STARTED, "calls", "show", str(store))
    process = started(*arguments)
    up(process)
    begun = time.monotonic()
    code, said, _ = ended(process)
    takes = time.monotonic() - begun
    assert (code, "choose" in said) == (0, True)
    codes = []
    for moment in range(MOMENTS):
        process = started(*arguments)
        up(process)
        time.sleep(takes * moment / MOMENTS)
        process.send_signal(signal.SIGINT)
        code, _, complained = ended(process)
        assert "Traceback" not in complained
        codes.append(code)
    assert set(codes) <= {0, 130}
    assert codes[0] == 130


def test_ctrl_c_inside_an_import_that_would_swallow_it(tmp_path: Path) -> None:
    (tmp_path / "greedy.py").write_text(
        "import os, signal\ntry:\n    os.kill(os.getpid(), signal.SIGINT)\n    for _ in range(10**6): pass\n"
        "except BaseException:\n    raise RuntimeError('something else')\n"
    )
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import ragworth.__main__; import greedy; print('on')"
    assert ended(started(code)) == (130, "", "\nragworth: interrupted\n")


def test_a_second_ctrl_c_ends_at_once() -> None:
    code = (
        "import os, signal\nfrom ragworth.core.interrupts import install\ninstall()\n"
        "try:\n    os.kill(os.getpid(), signal.SIGINT)\n    signal.pause()\n"
        "except KeyboardInterrupt:\n    print('first', flush=True)\n    os.kill(os.getpid(), signal.SIGINT)\n"
        "    signal.pause()\nprint('on')"
    )
    assert ended(started(code)) == (130, "first\n", "\nragworth: interrupted\n")


def test_where_ctrl_c_is_ignored_it_stays_so() -> None:
    code = (
        "import os, signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nimport ragworth.__main__\n"
        "os.kill(os.getpid(), signal.SIGINT)\nprint('on')"
    )
    assert ended(started(code)) == (0, "on\n", "")


def test_a_job_notes_the_first_ctrl_c_of_the_command_line_too() -> None:
    before = signal.signal(signal.SIGINT, interrupts.handle)
    try:
        with defer_interrupt() as pressed:
            signal.raise_signal(signal.SIGINT)
            assert pressed()
        assert signal.getsignal(signal.SIGINT) is interrupts.handle
    finally:
        signal.signal(signal.SIGINT, before)


def test_sigterm_ends_without_a_word(store: Path) -> None:
    process = started(f"{STARTED[: STARTED.index('run()')]}import time; time.sleep(60)")
    up(process)
    process.send_signal(signal.SIGTERM)
    assert ended(process) == (-signal.SIGTERM, "", "")


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def raising(error: BaseException) -> Callable[..., None]:
    def fail(*values: object, **options: object) -> None:
        raise error

    return fail


def test_ctrl_c_in_a_command_is_130(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "stored_calls", raising(KeyboardInterrupt()))
    result = call("calls", "show", str(store))
    assert (result.exit_code, result.stderr) == (130, "\nragworth: interrupted\n")


@pytest.mark.parametrize("arguments", ["--help", "metrics", *slow("calls export {}")])
def test_a_reader_that_has_seen_enough(arguments: str, store: Path) -> None:
    script = f"{sys.executable} -m ragworth {arguments.format(store)} | head -c 1 >/dev/null; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stderr == ""
    assert done.stdout == "0\n"


def test_letters_that_the_output_lacks_are_replaced() -> None:
    command, env = [sys.executable, "-m", "ragworth", "metrics", "UDCG"], {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"") and b"UDCG(?)@k" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such shell")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_closed_streams(closed: str) -> None:
    script = f"{sys.executable} -m ragworth --version {closed}"
    done = subprocess.run(["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no disk that is always full")
@pytest.mark.parametrize("arguments", ["--version", "metrics", *slow("calls show")])
def test_a_full_disk_is_one_line(arguments: str, store: Path) -> None:
    more = [str(store)] if arguments.startswith("calls") else []
    command = [sys.executable, "-m", "ragworth", *arguments.split(), *more]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr.splitlines()) == (
        2,
        ["ragworth: the output can't be written: No space left on device"],
    )


def array_too_large() -> MemoryError:
    try:
        np.zeros(1 << 57)
    except MemoryError as error:
        return error
    raise AssertionError("there was room")


SHORTAGES: dict[str, tuple[BaseException, str]] = {
    "MemoryError": (MemoryError(), "not enough memory"),
    "NumPy": (array_too_large(), "not enough memory"),
    "Polars": (pl.exceptions.ComputeError("out of memory"), "not enough memory"),
    "torch": (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), "not enough memory"),
    "loader": (ImportError("libx.so: failed to map segment from shared object"), "not enough memory"),
    "system": (OSError(errno.ENOMEM, "Cannot allocate memory"), "not enough memory"),
    "thread": (RuntimeError("can't start new thread"), "no more threads"),
    "process": (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "no more threads"),
    "files": (OSError(errno.EMFILE, "Too many open files"), "too many files"),
}


@pytest.mark.parametrize("name", SHORTAGES)
def test_a_shortage_is_one_line_and_exit_code_5(name: str, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error, words = SHORTAGES[name]
    monkeypatch.setattr(maintenance, "stored_calls", raising(error))
    result = call("calls", "show", str(store))
    assert result.exit_code == ResourceError.exit_code == 5
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_shortage_behind_another_error_is_found() -> None:
    try:
        try:
            raise MemoryError
        except MemoryError as error:
            raise ValueError("a table can't be made") from error
    except ValueError as error:
        assert find_shortage(error) == "memory"


def test_what_is_no_shortage_is_not_called_one() -> None:
    for error in (RuntimeError("a bug"), ValueError("5"), OSError(errno.ENOENT, "no such file"), KeyError("memory")):
        assert resource_error(error, None) is None


def test_what_to_lower_depends_on_the_command() -> None:
    context = click.Context(main)
    for name, words in {"compare": "--resamples", "ask": "-O concurrency", "evaluate": "--limit"}.items():
        assert words in str(resource_error(MemoryError(), main.get_command(context, name)))


LIMITED = """
import resource, sys, threading
import polars, numpy, scipy.stats, ragworth.scoring, ragworth.comparison, ragworth.report.render, ragworth.calls.job
import ragworth.cli.ask, ragworth.judging.ask, ragworth.llm.scripted
polars.DataFrame({"a": [1]}).lazy().collect()  # its threads are there
with open("/proc/self/statm") as file:
    size = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (512 << 20), size + (512 << 20)))
threading.stack_size(1 << 30)
from ragworth.__main__ import run
run()
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs to know its own size")
def test_no_thread_can_be_started(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"query": "q", "passage": "p"}\n')
    (tmp_path / "script.json").write_text('{"*": {"yes": 1.0}}')
    files = ["relevance", str(tmp_path / "rows.jsonl"), "-s", str(tmp_path / "c.sqlite")]
    code, said, complained = ended(started(LIMITED, "ask", *files, "-M", f"scripted:{tmp_path / 'script.json'}"))
    assert code == 5, complained
    assert said == ""
    assert "can't start new thread" in complained
    assert "ulimit" in complained
    assert "Traceback" not in complained


def test_with_fewer_threads_than_wanted_all_calls_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really, threads = threading.Thread.start, [0]

    def start(self: threading.Thread) -> None:
        threads[0] += 1
        if threads[0] > 2:
            raise RuntimeError("can't start new thread")
        really(self)

    monkeypatch.setattr(threading.Thread, "start", start)
    model, noted_calls = fresh(concurrency=8)
    with Store(tmp_path / "c.sqlite") as kept:
        assert len(list(Job(model, kept).run(questions(50)))) == 50
    assert len(noted_calls.seen) == count(tmp_path / "c.sqlite", "answers") == 50


def test_a_shortage_in_the_middle_of_a_job_loses_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really, batches = ThreadWorkers.submit, [0]

    def submit(self: ThreadWorkers, requests: Any) -> None:
        batches[0] += 1
        if batches[0] == 4:
            raise MemoryError
        really(self, requests)

    monkeypatch.setattr(ThreadWorkers, "submit", submit)
    model, noted_calls = fresh(batch=2, concurrency=8, seconds=0.05)
    with Store(tmp_path / "c.sqlite") as kept, pytest.raises(MemoryError):
        list(Job(model, kept).run(questions(50)))
    assert len(noted_calls.seen) == count(tmp_path / "c.sqlite", "answers") == 6


def test_a_model_without_memory_says_what_to_lower(tmp_path: Path) -> None:
    def script(request: object) -> dict[str, float]:
        raise RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate; out of memory")

    with Store(tmp_path / "c.sqlite") as kept:
        (found,) = Job(Scripted(script), kept).run(questions(1))
        assert isinstance(found, Failure)
        assert found.reason == "out-of-memory"
        with pytest.raises(JobStopped) as caught:
            list(Job(Scripted(script), kept).run(questions(200)))
    assert MEMORY_REMEDY in str(caught.value)
    assert share(questions(1)[0]) == {"yes": 0.0}
