"""Reports that are built when a test looks at them: building one takes a third of a small evaluation."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

from ragworth.report import page
from ragworth.results import Results, results_record


class UnbuiltPage:
    """Stands in for a page until one of its parts is read."""

    def __init__(self, results: Results, **options: Any) -> None:
        self._built = cache(partial(page.build, results, **options))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._built(), name)


def write_unbuilt(results: Results, path: str | Path, **options: Any) -> UnbuiltPage:
    """Stands in for `page.write`: the files are there, and say nothing."""
    record = results_record(Path(path).parent)
    for name in (Path(path).name, Path(path).with_suffix(".md").name):
        record.write(name, b"a report", adopt=True)
    record.finish()
    return UnbuiltPage(results, **options)


class UndrawnCharts:
    """Stands in for the process that draws charts."""

    def draw(self, spec: object, ending: str) -> bytes:
        return b"\x89PNG\r\n\x1a\n" if ending == "png" else b'<svg xmlns="http://www.w3.org/2000/svg"/>'
