"""The labelling page in a real browser: keyboard, highlights in any script, lost connections, small screens."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from ragworth.label.tasks import LABEL_TASKS, LabelItem, LabelTask, SpansField
from tests.label.site.conftest import Site, open_empty_site, passage_items
from tests.label.site.live import LiveServer
from tests.report.page.conftest import Browser
from tests.report.page.conftest import browser as browser

SCRIPTS = {
    "paragraphs": "First paragraph.\n\nSecond paragraph,\r\nwith another line end.\rAnd a third.",
    "hebrew": "הגשר נפתח בשנת 1931. אורכו 420 מטרים.",
    "mixed": "The word مرحبا بالعالم means hello, שלום too.",
    "chinese": "这座桥于1931年5月3日开通。全长420米。",
    "combining": "Cafe\u0301 au lait, nai\u0308ve, ห้องน้ำ, हिन्दी में.",
    "emoji": "A family 👩‍👩‍👧‍👦 and a flag 🇫🇮, 👍🏽 done 𝔘.",
}


MORE_PAGES = (
    *("/p/phone/items/", "/p/phone/agreement/", "/p/phone/adjudicate/", "/p/phone/mine/"),
    *("/people/", "/audit/", "/login/"),
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, empty_site: bytes) -> Iterator[Site]:
    """One site for all tests of a file: starting a server takes seconds. Each test has projects of its own."""
    yield from open_empty_site(tmp_path_factory.mktemp("site"), empty_site)


@pytest.fixture(scope="module")
def server(site: Site) -> Iterator[LiveServer]:
    served = LiveServer(site.folder)
    try:
        yield served
    finally:
        served.kill()


def open_page(browser: Browser, server: LiveServer, path: str) -> None:
    """Open a page as the owner. The link works once; after that the browser has a session."""
    browser.driver.get(server.link or f"{server.address}/")
    browser.run("localStorage.clear()")
    browser.driver.get_log("browser")
    browser.driver.get(f"{server.address}{path}")
    browser.until("return document.documentElement.dataset.ready === 'yes'")


def press(browser: Browser, *keys: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(browser.driver, duration=0).send_keys(*keys).perform()


def wait_for_events(slug: str, count: int) -> list[Any]:
    """The events of a project, when there are as many as expected."""
    from ragworth.label.site.models import LabelEvent

    for _ in range(400):
        events = list(LabelEvent.objects.filter(project__slug=slug).select_related("item").order_by("id"))
        if len(events) >= count:
            break
        time.sleep(0.05)
    assert len(events) == count
    return events


def items_of(task: LabelTask, count: int) -> list[LabelItem]:
    names = ("query", "passage", "subquestion", "system", "repeat", "first", "second")
    parts = {part.name: f"The {part.name} says this. It was opened in 1931." for part in task.parts}
    meta = [{name: f"{name}{number}" for name in names} for number in range(count)]
    return [LabelItem(f"i{at}", task.kind, parts, f"q{at}", meta[at]) for at in range(count)]


def finish_first_task(site: Site, items: list[LabelItem]) -> Any:
    """A project of the task before coverage, whose items the owner has answered: one a query."""
    from ragworth.label.labels import Label, Labels
    from ragworth.label.site.importing import store_labels
    from ragworth.label.site.server import find_owner

    first = LABEL_TASKS.get("answerability")()
    before = [replace(one, meta=items[at].meta) for at, one in enumerate(items_of(first, len(items)))]
    project = site.project(before, first.kind, slug="before-coverage")
    owner = find_owner()
    said = [Label(owner.name, one.id, {"answerable": "unanswerable"}) for one in before]
    store_labels(project, Labels(said), owner)
    return project


@pytest.mark.parametrize("kind", LABEL_TASKS.names())
def test_items_by_keyboard_alone(browser: Browser, site: Site, server: LiveServer, kind: str) -> None:
    """Twenty relevance judgments; of other tasks, two rounds of all options are enough."""
    task = LABEL_TASKS.get(kind)()
    count = 20 if kind == "relevance" else 2 * len(task.main.options)
    items = items_of(task, count)
    before = finish_first_task(site, items) if task.after else None
    site.project(items, kind, after=before)
    open_page(browser, server, f"/p/{kind}/label/")
    spans = next((field.name for field in task.fields if isinstance(field, SpansField)), "")
    for number in range(count):
        option = task.main.options[number % len(task.main.options)]
        shown = browser.until("return document.querySelector('.card')?.dataset.item")
        needs = [rule for rule in task.rules if option.value in rule.values and not rule.empty]
        if any(rule.requires == spans for rule in needs):
            press(browser, "h", "\ue015", "\ue007")  # the second sentence, by the arrow key and Enter
        press(browser, option.key)
        for rule in needs:
            if rule.requires != spans:
                browser.type(f"textarea[name={rule.requires}]", "because")
                press(browser, "\ue00c")
        press(browser, "\ue007")
        browser.until(f"return document.querySelector('.card')?.dataset.item !== '{shown}'")
    events = wait_for_events(kind, count)
    assert [event.value[task.main.name] for event in events] == [
        task.main.options[number % len(task.main.options)].value for number in range(count)
    ]
    browser.until("return !document.getElementById('finished').hidden")
    assert [entry["message"] for entry in browser.driver.get_log("browser")] == []


def select(browser: Browser, start: int, end: int) -> str:
    """Select part of the passage, by UTF-16 units; returns what is selected."""
    script = """
    const box = document.querySelector('[data-part=passage]');
    const place = (units) => {
      for (const node of [...box.childNodes].map((each) => each.firstChild ?? each)) {
        if (units <= node.data.length) return [node, units];
        units -= node.data.length;
      }
    };
    const [from, to] = [place(arguments[0]), place(arguments[1])];
    getSelection().setBaseAndExtent(from[0], from[1], to[0], to[1]);
    return getSelection().getRangeAt(0).toString();
    """
    return str(browser.run(script, start, end))


@pytest.mark.parametrize("script", SCRIPTS)
def test_offsets_return_exactly_the_selected_text(
    browser: Browser, site: Site, server: LiveServer, script: str
) -> None:
    text = SCRIPTS[script]
    site.project(
        [LabelItem("i", "utility", {"question": "?", "passage": text}, "q", {"query": "q", "passage": "p"})],
        "utility",
        slug=script,
    )
    open_page(browser, server, f"/p/{script}/label/")
    units = len(text.encode("utf-16-le")) // 2
    halves = [(2, units // 2 - 1), (units // 2 + 2, units)]
    chosen = []
    for start, end in halves:
        chosen.append(select(browser, start, end))
        press(browser, "h")
    assert browser.run("return document.querySelector('[data-part=passage]').textContent") == text
    press(browser, "1", "\ue007")
    (event,) = wait_for_events(script, 1)
    (field,) = [name for name in event.value if name != "utility"]
    stored = [text[span["start"] : span["end"]] for span in event.value[field]]
    assert stored == [whole_characters(text, start, end) for start, end in halves]
    assert "".join(stored) == "".join(chosen).encode("utf-16", "surrogatepass").decode("utf-16", "ignore")


def whole_characters(text: str, start: int, end: int) -> str:
    """A part of a text given in UTF-16 units that don't cut a pair."""
    return text.encode("utf-16-le")[2 * start : 2 * end].decode("utf-16-le")


def test_touching_highlights_become_one_and_can_be_removed(browser: Browser, site: Site, server: LiveServer) -> None:
    site.project(passage_items(1, "utility"), "utility", slug="touching")
    open_page(browser, server, "/p/touching/label/")
    for start, end in ((0, 10), (5, 20), (25, 29)):
        select(browser, start, end)
        press(browser, "h")
    assert browser.all("[data-part=passage] mark") == ["The bridge is 420 me", "long"]
    press(browser, "x")
    assert browser.all(".spans li q") == ["The bridge is 420 me"]


def test_answers_survive_a_killed_server_and_are_stored_once(browser: Browser, site: Site, server: LiveServer) -> None:
    site.project(4, slug="killed")
    open_page(browser, server, "/p/killed/label/")
    press(browser, "1", "\ue007")
    wait_for_events("killed", 1)
    browser.until("return document.querySelector('.card')")
    server.kill()
    press(browser, "2", "\ue007")
    browser.until("return document.getElementById('status').textContent.includes('kept in this browser')")
    server.start()
    events = wait_for_events("killed", 2)
    assert [event.value["relevance"] for event in events] == ["1", "2"]
    browser.until("return document.getElementById('status').textContent === 'All answers are saved.'")
    assert browser.run("return Object.keys(localStorage).filter((key) => key.startsWith('ragworth')).length") == 0


def test_undo_skip_comment_and_help(browser: Browser, site: Site, server: LiveServer) -> None:
    site.project(3, slug="undo")
    open_page(browser, server, "/p/undo/label/")
    first = browser.run("return document.querySelector('.card').dataset.item")
    press(browser, "?")
    assert browser.run("return document.getElementById('help').open")
    press(browser, "\ue00c")
    press(browser, "c", "a remark")
    press(browser, "\ue00c")
    press(browser, "3", "\ue007")
    wait_for_events("undo", 1)
    press(browser, "u")
    browser.until(f"return document.querySelector('.card')?.dataset.item === '{first}'")
    assert browser.run("return document.querySelector('input:checked').value") == "3"
    press(browser, "s", "not in my language")
    browser.click("[data-action=confirm-skip]")
    events = wait_for_events("undo", 3)
    assert [event.kind for event in events] == ["answer", "undo", "skip"]
    assert events[0].comment == "a remark"
    assert events[2].value == {"reason": "not in my language"}


def test_a_missing_answer_is_said_and_nothing_is_sent(browser: Browser, site: Site, server: LiveServer) -> None:
    site.project(2, slug="missing")
    open_page(browser, server, "/p/missing/label/")
    press(browser, "\ue007")
    assert browser.all(".problems li") == ["Relevance: choose a value."]
    wait_for_events("missing", 0)


def test_pages_fit_a_phone_and_have_names_for_everything(browser: Browser, site: Site, server: LiveServer) -> None:
    site.project(3, "utility", slug="phone")
    nameless = """
    const shown = (each) => each.offsetParent !== null && each.type !== 'hidden';
    return [...document.querySelectorAll('input, select, textarea, button, a[href]')].filter(shown)
      .filter((each) => !(each.labels?.length || each.textContent.trim() || each.ariaLabel))
      .map((each) => each.outerHTML);
    """
    driver = browser.driver
    try:
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
        )
        open_page(browser, server, "/p/phone/label/")
        for path in ("/", "/p/phone/label/", "/p/phone/", *MORE_PAGES):
            driver.get(f"{server.address}{path}")
            assert browser.run("return document.documentElement.scrollWidth <= innerWidth"), path
            assert browser.run(nameless) == [], path
            assert browser.run("return document.querySelectorAll('h1, .card').length") >= 1, path
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_have_enough_contrast(browser: Browser, site: Site, server: LiveServer, scheme: str) -> None:
    """WCAG AA: 4.5 to 1 for every text on the labelling page."""
    site.project(3, "utility", slug=f"contrast-{scheme}")
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    open_page(browser, server, f"/p/contrast-{scheme}/label/")
    script = """
    const parse = (colour) => (colour.match(/[\\d.]+/g) ?? []).map(Number);
    const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
      .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
      .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
    const ground = (each) => {
      for (; each; each = each.parentElement) {
        const found = parse(getComputedStyle(each).backgroundColor);
        if (found.length === 3 || found[3] === 1) return found;
      }
      return [255, 255, 255];
    };
    return [...document.querySelectorAll('body *')]
      .filter((each) => each.offsetParent && [...each.childNodes].some((n) => n.nodeType === 3 && n.data.trim()))
      .map((each) => [each, light(parse(getComputedStyle(each).color)), light(ground(each))])
      .map(([each, a, b]) => [each.outerHTML.slice(0, 80), (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)])
      .filter(([, contrast]) => contrast < 4.5);
    """
    try:
        assert browser.run(script) == []
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.slow
def test_a_lease_stays_while_somebody_works_and_ends_while_nobody_does(
    browser: Browser, site: Site, server: LiveServer
) -> None:
    """With a lease of one minute, the page renews it every 20 seconds if there was a key or a movement.

    Here every 2 seconds: the page's timers are ten times as fast.
    """
    from django.utils import timezone

    from ragworth.label.site.models import Assignment

    def is_renewed(seconds: float) -> bool:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if held.get().expires_at > soon:
                return True
            time.sleep(0.1)
        return False

    site.project(1, lease_minutes=1, slug="lease")
    faster = "const original = setInterval; window.setInterval = (call, time) => original(call, time / 10);"
    script = browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": faster})
    try:
        open_page(browser, server, "/p/lease/label/")
    finally:
        browser.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
    soon = timezone.now() + timedelta(seconds=50)
    held = Assignment.objects.filter(project__slug="lease")
    held.update(expires_at=soon - timedelta(seconds=10))
    press(browser, "1")
    assert is_renewed(25)
    held.update(expires_at=soon - timedelta(seconds=10))
    assert not is_renewed(5)
