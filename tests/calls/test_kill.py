"""Killed at any moment, a job loses at most what was under way, and pays for nothing twice that it kept."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ragworth.calls import maintenance
from ragworth.calls.job import Job
from ragworth.calls.serialization import call_key, model_digest
from ragworth.calls.store import Store
from ragworth.llm.scripted import Scripted
from tests.calls.samples import filled, questions

CALLS = 2000
KILLS = 10
BATCH = 8
ROOT = Path(__file__).parents[2]

# For every line of input, a process of its own runs the job. It notes every call that is paid for, says after every
# commit how many are done, and kills itself soon after so many calls. Everything is imported once.
SERVER = f"""
import os, signal, sys, threading
from ragworth.calls.job import Job
from ragworth.calls.serialization import call_key, model_digest
from ragworth.calls.store import Store
from ragworth.llm.scripted import Scripted
from tests.calls.samples import questions, share

place = sys.argv[1]

def run(after, delay):
    made = 0
    log, said = (open(f"{{place}}/{{name}}", mode, buffering=1) for name, mode in (("log", "a"), ("said", "w")))

    def script(request):
        nonlocal made
        log.write(call_key(digest, request).hex() + "\\n")
        made += 1
        if made == after:
            threading.Timer(delay, os.kill, (os.getpid(), signal.SIGKILL)).start()
        return share(request)

    class Watcher:
        def update(self, tally, waiting):
            print(tally.done, file=said)

    model = Scripted(script, batch={BATCH}, seconds=0.0003)
    digest = model_digest(model.card)
    with Store(f"{{place}}/c.sqlite") as store:
        found = list(Job(model, store, watcher=Watcher()).run(questions({CALLS})))
    print("end", len(found), file=said)

for line in sys.stdin:
    after, delay = line.split()
    if not (child := os.fork()):
        run(int(after), float(delay))
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[[int, float], int]]:
    """Runs the job, and says how it ended; 0 calls never kill it."""
    pipe, command = subprocess.PIPE, [sys.executable, "-c", SERVER, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:

        def told(after: int, delay: float) -> int:
            assert process.stdin is not None and process.stdout is not None
            print(after, delay, file=process.stdin, flush=True)
            return int(process.stdout.readline())

        yield told


def paid(log: Path) -> list[str]:
    """Keys of the calls that were paid for; a kill may have cut the last line."""
    return [line for line in log.read_text().splitlines() if len(line) == 32] if log.exists() else []


def kept(path: Path) -> set[str]:
    with Store(path) as store:
        return {key.hex() for (key,) in store.query("SELECT key FROM answers")}


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="there is no SIGKILL")
def test_ten_kills_and_nothing_kept_is_paid_for_again(tmp_path: Path, run: Callable[[int, float], int]) -> None:
    path, log, said = tmp_path / "c.sqlite", tmp_path / "log", tmp_path / "said"
    draw = random.Random(11)
    safe: set[str] = set()  # kept when a kill came: none of these may be paid for again
    for _ in range(KILLS):
        before = len(paid(log))
        assert run(draw.randrange(40, 160), draw.random() * 0.01) == -signal.SIGKILL
        assert safe.isdisjoint(paid(log)[before:])
        found = kept(path) if path.exists() else set()
        reported = [int(line) for line in said.read_text().splitlines() if line.isdigit()]
        # What was said to be done is in the store, and with it at most the commit that nobody heard of.
        assert len(found) - len(safe) >= (reported[-1] if reported else 0)
        assert safe <= found <= set(paid(log))
        assert len(paid(log)) - before - (len(found) - len(safe)) <= 2 * BATCH
        safe = found
    before = len(paid(log))
    assert run(0, 0.0) == 0
    assert said.read_text().splitlines()[-1] == f"end {CALLS}"
    assert safe.isdisjoint(paid(log)[before:])
    times = Counter(paid(log))
    assert len(times) == CALLS
    # Only calls that were under way at a kill were paid for again.
    assert sum(times.values()) - CALLS <= KILLS * 2 * BATCH

    whole = filled(tmp_path / "whole.sqlite", questions(CALLS), seconds=0.0003)
    silent = Scripted(lambda request: {"yes": 1.0})
    with Store(path) as store, Store(tmp_path / "whole.sqlite") as other:
        assert list(Job(silent, store).run(questions(CALLS))) == whole
        assert silent.calls == 0
        assert maintenance.verify(store) == maintenance.VerificationResult(CALLS, [])
        columns = "key, model, kind, prompt_tokens, new_tokens"
        tables = [one.query(f"SELECT {columns} FROM answers ORDER BY key") for one in (store, other)]
        assert tables[0] == tables[1]
        assert {call_key(model_digest(silent.card), one).hex() for one in questions(CALLS)} == set(times)
