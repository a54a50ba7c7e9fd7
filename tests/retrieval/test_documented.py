"""The page on retrieval says of every kind of step what the code says."""

from __future__ import annotations

import inspect
import re
from dataclasses import Field
from pathlib import Path
from typing import Any

import pytest

from ragworth import retrieval
from ragworth.retrieval import STEPS, parse, retrieve
from ragworth.retrieval.contract import DEFAULT_DEPTH, Step, format_value
from ragworth.tasks.options import options_of
from tests.retrieval.samples import passages, world

PAGE = (Path(__file__).parents[2] / "docs" / "retrieval.md").read_text(encoding="utf-8")
PLACES = {"first": "first", "behind": "behind another", "either": "both"}


def kinds() -> str:
    """The table of kinds."""
    lines = ["| kind | what it gives | stands | needs |", "| --- | --- | --- | --- |"]
    lines += [
        f"| `{kind.kind}` | {kind.title} | {PLACES[kind.place]} | {', '.join(kind.needs) or '–'} |" for kind in STEPS
    ]
    return "\n".join(lines)


def settings() -> str:
    """The table of settings."""
    lines = ["| kind | setting | default | may be | meaning |", "| --- | --- | --- | --- | --- |"]
    lines += [
        f"| `{kind.kind}` | `{each.name}` | `{format_value(each.default)}` | {takes(each)} | {each.metadata['help']} |"
        for kind in STEPS
        for each in options_of(kind)
    ]
    return "\n".join(lines)


def takes(each: Field[Any]) -> str:
    low, high, choices = (each.metadata[name] for name in ("low", "high", "choices"))
    if choices:
        return ", ".join(choices)
    if isinstance(each.default, bool | str):
        return "true, false" if isinstance(each.default, bool) else "a text"
    number = "a whole number" if isinstance(each.default, int) else "a number"
    if low is None and high is None:
        return number
    return f"{number}, {low:g} or more" if high is None else f"{number} from {low:g} to {high:g}"


@pytest.mark.parametrize("table", [kinds, settings])
def test_tables(table: Any) -> None:
    assert table() in PAGE, f"docs/retrieval.md should hold this table:\n\n{table()}"


@pytest.mark.parametrize("kind", list(STEPS), ids=lambda kind: kind.kind)
def test_every_kind_says_what_it_does(kind: type[Step]) -> None:
    assert "\n" not in kind.title
    assert inspect.getdoc(kind)


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


def test_the_depth_is_named() -> None:
    assert f"{DEFAULT_DEPTH} passages" in PAGE
