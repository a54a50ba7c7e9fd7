"""Who may open what: every role at every address, other people's items, links, logins, forged requests."""

from __future__ import annotations

import logging
import re
import uuid
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from tests.label.site.conftest import Site, answer, passage_items, send

ROLES = ("anonymous", "annotator", "adjudicator", "owner")
EVERYONE = {
    "login": "/login/",
    "start": "/start/nonsense/",
    "join": "/join/nonsense/",
}
SIGNED_IN = {
    "home": "/",
    "label": "/p/relevance/label/",
    "relabel": "/p/relevance/label/ITEM/",
    "mine": "/p/relevance/mine/",
    "answer": "POST /p/relevance/answer/",
    "next": "POST /p/relevance/next/",
    "undo": "POST /p/relevance/undo/",
    "hold": "POST /p/relevance/hold/",
    "logout": "POST /logout/",
}
REVIEWERS = {
    "agreement": "/p/relevance/agreement/",
    "adjudicate": "/p/relevance/adjudicate/",
    "next-dispute": "POST /p/relevance/adjudicate/next/",
    "decide": "POST /p/relevance/adjudicate/decide/",
}
OWNERS = {
    "project": "/p/relevance/",
    "items": "/p/relevance/items/",
    "item": "/p/relevance/items/ITEM/",
    "add-items": "POST /p/relevance/items/add/",
    "set-open": "POST /p/relevance/open/",
    "export": "/p/relevance/export/labels/",
    "people": "/people/",
    "invite": "POST /people/invite/",
    "change-person": "POST /people/PERSON/",
    "audit": "/audit/",
}
ALLOWED = {
    **{name: set(ROLES) for name in EVERYONE},
    **{name: set(ROLES) - {"anonymous"} for name in SIGNED_IN},
    **{name: {"adjudicator", "owner"} for name in REVIEWERS},
    **{name: {"owner"} for name in OWNERS},
}
ADDRESSES = {**EVERYONE, **SIGNED_IN, **REVIEWERS, **OWNERS}


def test_the_table_above_names_every_route(site: Site) -> None:
    from ragworth.label.site.middleware import PERMISSIONS
    from ragworth.label.site.urls import urlpatterns

    assert len(urlpatterns) == len(PERMISSIONS)
    assert {name: set(roles) for name, roles in PERMISSIONS.items()} == ALLOWED


@pytest.mark.parametrize("role", ROLES)
def test_every_role_opens_exactly_its_pages(site: Site, role: str) -> None:
    project = site.project(3)
    user = site.person("max", role, project) if role != "anonymous" else None
    other = site.person("other", "annotator")
    held = 0
    if user is not None:
        from ragworth.label.site.leases import next_item

        row = next_item(user, project)
        assert row is not None
        held = row.item_id
    refused = set()
    for name, address in ADDRESSES.items():
        client = site.client(user)
        method, _, path = address.rpartition(" ")
        path = path.replace("ITEM", str(held or 1)).replace("PERSON", str(other.pk))
        reply = client.post(path) if method else client.get(path)
        assert reply.status_code < 500, name
        to_login = reply.status_code == 302 and "/login/" in reply["Location"] and name != "logout"
        if reply.status_code == 403 or to_login:
            refused.add(name)
    assert refused == {name for name, roles in ALLOWED.items() if role not in roles}


def test_a_project_of_others_and_an_item_of_others_do_not_exist(site: Site) -> None:
    from ragworth.label.site.leases import next_item

    project = site.project(3)
    ana, ben = site.person("ana", "annotator", project), site.person("ben", "annotator")
    row = next_item(ana, project)
    assert row is not None
    stranger = site.client(ben)
    assert stranger.get("/p/relevance/label/").status_code == 404
    assert answer(stranger, project, row.item_id, {"relevance": "1"}).status_code == 404
    site.person("ben", "annotator", project)
    assert stranger.get(f"/p/relevance/label/{row.item_id}/").status_code == 404
    assert answer(stranger, project, row.item_id, {"relevance": "1"}).status_code == 404


def test_nobody_takes_over_the_id_of_somebody_elses_answer(site: Site) -> None:
    from ragworth.label.site.leases import next_item

    project = site.project(3)
    number = str(uuid.uuid4())
    replies = []
    for name in ("ana", "ben"):
        user = site.person(name, "annotator", project)
        row = next_item(user, project)
        assert row is not None
        replies.append(answer(site.client(user), project, row.item_id, {"relevance": "1"}, id=number).status_code)
    assert replies == [200, 409]


def test_a_switched_off_account_is_out_at_once(site: Site) -> None:
    ana = site.person("ana")
    client = site.client(ana)
    assert client.get("/").status_code == 200
    ana.is_active = False
    ana.save()
    assert client.get("/").status_code == 302


def test_a_number_that_no_database_has_is_no_page(site: Site) -> None:
    from ragworth.label.site.server import find_owner

    site.project(1)
    client = site.client(find_owner())
    for address in (f"/p/relevance/label/{10**30}/", f"/p/relevance/items/{10**19}/"):
        assert client.get(address).status_code == 404


def test_requests_without_the_token_are_refused(site: Site) -> None:
    project = site.project(3)
    client = site.client(site.person("ana", "annotator", project), enforce_csrf_checks=True)
    assert send(client, "/p/relevance/next/", {}).status_code == 403
    assert client.post("/logout/").status_code == 403


def test_the_owners_link_works_once_and_an_old_one_never(site: Site) -> None:
    from ragworth.label.site.links import create_link
    from ragworth.label.site.models import AccessLink
    from ragworth.label.site.server import find_owner

    token = create_link(AccessLink.START, find_owner())
    assert site.client().get(f"/start/{token}/").status_code == 302
    assert site.client().get(f"/start/{token}/").status_code == 410
    late = create_link(AccessLink.START, find_owner(), timedelta(seconds=-1))
    assert site.client().get(f"/start/{late}/").status_code == 410
    invitation = create_link(AccessLink.INVITATION, find_owner())
    assert site.client().get(f"/start/{invitation}/").status_code == 410


def test_an_invitation_sets_a_password_once(site: Site) -> None:
    from ragworth.label.site.links import create_link
    from ragworth.label.site.models import AccessLink, User

    token = create_link(AccessLink.INVITATION, site.person("ana"))
    client = site.client()
    weak = client.post(f"/join/{token}/", {"password": "12345678", "again": "12345678"})
    assert "too common" in weak.content.decode()
    differ = client.post(f"/join/{token}/", {"password": "a long password", "again": "another"})
    assert "differ" in differ.content.decode()
    good = {"password": "herring over Dornaby", "again": "herring over Dornaby"}
    assert client.post(f"/join/{token}/", good).status_code == 302
    assert client.get("/").status_code == 200
    assert site.client().post(f"/join/{token}/", good).status_code == 410
    assert "herring" not in User.objects.get(name="ana").password
    login = site.client().post("/login/", {"name": "ana", "password": good["password"]})
    assert login.status_code == 302


def test_logins_are_limited_and_recorded(site: Site) -> None:
    from ragworth.label.site.models import AuditRecord

    ana = site.person("ana")
    ana.set_password("right")
    ana.save()
    client = site.client()
    tries = [client.post("/login/", {"name": "ana", "password": "wrong"}).status_code for _ in range(6)]
    assert tries == [403] * 5 + [429]
    assert client.post("/login/", {"name": "ana", "password": "right"}).status_code == 429
    assert AuditRecord.objects.filter(action="login failed", subject="ana").count() == 5


@pytest.mark.parametrize("target", ["https://elsewhere.example/", "//elsewhere.example", "javascript:alert(1)"])
def test_a_login_never_leads_elsewhere(site: Site, target: str) -> None:
    ana = site.person("ana")
    ana.set_password("right")
    ana.save()
    reply = site.client().post("/login/", {"name": "ana", "password": "right", "next": target})
    assert reply["Location"] == "/"


@pytest.mark.parametrize("path", ["/login/", "/", "/nothing/", "/static/label/site.css"])
def test_every_response_has_the_policy(site: Site, path: str) -> None:
    reply = site.client(site.person("ana")).get(path)
    assert reply["Content-Security-Policy"].startswith("default-src 'self'; ")
    assert "unsafe" not in reply["Content-Security-Policy"]
    reply.close()


def test_texts_are_escaped_on_every_page(site: Site) -> None:
    """Markup in every field that somebody writes never reaches a page as markup."""
    from ragworth.label.site.leases import next_item
    from ragworth.label.site.server import find_owner
    from ragworth.label.tasks import LabelItem

    evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)>'\"&"
    parts = {"question": evil, "passage": evil}
    items = [
        LabelItem(f"{evil}{n}", "utility", parts, evil, {"query": evil, "passage": f"{evil}{n}"}) for n in range(2)
    ]
    project = site.project(items, "utility", title=evil, judgments=2, blind=False)
    people = [site.person(name, "annotator", project) for name in ("ana", "ben")]
    owner = site.client(find_owner())
    pages = []
    for user, value in zip(people, ("useless", "misleads"), strict=True):
        client = site.client(user)
        row = next_item(user, project)
        assert row is not None
        pages.append(client.get("/p/utility/label/"))
        answer(client, project, row.item_id, {"utility": value}, comment=evil)
        row = next_item(user, project)
        assert row is not None
        answer(client, project, row.item_id, {"reason": evil}, kind="skip")
        pages += [client.get("/p/utility/mine/"), client.get("/")]
    assert row is not None
    owner.post("/people/invite/", {"name": evil, "role": evil})
    addresses = ["/", "/p/utility/", "/p/utility/items/", "/p/utility/agreement/", "/p/utility/adjudicate/"]
    addresses += [f"/p/utility/items/{row.item_id}/", "/people/", "/audit/", f"/p/utility/items/?q={evil}&show={evil}"]
    pages += [owner.get(address) for address in addresses]
    for page in pages:
        text = page.content.decode()
        assert page.status_code == 200, page.request["PATH_INFO"]
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert not re.search(r"<script(?![^>]*(type=\"application/json\"|src=))", text)


def test_an_upload_is_checked_and_its_name_is_never_a_path(site: Site, tmp_path: Path) -> None:
    from django.core.files.uploadedfile import SimpleUploadedFile

    from ragworth.label.items import write_items
    from ragworth.label.site.models import ProjectItem
    from ragworth.label.site.server import find_owner

    project = site.project(3)
    owner = site.client(find_owner())
    write_items([passage_items(5)[4]], tmp_path / "more.jsonl")
    good = (tmp_path / "more.jsonl").read_bytes()

    def upload(data: bytes, name: str = "../../../evil.jsonl") -> str:
        reply = owner.post("/p/relevance/items/add/", {"items": SimpleUploadedFile(name, data)}, follow=True)
        return str(reply.content.decode())

    assert "1 items were added" in upload(good)
    assert "there is an item with this id already" in upload(good)
    assert "line 1" in upload(b"not json\n")
    assert not (tmp_path / "evil.jsonl").exists()
    assert ProjectItem.objects.filter(project=project).count() == 4
    for format in ("..%2F..%2Flabels.sqlite", "nonsense"):
        assert owner.get(f"/p/relevance/export/{format}/").status_code == 404


def test_the_secret_key_is_private_and_not_in_the_folder(site: Site) -> None:
    from django.conf import settings

    from ragworth.label.site.settings import key_file, read_key
    from ragworth.label.site.startup import open_site

    path = key_file(site.folder)
    assert path.stat().st_mode & 0o777 == 0o600
    assert not path.is_relative_to(site.folder)
    open_site(site.folder)
    assert read_key(site.folder) == settings.SECRET_KEY == path.read_text()
    assert not list(site.folder.glob("*.key"))


def test_who_made_a_folder_that_was_shipped_gets_into_no_site(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.db import connection

    from ragworth.label.site.links import create_link, find_link
    from ragworth.label.site.models import AccessLink, LabelEvent, User
    from ragworth.label.site.settings import SiteOptions
    from ragworth.label.site.startup import open_site

    project = site.project(1)
    ana = site.person("ana", "annotator", project)
    client = site.client(ana)
    client.get("/p/relevance/label/")
    assert answer(client, project, project.items.get().pk, {"relevance": "1"}).status_code == 200
    mallory = User.objects.create_user("mallory", "owner", "known")
    token = create_link(AccessLink.INVITATION, mallory)
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TRIGGER again AFTER UPDATE ON label_user BEGIN UPDATE label_user SET password = OLD.password; END"
        )
    open_site(site.folder)  # which was opened here before
    assert User.objects.get(name="mallory").check_password("known")
    monkeypatch.setenv("RAGWORTH_CONFIG", str(tmp_path / "another-user"))
    with pytest.warns(UserWarning, match="passwords and links of 1 person don't work; labels are kept"):
        open_site(site.folder, SiteOptions(hosts=("testserver",)))
    assert not any(user.has_usable_password() for user in User.objects.all())
    assert find_link(AccessLink.INVITATION, token) is None
    assert client.get("/").status_code == 302
    assert LabelEvent.objects.count() == 1
    with pytest.raises(Exception, match="append-only"):
        LabelEvent.objects.all().delete()
    open_site(site.folder)  # which says nothing a second time


def test_a_name_that_the_site_does_not_have_is_one_line_in_the_log(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    handler = next(each for each in logging.getLogger("django.security").handlers if each.filters)
    written = StringIO()
    monkeypatch.setattr(handler, "stream", written)
    for host in ("evil.example", "a b", "[::1", "x" * 5000):
        assert site.client().get("/", HTTP_HOST=host).status_code == 400
    lines = written.getvalue().splitlines()
    assert ["Invalid HTTP_HOST header" in line and len(line) < 300 for line in lines] == [True] * 4


@pytest.mark.parametrize("https", [False, True])
def test_djangos_deployment_checks_pass(site: Site, https: bool) -> None:
    from django.conf import settings
    from django.core.checks import run_checks

    from ragworth.label.site.settings import SiteOptions
    from ragworth.label.site.startup import open_site

    open_site(site.folder, SiteOptions(hosts=("label.example",), https=https))
    found = [each for each in run_checks(include_deployment_checks=True) if not each.is_silenced()]
    assert found == []
    assert settings.SESSION_COOKIE_SECURE is https
    assert settings.DEBUG is False


def test_other_machines_need_encryption_or_consent() -> None:
    from ragworth.core.errors import InputError
    from ragworth.label.site.server import ServerOptions, check_options

    check_options(ServerOptions())
    names = ("label.example",)
    check_options(ServerOptions(host="0.0.0.0", names=names, plain_http=True))
    check_options(ServerOptions(host="0.0.0.0", names=names, https=True))
    with pytest.raises(InputError, match="without encryption"):
        check_options(ServerOptions(host="0.0.0.0", names=names))
    with pytest.raises(InputError, match="under which name"):
        check_options(ServerOptions(host="0.0.0.0", plain_http=True))
    assert ServerOptions().is_local
    assert not ServerOptions(names=("label.example",), https=True).is_local


@pytest.mark.parametrize("link", ["labels", "labels/labels.sqlite", "labels/other"])
def test_a_site_that_leads_out_of_its_workspace_is_refused(tmp_path: Path, link: str) -> None:
    from ragworth.core.errors import InputError
    from ragworth.label.site.startup import site_folder

    (tmp_path / "beyond").mkdir()
    (tmp_path / "w" / link).parent.mkdir(parents=True)
    (tmp_path / "w" / link).symlink_to(tmp_path / "beyond")
    with pytest.raises(InputError, match=r"leads out of its folder, to .*beyond"):
        site_folder(tmp_path / "w")


def test_the_last_owner_stays(site: Site) -> None:
    from ragworth.label.site.server import find_owner

    owner = find_owner()
    client: Any = site.client(owner)
    client.post(f"/people/{owner.pk}/", {"role": "annotator", "active": "yes"})
    client.post(f"/people/{owner.pk}/", {"role": "owner", "active": "no"})
    owner.refresh_from_db()
    assert owner.is_owner


def test_an_invitation_never_demotes_the_last_owner_and_assigning_keeps_role_and_limit(site: Site) -> None:
    from ragworth.label.site.creation import invite_people
    from ragworth.label.site.models import Membership, User
    from ragworth.label.site.projects import add_person
    from ragworth.label.site.server import find_owner

    project = site.project(3)
    owner = find_owner()
    site.client(owner).post("/people/invite/", {"name": owner.name, "role": "annotator"})
    assert User.objects.get(pk=owner.pk).is_owner
    add_person("cleo", "adjudicator", [project], 5)
    invite_people(["cleo", "dan"], [], role=None, most=None, days=7, url="http://x", database="")
    assert User.objects.get(name="cleo").role == "adjudicator"
    assert User.objects.get(name="dan").role == "annotator"
    assert Membership.objects.get(user__name="cleo").most == 5


def test_a_new_invitation_ends_the_earlier_one(site: Site) -> None:
    from ragworth.label.site.links import create_link
    from ragworth.label.site.models import AccessLink

    ana = site.person("ana")
    first, second = (create_link(AccessLink.INVITATION, ana) for _ in range(2))
    assert site.client().get(f"/join/{first}/").status_code == 410
    assert site.client().get(f"/join/{second}/").status_code == 200


@pytest.mark.parametrize(
    ("options", "address"),
    [
        ({"host": "0.0.0.0", "names": ("192.168.1.20",), "plain_http": True}, "http://192.168.1.20:PORT"),
        ({"names": ("label.example:81",), "plain_http": True}, "http://label.example:81"),
        ({"names": ("label.example",), "https": True}, "https://label.example"),
        ({}, "http://127.0.0.1:PORT"),
    ],
)
def test_the_address_that_is_printed_can_be_opened(site: Site, options: dict[str, Any], address: str) -> None:
    from django.conf import settings

    from ragworth.label.site.server import ServerOptions, SiteServer, host_of

    server = SiteServer(site.folder, ServerOptions(port=0, **options))
    try:
        assert server.address == address.replace("PORT", str(server._server.effective_port))
        assert host_of(server.address.split("//")[1]) in settings.ALLOWED_HOSTS
    finally:
        server.close()
