"""Whatever a log holds, it is read, or there is a ragworth error that fits on a screen."""

from __future__ import annotations

import copy
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from ragworth.core.errors import RagworthError
from ragworth.formats import FORMATS, load
from ragworth.formats.contract import LoadedCollection
from tests.formats.sample_files import HERE
from tests.formats.test_rag_logs import DOCUMENTS, LOGS
from tests.formats.test_tool_logs import SAMPLES

NUMBER = int(os.environ.get("RAGWORTH_FUZZ", "12"))
"""Changes of each file; set the variable for a longer search."""

ODD: list[Any] = [
    None,
    True,
    5,
    -0.5,
    1e300,
    "",
    " ",
    "[1",
    "\ud800",
    [],
    [[]],
    [None],
    {},
    {"text": 3},
    {"a": {}},
    "NaN",
]
ODD += [["x"], [{"id": 1}], [{"page_content": "a"}], {"content": []}, "{}", 10**400, "['a' 'b']"]
OTHERS = SAMPLES | {
    "langsmith": {
        "id": "r",
        "run_type": "chain",
        "inputs": {"question": "Who?"},
        "outputs": {"answer": "Ann", "context": [{"page_content": "Ann did."}]},
        "reference_outputs": {"answer": "Ann"},
        "feedback_stats": {"correctness": {"avg": 1.0}},
        "session_name": "v1",
    },
    "chat": {
        "messages": [
            {"role": "user", "content": "Who?"},
            {"role": "assistant", "tool_calls": [{"id": "c"}]},
            {"role": "tool", "content": '{"results": [{"id": "a", "text": "b"}]}'},
        ],
        "response": {"choices": [{"message": {"role": "assistant", "content": "Ann", "context": {"citations": []}}}]},
        "expected": "Ann",
    },
    "log": {"question": "Who?", "prediction": "Ines", "passages": [{"id": "a", "text": "b", "score": 1}], "correct": 1},
    "jsonl": {"query_id": "q", "query": "Who?", "answers": ["a"], "retrieved_context": [{"doc_id": 1, "text": "b"}]},
}


def check(name: str, content: bytes, path: Path, dice: random.Random) -> None:
    path.write_bytes(content)
    spec, skip = dice.choice([f"{name}:{path}", str(path)]), dice.random() < 0.5
    try:
        loaded = load(spec, skip_bad_lines=skip)
    except RagworthError as error:
        assert 0 < len(str(error)) < 4000
        assert len(str(error).splitlines()) <= 24
    except BaseException as error:
        raise AssertionError(f"{type(error).__name__} from {spec}, {skip=}: {content[:3000]!r}") from error
    else:
        assert isinstance(loaded, LoadedCollection)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to all values inside a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, each in inner for place in ((*path, key), *places(each, (*path, key)))]


def changed(value: Any, dice: random.Random) -> Any:
    """The value with one to three places replaced, removed or doubled."""
    value = copy.deepcopy(value)
    for _ in range(dice.choice([1, 1, 2, 3])):
        if not (paths := places(value)):
            break
        *way, last = dice.choice(paths)
        inside = value
        for key in way:
            inside = inside[key]
        match dice.choice(["replace", "replace", "remove", "double"]):
            case "remove":
                del inside[last]
            case "double" if isinstance(inside, list):
                inside.append(inside[last])
            case _:
                inside[last] = copy.deepcopy(dice.choice(ODD))
    return value


def documents() -> dict[str, tuple[str, Any]]:
    """Contents of the JSON files by name, with their formats."""
    found: dict[str, tuple[str, Any]] = {name: (name, [row, row]) for name, row in OTHERS.items()}
    for name, kind in (LOGS | DOCUMENTS).items():
        text = (HERE / name).read_text(encoding="utf-8") if not name.endswith((".parquet", ".csv")) else ""
        if name.endswith(".json"):
            found[name] = kind, json.loads(text)
        elif text:
            found[name] = kind, [json.loads(line) for line in text.splitlines()]
    return found


CASES = documents()


def test_every_log_is_here() -> None:
    tested = {*LOGS.values(), *OTHERS}
    assert {each.name for each in FORMATS if each.can("load_rows")} <= tested


@pytest.mark.parametrize("name", CASES)
def test_changed_values(name: str, tmp_path: Path) -> None:
    kind, document = CASES[name]
    dice = random.Random(name)
    for _ in range(NUMBER):
        value = changed(document, dice)
        lines = kind == "jsonl" or (name.endswith("jsonl") and isinstance(value, list))
        text = "\n".join(json.dumps(each) for each in value) if lines else json.dumps(value)
        check(kind, text.encode(), tmp_path / f"log.{'jsonl' if lines else 'json'}", dice)


@pytest.mark.parametrize("name", LOGS)
def test_damaged_bytes(name: str, tmp_path: Path) -> None:
    content = (HERE / name).read_bytes()
    dice = random.Random(name)
    for _ in range(NUMBER // 2):
        at = dice.randrange(len(content))
        piece = dice.choice([b'"', b",", b"\n", b"[", b"}", b"\xff", b"\0", b"null", b"'", b"\\", b"|", b""])
        damaged = content[:at] if dice.random() < 0.3 else content[:at] + piece + content[at + dice.choice([0, 1, 9]) :]
        check(LOGS[name], damaged, tmp_path / f"log{Path(name).suffix}", dice)
