"""How large the report of 1,000 queries × 10 systems × 10 passages is, and how fast a browser opens it.

``python benchmarks/report.py`` needs ``ragworth[report]``, selenium, Chromium and its driver. Opening is timed in the
page: from the start of the navigation until the list of queries is there, charts in view included; five times.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.report.page.odd_samples import large

from ragworth.report import page

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


def main() -> None:
    results = large()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        start = time.perf_counter()
        page.write(results, path)
        print(f"written in {time.perf_counter() - start:.1f} s, {path.stat().st_size / 1e6:.1f} MB")
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


if __name__ == "__main__":
    main()
