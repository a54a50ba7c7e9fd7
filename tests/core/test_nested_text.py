"""JSON and TOML whose brackets nest deeply end in an error that names the file, not in a traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from ragworth.build.questions.plan import read_plan
from ragworth.cli import main
from ragworth.core.errors import RagworthError
from ragworth.core.nested_text import MAX_DEPTH, NestingError, parse_json, parse_toml
from ragworth.label.imports.contract import read_json_list
from ragworth.label.tasks.custom import read_custom_task
from ragworth.results import Results


def lists(depth: int) -> str:
    return "[" * depth + "]" * depth


def objects(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


ROW = {"question": "Who built it?", "contexts": ["Ann built it."], "response": "Ann", "reference": "Ann"}


def invoke(*arguments: str) -> str:
    found = CliRunner().invoke(main, list(arguments))
    assert found.exit_code == 2 and isinstance(found.exception, SystemExit), found.output
    return found.output


@pytest.mark.parametrize("nested", [lists, objects])
def test_the_depth_of_json_is_bounded(nested: Callable[[int], str]) -> None:
    assert parse_json(nested(MAX_DEPTH)) == json.loads(nested(MAX_DEPTH))
    for depth in (MAX_DEPTH + 1, 900, 100_000):
        with pytest.raises(NestingError):
            parse_json(nested(depth).encode())
    assert parse_json(json.dumps("[" * 1000)) == "[" * 1000
    assert len(parse_json("[" + "[]," * 1000 + "[]]")) == 1001


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 900, 5000, 100_000])
@pytest.mark.parametrize("name", ["log.jsonl", "log.json"])
def test_nested_logs(name: str, depth: int, tmp_path: Path) -> None:
    row = f'{json.dumps(ROW)[:-1]}, "meta": {lists(depth)}}}'
    (tmp_path / name).write_text(f"[{row}]" if name == "log.json" else f"{row}\n")
    output = invoke("check", str(tmp_path / name), "--model", "none")
    assert f"{name}" in output and "nested more than 100 deep" in output and "write it as text" in output


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 900, 5000, 100_000])
@pytest.mark.parametrize("form", ["lists", "tables", "dots", "head"])
def test_nested_workspaces(form: str, depth: int, tmp_path: Path) -> None:
    dots = ".".join("a" * depth)
    text = {
        "lists": f"x = {lists(depth)}",
        "tables": f"x = {'{a=' * depth}1{'}' * depth}",
        "dots": f"{dots} = 1",
        "head": f"[{dots}]\nx = 1",
    }[form]
    (tmp_path / "ragworth.toml").write_text(f'model = "none"\n{text}\n')
    output = invoke("check", str(tmp_path))
    assert "ragworth.toml" in output and ("nested more than 100 deep" in output or "more than 1,000 dots" in output)


def test_dots_in_texts_are_no_keys() -> None:
    assert parse_toml(f'a.b = "{"." * 5000}"', "x.toml") == {"a": {"b": "." * 5000}}


@pytest.mark.parametrize("depth", [900, 100_000])
def test_nested_files_of_other_kinds(depth: int, tmp_path: Path) -> None:
    nested = lists(depth)
    (tmp_path / "task.toml").write_text(f"fields = {nested}")
    (tmp_path / "manifest.json").write_text(f'{{"results": {nested}}}')
    for read, path in (
        (read_plan, tmp_path / "task.toml"),
        (read_custom_task, tmp_path / "task.toml"),
        (Results.read, tmp_path),
        (lambda file: read_json_list(file, "a list"), tmp_path / "manifest.json"),
    ):
        with pytest.raises(RagworthError, match="nested more than 100 deep") as raised:
            read(path)
        assert str(tmp_path) in str(raised.value)
