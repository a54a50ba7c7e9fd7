"""Every page of the site under axe-core, where the file that RAGWORTH_AXE names is there (``npm pack axe-core``)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ragworth.label.labels import Label, Labels
from ragworth.label.tasks import LABEL_TASKS
from tests.label.samples import any_value
from tests.label.site.conftest import Site, passage_items
from tests.label.site.live import LiveServer
from tests.label.site.test_access import ADDRESSES
from tests.label.site.test_browser import finish_first_task, items_of, open_page
from tests.label.site.test_browser import server as server
from tests.label.site.test_browser import site as site
from tests.report.page.conftest import Browser
from tests.report.page.conftest import browser as browser
from tests.report.page.samples import realistic

SCRIPT = """
const done = arguments[0];
axe.run(document, {resultTypes: ['violations']}).then(({violations}) => done(
  violations.map((each) => `${each.impact} ${each.id}: ${each.nodes[0].html.slice(0, 160)}`)));
"""
NO_PAGES = {
    *("start", "export", "room-report", "shared-report"),  # redirects, files, and the page of an evaluation
    "admin",  # Django's own
}
PLACES = {
    **{name: path.replace("relevance", "utility") for name, path in ADDRESSES.items() if "POST" not in path},
    **{f"label {kind}": f"/p/{kind}/label/" for kind in LABEL_TASKS.names()},
    "room-query": "/room/query/?id=QUERY",
    "join": "/join/INVITATION/",
    "shared-room": "/share/SHARE/",
    "shared-query": "/share/SHARE/query/?id=QUERY",
    "expired link": "/join/nonsense/",
    "error": "/p/nothing/",
}
"""What the owner opens, and what anybody opens who has the link."""

FORMS = {"invited": ("/people/", "form.narrow", "name"), "shared": ("/room/", "form[action*=share]", "")}
"""Pages that answer a form: where it is, the form, and a field to fill in."""

ANYBODY = ("login", "join", "expired link", "shared-room", "shared-query")


@pytest.fixture(scope="module")
def places(site: Site) -> dict[str, str]:
    """A site on which every page has something to show, and the addresses of its pages."""
    from ragworth.label.site.importing import store_labels
    from ragworth.label.site.links import create_link
    from ragworth.label.site.models import AccessLink, ProjectItem
    from ragworth.label.site.server import find_owner

    owner = find_owner()
    results = realistic(queries=4, requests=1)
    results.write(site.folder.parent / "results")
    for kind in LABEL_TASKS.names():
        task = LABEL_TASKS.get(kind)()
        items = passage_items(8, kind) if kind == "utility" else items_of(task, 3)
        before = finish_first_task(site, items) if task.after else None
        project = site.project(items, kind, judgments=2, after=before)
        if kind != "utility":
            continue
        said = {owner: (0, 1, 2), site.person("ana", "annotator", project): (0, 2, 3)}
        for person, choices in said.items():
            rows = [
                Label(person.name, one.id, any_value(task, one, at)) for one, at in zip(items, choices, strict=False)
            ]
            store_labels(project, Labels(rows), person)
    facts: dict[str, Any] = {
        "ITEM": ProjectItem.objects.filter(project__slug="utility").order_by("id")[0].pk,
        "QUERY": results.collection.queries["query"][0],
        "INVITATION": create_link(AccessLink.INVITATION, site.person("ben")),
        "SHARE": create_link(AccessLink.SHARE, owner),
    }
    found = {name: path for name, path in PLACES.items() if name not in NO_PAGES}
    for fact, value in facts.items():
        found = {name: path.replace(fact, str(value)) for name, path in found.items()}
    return found


def findings(browser: Browser, script: str) -> list[str]:
    browser.run(script)
    found: list[str] = browser.driver.execute_async_script(SCRIPT)
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing(
    browser: Browser, places: dict[str, str], server: LiveServer, scheme: str, width: int
) -> None:
    file = os.environ.get("RAGWORTH_AXE")
    if not file:
        pytest.skip("RAGWORTH_AXE is not set: it names axe.min.js of axe-core")
    axe = Path(file).read_text(encoding="utf-8")
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    found = {}
    open_page(browser, server, "/p/utility/label/")
    session = browser.driver.get_cookies()
    for name, path in places.items():
        if name in ANYBODY:
            browser.driver.delete_all_cookies()
        browser.driver.get(f"{server.address}{path}")
        found[name] = findings(browser, axe)
        for cookie in session if name in ANYBODY else ():
            browser.driver.add_cookie(cookie)
    browser.driver.get(f"{server.address}/p/utility/adjudicate/")
    browser.run("document.getElementById('help').showModal()")
    assert browser.all(".card")
    found["help"] = findings(browser, axe)
    browser.run("document.querySelector('dialog').append(new Image())")
    assert [each.split(":")[0] for each in findings(browser, axe)] == ["critical image-alt"]  # it does look
    for name, (path, form, field) in FORMS.items():
        browser.driver.get(f"{server.address}{path}")
        if field:
            browser.type(f"[name={field}]", f"{scheme}{width}")
        browser.run("document.querySelector(arguments[0]).requestSubmit()", form)
        browser.until("return document.querySelector('input[readonly]') !== null")
        found[name] = findings(browser, axe)
    browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert {name: problems for name, problems in found.items() if problems} == {}
