"""Pages of the site under axe-core, where the file that RAGWORTH_AXE names is there (``npm pack axe-core``)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.label.site.conftest import Site
from tests.label.site.live import LiveServer
from tests.label.site.test_browser import open_page
from tests.label.site.test_browser import server as server
from tests.label.site.test_browser import site as site
from tests.report.page.conftest import Browser
from tests.report.page.conftest import browser as browser

SCRIPT = """
const done = arguments[0];
axe.run(document, {resultTypes: ['violations']}).then(({violations}) => done(
  violations.map((each) => `${each.impact} ${each.id}: ${each.nodes[0].html.slice(0, 120)}`)));
"""
PATHS = ("/", "/p/utility/", "/p/utility/items/", "/p/utility/agreement/", "/people/", "/audit/", "/room/")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing(browser: Browser, site: Site, server: LiveServer, scheme: str, width: int) -> None:
    from ragworth.label.site.models import Project

    file = os.environ.get("RAGWORTH_AXE")
    if not file:
        pytest.skip("RAGWORTH_AXE is not set: it names axe.min.js of axe-core")
    if not Project.objects.filter(slug="utility").exists():
        site.project(3, "utility")
    open_page(browser, server, "/p/utility/label/")
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    found = {}
    for path in ("/p/utility/label/", *PATHS):
        browser.driver.get(f"{server.address}{path}")
        browser.run(Path(file).read_text(encoding="utf-8"))
        found[path] = browser.driver.execute_async_script(SCRIPT)
    browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert {path: problems for path, problems in found.items() if problems} == {}
