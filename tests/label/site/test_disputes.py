"""Which items wait for a decision, and in which order."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import pytest

from tests.label.site.conftest import Site, answer, passage_items, send


def hold(project: Any, user: Any, number: int) -> Any:
    """Put the item ``i<number>`` into somebody's hands."""
    from ragworth.label.site.leases import renew, take_slot
    from ragworth.label.site.models import Assignment

    item = project.items.get(key=f"i{number}")
    row = Assignment.objects.filter(item=item, user=user).first() or Assignment(project=project, item=item, user=user)
    take_slot(row, item)
    renew(row, project)
    return item


def label(site: Site, project: Any, name: str, number: int, value: str) -> None:
    user = site.person(name, "annotator", project)
    item = hold(project, user, number)
    assert answer(site.client(user), project, item.pk, {"relevance": value}).json()["stored"]


def skip(site: Site, project: Any, name: str, number: int) -> None:
    user = site.person(name, "annotator", project)
    item = hold(project, user, number)
    assert answer(site.client(user), project, item.pk, {"reason": "in Finnish"}, kind="skip").json()["stored"]


def queue(project: Any) -> list[str]:
    from ragworth.label.site.disputes import count_undecided, next_undecided

    found: list[Any] = []
    while item := next_undecided(project, [each.pk for each in found]):
        found.append(item)
    assert len(found) == count_undecided(project)
    return [item.key for item in found]


def test_skipped_items_come_after_disputed_ones_and_unfinished_ones_when_the_project_is_closed(site: Site) -> None:
    project = site.project(6, judgments=3)
    skip(site, project, "ana", 0)
    for name, value in (("ana", "0"), ("ben", "1"), ("cleo", "1")):
        label(site, project, name, 1, value)
    for name, value in (("ana", "0"), ("ben", "3")):
        label(site, project, name, 2, value)
        label(site, project, name, 3, "1")
    assert queue(project) == ["i1", "i0"]
    project.is_open = False
    project.save()
    assert queue(project) == ["i1", "i2", "i0"]


def test_a_decision_about_a_skipped_item_is_its_label(site: Site) -> None:
    from ragworth.label.site.exporting import labelled_data

    project = site.project(1, judgments=2)
    skip(site, project, "ana", 0)
    judge = site.client(site.person("cleo", "adjudicator", project))
    page = judge.get("/p/relevance/adjudicate/").content.decode()
    assert "in Finnish" in page and "ana" not in page
    item = project.items.get()
    data = {"id": str(uuid.uuid4()), "item": item.pk, "value": {"relevance": "2"}}
    assert send(judge, "/p/relevance/adjudicate/decide/", data).json()["card"] is None
    (row,) = labelled_data(project).consensus()["judgments"].iter_rows(named=True)
    assert (row["value"], row["source"]) == (2.0, "adjudicated")
    assert queue(project) == []


def test_an_answer_that_is_taken_back_ends_the_dispute(site: Site) -> None:
    from ragworth.label.site.events import undo
    from ragworth.label.site.models import User

    project = site.project(1, judgments=2)
    label(site, project, "ana", 0, "0")
    label(site, project, "ben", 0, "3")
    assert queue(project) == ["i0"]
    assert undo(User.objects.get(name="ben"), project, uuid.uuid4()) is not None
    assert queue(project) == []


@pytest.mark.parametrize("control", [{"gold": {"relevance": "1"}}, {"repeat_of": "i0"}])
def test_items_that_check_annotators_are_never_decided(site: Site, control: dict[str, Any]) -> None:
    from ragworth.label.site.models import Assignment
    from ragworth.label.site.projects import add_items

    project = site.project(1)
    (item,) = passage_items(1)
    add_items(project, [replace(item, id="control", meta={"query": "q9", "passage": "p9"}, group="q9", **control)])
    row = project.items.get(key="control")
    people = [site.person(name, "annotator", project) for name in ("ana", "ben", "cleo")]
    for user in people:
        Assignment.objects.create(project=project, item=row, user=user, state=Assignment.LEASED)
    for user, value in zip(people, "03", strict=False):
        assert answer(site.client(user), project, row.pk, {"relevance": value}).json()["stored"]
    answer(site.client(people[2]), project, row.pk, {"reason": "?"}, kind="skip")
    assert queue(project) == []
