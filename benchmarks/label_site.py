"""The labelling site under load: simulated annotators over HTTP, with kills of the server and of clients.

::

    python benchmarks/label_site.py --people 20 --items 2000 --judgments 3 --kills 4
    python benchmarks/label_site.py --database postgresql://…/label --kills 4
    python benchmarks/label_site.py --items 100000 --people 5 --answers 50

Every person labels until nothing is left (or ``--answers`` each), resends after lost responses, and sometimes "dies"
between request and response. At the end every stored answer is compared with what was sent: each must be there once,
and every item must have exactly K labels. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

from ragworth.label.site.settings import SiteOptions
from ragworth.label.site.startup import open_site
from ragworth.label.tasks import LabelItem

PORT = 8942
TEXT = "The breakwater of Dornaby was opened in 1994, seven years after the storm that took the old mole. " * 8


def make_site(folder: Path, database: str, items: int, people: int, judgments: int) -> list[str]:
    """A project and people; returns session keys, one for each person."""
    open_site(folder, SiteOptions(database), create=True)
    from django.contrib.sessions.backends.db import SessionStore

    from ragworth.label.site.models import Project
    from ragworth.label.site.projects import add_person, create_project

    project = Project(slug="load", title="Load", task="relevance", judgments=judgments)
    create_project(project, (item(number) for number in range(items)))
    keys = []
    for number in range(people):
        user = add_person(f"person{number}", "annotator", [project])
        session = SessionStore()
        session.update(
            {"_auth_user_id": str(user.pk), "_auth_user_backend": "django.contrib.auth.backends.ModelBackend"}
        )
        session["_auth_user_hash"] = user.get_session_auth_hash()
        session.create()
        keys.append(str(session.session_key))
    return keys


def item(number: int) -> LabelItem:
    meta = {"query": f"q{number // 10}", "passage": f"p{number}"}
    parts = {"question": f"When was breakwater {number} opened?", "passage": f"{TEXT} {number}"}
    return LabelItem(f"i{number}", "relevance", parts, meta["query"], meta)


class Server:
    """A server process that can be killed and started again."""

    def __init__(self, folder: Path, database: str) -> None:
        self.command = [sys.executable, "-m", "ragworth", "label", "serve", str(folder), "--no-browser"]
        self.command += ["--port", str(PORT), *(["--database", database] if database else [])]
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL)
        for _ in range(600):
            try:
                request(PORT, "GET", "/login/", {})
                return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError("the server doesn't start")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def request(port: int, method: str, path: str, headers: dict[str, str], body: str = "") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path, body.encode(), headers)
        reply = connection.getresponse()
        return reply.status, reply.read().decode()
    finally:
        connection.close()


class Person(threading.Thread):
    """An annotator: answers, waits a little, resends what got no response."""

    def __init__(
        self, session: str, number: int, port: int, *, pause: float, deaths: float, answers: int = 10**9
    ) -> None:
        super().__init__(daemon=True)
        token = "a" * 32
        self.headers = {"Cookie": f"sessionid={session}; csrftoken={token}", "X-CSRFToken": token}
        self.headers |= {"Content-Type": "application/json", "Accept": "application/json"}
        self.random = random.Random(number)
        self.port, self.answers, self.pause, self.deaths = port, answers, pause, deaths
        self.sent: dict[str, tuple[int, str]] = {}
        self.times: list[float] = []
        self.resent = 0
        self.problems: list[str] = []

    def post(self, path: str, data: dict[str, Any]) -> dict[str, Any]:
        """Send until there is a response. Now and then the person "dies": they hang up before it comes."""
        body = json.dumps(data)
        while True:
            if self.random.random() < self.deaths:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
                with suppress(OSError):
                    connection.request("POST", path, body.encode(), self.headers)
                connection.close()
                self.resent += 1
            start = time.perf_counter()
            try:
                status, text = request(self.port, "POST", path, self.headers, body)
            except (OSError, http.client.HTTPException):
                self.resent += 1
                time.sleep(0.3)
                continue
            if status == 200:
                self.times.append(time.perf_counter() - start)
                return dict(json.loads(text))
            if status < 500:
                self.problems.append(f"{status}: {text[:200]}")
                return {}
            time.sleep(0.3)

    def run(self) -> None:
        reply = self.post("/p/load/next/", {"holding": []})
        self.times.clear()
        empty = 0
        while self.answers > len(self.sent) and empty < 20 and not self.problems:
            if not reply.get("card"):
                # Others hold the last items; when a lease expires, they are free again.
                empty += 1
                time.sleep(0.5)
                reply = self.post("/p/load/next/", {"holding": []})
                continue
            empty = 0
            shown = re.search(r'data-item="(\d+)"', reply["card"])
            assert shown is not None
            number, value, answer = int(shown[1]), str(self.random.randrange(4)), str(uuid.uuid4())
            time.sleep(self.random.expovariate(1 / self.pause) if self.pause else 0)
            self.sent[answer] = (number, value)
            data = {"id": answer, "item": number, "kind": "answer", "value": {"relevance": value}, "seconds": 1.0}
            reply = self.post("/p/load/answer/", {**data, "holding": []})


def check(folder: Path, database: str, people: list[Person]) -> dict[str, Any]:
    """Compare what was sent with what is stored."""
    open_site(folder, SiteOptions(database))
    from django.db.models import Count, Q

    from ragworth.label.site.events import current_labels
    from ragworth.label.site.models import Assignment, LabelEvent, Project, ProjectItem

    sent = {key: value for person in people for key, value in person.sent.items()}
    events = LabelEvent.objects.values_list("client_id", "item_id", "value")
    stored = {str(key): (number, value["relevance"]) for key, number, value in events}
    done = Count("assignments", filter=Q(assignments__state=Assignment.DONE))
    counts = set(ProjectItem.objects.annotate(done=done).values_list("done", flat=True))
    project = Project.objects.get(slug="load")
    start = time.perf_counter()
    labels = sum(1 for _ in current_labels(project))
    return {
        "sent": len(sent),
        "stored": len(stored),
        "equal": sent == stored and LabelEvent.objects.count() == len(sent),
        "labels_per_item": sorted(counts),
        "current_labels": labels,
        "seconds_to_read_labels": round(time.perf_counter() - start, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--items", type=int, default=2000)
    parser.add_argument("--judgments", type=int, default=3)
    parser.add_argument("--answers", type=int, default=10**9, help="most answers of each person")
    parser.add_argument("--kills", type=int, default=4, help="times the server is killed")
    parser.add_argument("--deaths", type=float, default=0.02, help="chance that a client hangs up before the response")
    parser.add_argument("--pause", type=float, default=0.3, help="mean seconds that a person thinks")
    parser.add_argument("--database", default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "labels"
        keys = make_site(folder, options.database, options.items, options.people, options.judgments)
        server = Server(Path(place), options.database)
        how = {"pause": options.pause, "deaths": options.deaths, "answers": options.answers}
        people = [Person(key, at, PORT, **how) for at, key in enumerate(keys)]
        start = time.perf_counter()
        for person in people:
            person.start()
        for _ in range(options.kills):
            time.sleep(8)
            server.kill()
            server.start()
        for person in people:
            person.join()
        seconds = time.perf_counter() - start
        server.kill()
        found = check(folder, options.database, people)
    times = sorted(each for person in people for each in person.times)
    facts = {
        "database": options.database.partition(":")[0] or "sqlite",
        "people": options.people,
        "items": options.items,
        "judgments": options.judgments,
        "server_kills": options.kills,
        "resent": sum(person.resent for person in people),
        "problems": [each for person in people for each in person.problems][:5],
        "seconds": round(seconds, 1),
        "p50_ms": round(1000 * statistics.median(times), 1),
        "p95_ms": round(1000 * times[int(0.95 * len(times))], 1),
        "p99_ms": round(1000 * times[int(0.99 * len(times))], 1),
        **found,
    }
    print(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
