"""People who label over HTTP as the page does, and servers that can be killed under them.

A person answers, waits a little, and resends what got no response under the same id. Two things go wrong at random: the
connection is cut between request and response, and the browser is killed while an item is on the screen.
"""

from __future__ import annotations

import http.client
import json
import random
import re
import threading
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

from ragworth.label.site.settings import SiteOptions
from ragworth.label.site.startup import open_site
from ragworth.label.tasks import LabelItem

TEXT = "The breakwater of Dornaby was opened in 1994, seven years after the storm that took the old mole. " * 8
TOKEN = "a" * 32
PATIENCE = 5
"""Times that a person asks for an item, when others hold the last ones, before they leave."""


def passage_item(number: int) -> LabelItem:
    """A question with a passage of 140 words."""
    meta = {"query": f"q{number // 10}", "passage": f"p{number}"}
    parts = {"question": f"When was breakwater {number} opened?", "passage": f"{TEXT} {number}"}
    return LabelItem(f"i{number}", "relevance", parts, meta["query"], meta)


def make_site(folder: Path, database: str, items: int, people: int, judgments: int) -> list[str]:
    """A project ``load`` and its people; returns session keys, one for each person."""
    open_site(folder, SiteOptions(database), create=True)
    from ragworth.label.site.models import Project
    from ragworth.label.site.projects import add_person, create_project

    project = Project(slug="load", title="Load", task="relevance", judgments=judgments)
    create_project(project, (passage_item(number) for number in range(items)))
    return [sign_in(add_person(f"person{number}", "annotator", [project])) for number in range(people)]


def sign_in(user: Any) -> str:
    """The key of a new session."""
    from django.contrib.sessions.backends.db import SessionStore

    session = SessionStore()
    session.update({"_auth_user_id": str(user.pk), "_auth_user_backend": "django.contrib.auth.backends.ModelBackend"})
    session["_auth_user_hash"] = user.get_session_auth_hash()
    session.create()
    return str(session.session_key)


def session_headers(session: str) -> dict[str, str]:
    """What a signed-in page sends."""
    headers = {"Cookie": f"sessionid={session}; csrftoken={TOKEN}", "X-CSRFToken": TOKEN}
    return headers | {"Content-Type": "application/json", "Accept": "application/json"}


class Person(threading.Thread):
    """An annotator with a browser.

    ``pause``: mean seconds of thought. ``cuts``: how often the connection is cut before the response. ``crashes``: how
    often the browser is killed with an item on the screen. ``times``: seconds to the response to each
    answer, which has the next item.
    """

    def __init__(
        self, session: str, number: int, port: int, *, pause: float, cuts: float, crashes: float, answers: int = 10**9
    ) -> None:
        super().__init__(daemon=True)
        self.headers = session_headers(session)
        self.random = random.Random(number)
        self.port, self.answers, self.pause, self.cuts, self.crashes = port, answers, pause, cuts, crashes
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.sent: dict[str, tuple[int, str]] = {}
        self.times: list[float] = []
        self.resent = self.restarts = self.replies = 0
        self.problems: list[str] = []

    def run(self) -> None:
        reply = self.post("next", {"holding": []})
        empty = 0
        while len(self.sent) < self.answers and empty < PATIENCE and not self.problems:
            if not reply.get("card"):
                empty += 1
                time.sleep(2)
                reply = self.post("next", {"holding": []})
                continue
            empty = 0
            time.sleep(self.random.expovariate(1 / self.pause) if self.pause else 0)
            if self.random.random() < self.crashes:
                self.restarts += 1
                reply = self.post("next", {"holding": []})
                continue
            reply = self.answer(reply["card"])
        self.connection.close()

    def answer(self, card: str) -> dict[str, Any]:
        shown = re.search(r'data-item="(\d+)"', card)
        assert shown is not None
        number, value, answer = int(shown[1]), str(self.random.randrange(4)), str(uuid.uuid4())
        self.sent[answer] = (number, value)
        data = {"id": answer, "item": number, "kind": "answer", "value": {"relevance": value}, "seconds": 1.0}
        return self.post("answer", {**data, "holding": []})

    def post(self, action: str, data: dict[str, Any]) -> dict[str, Any]:
        """Send until there is a response."""
        path, body = f"/p/load/{action}/", json.dumps(data).encode()
        while True:
            if self.random.random() < self.cuts:
                with suppress(OSError, http.client.HTTPException):
                    self.connection.request("POST", path, body, self.headers)
                self.connection.close()
                self.resent += 1
            start = time.perf_counter()
            try:
                self.connection.request("POST", path, body, self.headers)
                reply = self.connection.getresponse()
                text = reply.read().decode()
                self.replies += 1
            except (OSError, http.client.HTTPException):
                self.connection.close()
                self.resent += 1
                time.sleep(0.3)
                continue
            if reply.status == 200:
                if action == "answer":
                    self.times.append(time.perf_counter() - start)
                return dict(json.loads(text))
            if reply.status < 500:
                self.problems.append(f"{reply.status}: {text[:200]}")
                return {}
            self.resent += 1
            time.sleep(0.3)


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
    return {
        "sent": len(sent),
        "stored": LabelEvent.objects.count(),
        "equal": sent == stored and LabelEvent.objects.count() == len(sent),
        "labels_per_item": sorted(set(ProjectItem.objects.annotate(done=done).values_list("done", flat=True))),
        "current_labels": sum(1 for _ in current_labels(Project.objects.get(slug="load"))),
    }
