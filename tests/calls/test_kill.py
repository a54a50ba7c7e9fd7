"""Killed at any moment, a job loses at most what was under way, and pays for nothing twice that it kept."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
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

# Notes every call that is paid for, and says after every commit how many are done.
CHILD = f"""
import sys
from ragworth.calls.job import Job
from ragworth.calls.serialization import call_key, model_digest
from ragworth.calls.store import Store
from ragworth.llm.scripted import Scripted
from tests.calls.samples import questions, share

log = open(sys.argv[2], "a", buffering=1)

def script(request):
    log.write(call_key(digest, request).hex() + "\\n")
    return share(request)

class Watcher:
    def update(self, tally, waiting):
        print(tally.done, flush=True)

model = Scripted(script, batch={BATCH}, seconds=0.0003)
digest = model_digest(model.card)
with Store(sys.argv[1]) as store:
    found = list(Job(model, store, watcher=Watcher()).run(questions({CALLS})))
print("end", len(found), flush=True)
"""


def paid(log: Path) -> list[str]:
    """Keys of the calls that were paid for; a kill may have cut the last line."""
    return [line for line in log.read_text().splitlines() if len(line) == 32] if log.exists() else []


def kept(path: Path) -> set[str]:
    with Store(path) as store:
        return {key.hex() for (key,) in store.query("SELECT key FROM answers")}


def run_and_kill(path: Path, log: Path, after: int, delay: float, said: Path) -> bool:
    """Run the job until so many more calls are paid for, then kill it; whether it ended before that."""
    size = len(paid(log)) + after
    with (
        said.open("w") as out,
        subprocess.Popen([sys.executable, "-c", CHILD, str(path), str(log)], stdout=out, cwd=ROOT) as process,
    ):
        deadline = time.monotonic() + 60
        while process.poll() is None and log.stat().st_size < size * 33 and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait(20)
    return process.returncode == 0


@pytest.mark.slow
def test_ten_kills_and_nothing_kept_is_paid_for_again(tmp_path: Path) -> None:
    path, log, said = tmp_path / "c.sqlite", tmp_path / "log", tmp_path / "said"
    log.touch()
    draw = random.Random(11)
    kills = 0
    safe: set[str] = set()  # kept when a kill came: none of these may be paid for again
    for _ in range(KILLS):
        before = len(paid(log))
        ended = run_and_kill(path, log, draw.randrange(40, 260), draw.random() * 0.01, said)
        assert safe.isdisjoint(paid(log)[before:])
        found = kept(path) if path.exists() else set()
        reported = [int(line) for line in said.read_text().splitlines() if line.isdigit()]
        # What was said to be done is in the store, and with it at most the commit that nobody heard of.
        assert len(found) - len(safe) >= (reported[-1] if reported else 0)
        assert safe <= found <= set(paid(log))
        assert len(paid(log)) - before - (len(found) - len(safe)) <= 2 * BATCH
        safe = found
        kills += not ended
    assert kills >= KILLS - 1
    before = len(paid(log))
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), str(log)], check=True, capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout.splitlines()[-1] == f"end {CALLS}"
    assert safe.isdisjoint(paid(log)[before:])
    times = Counter(paid(log))
    assert len(times) == CALLS
    # Only calls that were under way at a kill were paid for again.
    assert sum(times.values()) - CALLS <= kills * 2 * BATCH

    whole = filled(tmp_path / "whole.sqlite", questions(CALLS), seconds=0.0003)
    silent = Scripted(lambda request: {"yes": 1.0})
    with Store(path) as store, Store(tmp_path / "whole.sqlite") as other:
        assert list(Job(silent, store).run(questions(CALLS))) == whole
        assert silent.calls == 0
        assert maintenance.verify(store) == maintenance.VerificationResult(CALLS, 0, [])
        columns = "key, model, kind, prompt_tokens, new_tokens"
        tables = [one.query(f"SELECT {columns} FROM answers ORDER BY key") for one in (store, other)]
        assert tables[0] == tables[1]
        assert {call_key(model_digest(silent.card), one).hex() for one in questions(CALLS)} == set(times)
