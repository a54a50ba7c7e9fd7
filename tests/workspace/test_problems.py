"""The one collector of problems."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragworth.core.errors import FormatError, Hint, InputError, MissingExtraError, QrelsGivenError, RunGivenError
from ragworth.workspace import config
from ragworth.workspace.problems import Problems


def fail(error: Exception) -> None:
    raise error


def test_a_single_error_stays_what_it_is() -> None:
    problems = Problems()
    assert problems.of(lambda: fail(FormatError("bad", file="a.csv", line=3))) is None
    with pytest.raises(FormatError, match=r"^a\.csv, line 3: bad$"):
        problems.done()


def test_several_are_raised_together_each_once() -> None:
    problems = Problems()
    for error in (InputError("one"), MissingExtraError("x", "y", "drawing"), InputError("one"), InputError("two")):
        problems.of(lambda error=error: fail(error))  # type: ignore[misc]
    with pytest.raises(InputError) as caught:
        problems.done()
    assert str(caught.value).startswith("3 problems\n  one\n")
    assert "\n  two" in str(caught.value)


def test_swapped_files_are_recognised() -> None:
    problems = Problems()
    problems.of(lambda: fail(RunGivenError("a run")))
    problems.of(lambda: fail(QrelsGivenError("qrels")))
    with pytest.raises(InputError, match="look swapped"):
        problems.done()


def test_an_error_gets_the_line_of_its_key_and_the_words_for_a_workspace(tmp_path: Path) -> None:
    file = tmp_path / "ragworth.toml"
    file.write_text('k = 3\n[systems]\na = "bm25"\n')
    problems = Problems(config.read(tmp_path))
    problems.of(lambda: fail(InputError("bad", remedy=Hint("--a", "[a]", "a="))), "systems", "a")
    problems.say("worse", "mend it", "k")
    with pytest.raises(InputError) as caught:
        problems.done()
    assert f"{file}, line 3: bad\n    to do: [a]" in str(caught.value)
    assert f"{file}, line 1: worse" in str(caught.value)


def test_without_a_file_no_file_is_named(tmp_path: Path) -> None:
    problems = Problems(config.Workspace(tmp_path / "ragworth.toml"))
    problems.say("bad", "mend it", "k")
    with pytest.raises(InputError, match=r"^bad\n"):
        problems.done()
