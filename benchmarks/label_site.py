"""The labelling site under load: simulated annotators over HTTP, while the server and their browsers are killed.

::

    python benchmarks/label_site.py --results load.jsonl
    python benchmarks/label_site.py --results load.jsonl --databases sqlite --kills 0 --pause 1

Everyone labels until nothing is left. Then every stored answer is compared with what was sent: each must be there once,
and every item must have exactly K labels; otherwise the script fails. It prints a table. Runs that are in ``--results``
aren't repeated, and have two numbers more: ``cpu_request`` and ``cpu_client``, CPU milliseconds of the server and of
this process for each response. People who have nothing left keep asking, so at a slow pace CPU time for each answer is
much more.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

if sys.path[0] == str(Path(__file__).resolve().parent):
    # Run as a script: our coverage.py must not stand for the package of that name.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.postgres_server import free_port, postgres_server
from benchmarks.simulated_annotators import Person, Server, check, make_site

COLUMNS = ("database", "kills", "restarts", "resent", "sent", "minutes", "rate", "p50", "p95", "p99", "cpu", "load")
TITLES = (
    *("database", "server kills", "browser kills", "resent", "answers", "minutes", "answers/s"),
    *("p50 ms", "p95 ms", "p99 ms", "CPU ms/answer", "load before, after"),
)


def label_all(folder: Path, database: str, options: dict[str, Any]) -> dict[str, Any]:
    """One run: everyone labels everything, while the server is killed at even steps of the work."""
    keys = make_site(folder / "labels", database, options["items"], options["people"], options["judgments"])
    wrong = options["kills"] > 0
    how = {"pause": options["pause"], "cuts": 0.02 * wrong, "crashes": 0.02 * wrong}
    server = Server(folder, database, free_port())
    people = [Person(key, number, server.port, **how) for number, key in enumerate(keys)]
    total, start, load = options["items"] * options["judgments"], time.perf_counter(), os.getloadavg()[0]
    client = time.process_time()
    for person in people:
        person.start()
    for kill in range(1, options["kills"] + 1):
        while sum(len(person.sent) for person in people) < total * kill / (options["kills"] + 1):
            time.sleep(0.1)
        server.kill()
        server.start()
    for person in people:
        person.join()
    seconds, client = time.perf_counter() - start, time.process_time() - client
    replies = sum(person.replies for person in people)
    server.kill()
    found = check(folder / "labels", database, people)
    problems = [each for person in people for each in person.problems]
    if problems or not found["equal"] or found["labels_per_item"] != [options["judgments"]]:
        raise SystemExit(f"labels are lost, doubled or refused: {found} {problems[:3]}")
    times = sorted(1000 * each for person in people for each in person.times)
    return {
        "restarts": sum(person.restarts for person in people),
        "resent": sum(person.resent for person in people),
        "sent": found["sent"],
        "minutes": round(seconds / 60, 1),
        "rate": round(found["sent"] / seconds, 1),
        "p50": round(statistics.median(times)),
        "p95": round(times[int(0.95 * len(times))]),
        "p99": round(times[int(0.99 * len(times))]),
        "cpu": round(1000 * server.cpu / found["sent"], 1),
        "cpu_request": round(1000 * server.cpu / replies, 1),
        "cpu_client": round(1000 * client / replies, 1),
        "load": f"{load:.1f}, {os.getloadavg()[0]:.1f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, required=True, help="file of the finished runs")
    parser.add_argument("--databases", nargs="+", default=["sqlite", "postgresql"])
    parser.add_argument("--kills", type=int, nargs="+", default=[0, 5], help="times the server is killed in a run")
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--items", type=int, default=2000)
    parser.add_argument("--judgments", type=int, default=3)
    parser.add_argument("--pause", type=float, default=1.0, help="mean seconds that a person thinks")
    options = vars(parser.parse_args())
    results: Path = options.pop("results")
    databases, kills = options.pop("databases"), options.pop("kills")
    rows = [json.loads(line) for line in results.read_text("utf-8").splitlines()] if results.exists() else []
    for run in ({"database": name, "kills": count, **options} for name in databases for count in kills):
        if not any(run.items() <= row.items() for row in rows):
            place = nullcontext("") if run["database"] == "sqlite" else postgres_server()
            with tempfile.TemporaryDirectory() as folder, place as address:
                rows.append({**run, **label_all(Path(folder), address, run)})
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    print(f"| {' | '.join(TITLES)} |\n| --- |{' ---: |' * (len(TITLES) - 1)}")
    for row in rows:
        print(f"| {' | '.join(str(row[name]) for name in COLUMNS)} |")


if __name__ == "__main__":
    main()
