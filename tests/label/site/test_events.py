"""Nothing is lost and nothing is stored twice: answers, skips, undo, adjudication, and the log behind them."""

from __future__ import annotations

import threading
import uuid
from typing import Any

import pytest

from tests.label.site.conftest import Site, answer, passage_items, send


def first_item(site: Site, user: Any, project: Any) -> Any:
    from ragworth.label.site.leases import next_item

    row = next_item(user, project)
    assert row is not None
    return row.item


def labels(project: Any) -> dict[tuple[str, str], Any]:
    from ragworth.label.site.events import current_labels

    return {(label.annotator, label.item): label.value for label in current_labels(project)}


def test_a_resent_answer_is_stored_once(site: Site) -> None:
    from ragworth.label.site.models import LabelEvent

    project = site.project()
    ana = site.person("ana", "annotator", project)
    item = first_item(site, ana, project)
    client, number = site.client(ana), str(uuid.uuid4())
    replies = [answer(client, project, item.pk, {"relevance": "3"}, id=number).json() for _ in range(3)]
    assert [reply["repeated"] for reply in replies] == [False, True, True]
    assert LabelEvent.objects.count() == 1
    assert labels(project) == {("ana", item.key): {"relevance": "3"}}


def test_undo_is_an_event_and_gives_the_item_back(site: Site) -> None:
    from ragworth.label.site.models import LabelEvent

    project = site.project()
    ana = site.person("ana", "annotator", project)
    item = first_item(site, ana, project)
    client = site.client(ana)
    answer(client, project, item.pk, {"relevance": "3"})
    reply = send(client, "/p/relevance/undo/", {"id": str(uuid.uuid4())}).json()
    assert f'data-item="{item.pk}"' in reply["card"]
    assert labels(project) == {}
    answer(client, project, item.pk, {"relevance": "0"})
    assert labels(project) == {("ana", item.key): {"relevance": "0"}}
    assert list(LabelEvent.objects.order_by("id").values_list("kind", flat=True)) == ["answer", "undo", "answer"]


def test_undo_goes_back_one_answer_at_a_time(site: Site) -> None:
    project = site.project()
    ana = site.person("ana", "annotator", project)
    client = site.client(ana)
    for value in "12":
        answer(client, project, first_item(site, ana, project).pk, {"relevance": value})
    for left in (1, 0):
        send(client, "/p/relevance/undo/", {"id": str(uuid.uuid4())})
        assert len(labels(project)) == left
    assert send(client, "/p/relevance/undo/", {"id": str(uuid.uuid4())}).json() == {"card": None}


def test_the_progress_counts_every_answer_once(site: Site) -> None:
    project = site.project(6)
    ana = site.person("ana", "annotator", project)
    client = site.client(ana)

    def label(**facts: Any) -> tuple[int, int]:
        item = facts.pop("item", None) or first_item(site, ana, project).pk
        progress = answer(client, project, item, facts.pop("value", {"relevance": "1"}), **facts).json()["progress"]
        return progress["done"], progress["left"]

    first, number = first_item(site, ana, project).pk, str(uuid.uuid4())
    assert label(id=number) == (1, 5)
    assert label() == (2, 4)
    assert label(id=number, item=first) == (2, 4)  # sent again
    assert label(item=first) == (2, 4)  # replaced
    assert label(kind="skip", value={"reason": "in Finnish"}) == (2, 3)
    assert label() == (3, 2)
    undone = send(client, "/p/relevance/undo/", {"id": str(uuid.uuid4())}).json()["progress"]
    assert (undone["done"], undone["left"]) == (2, 3)
    assert label() == (3, 2)


def test_a_second_answer_replaces_the_first_and_says_so(site: Site) -> None:
    project = site.project()
    ana = site.person("ana", "annotator", project)
    item = first_item(site, ana, project)
    client = site.client(ana)
    assert answer(client, project, item.pk, {"relevance": "1"}).json()["replaced"] is False
    assert answer(client, project, item.pk, {"relevance": "2"}).json()["replaced"] is True
    assert labels(project) == {("ana", item.key): {"relevance": "2"}}


def test_a_skip_needs_a_reason_and_frees_the_item_for_others(site: Site) -> None:
    project = site.project(1)
    ana, ben = (site.person(name, "annotator", project) for name in ("ana", "ben"))
    item = first_item(site, ana, project)
    client = site.client(ana)
    refused = answer(client, project, item.pk, {"reason": " "}, kind="skip")
    assert (refused.status_code, refused.json()) == (422, {"problems": ["Say why you skip this item."]})
    assert answer(client, project, item.pk, {"reason": "in Finnish"}, kind="skip").json()["card"] is None
    assert first_item(site, ben, project).pk == item.pk
    from ragworth.label.site.events import current_labels

    (label,) = current_labels(project)
    assert (label.value, label.skipped) == (None, "in Finnish")


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"value": {"relevance": "9"}}, 422),
        ({"value": {"relevance": "1", "other": 1}}, 422),
        ({"value": {}}, 422),
        ({"value": "1"}, 400),
        ({"value": {"relevance": "1\0"}}, 422),
        ({"value": {"relevance": "1", "other": [{"\ud83d": 1}]}}, 422),
        ({"value": {"relevance": float("nan")}}, 400),
        ({"comment": "half an emoji: \ud83d"}, 422),
        ({"kind": "undo"}, 400),
        ({"id": "x"}, 400),
        ({"item": 10**30}, 400),
        ({"item": "1"}, 400),
        ({"comment": "x" * 5001}, 422),
    ],
)
def test_a_wrong_answer_is_refused_and_nothing_is_stored(site: Site, change: dict[str, Any], status: int) -> None:
    from ragworth.label.site.models import LabelEvent

    project = site.project()
    ana = site.person("ana", "annotator", project)
    item = first_item(site, ana, project)
    data = {"id": str(uuid.uuid4()), "item": item.pk, "kind": "answer", "value": {"relevance": "1"}, **change}
    reply = send(site.client(ana), "/p/relevance/answer/", data)
    assert reply.status_code == status
    assert reply.json()["problems"]
    assert not LabelEvent.objects.exists()


@pytest.mark.parametrize("statement", ["UPDATE label_labelevent SET comment = 'x'", "DELETE FROM label_labelevent"])
def test_the_database_refuses_to_change_events(site: Site, statement: str) -> None:
    from django.db import DatabaseError, connection

    project = site.project()
    ana = site.person("ana", "annotator", project)
    answer(site.client(ana), project, first_item(site, ana, project).pk, {"relevance": "1"})
    with pytest.raises(DatabaseError, match="append-only"), connection.cursor() as cursor:
        cursor.execute(statement)


def test_times_and_comments_are_kept(site: Site) -> None:
    from ragworth.label.site.events import current_labels

    project = site.project()
    ana = site.person("ana", "annotator", project)
    item = first_item(site, ana, project)
    facts = {"shown_at": "2026-11-17T06:00:00Z", "answered_at": "2026-11-17T06:00:09+00:00", "comment": " hm "}
    answer(site.client(ana), project, item.pk, {"relevance": "1"}, **facts)
    (label,) = current_labels(project)
    assert label.shown_at == "2026-11-17T06:00:00+00:00"
    assert label.answered_at == "2026-11-17T06:00:09+00:00"
    assert label.seconds == pytest.approx(2.5)
    assert label.comment == "hm"


def test_a_suggestion_that_was_shown_stays_recorded(site: Site) -> None:
    """Also if the owner hides suggestions before the answer arrives, or before it is changed."""
    from ragworth.label.site.models import LabelEvent

    items = passage_items(2, suggestion={"relevance": "2"})
    project = site.project(items, show_suggestions=True)
    ana = site.person("ana", "annotator", project)
    first = first_item(site, ana, project)
    client = site.client(ana)
    page = client.get("/p/relevance/label/").content.decode()
    assert '"suggested": true' in page
    answer(client, project, first.pk, {"relevance": "2"})
    second = first_item(site, ana, project)
    project.show_suggestions = False
    project.save()
    answer(client, project, first.pk, {"relevance": "1"})
    answer(client, project, second.pk, {"relevance": "1"}, suggested=True)
    assert list(LabelEvent.objects.values_list("seen_suggestion", flat=True)) == [True, True, True]


def test_odd_texts_and_times_are_stored(site: Site) -> None:
    from ragworth.label.site.models import LabelEvent

    project = site.project(1)
    ana = site.person("ana", "annotator", project)
    item = first_item(site, ana, project)
    facts = {"comment": r"it says \x00 and \u0000", "shown_at": "0001-01-01T00:00:00+23:59"}
    assert answer(site.client(ana), project, item.pk, {"relevance": "1"}, **facts).status_code == 200
    event = LabelEvent.objects.get()
    assert (event.comment, event.shown_at) == (facts["comment"], None)


def test_disagreement_goes_to_the_queue_and_a_decision_ends_it(site: Site) -> None:
    from ragworth.label.site.models import ProjectItem

    project = site.project(2, judgments=2)
    people = [site.person(name, "annotator", project) for name in ("ana", "ben")]
    for user, values in zip(people, ("13", "12"), strict=True):
        for item, value in zip(ProjectItem.objects.order_by("id"), values, strict=True):
            first_item(site, user, project)
            send(site.client(user), "/p/relevance/next/", {"holding": [1]})
            assert answer(site.client(user), project, item.pk, {"relevance": value}).status_code == 200
    disputed = ProjectItem.objects.get(disputed=True)
    assert disputed.key == "i1"
    judge = site.client(site.person("cleo", "adjudicator", project))
    page = judge.get("/p/relevance/adjudicate/").content.decode()
    assert f'data-item="{disputed.pk}"' in page
    assert page.count('class="answer"') == 2
    assert "ana" not in page
    assert "ben" not in page
    row = "<td>When was bridge 1 opened?</td><td>3 × 1, 2 × 1</td><td>0.33</td>"
    assert row in judge.get("/p/relevance/agreement/").content.decode()
    data = {"id": str(uuid.uuid4()), "item": disputed.pk, "value": {"relevance": "2"}}
    assert send(judge, "/p/relevance/adjudicate/decide/", data).json()["card"] is None
    assert "Items on which people disagree" not in judge.get("/p/relevance/agreement/").content.decode()
    assert labels(project)["adjudicated", "i1"] == {"relevance": "2"}
    assert not ProjectItem.objects.filter(disputed=True).exists()


def test_imported_labels_count_once(site: Site) -> None:
    from ragworth.label.labels import Label, Labels
    from ragworth.label.site.importing import store_labels
    from ragworth.label.site.server import find_owner

    project = site.project(2, judgments=1)
    rows = [
        Label("ana", "i0", {"relevance": "1"}, answered_at="2026-11-17T06:00:00+00:00"),
        Label("ben", "i0", {"relevance": "2"}),
        Label("ben", "i1", None, skipped="no text"),
        Label("adjudicated", "i0", {"relevance": "3"}),
    ]
    assert store_labels(project, Labels(rows), find_owner()) == (3, 0, 1, 0)
    assert store_labels(project, Labels(rows), find_owner()) == (0, 4, 0, 0)
    assert labels(project) == {
        ("ana", "i0"): {"relevance": "1"},
        ("ben", "i1"): None,
        ("adjudicated", "i0"): {"relevance": "3"},
    }


def test_an_import_of_an_older_export_changes_nothing(site: Site) -> None:
    from ragworth.label.labels import Label, Labels
    from ragworth.label.site.events import current_labels
    from ragworth.label.site.importing import store_labels
    from ragworth.label.site.models import LabelEvent
    from ragworth.label.site.server import find_owner

    project = site.project(1)
    ana = site.person("ana", "annotator", project)
    item = first_item(site, ana, project)
    client = site.client(ana)
    answer(client, project, item.pk, {"relevance": "1"}, answered_at="2026-11-17T06:00:00Z")
    exported = Labels(current_labels(project))
    assert store_labels(project, exported, find_owner()) == (0, 1, 0, 0)
    answer(client, project, item.pk, {"relevance": "2"}, answered_at="2026-11-17T07:00:00Z")
    assert store_labels(project, exported, find_owner()) == (0, 0, 0, 1)
    assert store_labels(project, Labels([Label("ana", item.key, {"relevance": "3"})]), find_owner()) == (0, 0, 0, 1)
    assert labels(project) == {("ana", item.key): {"relevance": "2"}}
    assert LabelEvent.objects.count() == 2


def test_an_imported_skip_frees_the_slot(site: Site) -> None:
    from ragworth.label.labels import Label, Labels
    from ragworth.label.site.importing import store_labels
    from ragworth.label.site.models import ProjectItem
    from ragworth.label.site.server import find_owner

    project = site.project(1)
    ana, ben = (site.person(name, "annotator", project) for name in ("ana", "ben"))
    item = first_item(site, ana, project)
    answer(site.client(ana), project, item.pk, {"relevance": "1"}, answered_at="2026-11-17T06:00:00Z")
    skip = Label("ana", item.key, None, skipped="in Finnish", answered_at="2026-11-17T07:00:00+00:00")
    assert store_labels(project, Labels([skip]), find_owner()) == (1, 0, 0, 0)
    assert ProjectItem.objects.get().open_slots == 1
    assert first_item(site, ben, project).pk == item.pk


def test_the_migration_has_all_tables_as_they_are(site: Site) -> None:
    from django.core.management import call_command

    call_command("makemigrations", "label", check_changes=True, dry_run=True, verbosity=0)


def test_writers_on_sqlite_take_turns_instead_of_giving_up(site: Site) -> None:
    """SQLite would give up after 0.05 seconds here; the second writer waits longer, and then writes."""
    from django.db import connections

    from ragworth.label.site import audit
    from ragworth.label.site.models import AuditRecord
    from ragworth.label.site.transactions import writing

    connections.settings["default"]["OPTIONS"]["timeout"] = 0.05
    first_writes, done = threading.Event(), threading.Event()

    def write(name: str, after: threading.Event | None) -> None:
        with writing():
            audit.record(name)
            first_writes.set()
            if after is not None:
                after.wait(0.5)
        connections.close_all()

    first = threading.Thread(target=write, args=("first", done))
    second = threading.Thread(target=write, args=("second", None))
    first.start()
    first_writes.wait()
    second.start()
    first.join()
    second.join()
    assert list(AuditRecord.objects.order_by("id").values_list("action", flat=True)) == ["first", "second"]
