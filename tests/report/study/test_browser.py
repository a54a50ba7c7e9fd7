"""The page of a study in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from tests.report.page.conftest import Browser

Study = Callable[[str], Path]


@pytest.mark.parametrize("name", ["realistic", "hostile", "bare"])
def test_every_chart_is_drawn_and_nothing_is_complained_of_or_asked_for(
    browser: Browser, study: Study, name: str
) -> None:
    browser.open(study(name) / "study.html")
    browser.draw_all()
    assert browser.complaints() == []
    assert browser.run("return window.hacked") is None
    assert browser.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")


@pytest.mark.parametrize("name", ["realistic", "hostile"])
def test_on_a_phone_nothing_sticks_out(browser: Browser, study: Study, name: str) -> None:
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    try:
        browser.open(study(name) / "study.html")
        browser.draw_all()
        assert browser.run("return document.documentElement.scrollWidth") == 390
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_keyboard_reaches_every_number_of_a_chart(browser: Browser, study: Study) -> None:
    from selenium.webdriver.common.keys import Keys

    browser.open(study("realistic") / "study.html")
    browser.draw_all()
    chart = browser.driver.find_element("css selector", '[data-chart="wins"]')
    browser.run("arguments[0].focus()", chart)
    chart.send_keys(Keys.ARROW_RIGHT)
    assert browser.all("#tip dd")[:2] == ["PPL", "against a distractor"]
    chart.send_keys(Keys.ARROW_RIGHT)
    assert browser.all("#tip dd")[:2] == ["PPL", "against a random one"]
    chart.send_keys(Keys.ARROW_LEFT + Keys.ARROW_LEFT)
    assert browser.all("#tip dd")[:2] == ["KeyEntropy", "against a random one"]
    assert browser.run("return !document.getElementById('tip').hidden")
    chart.send_keys(Keys.ESCAPE)
    assert browser.run("return document.getElementById('tip').hidden")


def test_the_theme_is_chosen_and_charts_follow(browser: Browser, study: Study) -> None:
    browser.open(study("realistic") / "study.html")
    browser.draw_all()
    point = "return document.querySelector('.chart .mark-symbol path').getAttribute('fill')"
    before = browser.run(point)
    browser.click("#theme")
    browser.until(f"return (() => {{{point}}})() !== '{before}'")
    browser.click("#theme")
    browser.run("localStorage.clear()")


def test_what_helps_those_who_do_not_see_it(browser: Browser, study: Study) -> None:
    browser.open(study("realistic") / "study.html")
    levels = browser.run("return [...document.querySelectorAll('h1,h2,h3,h4')].map((each) => +each.tagName[1])")
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    bare = "return [...document.querySelectorAll('main table:not(.plain)')].filter((each) => !each.caption).length"
    assert browser.run(bare) == 0
    assert len(browser.all("figure")) == len(browser.all("figure details table")) == 6
    named = "return [...document.querySelectorAll('.chart')].every((each) => each.ariaLabel && each.tabIndex === 0)"
    assert browser.run(named)
