"""Many people at once, a server that is killed, clients that hang up: every label once, every item exactly K."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.label.site.live import LiveServer
from tests.label.site.postgres import serve_postgres
from tests.label.site.simulated_annotators import Person, check, make_site


def label_everything(folder: Path, database: str) -> None:
    """Five people label twenty items three times each, while the server is killed once."""
    keys = make_site(folder / "labels", database, items=20, people=5, judgments=3)
    server = LiveServer(folder, database)
    people = [Person(key, at, server.port, pause=0.02, cuts=0.15, crashes=0.1) for at, key in enumerate(keys)]
    try:
        for person in people:
            person.start()
        while sum(len(person.sent) for person in people) < 25:
            time.sleep(0.02)
        server.kill()
        server.start()
        for person in people:
            person.join(180)
    finally:
        server.kill()
    assert [problem for person in people for problem in person.problems] == []
    assert sum(person.resent for person in people) > 0
    assert sum(person.restarts for person in people) > 0
    found = check(folder / "labels", database, people)
    assert found["labels_per_item"] == [3]
    assert found["sent"] == found["stored"] == found["current_labels"] == 60
    assert found["equal"]


@pytest.mark.slow
def test_with_sqlite(tmp_path: Path) -> None:
    label_everything(tmp_path, "")


@pytest.mark.slow
@pytest.mark.postgres
def test_with_postgresql(tmp_path: Path) -> None:
    for database in serve_postgres():
        label_everything(tmp_path, database)
        events_cannot_be_changed()
        nul_characters_are_no_error()


def nul_characters_are_no_error() -> None:
    """PostgreSQL refuses them in texts."""
    from django.conf import settings
    from django.db import connection
    from django.test import Client

    settings.ALLOWED_HOSTS.append("testserver")
    assert Client().post("/login/", {"name": "an\0a", "password": "x\0"}).status_code == 403
    connection.close()


def events_cannot_be_changed() -> None:
    from django.db import DatabaseError, connection

    for statement in ("UPDATE label_labelevent SET comment = 'x'", "DELETE FROM label_auditrecord"):
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO label_auditrecord (at, action, subject, address) VALUES (now(), '', '', '')")
            with pytest.raises(DatabaseError, match="append-only"):
                cursor.execute(statement)
    connection.close()
