"""The file of learned weights: what goes in comes out, and what is no such file is refused with words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragworth.core.errors import FormatError
from ragworth.metrics.theta import Theta

GOOD = Theta(
    2,
    "full",
    (0.1 + 0.2, 1e-300),
    (-0.5, 3.0),
    2.0,
    0.01,
    {"held_out": {"value": 0.5, "low": None}},
    {"titles": ["Ünïcode \x1b[31m"]},
    7,
    "0.1.0",
)


def facts(**changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"k": 2, "variant": "full", "alpha": [1, 0.5], "beta": [0, 0.5], "rel": 1}
    made |= {"c": 1, "figures": {}, "learned_from": {}, "seed": 0, "version": "0.1.0"}
    return {name: value for name, value in (made | changes).items() if value is not ...}


@pytest.mark.parametrize("name", ["theta.json", "theta.json.gz"])
def test_what_is_written_is_read(tmp_path: Path, name: str) -> None:
    GOOD.write(tmp_path / name)
    assert Theta.read(tmp_path / name) == GOOD
    assert Theta.read(str(tmp_path / name)).digest == GOOD.digest
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_the_file_is_plain_json_without_control_characters(tmp_path: Path) -> None:
    GOOD.write(tmp_path / "t.json")
    text = (tmp_path / "t.json").read_text(encoding="utf-8")
    assert "\x1b" not in text
    assert json.loads(text)["alpha"] == [0.1 + 0.2, 1e-300]


def test_whole_numbers_are_numbers(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps(facts()))
    read = Theta.read(tmp_path / "t.json")
    assert read.alpha == (1.0, 0.5)
    assert all(isinstance(each, float) for each in (*read.alpha, *read.beta, read.rel, read.c))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"learned_from": {"query_digests": [1]}}, "learned_from has query_digests"),
        ({"k": ...}, "k: field required"),
        ({"k": 0}, "k is 0"),
        ({"k": 2.0}, "k is '2.0'"),
        ({"k": True}, "k is 'True'"),
        ({"k": 10**9}, "k is 1000000000"),
        ({"k": 3}, "alpha has 2 weights and k is 3"),
        ({"variant": "half"}, "variant is 'half'"),
        ({"alpha": [1]}, "alpha has 1 weight and k is 2"),
        ({"alpha": [1, "2"]}, "alpha.1 is '2'"),
        ({"alpha": [1, None]}, "alpha.1 is 'None'"),
        ({"alpha": [1, 10**400]}, "alpha"),
        ({"variant": "binary"}, "beta is not 0"),
        ({"rel": "1"}, "rel is '1'"),
        ({"c": 0}, "c is 0"),
        ({"seed": -1}, "seed -1"),
        ({"version": 1}, "version is '1'"),
        ({"learned_from": "x" * 500}, "learned_from is 'xxx"),
    ],
)
def test_hostile_facts(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(facts(**changes)))
    with pytest.raises(FormatError) as caught:
        Theta.read(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)
    assert "learn it again" in caught.value.remedy
    assert max(map(len, str(caught.value).splitlines())) < 300


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps(facts(k="0", variant="no", alpha=1, c=None)))
    with pytest.raises(FormatError) as caught:
        Theta.read(tmp_path / "t.json")
    assert len(caught.value.more) == 4


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "invalid JSON"),
        (b"\x80\x04K\x01.", "invalid JSON"),
        (b"{", "invalid JSON"),
        (b"[1, 2]", "1 problem"),
        (b"[" * 100_000, "invalid JSON"),
        (b'{"alpha": [NaN]}', "a finite number"),
        (b" " * (1 << 25), "too large"),
        (b"\x1f\x8b\x08\x00packed", "invalid JSON"),
    ],
)
def test_hostile_bytes(tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "t.json").write_bytes(data)
    with pytest.raises(FormatError, match=said):
        Theta.read(tmp_path / "t.json")


def test_no_file_a_folder_and_no_name(tmp_path: Path) -> None:
    for path, said in ((tmp_path / "no.json", "no such file"), (tmp_path, "directory"), ("a\0b", "null byte")):
        with pytest.raises(FormatError, match=said):
            Theta.read(path)
    with pytest.raises(FormatError, match="cannot be written"):
        GOOD.write(tmp_path / "no" / "t.json")


def test_a_number_that_json_cannot_hold_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        Theta(1, "full", (float("nan"),), (0.0,)).write(tmp_path / "t.json")
    assert not list(tmp_path.iterdir())
