"""Pictures of pages: screenshots, and figures of studies."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def screenshot(page: Path, made: Path, width: int = 1200, height: int = 900) -> Path:
    """The top of an HTML page, by a browser without a window."""
    (browser, *_) = [path for name in BROWSERS if (path := shutil.which(name))]
    options = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={width},{height}"]
    subprocess.run(
        [browser, *options, f"--screenshot={made}", page.resolve().as_uri()], check=True, capture_output=True
    )
    return made
