"""Pages on disk, and a browser to open them in."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ragworth.report import page
from tests.report.page import odd_samples, samples

SAMPLES = {"realistic": samples.realistic, "minimal": odd_samples.minimal, "hostile": odd_samples.hostile}


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The path of a report, written once."""
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    written: dict[str, Path] = {}

    def make(name: str) -> Path:
        if name not in written:
            written[name] = tmp_path_factory.mktemp(name) / "report.html"
            page.write(SAMPLES[name](), written[name])
        return written[name]

    return make


@pytest.fixture(scope="session")
def realistic() -> page.Page:
    """The page of realistic results, built once."""
    pytest.importorskip("altair")
    return page.build(samples.realistic())


class Browser:
    """A browser with what tests ask of it."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, path: Path, where: str = "") -> None:
        """Open a page anew, and wait until it says that it is ready."""
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.driver.get(f"{path.as_uri()}{where}")
        self.until("return document.documentElement.dataset.ready === 'yes'")

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def until(self, script: str) -> Any:
        """Wait until a script gives something true."""
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.driver, 30, poll_frequency=0.05).until(lambda driver: driver.execute_script(script))

    def all(self, selector: str) -> list[str]:
        """The texts of all elements that fit."""
        script = "return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent)"
        return list(self.run(script, selector))

    def type(self, selector: str, words: str) -> None:
        self.driver.find_element("css selector", selector).send_keys(words)

    def choose(self, selector: str, value: str) -> None:
        self.run("document.querySelector(arguments[0]).value = arguments[1]", selector, value)
        self.run("document.querySelector(arguments[0]).dispatchEvent(new Event('change'))", selector)

    def click(self, selector: str) -> None:
        self.run("document.querySelector(arguments[0]).click()", selector)

    def draw_all(self) -> None:
        """Scroll through the page, and wait until every chart is there."""
        self.run("document.querySelectorAll('[data-chart]').forEach((each) => each.scrollIntoView())")
        self.run("dispatchEvent(new Event('beforeprint'))")
        self.until("return [...document.querySelectorAll('[data-chart]')].every((each) => each.querySelector('svg'))")

    def complaints(self) -> list[str]:
        """What the console says, and requests for anything but the page itself."""
        console = [entry["message"] for entry in self.driver.get_log("browser")]
        sent = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        urls = [each["params"]["request"]["url"] for each in sent if each["method"] == "Network.requestWillBeSent"]
        return console + [url for url in urls if not url.startswith("file:") or ".html" not in url]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    webdriver = pytest.importorskip("selenium.webdriver")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no chromium and chromedriver on this machine")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    made = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        yield Browser(made)
    finally:
        made.quit()
