"""What the page on retrieval says is true; its tables of steps are compared in tests/test_project.py."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ragworth import retrieval
from ragworth.retrieval import parse, retrieve
from tests.retrieval.samples import passages, world

PAGE = (Path(__file__).parents[2] / "docs" / "retrieval.md").read_text(encoding="utf-8")


def test_pipelines_on_the_page_can_be_read() -> None:
    written = re.findall(r"`([^`\n]* (?:>>|%) [^`\n]*)`", PAGE) + re.findall(r'": "([^"\n]*)",', PAGE)
    pipelines = [text for text in written if not re.search(r"\b[abk]\b|\[", text)]
    assert len(pipelines) >= 10
    for text in pipelines:
        # Some are written as in Python.
        assert eval(text) if text.startswith("retrieval.") else parse(text)


def test_the_step_that_is_added_on_the_page() -> None:
    (block,) = re.findall(r"```python\n([^`]*class Every[^`]*)```", PAGE)
    names: dict[str, Any] = {"__name__": __name__}
    exec(block, names)
    texts = {f"p{number}": "mill" for number in range(5)}
    made = retrieve({"s": retrieval.bm25() >> names["Every"](n=2) % 2}, world(texts, {"q": "mill", "r": "none"}))
    assert passages(made, "s") == {"q": ["p4", "p2"], "r": []}


def test_operators_on_the_page() -> None:
    (block,) = re.findall(r"```python\n(from ragworth import retrieval[^`]*)```", PAGE)
    exec(block, {})
