"""The demo with simulated human labels, and pictures of its labelling site."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from figures.demo import evaluated
from figures.pictures import BROWSERS
from figures.running import ROOT, Run

SLIPS = {"ana": 0.04, "ben": 0.10, "cleo": 0.16}
"""People who follow the deterministic grader, and how often each of them slips."""
GRADES = {1.0: "correct", 0.0: "abstained", -1.0: "wrong"}
EXAMPLE_FILES = ("queries.jsonl", "passages.jsonl", "qrels.txt")
DOWN, ENTER = "\ue015", "\ue007"


def labelled_demo(run: Run) -> Path:
    """A copy of the demo in a folder ``demo``, evaluated, without projects and labels of an earlier run."""
    folder = run.copy("examples/demo", "labelling/demo")
    for name in ("labels", "human", "all-labels"):
        shutil.rmtree(folder / name, ignore_errors=True)
    run.forget(folder.parent)
    evaluated(run, folder, run.pick("", "--limit 12"))
    return folder


def simulate_labels(folder: Path, exported: Path) -> Path:
    """Labels of every exported item by everyone in ``SLIPS``, as a file to import."""
    import ragworth

    outcomes = ragworth.Results.read(folder / "results").outcomes
    assert outcomes is not None
    rows = outcomes.frame.filter(aspect="grade").select("system", "query", "value").iter_rows()
    truth = {(system, query): GRADES[value] for system, query, value in rows if value is not None}
    file = exported / "simulated.jsonl"
    with file.open("w", encoding="utf-8") as written:
        for name, slips in SLIPS.items():
            draw = random.Random(name)
            for line in (exported / "items.jsonl").read_text(encoding="utf-8").splitlines():
                item = json.loads(line)
                right = truth[item["meta"]["system"], item["meta"]["query"]]
                said = draw.choice([each for each in GRADES.values() if each != right])
                grade = said if draw.random() < slips else right
                label = {"annotator": name, "item": item["id"], "value": {"grade": grade}}
                written.write(json.dumps({**label, "seconds": round(draw.uniform(2, 8), 1)}) + "\n")
    return file


def write_example_item(folder: Path) -> Path:
    """A question of the demo with the passage that answers it, as a file of one item."""
    queries, passages = ((folder / f"{name}.jsonl").read_text(encoding="utf-8") for name in ("queries", "passages"))
    question = next(row for row in map(json.loads, queries.splitlines()) if row["_id"] == "q01")
    relevant = next(
        line.split()[2] for line in (folder / "qrels.txt").open(encoding="utf-8") if line.startswith("q01 ")
    )
    passage = next(row for row in map(json.loads, passages.splitlines()) if row["_id"] == relevant)
    parts = {"question": question["text"], "passage": f"{passage['title']}\n{passage['text']}"}
    item = {"id": "example", "parts": parts, "group": "q01", "meta": {"query": "q01", "passage": relevant}}
    file = folder / "example.jsonl"
    file.write_text(json.dumps(item) + "\n", encoding="utf-8")
    return file


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The labelling site of a workspace; yields the link that signs in the owner."""
    command = [sys.executable, "-u", "-m", "ragworth", "label", "serve", str(folder), "--no-browser", "--port", "0"]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        yield next(found[0] for line in server.stdout if (found := re.search(r"http\S+/start/\S+", line)))
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


@contextmanager
def window(width: int = 1280, height: int = 940) -> Iterator[Any]:
    """A browser without a window on the screen."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = next(path for name in BROWSERS if (path := shutil.which(name)))
    # Without a screen there is no mouse either, and the page hides its keys from people without a keyboard.
    mouse = "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4"
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars", f"--window-size={width},{height}", mouse):
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


def picture(driver: Any, address: str, keys: str, made: Path) -> Path:
    """A page after some keys were pressed."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.support.ui import WebDriverWait

    driver.get(address)
    ready = "return document.readyState === 'complete' && document.documentElement.dataset.ready !== 'no'"
    WebDriverWait(driver, 60).until(lambda each: each.execute_script(ready))
    for key in keys:
        ActionChains(driver, duration=0).send_keys(key).perform()
    driver.save_screenshot(str(made))
    return made
