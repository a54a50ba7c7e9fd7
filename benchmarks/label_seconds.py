"""Seconds per item that the labelling page itself takes: a script labels items of every task by keyboard, in Chromium.

    ragworth evaluate demo
    python -m benchmarks.label_seconds demo

Labels twenty items of each task in a copy of an evaluated workspace. Prints the seconds from one item to the next, the
words of an item, and how long reading them takes at 240 words a minute. Needs the extra ``label``, selenium and
Chromium with its driver.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

import polars as pl

from ragworth.label.tasks import load_task

KINDS = (
    "relevance",
    "utility",
    "passage-answerability",
    "answer-grade",
    "preference",
    "context-preference",
    "question-soundness",
)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ENTER = "\ue007"
ITEMS = 20
WORDS_A_MINUTE = 240


class Pace(NamedTuple):
    """Labels of one task by the script."""

    task: str
    labels: int
    words: float
    """Of an item, in the mean."""
    seconds: list[float]
    """From each item to the next one."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The labelling site of a workspace; yields the link that signs in the owner."""
    command = [sys.executable, "-u", "-m", "ragworth", "label", "serve", str(folder), "--no-browser", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
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


def label_by_keyboard(folder: Path, kinds: list[str]) -> dict[str, list[float]]:
    """On every item, press the key of a value that needs nothing else, and Enter; the seconds until the next item."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.support.ui import WebDriverWait

    shown = "return document.querySelector('.card')?.dataset.item ?? ''"
    found: dict[str, list[float]] = {}
    with served(folder) as link, window() as driver:

        def next_item(before: str) -> str:
            WebDriverWait(driver, 60, 0.02).until(lambda each: each.execute_script(shown) not in ("", before))
            return str(driver.execute_script(shown))

        driver.get(link)
        for kind in kinds:
            key = _free_key(kind)
            driver.get(f"{link.partition('/start/')[0]}/p/{kind}/label/")
            item = next_item("")
            for _ in range(ITEMS):
                start = time.perf_counter()
                ActionChains(driver, duration=0).send_keys(key, ENTER).perform()
                item = next_item(item)
                found.setdefault(kind, []).append(time.perf_counter() - start)
            time.sleep(1)  # until the last answer is sent
    return found


def _free_key(kind: str) -> str:
    """The key of a value that no rule wants more for."""
    task = load_task(kind)
    bound = {value for rule in task.rules if not rule.empty for value in rule.values}
    return next(option.key for option in task.main.options if option.value not in bound)


def measure(workspace: Path, folder: Path) -> Iterator[Pace]:
    shutil.copytree(workspace, folder, ignore=shutil.ignore_patterns("labels"))
    created = [kind for kind in KINDS if run("new", str(folder), "--task", kind)]
    seconds = label_by_keyboard(folder, created)
    for kind in created:
        out = folder / "out" / kind
        run("export", str(folder), "-p", kind, "--to", "labels", "-o", str(out))
        items = {row["id"]: row["parts"] for row in map(json.loads, (out / "items.jsonl").open(encoding="utf-8"))}
        labelled = pl.read_parquet(out / "labels.parquet")["item"].to_list()
        words = [sum(len(str(text).split()) for text in items[item].values()) for item in labelled]
        yield Pace(kind, len(labelled), mean(words), seconds[kind])


def run(*words: str) -> bool:
    """A command of ``ragworth label``; False if the workspace lacks what it needs."""
    command = [sys.executable, "-m", "ragworth", "label", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
    return not done.returncode


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workspace", type=Path)
    given = parser.parse_args()
    print("| task | items | words of an item | seconds, median | the slowest | reading, seconds |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        for pace in measure(given.workspace, Path(folder) / "copy"):
            cells = (pace.task, pace.labels, f"{pace.words:.0f}", f"{median(pace.seconds):.1f}",
                     f"{max(pace.seconds):.1f}", f"{60 * pace.words / WORDS_A_MINUTE:.0f}")  # fmt: skip
            print(f"| {' | '.join(map(str, cells))} |")


if __name__ == "__main__":
    main()
