"""The page in a real browser: what a reader does with it, and what hostile texts do not."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote

import polars as pl
import pytest

from ragworth.data import Answers, Contexts
from ragworth.data.conversations import Message, check_turns
from ragworth.llm import prompts
from ragworth.report import page
from tests.report.page import odd_samples, samples, small_samples
from tests.report.page.conftest import Browser

Report = Callable[[str], Path]


@pytest.mark.parametrize("name", ["realistic", "minimal", "hostile"])
def test_every_chart_is_drawn_and_nothing_is_complained_of_or_asked_for(
    browser: Browser, report: Report, name: str
) -> None:
    browser.open(report(name))
    browser.draw_all()
    assert browser.complaints() == []
    assert browser.run("return window.hacked") is None
    assert browser.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_searching_by_words_and_by_id(browser: Browser, report: Report) -> None:
    browser.open(report("realistic"))
    assert browser.all("#count") == ["46 queries of 46"]
    browser.type("#search", "réport ON the")  # accents and case aside
    assert browser.all("#count") == ["6 queries of 46"]
    assert len(browser.all("#queries tbody tr")) == 6
    browser.open(report("realistic"))
    browser.type("#search", "q007")
    assert browser.all("#queries tbody small")[0] == "q007"
    assert len(browser.all("#queries tbody tr")) == 1


def column(browser: Browser, number: int) -> list[float]:
    """The numbers in a column of the list."""
    words = browser.all(f"#queries tbody tr td:nth-child({number})")
    return [float(each.split()[-1].replace("−", "-")) for each in words if each.split()[-1][-1:].isdigit()]


def test_ordering_by_a_column_says_so_and_turns_round(browser: Browser, report: Report) -> None:
    browser.open(report("realistic"))
    for sort, sign in (("ascending", 1), ("descending", -1)):
        browser.click("#queries th:nth-child(2) button")
        assert browser.run("return document.querySelector('#queries th:nth-child(2)').ariaSort") == sort
        values = column(browser, 2)
        assert values == sorted(values, key=lambda value: sign * value)
        assert len(set(values)) > 5


def test_ordering_by_any_metric_and_by_disagreement(browser: Browser, report: Report) -> None:
    browser.open(report("realistic"))
    browser.choose("#metric", "nDCG@5")
    browser.choose("#order", "high")
    means = [sum(row) / len(row) for row in zip(*(column(browser, i) for i in range(2, 7)), strict=True)]
    assert means == pytest.approx(sorted(means, reverse=True), abs=1e-3)  # the page shows three digits
    assert means[0] > means[-1] + 0.1
    browser.choose("#order", "apart")
    browser.choose("#first", "0")
    browser.choose("#second", "3")
    gaps, first, second = (column(browser, number) for number in (2, 3, 6))
    assert gaps == pytest.approx([a - b for a, b in zip(first, second, strict=True)], abs=2e-3)
    assert [abs(gap) for gap in gaps] == sorted((abs(gap) for gap in gaps), reverse=True)
    assert browser.run("return !document.querySelector('.pair').hidden")


def test_a_count_of_the_diagnosis_opens_its_queries(browser: Browser, report: Report) -> None:
    browser.open(report("realistic"))
    link = 'a[href="#finding=misled&system=BM25"]'
    number = browser.all(f"{link} b")[0]
    browser.click(link)
    browser.until("return document.getElementById('finding').value === 'misled'")
    assert browser.all("#count") == [f"{number} queries of 46"]
    assert all("misled" in chips for chips in browser.all("#queries tbody .chips"))


def test_a_query_opens_with_passages_by_worth_and_goes_back(browser: Browser, report: Report) -> None:
    browser.open(report("realistic"))
    browser.click("#queries tbody a")
    browser.until("return !document.getElementById('query').hidden")
    question = samples.realistic().collection.queries["text"][0]
    assert browser.all("#query-title") == [question]
    assert browser.run("return document.activeElement.id") == "query-title"
    assert len(browser.all(".side")) == 3
    assert len(browser.all(".passage")) == 15
    signs = {"helpful": "▲ +", "harmless": "●", "distracting": "▽ −", "misleading": "▼ −"}
    for kind, sign in signs.items():
        assert all(words.startswith(sign) and words.endswith(kind) for words in browser.all(f".passage.{kind} .badge"))
    assert any("correct" in words or "wrong" in words for words in browser.all(".answer"))
    browser.run("document.querySelectorAll('.marks input')[4].click()")
    assert len(browser.all(".side")) == 4
    browser.click("#query .steps a")
    browser.until("return document.getElementById('query').hidden && !document.getElementById('list').hidden")


def test_a_value_shows_the_template_of_its_prompt_and_what_the_model_said(browser: Browser, report: Report) -> None:
    browser.open(report("realistic"), "#query=q001")
    browser.until("return document.querySelectorAll('.passage').length")
    browser.run("[...document.querySelectorAll('.passage button')].find((b) => b.textContent.includes('abst')).click()")
    assert browser.run("return document.getElementById('dialog').open")
    template = prompts.load_prompt("abstention")
    assert browser.all("#dialog .message pre") == [message.text.strip() for message in template.messages]
    assert "abstention@" in browser.all("#dialog td")[3]
    browser.run("document.getElementById('dialog').close()")
    browser.run("[...document.querySelectorAll('.answer button')].find((b) => b.textContent === 'prompt').click()")
    assert browser.all("#raw") == [browser.all(".side:first-child .answer q")[0]]


def test_a_turn_shows_its_conversation(browser: Browser, tmp_path: Path) -> None:
    results = samples.realistic()
    said = (Message("user", "<img src=x onerror='window.hacked=1'>"), Message("assistant", "Yes & no."))
    history = [{"role": message.role, "text": message.text} for message in said]
    turn = {"query": "q001", "conversation": "<b>talk</b>", "number": 2, "history": history, "rewrite": "Why so?"}
    talked = replace(results.collection, turns=check_turns([turn]))
    page.write(replace(results, collection=talked), tmp_path / "report.html")
    browser.open(tmp_path / "report.html", "#query=q001")
    browser.until("return document.querySelectorAll('.passage').length")
    assert browser.all("#conversation summary") == ["Turn 2 of conversation <b>talk</b>, after 2 messages"]
    assert browser.all("#conversation p") == [f"User: {said[0].text}", "Assistant: Yes & no.", "Human rewrite: Why so?"]
    assert browser.run("return window.hacked") is None


def test_sub_questions_by_passages(browser: Browser, report: Report) -> None:
    browser.open(report("realistic"), "#query=r1")
    browser.until("return document.querySelectorAll('.matrix tbody tr').length === 8")
    notes = browser.all(".matrix tbody th small")
    assert "– no passage answers it" in notes
    assert "✓ answered" in notes
    browser.run("document.querySelector('.matrix td button').click()")
    assert browser.all("#raw")[0] in "012345"
    assert "Rate how well" in browser.all("#dialog .message pre")[0]


def test_hostile_texts_are_shown_as_texts(browser: Browser, report: Report) -> None:
    results = odd_samples.hostile()
    for query in results.collection.queries["query"]:
        browser.open(report("hostile"), f"#query={quote(query, safe='')}")
        browser.until("return !document.getElementById('query').hidden")
        title = browser.all("#query-title")[0]
        assert title.startswith("<script>window.hacked=1</script><img src=x")
        assert "\\u202e\\u0007" in title
        browser.run("document.querySelectorAll('#query button').forEach((each) => each.click())")
        assert browser.run("return window.hacked") is None
        assert browser.run("return document.querySelectorAll('main img, dialog img').length") == 0
    assert browser.complaints() == []


def test_a_query_that_is_not_there_is_said_to_be_missing(browser: Browser, report: Report) -> None:
    browser.open(report("minimal"), "#query=nowhere")
    assert browser.all("#trouble") == ["There is no query nowhere."]
    assert browser.all("#queries tbody tr th a") == ["q1", "q2"]
    browser.open(report("minimal"), "#finding=nothing")
    assert browser.all("#trouble") == ["There is no finding nothing."]


def test_back_from_a_query_the_keyboard_goes_on_where_it_was(browser: Browser, report: Report) -> None:
    browser.open(report("realistic"))
    browser.click("#forth")
    links = browser.all("#queries tbody th a")
    browser.click("#queries tbody tr:nth-child(3) th a")
    browser.until("return !document.getElementById('query').hidden")
    browser.click(".steps a")
    browser.until("return document.getElementById('query').hidden")
    assert browser.run("return document.activeElement.textContent") == links[2]
    browser.click("#queries tbody tr:nth-child(3) th a")
    browser.until("return !document.getElementById('query').hidden")
    browser.click("nav a[href='#figures']")
    browser.until("return document.getElementById('query').hidden")
    assert browser.run("return document.activeElement.closest('#queries')") is None


def test_what_helps_those_who_do_not_see_it(browser: Browser, report: Report) -> None:
    browser.open(report("realistic"))
    unnamed = """return [...document.querySelectorAll('button, input, select, a')].filter((each) => each.offsetParent &&
        !each.textContent.trim() && !each.ariaLabel && !(each.labels || []).length).map((each) => each.outerHTML)"""
    assert browser.run(unnamed) == []
    levels = browser.run(
        "return [...document.querySelectorAll('h1,h2,h3,h4')].filter((e) => e.offsetParent).map((e) => +e.tagName[1])"
    )
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    bare = "return [...document.querySelectorAll('main table:not(.plain)')].filter((each) => !each.caption).length"
    assert browser.run(bare) == 0
    charts, tables = browser.all("figure"), browser.all("figure details table")
    assert len(charts) == len(tables)


def test_on_a_phone_nothing_sticks_out(browser: Browser, report: Report) -> None:
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    try:
        for where in ("", "#query=q001", "#query=r1"):
            browser.open(report("realistic"), where)
            browser.draw_all()
            assert browser.run("return document.documentElement.scrollWidth") == 390
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_each_of_several_answers_has_its_own_grade_and_what_is_not_shown_says_so(
    browser: Browser, tmp_path: Path
) -> None:
    given = small_samples.results(["UDCG@2", "nDCG@3"], {("one", "q1"): 0.0}, manifest={"settings": {"k": 2}})
    rows = [{"system": "one", "query": "q1", "repeat": n, "text": text} for n, text in enumerate(["Ann", "Bob"])]
    graded = pl.DataFrame({"system": ["one"], "query": ["q1"], "aspect": ["grade"], "each": [[1.0, -1.0]]})
    path = tmp_path / "report.html"
    page.write(replace(given, answers=Answers(rows), said={"grade": graded}), path)
    browser.open(path, "#query=q1")
    browser.until("return document.querySelectorAll('.side').length === 2")
    side = "[...document.querySelectorAll('.side')].find((each) => each.querySelector('h4').textContent === 'one')"
    words = re.sub('["“”]', "", browser.run(f"return {side}.querySelector('.answer').innerText"))
    assert "✓ correct Ann" in words
    assert "✗ wrong Bob" in words
    cards = browser.run(f"return [...{side}.querySelectorAll('.passage .head')].map((each) => each.innerText)")
    assert ["not shown to the model" in card for card in cards] == [False, False, True]


def test_a_query_that_a_system_was_not_asked_is_no_empty_context(browser: Browser, tmp_path: Path) -> None:
    given = small_samples.results(["nDCG@3"], {})
    shown = given.contexts.frame.filter(~((pl.col("system") == "two") & (pl.col("query") == "q2")))
    path = tmp_path / "report.html"
    page.write(replace(given, contexts=Contexts(shown)), path)
    for query, side, findings in (("q1", "", 0), ("q2", "Its log lacks this query.", 1)):
        browser.open(path, f"#query={query}")
        browser.until("return document.querySelectorAll('.side').length === 2")
        assert browser.all(".side > .note") == ([side] if side else [])
        assert browser.all(".marks tbody td:nth-child(2)").count("–") == findings
        assert "null" not in browser.all("#query")[0]
