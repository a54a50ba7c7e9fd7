"""A site in a folder of its own, with people and projects."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragworth.label.site.settings import SiteOptions
from ragworth.label.site.startup import open_site
from ragworth.label.tasks import LabelItem

PASSAGE = "The bridge is 420 metres long.\n\nIt was opened on 3 May 1931."


def passage_items(count: int, task: str = "relevance", **facts: Any) -> list[LabelItem]:
    """Items with a question and a passage, three to a query."""
    return [
        LabelItem(
            f"i{number}",
            task,
            {"question": f"When was bridge {number} opened?", "passage": f"{PASSAGE} ({number})"},
            f"q{number // 3}",
            {"query": f"q{number // 3}", "passage": f"p{number}"},
            **facts,
        )
        for number in range(count)
    ]


class Site:
    """An open site, and shortcuts to its parts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def project(self, items: int | list[LabelItem] = 6, task: str = "relevance", **options: Any) -> Any:
        """Create a project; the slug is the task's kind unless given."""
        from ragworth.label.site.models import Project
        from ragworth.label.site.projects import create_project

        slug = options.pop("slug", task)
        project = Project(slug=slug, title=options.pop("title", slug), task=task, **options)
        create_project(project, passage_items(items, task) if isinstance(items, int) else items)
        return project

    def person(self, name: str, role: str = "annotator", *projects: Any) -> Any:
        from ragworth.label.site.projects import add_person

        return add_person(name, role, projects)

    def client(self, user: Any = None, **options: Any) -> Any:
        """A browser, signed in."""
        from django.test import Client

        client = Client(**options)
        if user is not None:
            client.force_login(user)
        return client


def send(client: Any, url: str, data: dict[str, Any]) -> Any:
    return client.post(url, data, content_type="application/json", HTTP_ACCEPT="application/json")


def answer(client: Any, project: Any, item: int, value: dict[str, Any], **facts: Any) -> Any:
    """Send an answer as the page does."""
    data = {"id": str(uuid.uuid4()), "item": item, "kind": "answer", "value": value, "seconds": 2.5, **facts}
    return send(client, f"/p/{project.slug}/answer/", data)


@pytest.fixture(scope="session")
def empty_site(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A database with all tables and no rows: migrating takes longer than copying."""
    folder = tmp_path_factory.mktemp("empty-site")
    open_site(folder, create=True)
    from django.db import connections

    connections.close_all()
    return (folder / "labels.sqlite").read_bytes()


def open_empty_site(place: Path, empty_site: bytes) -> Iterator[Site]:
    """A site without projects in a workspace."""
    folder = place / "ws" / "labels"
    folder.mkdir(parents=True)
    (folder / "labels.sqlite").write_bytes(empty_site)
    open_site(folder, SiteOptions(hosts=("testserver",)))
    from django.db import connections

    yield Site(folder)
    connections.close_all()


@pytest.fixture
def site(tmp_path: Path, empty_site: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    for opened in open_empty_site(tmp_path, empty_site):
        from django.conf import settings

        monkeypatch.setattr(settings, "PASSWORD_HASHERS", ["django.contrib.auth.hashers.MD5PasswordHasher"])
        # Otherwise every client reads all static files first.
        monkeypatch.setattr(settings, "WHITENOISE_AUTOREFRESH", True)
        yield opened
