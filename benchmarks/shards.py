"""Plan synthetic calls, run them in several processes that are killed now and then, merge them and look them up.

    python benchmarks/shards.py 10000000 --shards 128 --processes 4 --kills 40 --seconds 8

prints seconds, peak memory and bytes for each step. The model answers at once, so this is what ragworth itself costs.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ragworth.calls.capture import capture_requests
from ragworth.calls.job import Job
from ragworth.calls.shards.merge import merge_shards
from ragworth.calls.shards.plan import ShardPlan, ShardWriter
from ragworth.calls.shards.run import run_shard
from ragworth.llm.contract import Choose, Prompt, Request
from ragworth.llm.scripted import Scripted

PASSAGE = " ".join(f"word{number}" for number in range(60))
LOOKED_UP = 100_000


def requests(number: int) -> Iterator[Request]:
    for place in range(number):
        yield Choose(Prompt.text(f"{PASSAGE}\nQuestion {place}: is it so?"), ("yes", "no"))


def model() -> Scripted:
    return Scripted(lambda request: {"yes": 0.75, "no": 0.125}, batch=64)


def plan(number: int, folder: Path, shards: int) -> None:
    writer = ShardWriter(folder, shards)
    with capture_requests(writer):
        for _ in Job(model()).run(requests(number)):
            pass
    writer.finish()


def run(folder: Path, part: int, of: int) -> None:
    found = ShardPlan.read(folder)
    for number in range(part, len(found.shards), of):
        run_shard(found, number, model())


def merge(folder: Path, store: Path) -> None:
    merged = list(merge_shards(ShardPlan.read(folder), store))
    conflicts, repeated = sum(one.conflicts for one in merged), sum(one.repeated for one in merged)
    print(f"  {sum(one.answers for one in merged):,} answers, {conflicts} conflicts, {repeated:,} repeated")
    if missing := sum(one.missing for one in merged):
        raise SystemExit(f"{missing} calls have no answer")


def look_up(number: int, store: Path) -> None:
    with Job(model(), store) as job:
        for _ in job.run(requests(min(number, LOOKED_UP))):
            pass
    print(f"  {job.tally.cached:,} found, {job.tally.calls} asked")


def in_child(name: str, work: Callable[[], None]) -> resource.struct_rusage:
    """Do the work in a process of its own, so that its peak memory, and that of its children, is its own."""
    child = os.fork()
    if not child:
        work()
        sys.stdout.flush()
        os._exit(0)
    _, status, used = os.wait4(child, 0)
    if status:
        raise SystemExit(f"{name} failed")
    return used


def measured(name: str, work: Callable[[], None]) -> None:
    begun = time.monotonic()
    used = in_child(name, work)
    cpu = used.ru_utime + used.ru_stime
    print(f"{name}: {time.monotonic() - begun:.0f} s, {cpu:.0f} s CPU, {used.ru_maxrss / 1024:.0f} MiB", flush=True)


def run_with_kills(folder: Path, processes: int, kills: int, seconds: float) -> None:
    """Run all shards; kill a random process every few seconds, and start it again."""
    draw = random.Random(0)

    def start(part: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, __file__, "0", "--run", str(folder), str(part), str(processes)])

    running = {part: start(part) for part in range(processes)}
    begun, last, killed = time.monotonic(), time.monotonic(), 0
    while running:
        time.sleep(0.2)
        for part, child in list(running.items()):
            if child.poll() == 0:
                del running[part]
            elif child.poll() is not None:
                running[part] = start(part)
        if running and killed < kills and time.monotonic() - last > seconds:
            running[draw.choice(list(running))].send_signal(signal.SIGKILL)
            killed, last = killed + 1, time.monotonic()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime
    print(
        f"run, {processes} processes, {killed} kills: {time.monotonic() - begun:.0f} s, {cpu:.0f} s CPU, "
        f"{used.ru_maxrss / 1024:.0f} MiB the largest process"
    )


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    parser = argparse.ArgumentParser(description="What calls in shards cost.")
    parser.add_argument("calls", type=int)
    parser.add_argument("--shards", type=int, default=32)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--kills", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=4.0, help="between two kills")
    parser.add_argument("--folder", type=Path, default=Path("build/shards"))
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        run(Path(given.run[0]), int(given.run[1]), int(given.run[2]))
        return
    shutil.rmtree(given.folder, ignore_errors=True)
    folder, store = given.folder / "plan", given.folder / "calls.sqlite"
    given.folder.mkdir(parents=True)
    measured("plan", lambda: plan(given.calls, folder, given.shards))
    in_child("run", lambda: run_with_kills(folder, given.processes, given.kills, given.seconds))
    requested, answered = size(folder) - size(folder / "answers"), size(folder / "answers")
    measured("merge", lambda: merge(folder, store))
    kept = size(given.folder) - size(folder)
    measured(f"look up {min(given.calls, LOOKED_UP):,}", lambda: look_up(given.calls, store))
    print(f"bytes a call: {requested / given.calls:.0f} planned, {answered / given.calls:.0f} answered, ", end="")
    print(f"{kept / given.calls:.0f} in the store")


if __name__ == "__main__":
    main()
