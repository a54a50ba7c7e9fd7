"""How large the report of 1,000 queries × 10 systems × 10 passages is, and how fast a browser opens it.

    python benchmarks/report.py                               # needs selenium, Chromium and its driver
    python benchmarks/report.py --queries 10000 --no-browser  # only what it takes to write it

The report is written by the command ``ragworth report`` in a fresh process: CPU seconds and peak memory from the
kernel. Opening is timed in the page: from the start of the navigation until the list of queries is there, charts in
view included; five times.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.load import measure
from tests.report.page.odd_samples import large

READY = "return document.documentElement.dataset.ready === 'yes' ? performance.now() : 0"


def driver() -> Any:
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,900"):
        options.add_argument(argument)
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))


def waited(browser: Any, script: str) -> float:
    """Milliseconds since the navigation began when a script first gives a number."""
    while not (found := browser.execute_script(script)):
        time.sleep(0.01)
    return float(found)


def time_opening(path: Path) -> None:
    """Print how fast a browser shows the page, and a query of it."""
    browser = driver()
    try:
        opened, query = [], []
        for _ in range(5):
            browser.get("about:blank")
            browser.get(path.as_uri())
            opened.append(waited(browser, READY))
            begin = float(browser.execute_script("location.hash = '#query=q777'; return performance.now()"))
            ready = "return document.querySelectorAll('.passage').length === 30 ? performance.now() : 0"
            query.append(waited(browser, ready) - begin)
        print(f"opened in {median(opened):.0f} ms (from {min(opened):.0f} to {max(opened):.0f})")
        print(f"a query opened in {median(query):.0f} ms (from {min(query):.0f} to {max(query):.0f})")
    finally:
        browser.quit()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--systems", type=int, default=10)
    parser.add_argument("--no-browser", action="store_true", help="only write the report")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        large(given.queries, given.systems).write(folder)
        cost = measure(["report", "."], folder)
        if cost["code"]:
            sys.exit((folder / "out.txt").read_text())
        path = folder / "report.html"
        print(
            f"written in {cost['cpu']:.1f} CPU s, {cost['seconds']:.1f} s, peak {cost['peak_mb']:,.0f} MiB; "
            f"the page has {path.stat().st_size / 1e6:.1f} MB",
            flush=True,
        )
        if not given.no_browser:
            time_opening(path)


if __name__ == "__main__":
    main()
