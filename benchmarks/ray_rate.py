"""What Ray costs for each call, how the rate grows with actors, and where the driver becomes the limit.

    python benchmarks/ray_rate.py --calls 4000 --actors 1 2 4 8

A scripted model takes a known time for each batch, so everything else is overhead. Without that time, the driver alone
decides: keys, the store, and the way to the actors and back.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from ragworth.calls.job import Job
from ragworth.errors import format_count
from ragworth.executors import Executor
from ragworth.executors.local import LocalExecutor
from ragworth.executors.ray import RayExecutor, RaySettings
from ragworth.llm import llm
from ragworth.llm.contract import Choose, Prompt, Request

PASSAGE = " ".join(f"word{number}" for number in range(150))


def requests(number: int, start: int) -> list[Request]:
    return [Choose(Prompt.text(f"{PASSAGE}\nQuestion {start + n}: is it so?"), ("yes", "no")) for n in range(number)]


class Rate(NamedTuple):
    """Calls per second, and microseconds of the driver's CPU time for each call."""

    calls: float
    driver: float


def rate(executor: Executor, folder: Path, calls: int, batch: int, seconds: float, start: int) -> Rate:
    """Measured after a few calls that start everything."""
    model = llm(f"scripted:{folder / 'script.json'}", batch=batch, seconds=seconds / batch)
    with Job(model, folder / "calls.sqlite", executor=executor) as job:
        list(job.run(requests(64, start)))
        begun, used = time.monotonic(), time.process_time()
        list(job.run(requests(calls, start + 64)))
        return Rate(calls / (time.monotonic() - begun), (time.process_time() - used) / calls * 1e6)


def main() -> None:
    parser = argparse.ArgumentParser(description="The overhead of calls on Ray.")
    parser.add_argument("--calls", type=int, default=4000)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seconds", type=float, nargs="+", default=[0.5, 0.0], help="of the model for each batch")
    parser.add_argument("--actors", type=int, nargs="+", default=[1, 2, 4, 8])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "script.json").write_text(json.dumps({"*": {"yes": 0.75, "no": 0.125}}))
        start = 0
        for seconds in given.seconds:
            ideal = f", at most {given.batch / seconds:.0f} calls/s for each actor" if seconds else ""
            print(f"{seconds:g} s for a batch of {given.batch}{ideal}")
            for actors in (0, *given.actors):
                executor: Executor = LocalExecutor() if not actors else RayExecutor(RaySettings(actors=actors, cpus=0))
                found = rate(executor, folder, given.calls, given.batch, seconds, start)
                executor.close()
                start += given.calls + 64
                where = format_count(actors, "actor") if actors else "local"
                print(f"  {where}: {found.calls:,.0f} calls/s, {found.driver:.0f} µs of the driver a call", flush=True)


if __name__ == "__main__":
    main()
