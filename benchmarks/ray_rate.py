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

from ragworth.calls.job import Job
from ragworth.executors import Executor
from ragworth.executors.local import LocalExecutor
from ragworth.executors.ray import RayExecutor, RaySettings
from ragworth.llm import llm
from ragworth.llm.contract import Choose, Prompt, Request

PASSAGE = " ".join(f"word{number}" for number in range(150))


def requests(number: int, start: int) -> list[Request]:
    return [Choose(Prompt.text(f"{PASSAGE}\nQuestion {start + n}: is it so?"), ("yes", "no")) for n in range(number)]


def rate(executor: Executor, folder: Path, calls: int, batch: int, seconds: float, start: int) -> float:
    """Calls per second, after a few calls that start everything."""
    model = llm(f"scripted:{folder / 'script.json'}", batch=batch, seconds=seconds)
    with Job(model, folder / "calls.sqlite", executor=executor) as job:
        list(job.run(requests(64, start)))
        begun = time.monotonic()
        list(job.run(requests(calls, start + 64)))
        return calls / (time.monotonic() - begun)


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
                print(f"  {f'{actors} actors' if actors else 'local'}: {found:,.0f} calls/s", flush=True)


if __name__ == "__main__":
    main()
