"""Who gets which item: K people, personal orders, leases that expire, limits, repeats, tasks that open later."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from ragworth.core.errors import InputError
from tests.label.site.conftest import Site, answer, passage_items, send


@pytest.mark.parametrize(
    ("meta", "problem"),
    [
        ({}, "item 'new': meta has no query, passage, so nothing says"),
        ({"query": "q0", "passage": "p1"}, "about the same thing as item 'i1'"),
    ],
)
def test_an_item_that_tables_cannot_name_is_refused(site: Site, meta: dict[str, str], problem: str) -> None:
    from ragworth.label.site.projects import add_items

    project, (item,) = site.project(2), passage_items(1)
    with pytest.raises(InputError, match=problem):
        add_items(project, [replace(item, id="new", meta=meta)])
    assert add_items(project, [replace(item, id="gold", meta={}, gold={"relevance": "1"})]) == 1


def take_all(user: Any, project: Any, most: int = 100) -> list[str]:
    """Lease items until there are none, without answering."""
    from ragworth.label.site.leases import next_item

    held: list[Any] = []
    while len(held) < most and (row := next_item(user, project, [each.item_id for each in held])):
        held.append(row)
    return [row.item.key for row in held]


def expire(**which: Any) -> None:
    from django.utils import timezone

    from ragworth.label.site.models import Assignment

    Assignment.objects.filter(**which).update(expires_at=timezone.now() - timedelta(seconds=1))


def test_everyone_sees_all_items_once_in_an_order_of_their_own(site: Site) -> None:
    project = site.project(12, judgments=2)
    orders = [take_all(site.person(name, "annotator", project), project) for name in ("ana", "ben")]
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(f"i{number}" for number in range(12))
    assert orders[0] != orders[1]
    assert orders[0] != [f"i{number}" for number in range(12)]


def test_no_item_is_leased_to_more_than_k_people(site: Site) -> None:
    project = site.project(5, judgments=2)
    taken = [take_all(site.person(name, "annotator", project), project) for name in ("ana", "ben", "cleo")]
    assert [len(each) for each in taken] == [5, 5, 0]


def test_an_expired_lease_goes_to_somebody_else(site: Site) -> None:
    project = site.project(3)
    ana, ben = (site.person(name, "annotator", project) for name in ("ana", "ben"))
    assert len(take_all(ana, project)) == 3
    assert take_all(ben, project) == []
    expire(user=ana)
    assert len(take_all(ben, project)) == 3
    assert take_all(ana, project) == []


def test_a_late_answer_counts_if_a_slot_is_open_and_is_kept_apart_if_not(site: Site) -> None:
    from ragworth.label.site.events import current_labels
    from ragworth.label.site.models import ProjectItem

    project = site.project(1)
    item = ProjectItem.objects.get(project=project)
    ana, ben = (site.person(name, "annotator", project) for name in ("ana", "ben"))
    take_all(ana, project)
    expire(user=ana)
    take_all(ben, project)
    assert answer(site.client(ben), project, item.pk, {"relevance": "2"}).json()["extra"] is False
    assert answer(site.client(ana), project, item.pk, {"relevance": "1"}).json()["extra"] is True
    assert [label.annotator for label in current_labels(project)] == ["ben"]
    assert [label.annotator for label in current_labels(project, extra=True)] == ["ben", "ana"]


def test_a_reload_gives_the_same_item_and_a_preload_another(site: Site) -> None:
    from ragworth.label.site.leases import next_item

    project = site.project(5)
    ana = site.person("ana", "annotator", project)
    first = next_item(ana, project)
    again = next_item(ana, project)
    assert first is not None
    assert again is not None
    assert first.item_id == again.item_id
    second = next_item(ana, project, [first.item_id])
    assert second is not None
    assert second.item_id != first.item_id


def test_a_limit_and_a_closed_project_end_the_queue(site: Site) -> None:
    from ragworth.label.site.projects import add_person

    project = site.project(10)
    ana = add_person("ana", "annotator", [project], 4)
    assert len(take_all(ana, project)) == 4
    ben = site.person("ben", "annotator", project)
    project.is_open = False
    project.save()
    assert take_all(ben, project) == []


def test_gold_items_are_for_everyone_and_repeats_for_those_who_had_the_item(site: Site) -> None:
    plain = passage_items(3)
    gold = replace(plain[0], id="gold", gold={"relevance": "2"})
    again = replace(plain[1], id="again", repeat_of="i1")
    project = site.project([*plain, gold, again])
    ana, ben = (site.person(name, "annotator", project) for name in ("ana", "ben"))
    client = site.client(ana)
    seen = []
    for _ in range(10):
        from ragworth.label.site.leases import next_item

        row = next_item(ana, project)
        if row is None:
            break
        seen.append(row.item.key)
        answer(client, project, row.item_id, {"relevance": "1"})
    assert sorted(seen) == ["again", "gold", "i0", "i1", "i2"]
    assert seen[-1] == "again"
    assert take_all(ben, project) == ["gold"]


def test_coverage_opens_group_by_group_with_one_answerable_question_and_one_not(site: Site) -> None:
    from ragworth.label.site.leases import next_item
    from ragworth.label.site.projects import status_of
    from ragworth.label.tasks import LabelItem

    def part(number: int) -> dict[str, str]:
        return {"report": "The flood left 1,200 people homeless.", "subquestion": f"Question {number}?"}

    first = [
        LabelItem(f"r{query}{n}", "answerability", part(n), query,
                  {"system": "s", "query": query, "repeat": "0", "subquestion": f"s{n}"})
        for query in ("qa", "qb")
        for n in range(3)
    ]  # fmt: skip
    second = [
        LabelItem(f"c{query}{n}", "coverage", {"passage": "P", "subquestion": f"Question {n}?"}, query,
                  {"query": query, "passage": "p", "subquestion": f"s{n}"})
        for query in ("qa", "qb")
        for n in range(3)
    ]  # fmt: skip
    reports = site.project(first, "answerability")
    ratings = site.project(second, "coverage", after=reports)
    ana = site.person("ana", "annotator", reports, ratings)
    client = site.client(ana)
    assert next_item(ana, ratings) is None
    from ragworth.label.site.models import ProjectItem
    from ragworth.label.tasks.fields import make_span

    take_all(ana, reports)
    for item in ProjectItem.objects.filter(project=reports, group="qa").order_by("key"):
        yes = item.key.endswith("0")
        spans = [make_span("report", item.parts["report"], 4, 9)]
        value = {"answerable": "answerable", "nuggets": spans} if yes else {"answerable": "unanswerable"}
        assert answer(client, reports, item.pk, value).status_code == 200
    opened = take_all(ana, ratings)
    assert len(opened) == 2
    assert "cqa0" in opened
    assert set(opened) <= {"cqa0", "cqa1", "cqa2"}
    for row in ratings.items.filter(key__in=opened):
        assert answer(client, ratings, row.pk, {"rating": "5"}).status_code == 200
    status = status_of(ratings)
    assert (status.items, status.controls, status.complete, status.wanted, status.labelled) == (6, 0, 2, 2, 2)


def test_a_lease_is_renewed_while_a_person_works_on_the_item(site: Site) -> None:
    from django.utils import timezone

    from ragworth.label.site.leases import next_item
    from ragworth.label.site.models import Assignment, ProjectItem

    project = site.project(2)
    ana, ben = (site.person(name, "annotator", project) for name in ("ana", "ben"))
    take_all(ana, project)
    first, second = ProjectItem.objects.order_by("pk").values_list("pk", flat=True)
    client = site.client(ana)

    def hold(*items: int) -> list[int]:
        reply = send(client, "/p/relevance/hold/", {"holding": list(items)})
        return list(reply.json()["lost"])

    soon = timezone.now() + timedelta(minutes=1)
    Assignment.objects.update(expires_at=soon)
    assert hold(first) == []
    assert Assignment.objects.get(item=first).expires_at > soon
    assert Assignment.objects.get(item=second).expires_at == soon
    expire(user=ana)
    assert hold(first) == []  # late, and nobody else has asked
    expire(item=second)
    taken = next_item(ben, project)
    assert taken is not None
    assert taken.item_id == second
    assert hold(first, second, 10**9) == [second]
    assert [row.user.name for row in Assignment.objects.filter(state="leased").order_by("item")] == ["ana", "ben"]


def test_nobody_holds_an_item_of_somebody_else_or_one_that_is_done(site: Site) -> None:
    from ragworth.label.site.leases import hold, next_item
    from ragworth.label.site.models import Assignment

    project = site.project(1, judgments=2)
    ana, ben = (site.person(name, "annotator", project) for name in ("ana", "ben"))
    row = next_item(ana, project)
    assert row is not None
    assert hold(ben, project, [row.item_id]) == []
    answer(site.client(ana), project, row.item_id, {"relevance": "1"})
    assert hold(ana, project, [row.item_id]) == []
    assert Assignment.objects.get().state == "done"
